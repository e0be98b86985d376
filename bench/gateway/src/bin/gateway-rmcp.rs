//! A proxy of the official SDK: its server over HTTP, its client before one stdio server.
//!
//! `gateway-rmcp json PROGRAM` has JSON responses and no sessions, `gateway-rmcp sessions PROGRAM`
//! the defaults of the SDK: sessions and event streams.

use std::process::Stdio;
use std::sync::Arc;

use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleClient, RoleServer, ServerHandler, ServiceExt};
use tokio::process::Command;

/// Passes lists and calls to the server.
#[derive(Clone)]
struct Proxy(Arc<RunningService<RoleClient, ()>>);

impl ServerHandler for Proxy {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.0.list_tools(request).await.map_err(internal)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(self.0.call_tool(request).await.map_err(internal)?.into())
    }
}

fn internal(error: impl ToString) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

#[tokio::main(worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (mode, program) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
    let has_sessions = mode == "sessions";
    let (transport, _) =
        TokioChildProcess::builder(Command::new(program)).stderr(Stdio::null()).spawn()?;
    let client = ().serve(transport).await.map_err(std::io::Error::other)?;
    let proxy = Proxy(Arc::new(client));
    let mut config = StreamableHttpServerConfig::default();
    (config.legacy_session_mode, config.json_response) = (has_sessions, !has_sessions);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(proxy.clone()), sessions, config);
    innkeeper_bench_gateway::serve(TowerToHyperService::new(service)).await
}
