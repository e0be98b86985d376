//! Parameters that a model supports; unsupported parameters are never sent.

mod content_table;
mod table;

use super::ProviderApi;
use crate::content::ContentSupport;

/// The parameters that a model and its server support. The default is the minimum that every model
/// supports: text input and output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capabilities {
    /// How the provider takes tools.
    pub tools: ToolSupport,
    /// Whether the API accepts `temperature`.
    pub temperature: bool,
    /// Whether the API accepts stop sequences.
    pub stop_sequences: bool,
    /// The output constraints that the server enforces.
    pub constraints: ConstraintSupport,
    /// The media that the model takes.
    pub content: ContentSupport,
    /// Numbers of tokens.
    pub tokens: TokenLimits,
    /// The inference server that implements the API.
    pub server: InferenceServer,
    /// Deviations in the request parameters.
    pub quirks: RequestQuirks,
}

/// How a model and its server take tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolSupport {
    /// Whether the model supports native tool calling.
    pub native: bool,
    /// Whether a request can require a tool call.
    pub forced_choice: bool,
    /// Whether the provider enforces the schemas of tools.
    pub strict: bool,
    /// Maximum number of tools in a request, if the provider has such a limit.
    pub max: Option<usize>,
    /// Whether the server may silently drop tools. Such a server reports all prompt tokens, so that
    /// a missing tool list is detectable.
    pub may_be_dropped: bool,
}

/// Numbers of tokens that a model takes and returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenLimits {
    /// Default of the maximum number of output tokens, for APIs that require the parameter.
    pub default_output: Option<u32>,
    /// The context window, if known.
    pub context: Option<u32>,
}

/// The output constraints that a server enforces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConstraintSupport {
    /// Whether the server enforces a JSON Schema.
    pub json_schema: bool,
    /// Whether the server enforces a grammar in llama.cpp's GBNF.
    pub gbnf: bool,
    /// Whether the server enforces a structural tag.
    pub structural_tag: bool,
}

/// The inference server that implements an API. Most differences concern servers that implement
/// OpenAI's APIs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InferenceServer {
    /// The provider itself, or an unknown server.
    #[default]
    Provider,
    /// llama.cpp's `llama-server`.
    LlamaCpp,
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// LM Studio.
    LmStudio,
    /// OpenRouter.
    OpenRouter,
}

/// Deviations of a model or server in the request parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestQuirks {
    /// Chat Completions: sends `max_completion_tokens` instead of `max_tokens`.
    pub max_completion_tokens: bool,
    /// Chat Completions: sends `reasoning_effort: "none"`; the API rejects tools without it.
    pub reasoning_effort_none: bool,
    /// Chat Completions: sends ids of calls with nine letters and digits, the only ones that
    /// Mistral's models take.
    pub short_call_ids: bool,
    /// Responses API: requests encrypted reasoning and sends the reasoning back in the
    /// conversation.
    pub encrypted_reasoning: bool,
    /// Anthropic: reasoning is bound to the messages before it. If those messages changed, the API
    /// drops the reasoning instead of rejecting the request.
    pub drop_unbound_thinking: bool,
    /// Anthropic: sends the API version 2023-06-01, for models and servers that do not know the
    /// next version.
    pub api_version_2023: bool,
    /// Anthropic: sends cache breakpoints if the request asks for prompt caching.
    pub cache_control: bool,
    /// Deviations of Gemini's models.
    pub gemini: GeminiQuirks,
}

/// Deviations of Gemini's models in the request parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeminiQuirks {
    /// Sends a placeholder signature for content that the model did not sign.
    pub placeholder_signatures: bool,
    /// Uses the mode `VALIDATED`, which enforces schemas while the model decides whether to call.
    pub validated_mode: bool,
}

impl Capabilities {
    /// Returns the known capabilities of a model over an API. An unknown model gets the defaults of
    /// the API.
    pub fn for_model(api: ProviderApi, model: &str) -> Self {
        let model = table_name(model);
        Self { content: content_table::look_up(api, &model), ..table::look_up(api, &model) }
    }
}

/// Returns the name of a model in the tables: in lower case, without a vendor prefix as in
/// `openai/gpt-4o`.
fn table_name(model: &str) -> String {
    model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase()
}
