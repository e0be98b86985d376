//! Routes of calls, with all decisions that the catalog build can make.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::http::ParamHeaders;

use crate::arguments::ArgumentRules;
use crate::connection::Connection;
use crate::guard::Scanner;
use crate::schema::{ArgumentSchema, ResultSchema};

#[derive(Debug)]
pub(crate) struct ToolRoute {
    pub(crate) public_name: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) arguments: RouteArguments,
    /// The compiled `outputSchema` of the tool, if it is usable.
    pub(crate) result_schema: Option<Arc<ResultSchema>>,
    /// The scanner for attacks; `None` if scanning is off.
    pub(crate) scanner: Option<Scanner>,
    pub(crate) timeout: Duration,
    pub(crate) hints: CallHints,
    pub(crate) connection: Arc<Connection>,
}

/// What happens to the arguments of a tool.
#[derive(Debug)]
pub(crate) struct RouteArguments {
    pub(crate) schema: ArgumentSchema,
    /// Checks in addition to the schema.
    pub(crate) rules: ArgumentRules,
    /// The arguments that the server expects in HTTP headers.
    pub(crate) headers: ParamHeaders,
}

/// What the definition of a tool says about its calls.
#[derive(Debug)]
pub(crate) struct CallHints {
    /// Whether the tool's annotations allow a second run.
    pub(crate) retry_safe: bool,
    /// Whether the tool requires a call as a task of revision 2025-11-25.
    pub(crate) as_task: bool,
}

#[derive(Debug)]
pub(crate) struct PromptRoute {
    pub(crate) name: Box<str>,
    pub(crate) required_arguments: Vec<Box<str>>,
    pub(crate) timeout: Duration,
    /// The scanner for attacks; `None` if scanning is off.
    pub(crate) scanner: Option<Arc<Scanner>>,
    pub(crate) connection: Arc<Connection>,
}

#[derive(Clone, Debug)]
pub(crate) struct ResourceRoute {
    pub(crate) timeout: Duration,
    /// The scanner for attacks; `None` if scanning is off.
    pub(crate) scanner: Option<Arc<Scanner>>,
    pub(crate) connection: Arc<Connection>,
}
