//! Routes of calls, with all decisions that the catalog build can make.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::http::ParamHeaders;

use crate::arguments::ArgumentRules;
use crate::connection::Connection;
use crate::guard::Scanner;
use crate::schema::{ArgumentSchema, ResultSchema};

/// The route to a tool.
#[derive(Debug)]
pub(crate) struct ToolRoute {
    pub(crate) public_name: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) argument_schema: ArgumentSchema,
    /// The compiled `outputSchema` of the tool, if it is usable.
    pub(crate) result_schema: Option<Arc<ResultSchema>>,
    /// Checks of the arguments in addition to the schema.
    pub(crate) argument_rules: ArgumentRules,
    /// The scanner for attacks; `None` if scanning is off.
    pub(crate) scanner: Option<Scanner>,
    /// The arguments that the server expects in HTTP headers.
    pub(crate) param_headers: ParamHeaders,
    pub(crate) timeout: Duration,
    /// Whether the tool's annotations allow a second run.
    pub(crate) retry_safe: bool,
    /// Whether the tool requires a call as a task of revision 2025-11-25.
    pub(crate) as_task: bool,
    pub(crate) connection: Arc<Connection>,
}

/// The route to a prompt.
#[derive(Debug)]
pub(crate) struct PromptRoute {
    pub(crate) name: Box<str>,
    pub(crate) required_arguments: Vec<Box<str>>,
    pub(crate) timeout: Duration,
    /// The scanner for attacks; `None` if scanning is off.
    pub(crate) scanner: Option<Arc<Scanner>>,
    pub(crate) connection: Arc<Connection>,
}

/// The route to the resources of one server.
#[derive(Clone, Debug)]
pub(crate) struct ResourceRoute {
    /// The timeout of a read.
    pub(crate) timeout: Duration,
    /// The scanner for attacks; `None` if scanning is off.
    pub(crate) scanner: Option<Arc<Scanner>>,
    pub(crate) connection: Arc<Connection>,
}
