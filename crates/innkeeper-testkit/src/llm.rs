//! A scripted model over the HTTP APIs of the providers.
//!
//! The path of a request selects the API: `…/chat/completions`, `…/responses`, `…/v1/messages`,
//! `…/models/M:generateContent` and `:streamGenerateContent`, `…/interactions`, `…/api/chat`. Like
//! the providers, the server rejects invalid conversations with status 400: a call without a
//! result, a result without a call, reasoning that does not come back unchanged. The server also
//! responds to llama.cpp's `GET /props`, Ollama's `GET /api/tags`, and `GET …/models`.

mod api_spec;
mod body;
mod issued_calls;
mod program;
mod request_log;
mod response;
mod route;
mod script;
mod server;
mod sse;

mod anthropic;
mod gemini;
mod interactions;
mod ollama;
mod openai_chat;
mod openai_responses;

use std::sync::Arc;
use std::time::Duration;

use server::ServerState;

pub use program::run;
pub use request_log::RecordedRequest;
pub use script::{Script, ScriptedReply};

/// A scripted model that listens on a free port of 127.0.0.1, in the runtime of the test. A drop
/// closes the listener and every connection.
#[derive(Debug)]
pub struct ScriptedLlm {
    server: Arc<ServerState>,
}

impl ScriptedLlm {
    /// Starts the server.
    ///
    /// # Panics
    ///
    /// If no port is available.
    pub async fn start(script: impl Into<Script>) -> Self {
        let served = ServerState::start(script.into()).await;
        Self {
            server: served
                .unwrap_or_else(|error| panic!("cannot start the scripted model: {error}")),
        }
    }

    /// Returns the scheme, address and port.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.server.origin()
    }

    /// Returns all requests in order, including rejected ones; at most the last 4096.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.server.log().all()
    }

    /// Waits until the requests meet a condition.
    ///
    /// # Panics
    ///
    /// If the requests do not meet the condition within the limit; the message lists all requests.
    pub async fn wait_for(
        &self,
        limit: Duration,
        condition: impl Fn(&[RecordedRequest]) -> bool,
    ) -> Vec<RecordedRequest> {
        match tokio::time::timeout(limit, self.server.log().wait_for(condition)).await {
            Ok(requests) => requests,
            Err(_) => {
                panic!("condition not met within {limit:?}; requests: {:#?}", self.requests())
            }
        }
    }

    /// Returns the number of unused replies of the script.
    #[must_use]
    pub fn remaining_replies(&self) -> usize {
        self.server.remaining_replies()
    }

    /// Stops the server as a drop does, and waits for the end of every task.
    pub async fn stop(self) {
        self.server.stop();
        self.server.join().await;
    }
}

impl Drop for ScriptedLlm {
    fn drop(&mut self) {
        self.server.stop();
    }
}
