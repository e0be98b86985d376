//! The two servers of an agent while it runs.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use innkeeper_host::host_process;
use tokio::sync::SetOnce;
use tokio::task::JoinSet;

use super::model_server::{ModelServer, ModelSide};
use super::tools_socket::{ToolsSide, ToolsSocket};

/// The servers of an agent, which run until [`Self::stop`].
#[derive(Debug)]
pub(crate) struct RunServers {
    pub(crate) variables: Vec<(&'static str, OsString)>,
    end: Arc<SetOnce<()>>,
    tools_task: JoinSet<()>,
    model_task: JoinSet<Infallible>,
}

impl RunServers {
    pub(super) fn start(
        model: ModelServer,
        model_side: Arc<impl ModelSide>,
        tools: ToolsSocket,
        tools_side: Arc<impl ToolsSide>,
        variables: Vec<(&'static str, OsString)>,
    ) -> io::Result<Self> {
        let path = ("PATH", tools.search_path()?);
        let variables = variables.into_iter().chain([path]).collect();
        let end = Arc::new(SetOnce::new());
        let mut tools_task = JoinSet::new();
        let mut model_task = JoinSet::new();
        tools_task.spawn(tools.serve(tools_side, end.clone()));
        model_task.spawn(model.serve(model_side));
        Ok(Self { variables, end, tools_task, model_task })
    }

    /// Ends the servers after the agent. Its MCP connections get a short time for their last lines; then
    /// all processes end that it left.
    pub(crate) async fn stop(mut self) {
        // This is the only place that sets the cell.
        self.end.set(()).ok();
        self.tools_task.join_next().await;
        self.model_task.abort_all();
        host_process::kill_descendants();
    }
}
