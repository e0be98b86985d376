//! The six HTTP APIs of language model providers.

use serde::{Deserialize, Serialize};

/// An HTTP API of a language model provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderApi {
    /// OpenAI's Chat Completions API, which most other servers implement too.
    OpenAiChat,
    /// OpenAI's Responses API.
    OpenAiResponses,
    /// Anthropic's Messages API.
    Anthropic,
    /// Gemini's generateContent method.
    GeminiGenerate,
    /// Gemini's Interactions API.
    GeminiInteractions,
    /// Ollama's `/api/chat` endpoint.
    Ollama,
}

impl ProviderApi {
    /// All APIs.
    pub const ALL: [Self; 6] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::GeminiGenerate,
        Self::GeminiInteractions,
        Self::Ollama,
    ];

    /// Returns the name by which a [`ModelSelector`](crate::transport::ModelSelector) selects the API
    /// of a provider.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::Ollama => "chat",
            Self::OpenAiResponses => "responses",
            Self::Anthropic => "messages",
            Self::GeminiGenerate => "generate",
            Self::GeminiInteractions => "interactions",
        }
    }
}
