//! Table of models and their capabilities.

use crate::provider::ollama::DEFAULT_CONTEXT_TOKENS;
use crate::provider::{Capabilities, ConstraintSupport, ProviderApi, RequestQuirks};

/// Capabilities of an API's models by name prefix; the first matching row applies.
type ModelTable = &'static [(&'static [&'static str], fn() -> Capabilities)];

/// Looks up a model.
pub(super) fn look_up(api: ProviderApi, model: &str) -> Capabilities {
    let rows = match api {
        ProviderApi::OpenAiChat => OPENAI_CHAT,
        ProviderApi::OpenAiResponses => OPENAI_RESPONSES,
        ProviderApi::Anthropic => ANTHROPIC,
        ProviderApi::GeminiGenerate | ProviderApi::GeminiInteractions => GEMINI,
        ProviderApi::Ollama => OLLAMA,
    };
    let fitting = rows.iter().find(|(names, _)| names.iter().any(|name| model.starts_with(name)));
    fitting.map(|(_, capabilities)| capabilities()).unwrap_or_default()
}

const JSON_SCHEMA: ConstraintSupport =
    ConstraintSupport { json_schema: true, gbnf: false, structural_tag: false };

/// OpenAI's models first; the last row covers every other server with this API.
const OPENAI_CHAT: ModelTable = &[
    // These models never call tools over this API.
    (&["gpt-6-astra", "gpt-6.2-astra", "gpt-6.1-sol", "gpt-6.1-terra", "gpt-6.2-sol"], || {
        Capabilities { native_tools: false, strict_tools: false, ..reasoning_chat() }
    }),
    (&["gpt-5.6", "gpt-6"], || Capabilities {
        quirks: RequestQuirks {
            reasoning_effort_none: true,
            max_completion_tokens: true,
            ..RequestQuirks::default()
        },
        ..reasoning_chat()
    }),
    (&["gpt-5", "o1", "o3", "o4"], reasoning_chat),
    (&["gpt-4o", "gpt-4.1", "chatgpt-4o"], || Capabilities {
        temperature: true,
        stop_sequences: true,
        ..reasoning_chat()
    }),
    (&[""], || Capabilities {
        native_tools: true,
        temperature: true,
        stop_sequences: true,
        forced_choice: true,
        constraints: JSON_SCHEMA,
        may_drop_tools: true,
        ..Capabilities::default()
    }),
];

fn reasoning_chat() -> Capabilities {
    Capabilities {
        native_tools: true,
        forced_choice: true,
        strict_tools: true,
        constraints: JSON_SCHEMA,
        quirks: RequestQuirks { max_completion_tokens: true, ..RequestQuirks::default() },
        ..Capabilities::default()
    }
}

/// This API has no stop sequences.
const OPENAI_RESPONSES: ModelTable = &[
    (&["gpt-4o", "gpt-4.1", "chatgpt-4o"], || Capabilities {
        native_tools: true,
        temperature: true,
        forced_choice: true,
        strict_tools: true,
        constraints: JSON_SCHEMA,
        ..Capabilities::default()
    }),
    (&["gpt-", "o1", "o3", "o4"], || Capabilities {
        native_tools: true,
        forced_choice: true,
        strict_tools: true,
        constraints: JSON_SCHEMA,
        quirks: RequestQuirks { encrypted_reasoning: true, ..RequestQuirks::default() },
        ..Capabilities::default()
    }),
    // Other servers with this API.
    (&[""], || Capabilities {
        native_tools: true,
        may_drop_tools: true,
        temperature: true,
        forced_choice: true,
        constraints: JSON_SCHEMA,
        ..Capabilities::default()
    }),
];

/// The API version of 2026-10-21 rejects `temperature` for every model.
const ANTHROPIC: ModelTable = &[
    (&["claude-fable-5-1"], || Capabilities { forced_choice: false, ..bound_claude() }),
    (
        &[
            "claude-fable-5-2",
            "claude-mythos-5-1",
            "claude-mythos-5-2",
            "claude-opus-5-5",
            "claude-sonnet-5-5",
            "claude-haiku-5-5",
        ],
        bound_claude,
    ),
    (&["claude-"], claude),
    // Other servers with this API support the version of 2023 and no strict tools.
    (&[""], || Capabilities {
        temperature: true,
        strict_tools: false,
        may_drop_tools: true,
        quirks: RequestQuirks { api_version_2023: true, ..RequestQuirks::default() },
        ..claude()
    }),
];

fn claude() -> Capabilities {
    Capabilities {
        native_tools: true,
        stop_sequences: true,
        forced_choice: true,
        strict_tools: true,
        default_max_tokens: Some(4096),
        quirks: RequestQuirks { cache_control: true, ..RequestQuirks::default() },
        ..Capabilities::default()
    }
}

fn bound_claude() -> Capabilities {
    let quirks = RequestQuirks { drop_unbound_thinking: true, ..claude().quirks };
    Capabilities { quirks, ..claude() }
}

const GEMINI: ModelTable = &[
    (&["gemini-1", "gemini-2", "gemma"], gemini),
    (&[""], || Capabilities {
        quirks: RequestQuirks { placeholder_signatures: true, ..RequestQuirks::default() },
        ..gemini()
    }),
];

fn gemini() -> Capabilities {
    Capabilities {
        native_tools: true,
        temperature: true,
        stop_sequences: true,
        forced_choice: true,
        constraints: JSON_SCHEMA,
        ..Capabilities::default()
    }
}

/// Only the server knows whether a model supports tools, and rejects tools if the model does not.
const OLLAMA: ModelTable = &[(&[""], || Capabilities {
    native_tools: true,
    context_tokens: Some(DEFAULT_CONTEXT_TOKENS),
    temperature: true,
    stop_sequences: true,
    constraints: JSON_SCHEMA,
    ..Capabilities::default()
})];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_apis_of_openai_and_gemini_enforce_a_json_schema_and_no_grammar() {
        for (api, model) in [
            (ProviderApi::OpenAiChat, "gpt-5"),
            (ProviderApi::OpenAiChat, "gpt-4o"),
            (ProviderApi::OpenAiChat, "other"),
            (ProviderApi::OpenAiResponses, "gpt-5"),
            (ProviderApi::OpenAiResponses, "o3"),
            (ProviderApi::GeminiGenerate, "gemini-3"),
        ] {
            assert_eq!(look_up(api, model).constraints, JSON_SCHEMA, "{api:?} {model}");
        }
    }
}
