//! `OllamaProvider`, by [`HttpProvider`].

use std::time::Duration;

use futures_util::stream::BoxStream;
use innkeeper_agent::provider::{
    Capabilities, LlmError, LlmProvider, Piece, Request, Response, Wire,
};
use innkeeper_agent::transport::{Endpoint, HttpProvider};

/// How long an answer may take unless said otherwise.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A model at an Ollama server.
#[derive(Debug)]
pub struct OllamaProvider(HttpProvider);

impl OllamaProvider {
    /// A model at the server on this machine, port 11434. An answer may take 120 s.
    pub fn new(model: String) -> Self {
        Self::with_config(model, Wire::Ollama.default_base_url().to_owned(), TIMEOUT)
    }

    /// A model at this address, and how long an answer may take.
    pub fn with_config(model: String, base_url: String, timeout: Duration) -> Self {
        let endpoint = Endpoint::new("ollama", Wire::Ollama, model);
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

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Piece, LlmError>> {
        self.0.stream(request)
    }
}
