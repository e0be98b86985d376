//! What may be asked of a model: a parameter that it refuses is never sent.

mod table;

use super::Wire;

/// What a model and its server take. The default is the least that all take: text in and out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capabilities {
    /// Tools in the provider's own form.
    pub native_tools: bool,
    /// `temperature`.
    pub temperature: bool,
    /// Texts at which the answer ends.
    pub stop_sequences: bool,
    /// That some tool has to be called.
    pub forced_choice: bool,
    /// Tools whose schema the provider holds the model to.
    pub strict_tools: bool,
    /// A form that the server holds an answer to.
    pub constraints: Constraints,
    /// The most tokens of an answer where the provider has to be told and nobody says it.
    pub default_max_tokens: Option<u32>,
    /// The context window in tokens, where it is known.
    pub context_tokens: Option<u32>,
    /// That a server may leave tools out without a word, and counts all that it read, so that this can
    /// be noticed.
    pub may_drop_tools: bool,
    /// Quirks of the server behind the wire.
    pub server: Server,
    /// What else has to be sent, or must not be.
    pub sends: Sends,
}

/// Forms that a server holds an answer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Constraints {
    /// A JSON Schema.
    pub json_schema: bool,
    /// A grammar in llama.cpp's GBNF.
    pub gbnf: bool,
    /// A structural tag.
    pub structural_tag: bool,
}

/// Which server speaks the wire; most differences are of those that speak OpenAI's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Server {
    /// The provider itself, or one that is not known.
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

/// What else is sent, or must not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sends {
    /// OpenAI's Chat Completions: `max_completion_tokens` in place of `max_tokens`.
    pub max_completion_tokens: bool,
    /// OpenAI's Chat Completions: `reasoning_effort: "none"`, without which tools are refused.
    pub effort_none: bool,
    /// OpenAI's Responses: reasoning goes back and forth in the conversation, encrypted.
    pub encrypted_reasoning: bool,
    /// Anthropic: thoughts are bound to what stands before them; where that changed they are to be
    /// dropped instead of refused.
    pub drop_unbound_thoughts: bool,
    /// Anthropic: the version of 2023-06-01, for models and servers that do not know the next.
    pub version_2023: bool,
    /// Anthropic: up to where a request is to be kept, if that is wanted.
    pub cache_control: bool,
    /// Gemini: what has no signature of the model's own gets the word that stands for one.
    pub signatures: bool,
    /// Gemini: schemas are kept to while the model decides whether to call (`VALIDATED`).
    pub validated_mode: bool,
}

impl Capabilities {
    /// What is known of a model over a wire, and of models that are not known over this wire.
    pub fn of(wire: Wire, model: &str) -> Self {
        table::look_up(wire, model)
    }
}
