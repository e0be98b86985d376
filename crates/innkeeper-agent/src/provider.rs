//! Models behind one trait: what they are asked, what they answer, how they fail.
//!
//! [`LlmProvider`] is open for models of one's own. Those of this crate speak over HTTP in one of
//! six forms, each a [`Wire`]: a codec without I/O puts a [`Request`] into the provider's words and
//! reads what comes back, whole or in pieces.

mod capability;
mod error;
mod request;
mod response;
mod wire;

pub(crate) mod codec;
pub(crate) mod offer;

mod anthropic;
mod gemini;
mod gemini_generate;
mod gemini_interactions;
mod ollama;
mod openai;
mod openai_chat;
mod openai_responses;

mod scripted;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};

#[cfg(any(test, fuzzing))]
pub use codec::fuzz::codecs as fuzz_codecs;

pub use capability::{Capabilities, Constraints, Sends, Server};
pub use error::{Class, LlmError};
pub use request::{Choice, Constraint, Request};
pub use response::{Finish, Piece, Response, Usage};
pub use scripted::Scripted;
pub use wire::Wire;

/// A model that answers.
///
/// Dropping a future or stream of it ends the request; what was not handed out is lost.
#[async_trait]
pub trait LlmProvider: Send + Sync {
    /// Answers one request, whole.
    async fn generate(&self, request: Request) -> Result<Response, LlmError>;

    /// The provider's name, for messages and results.
    fn name(&self) -> &str;

    /// Whether the model takes tools and calls them in a form of its own. Where it does not, it is
    /// told of them in its prompt, and calls are found in its text.
    fn supports_tools(&self) -> bool {
        false
    }

    /// The model that answers, for messages and results, and to tell how it is best prompted.
    /// Default: the provider's name.
    fn model(&self) -> &str {
        self.name()
    }

    /// What may be asked of the model. By default no more than [`Self::supports_tools`] says.
    fn capabilities(&self) -> Capabilities {
        Capabilities { native_tools: self.supports_tools(), ..Capabilities::default() }
    }

    /// Answers one request piece by piece; the last item is [`Piece::Done`] or an error, and there is
    /// exactly one of these. By default it is all there at once.
    fn stream(&self, request: Request) -> BoxStream<'_, Result<Piece, LlmError>> {
        stream::once(async move {
            match self.generate(request).await {
                Ok(response) => response.into_pieces().into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            }
        })
        .flat_map(stream::iter)
        .boxed()
    }
}
