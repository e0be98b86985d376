//! Language model providers behind one trait.
//!
//! [`LlmProvider`] is open for implementations of an application. The providers of this crate use
//! one of six HTTP APIs, each a [`ProviderApi`]: a codec without I/O encodes a [`Request`] for the
//! API and decodes the response, streamed or not.

mod api;
mod capability;
mod content_lowering;
mod cost;
mod error;
mod request;
mod response;
mod tool_rejection;

pub(crate) mod codec;
pub(crate) mod tool_encoding;

mod anthropic;
mod gemini;
mod gemini_generate;
mod gemini_interactions;
mod ollama;
mod openai;
mod openai_chat;
mod openai_responses;

mod scripted;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};

#[cfg(any(test, fuzzing))]
pub use codec::fuzz::codecs as fuzz_codecs;

pub use crate::conversation::ProviderApi;
pub use capability::{
    Capabilities, ConstraintSupport, GeminiQuirks, InferenceServer, RequestQuirks, TokenLimits,
    ToolSupport,
};
pub use cost::Cost;
pub use error::{LlmError, LlmErrorKind};
pub use request::{OutputConstraint, Request, ToolChoice};
pub use response::{FinishReason, Response, StreamChunk, Usage};
pub use scripted::ScriptedProvider;
pub use tool_rejection::ToolRejection;

/// Default timeout of a complete response, the default of the providers' own clients.
pub const DEFAULT_RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);

/// A language model that answers requests.
///
/// Dropping a future or a stream cancels the request. Chunks that were not returned yet are lost.
/// The trait needs the attribute of the crate `async-trait`, which `innkeeper::compat` re-exports.
///
/// # Examples
///
/// ```
/// use innkeeper_agent::provider::{LlmError, LlmProvider, Request, Response};
///
/// struct Echo;
///
/// #[async_trait::async_trait]
/// impl LlmProvider for Echo {
///     async fn generate(&self, request: Request) -> Result<Response, LlmError> {
///         Ok(Response::from_text(request.to_prompt_text()))
///     }
///     fn name(&self) -> &str {
///         "echo"
///     }
/// }
/// ```
#[async_trait]
pub trait LlmProvider: Send + Sync {
    /// Sends one request and returns the complete response. The agent drops the future after
    /// [`RunLimits::response_timeout`](crate::run::RunLimits::response_timeout).
    ///
    /// # Errors
    ///
    /// See [`LlmErrorKind`], which decides whether the agent sends the request again.
    async fn generate(&self, request: Request) -> Result<Response, LlmError>;

    /// Returns the name of the provider, for messages and results.
    fn name(&self) -> &str;

    /// Whether the model supports native tool calling. Without it, the prompt describes the tools,
    /// and the calls are parsed from the model's text.
    fn supports_tools(&self) -> bool {
        false
    }

    /// Returns the name of the model, for messages, results and the choice of the prompt. Default:
    /// the name of the provider.
    fn model(&self) -> &str {
        self.name()
    }

    /// Returns the parameters that the model supports. Default: only [`Self::supports_tools`].
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            tools: ToolSupport { native: self.supports_tools(), ..ToolSupport::default() },
            ..Capabilities::default()
        }
    }

    /// Sends one request and streams the response. The last item, and only the last, is
    /// [`StreamChunk::Done`] or an error. By default all chunks come at once, after
    /// [`Self::generate`].
    fn stream(&self, request: Request) -> BoxStream<'_, Result<StreamChunk, LlmError>> {
        stream::once(async move {
            match self.generate(request).await {
                Ok(response) => response.into_chunks().into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            }
        })
        .flat_map(stream::iter)
        .boxed()
    }
}

/// A shared model is a model.
#[async_trait]
impl<P: LlmProvider + ?Sized> LlmProvider for Arc<P> {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        (**self).generate(request).await
    }

    fn name(&self) -> &str {
        (**self).name()
    }

    fn supports_tools(&self) -> bool {
        (**self).supports_tools()
    }

    fn model(&self) -> &str {
        (**self).model()
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<StreamChunk, LlmError>> {
        (**self).stream(request)
    }
}

impl fmt::Debug for dyn LlmProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LlmProvider").field(&self.name()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A provider with the required methods only, and with one optional method.
    struct Minimal;
    struct WithTools;

    #[async_trait]
    impl LlmProvider for Minimal {
        async fn generate(&self, _: Request) -> Result<Response, LlmError> {
            Ok(Response::default())
        }

        fn name(&self) -> &str {
            "minimal"
        }
    }

    #[async_trait]
    impl LlmProvider for WithTools {
        async fn generate(&self, _: Request) -> Result<Response, LlmError> {
            Ok(Response::default())
        }

        fn name(&self) -> &str {
            "with tools"
        }

        fn supports_tools(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_provider_has_no_native_tools_and_its_own_name_as_model_by_default() {
        assert!(!Minimal.supports_tools());
        assert_eq!(Minimal.capabilities(), Capabilities::default());
        assert_eq!(Minimal.model(), "minimal");
        let native = Capabilities {
            tools: ToolSupport { native: true, ..ToolSupport::default() },
            ..Capabilities::default()
        };
        assert_eq!(WithTools.capabilities(), native);
    }
}
