//! The six HTTP APIs of language model providers.

use innkeeper_toolcall::{Dialect, NameRules};

/// An HTTP API of a language model provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

    /// Returns the rules for tool names.
    pub(crate) fn name_rules(self) -> NameRules {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => NameRules::OPENAI,
            Self::Anthropic => NameRules::ANTHROPIC,
            Self::GeminiGenerate | Self::GeminiInteractions => NameRules::GEMINI,
            Self::Ollama => NameRules::OLLAMA,
        }
    }

    /// Returns the schema dialect for tools.
    pub(crate) fn dialect(self, strict: bool) -> Dialect {
        match (self, strict) {
            (Self::OpenAiChat | Self::OpenAiResponses, false) => Dialect::OpenAi,
            (Self::OpenAiChat | Self::OpenAiResponses, true) => Dialect::OpenAiStrict,
            (Self::Anthropic, false) => Dialect::Anthropic,
            (Self::Anthropic, true) => Dialect::AnthropicStrict,
            (Self::GeminiGenerate | Self::GeminiInteractions, _) => Dialect::Gemini,
            (Self::Ollama, _) => Dialect::Ollama,
        }
    }

    /// Returns the default base URL. The codec appends the path.
    pub fn default_base_url(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::GeminiGenerate | Self::GeminiInteractions => {
                "https://generativelanguage.googleapis.com"
            }
            Self::Ollama => "http://localhost:11434",
        }
    }
}
