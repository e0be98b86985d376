//! The official Rust SDK's client on the same work, used as its documentation shows.

use std::process::Stdio;
use std::sync::Arc;

use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Map, Value};
use tokio::process::Command;

use crate::client::Client;
use crate::remote::Remote;
use crate::work::Work;

type Session = RunningService<RoleClient, ()>;

/// One SDK session per server.
#[derive(Clone, Debug)]
pub struct Sdk {
    sessions: Arc<Vec<Session>>,
    tools: usize,
    /// Where the servers are no children of the client.
    remote: Option<Arc<Remote>>,
}

async fn session(work: Work, url: Option<String>) -> (Session, usize) {
    let session = match url {
        Some(url) => ().serve(StreamableHttpClientTransport::from_uri(url)).await,
        None => {
            let (transport, _) = TokioChildProcess::builder(Command::new(&work.echo))
                .stderr(Stdio::null())
                .spawn()
                .expect("the echo server starts");
            ().serve(transport).await
        }
    };
    let session = session.expect("the handshake succeeds");
    let (tools, prompts, resources) = tokio::join!(
        session.list_all_tools(),
        session.list_all_prompts(),
        session.list_all_resources()
    );
    prompts.expect("prompts are listed");
    resources.expect("resources are listed");
    let tools = tools.expect("tools are listed").len();
    (session, tools)
}

impl Client for Sdk {
    async fn connect(work: &Work, servers: usize) -> Self {
        let remote = Remote::start(work).map(Arc::new);
        let url = remote.as_ref().map(|remote| remote.url.clone());
        let session = || tokio::spawn(session(work.clone(), url.clone()));
        let tasks: Vec<_> = (0..servers).map(|_| session()).collect();
        let (mut sessions, mut tools) = (Vec::new(), 0);
        for task in tasks {
            let (session, found) = task.await.expect("a session's task ends well");
            sessions.push(session);
            tools += found;
        }
        Self { sessions: Arc::new(sessions), tools, remote }
    }

    fn tools(&self) -> usize {
        self.tools
    }

    async fn call(&self, message: &str, bytes: Option<usize>, length: usize) -> bool {
        let mut arguments = Map::new();
        arguments.insert("message".to_owned(), Value::String(message.to_owned()));
        if let Some(bytes) = bytes {
            arguments.insert("bytes".to_owned(), Value::from(bytes));
        }
        let request = CallToolRequestParams::new("echo").with_arguments(arguments);
        let result = self.sessions[0].call_tool(request).await.expect("the call is answered");
        result.content[0].as_text().expect("the answer is text").text.len() == length
    }

    async fn close(self) {
        let Ok(sessions) = Arc::try_unwrap(self.sessions) else { return };
        let tasks: Vec<_> =
            sessions.into_iter().map(|session| tokio::spawn(session.cancel())).collect();
        for task in tasks {
            let _ = task.await;
        }
        drop(self.remote);
    }
}
