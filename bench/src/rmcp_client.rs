//! The client of the official Rust SDK, used as its documentation shows.

use std::process::Stdio;
use std::sync::Arc;

use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Map, Value};
use tokio::process::Command;

use crate::client::BenchClient;
use crate::http_echo::HttpEchoServer;
use crate::workload::{BenchCase, Workload};

type RmcpSession = RunningService<RoleClient, ()>;

/// One SDK session per server.
#[derive(Clone, Debug)]
pub struct RmcpClient {
    sessions: Arc<Vec<RmcpSession>>,
    tools: usize,
    /// The HTTP server, if the servers are not child processes of the client.
    echo_server: Option<Arc<HttpEchoServer>>,
}

async fn start_session(work: Workload, url: Option<String>) -> (RmcpSession, usize) {
    let session = match url {
        Some(url) => ().serve(StreamableHttpClientTransport::from_uri(url)).await,
        None => {
            let (transport, _) = TokioChildProcess::builder(Command::new(&work.echo_program))
                .stderr(Stdio::null())
                .spawn()
                .expect("cannot start the echo server");
            ().serve(transport).await
        }
    };
    let session = session.expect("the handshake failed");
    let (tools, prompts, resources) = tokio::join!(
        session.list_all_tools(),
        session.list_all_prompts(),
        session.list_all_resources()
    );
    prompts.expect("cannot list prompts");
    resources.expect("cannot list resources");
    let tools = tools.expect("cannot list tools").len();
    (session, tools)
}

impl BenchClient for RmcpClient {
    async fn connect(work: &Workload, servers: usize) -> Self {
        let remote = HttpEchoServer::start(work).map(Arc::new);
        let url = remote.as_ref().map(|remote| remote.url.clone());
        let session = || tokio::spawn(start_session(work.clone(), url.clone()));
        let tasks: Vec<_> = (0..servers).map(|_| session()).collect();
        let (mut sessions, mut tools) = (Vec::new(), 0);
        for task in tasks {
            let (session, found) = task.await.expect("a session task panicked");
            sessions.push(session);
            tools += found;
        }
        Self { sessions: Arc::new(sessions), tools, echo_server: remote }
    }

    fn tool_count(&self) -> usize {
        self.tools
    }

    async fn call(&self, server: usize, case: BenchCase, message: &str) -> bool {
        let mut arguments = Map::new();
        arguments.insert("message".to_owned(), Value::String(message.to_owned()));
        if let Some(bytes) = case.bytes() {
            arguments.insert("bytes".to_owned(), Value::from(bytes));
        }
        let request = CallToolRequestParams::new("echo").with_arguments(arguments);
        let result = self.sessions[server].call_tool(request).await.expect("the call failed");
        let text = result.content[0].as_text().expect("the result is not text");
        text.text.len() == case.response_text_len()
    }

    async fn close(self) {
        let Ok(sessions) = Arc::try_unwrap(self.sessions) else { return };
        let tasks: Vec<_> =
            sessions.into_iter().map(|session| tokio::spawn(session.cancel())).collect();
        for task in tasks {
            let _ = task.await;
        }
        drop(self.echo_server);
    }
}
