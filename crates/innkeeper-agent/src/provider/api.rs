//! The rules of each provider API for names, schemas and addresses.

use innkeeper_toolcall::{Dialect, NameRules};

use super::ProviderApi;

impl ProviderApi {
    /// Returns the rules for tool names.
    pub(crate) fn name_rules(self) -> NameRules {
        self.dialect(false).limits().tool_names
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
