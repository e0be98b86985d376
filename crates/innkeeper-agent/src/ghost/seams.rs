//! Where a recorder stands between a run and the outside.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_host::Config;

use crate::agent::AgentSettings;
use crate::safety::Approver;
use crate::server_requests::ServerRequestHandler;
use crate::timing::Timing;
use crate::tools::ToolRunner;
use crate::transport::{Endpoint, HttpProvider};

/// Everything that passes between a run and the outside.
pub(crate) trait RunSeams: Send + Sync {
    fn model(&self, provider: &HttpProvider) -> HttpProvider;

    /// Returns the tools of the run, by public names.
    fn tools(&self, tools: Arc<dyn ToolRunner>) -> Arc<dyn ToolRunner>;

    /// Returns the approver of the run, by public names.
    fn approver(&self, approver: Arc<dyn Approver>) -> Arc<dyn Approver>;

    fn server_requests(&self, handler: &ServerRequestHandler) -> ServerRequestHandler;

    /// Returns the clock of the run.
    fn timing(&self) -> Timing;
}

/// What a run was made of.
#[derive(Debug)]
pub(crate) struct RunFacts {
    /// `None` for a model of the application.
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) host_config: Config,
    /// The servers after the start: `None` for a ready server, else why it is not available.
    pub(crate) servers: BTreeMap<String, Option<String>>,
    pub(crate) settings: AgentSettings,
}
