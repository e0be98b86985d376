//! `OllamaProvider`, based on [`HttpProvider`].

use std::time::Duration;

use futures_util::stream::BoxStream;
use innkeeper_agent::provider::{
    Capabilities, LlmError, LlmProvider, ProviderApi, Request, Response, StreamChunk,
};
use innkeeper_agent::transport::{Endpoint, HttpProvider};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// A model of an Ollama server.
#[derive(Debug)]
pub struct OllamaProvider(HttpProvider);

impl OllamaProvider {
    /// Creates a provider for a model of the local server at port 11434, with a timeout of 120 s
    /// per response.
    pub fn new(model: String) -> Self {
        Self::with_config(model, ProviderApi::Ollama.default_base_url().to_owned(), DEFAULT_TIMEOUT)
    }

    /// Creates a provider for a model of the server at `base_url`, with a timeout per response.
    pub fn with_config(model: String, base_url: String, timeout: Duration) -> Self {
        let endpoint = Endpoint::new("ollama", ProviderApi::Ollama, model);
        Self(HttpProvider::new(Endpoint { base_url, timeout, ..endpoint }))
    }
}

#[async_trait::async_trait]
impl LlmProvider for OllamaProvider {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        self.0.generate(request).await
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn supports_tools(&self) -> bool {
        self.0.supports_tools()
    }

    fn model(&self) -> &str {
        self.0.model()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<StreamChunk, LlmError>> {
        self.0.stream(request)
    }
}
