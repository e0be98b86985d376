//! Where a call goes, with everything decided about it when the catalog was built.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::http::ParamHeaders;

use crate::arguments::ArgumentRules;
use crate::guard::Attention;
use crate::schema::{ArgumentSchema, ResultSchema};
use crate::server::connection::Connection;

/// The way to one tool.
#[derive(Debug)]
pub(crate) struct ToolRoute {
    pub(crate) public: Box<str>,
    pub(crate) tool: Box<str>,
    pub(crate) arguments: ArgumentSchema,
    /// What the tool promises of its structured results, if anything that can be checked.
    pub(crate) results: Option<Arc<ResultSchema>>,
    /// What holds for arguments whatever the schema says.
    pub(crate) rules: ArgumentRules,
    /// What is looked at for attacks; `None` where nothing is.
    pub(crate) attention: Option<Attention>,
    /// Arguments that the server wants to see in headers.
    pub(crate) headers: ParamHeaders,
    pub(crate) timeout: Duration,
    /// Whether the server says that it may be called twice.
    pub(crate) harmless: bool,
    /// Whether it has to be called as a task of the revision 2025-11-25.
    pub(crate) as_task: bool,
    pub(crate) connection: Arc<Connection>,
}

/// The way to one prompt.
#[derive(Debug)]
pub(crate) struct PromptRoute {
    pub(crate) prompt: Box<str>,
    pub(crate) required: Vec<Box<str>>,
    pub(crate) timeout: Duration,
    /// What is looked at for attacks; `None` where nothing is.
    pub(crate) attention: Option<Arc<Attention>>,
    pub(crate) connection: Arc<Connection>,
}

/// The way to the resources of one server.
#[derive(Clone, Debug)]
pub(crate) struct ResourceRoute {
    /// The time a read may take.
    pub(crate) timeout: Duration,
    /// What is looked at for attacks; `None` where nothing is.
    pub(crate) attention: Option<Arc<Attention>>,
    pub(crate) connection: Arc<Connection>,
}
