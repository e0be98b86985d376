//! The six forms in which providers are spoken to.

use innkeeper_toolcall::{Dialect, NameRules};

/// A provider's interface over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// OpenAI's Chat Completions, which most other servers speak too.
    OpenAiChat,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's generateContent.
    GeminiGenerate,
    /// Gemini's Interactions.
    GeminiInteractions,
    /// Ollama's /api/chat.
    Ollama,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::GeminiGenerate,
        Self::GeminiInteractions,
        Self::Ollama,
    ];

    /// What names of tools look like over it.
    pub(crate) fn names(self) -> NameRules {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => NameRules::OPENAI,
            Self::Anthropic => NameRules::ANTHROPIC,
            Self::GeminiGenerate | Self::GeminiInteractions => NameRules::GEMINI,
            Self::Ollama => NameRules::OLLAMA,
        }
    }

    /// What schemas of tools look like over it.
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

    /// Where it is reached unless said otherwise; what comes behind it, the codec knows.
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
