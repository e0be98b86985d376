//! A model over HTTP that says what a script has it say, in the form of each provider.
//!
//! Which provider it is, the path of a request tells: `…/chat/completions`, `…/responses`,
//! `…/v1/messages`, `…/models/M:generateContent` and `:streamGenerateContent`, `…/interactions`,
//! `…/api/chat`. As the providers do, it refuses a conversation with 400 in which a call has no
//! result, a result no call, or in which what it had thought does not come back word for word.
//! Beside that it answers `GET /props` of llama.cpp, `GET /api/tags` of Ollama, `GET …/models`.

mod answer;
mod body;
mod memory;
mod program;
mod route;
mod script;
mod seen;
mod serve;
mod sse;
mod wire;

mod anthropic;
mod gemini;
mod interactions;
mod ollama;
mod openai_chat;
mod openai_responses;

use std::sync::Arc;
use std::time::Duration;

use serve::Served;

pub use program::run;
pub use script::{Script, Step};
pub use seen::Seen;

/// A model that listens on 127.0.0.1 and a port of the system's choice, in the runtime of the test
/// that asks it. Dropping it closes the listener and every connection.
#[derive(Debug)]
pub struct ScriptedLlm {
    served: Arc<Served>,
}

impl ScriptedLlm {
    /// Starts listening.
    ///
    /// # Panics
    ///
    /// When there is no port to listen at.
    pub async fn start(script: impl Into<Script>) -> Self {
        let served = Served::start(script.into()).await;
        Self { served: served.unwrap_or_else(|error| panic!("the scripted model: {error}")) }
    }

    /// The scheme, address and port before any path.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.served.origin()
    }

    /// Every request so far, refused ones included, in the order they came. The last 4096 are kept.
    #[must_use]
    pub fn requests(&self) -> Vec<Seen> {
        self.served.log().all()
    }

    /// Waits until the requests are as wanted.
    ///
    /// # Panics
    ///
    /// When they are not within the limit; the message has every request.
    pub async fn until(&self, limit: Duration, wanted: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
        match tokio::time::timeout(limit, self.served.log().until(wanted)).await {
            Ok(seen) => seen,
            Err(_) => panic!("not within {limit:?}; the requests are {:#?}", self.requests()),
        }
    }

    /// The steps of the script that no request has used yet.
    #[must_use]
    pub fn steps_left(&self) -> usize {
        self.served.steps_left()
    }

    /// Ends as a drop does, and waits until every task has ended.
    pub async fn stop(self) {
        self.served.stop();
        self.served.ended().await;
    }
}

impl Drop for ScriptedLlm {
    fn drop(&mut self) {
        self.served.stop();
    }
}
