//! Table of models and their capabilities.

use innkeeper_toolcall::Dialect;

use crate::provider::ollama::DEFAULT_CONTEXT_TOKENS;
use crate::provider::{
    Capabilities, ConstraintSupport, GeminiQuirks, ProviderApi, RequestQuirks, TokenLimits,
    ToolSupport,
};

/// Capabilities of an API's models by name prefix; the first matching row applies.
type ModelTable = &'static [(&'static [&'static str], fn() -> Capabilities)];

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

/// OpenAI's models first; the last row covers every other server with this API. Most of those have
/// no limit for the number of tools.
const OPENAI_CHAT: ModelTable = &[
    // These models never call tools over this API.
    (&["gpt-6-astra", "gpt-6.2-astra", "gpt-6.1-sol", "gpt-6.1-terra", "gpt-6.2-sol"], || {
        Capabilities {
            tools: ToolSupport { native: false, strict: false, ..reasoning_chat().tools },
            ..reasoning_chat()
        }
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
    (MISTRAL, || Capabilities {
        quirks: RequestQuirks { short_call_ids: true, ..RequestQuirks::default() },
        ..other_chat()
    }),
    (&[""], other_chat),
];

/// Mistral's models, at Mistral and on local servers.
const MISTRAL: &[&str] = &[
    "mistral",
    "ministral",
    "magistral",
    "mixtral",
    "codestral",
    "devstral",
    "pixtral",
    "voxtral",
    "open-mistral",
    "open-mixtral",
    "labs-devstral",
    "labs-mistral",
];

fn openai_tools() -> ToolSupport {
    ToolSupport {
        native: true,
        forced_choice: true,
        strict: true,
        max: Dialect::OpenAi.limits().max_tools,
        may_be_dropped: false,
    }
}

fn other_chat() -> Capabilities {
    Capabilities {
        tools: ToolSupport {
            native: true,
            forced_choice: true,
            may_be_dropped: true,
            ..ToolSupport::default()
        },
        temperature: true,
        stop_sequences: true,
        constraints: JSON_SCHEMA,
        ..Capabilities::default()
    }
}

fn reasoning_chat() -> Capabilities {
    Capabilities {
        tools: openai_tools(),
        constraints: JSON_SCHEMA,
        quirks: RequestQuirks { max_completion_tokens: true, ..RequestQuirks::default() },
        ..Capabilities::default()
    }
}

/// This API has no stop sequences.
const OPENAI_RESPONSES: ModelTable = &[
    (&["gpt-4o", "gpt-4.1", "chatgpt-4o"], || Capabilities {
        tools: openai_tools(),
        temperature: true,
        constraints: JSON_SCHEMA,
        ..Capabilities::default()
    }),
    (&["gpt-", "o1", "o3", "o4"], || Capabilities {
        tools: openai_tools(),
        constraints: JSON_SCHEMA,
        quirks: RequestQuirks { encrypted_reasoning: true, ..RequestQuirks::default() },
        ..Capabilities::default()
    }),
    // Other servers with this API.
    (&[""], || Capabilities {
        tools: ToolSupport {
            native: true,
            may_be_dropped: true,
            forced_choice: true,
            ..ToolSupport::default()
        },
        temperature: true,
        constraints: JSON_SCHEMA,
        ..Capabilities::default()
    }),
];

/// The API version of 2026-10-21 rejects `temperature` for every model.
const ANTHROPIC: ModelTable = &[
    (&["claude-fable-5-1"], || Capabilities {
        tools: ToolSupport { forced_choice: false, ..bound_claude().tools },
        ..bound_claude()
    }),
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
        tools: ToolSupport { strict: false, may_be_dropped: true, ..claude().tools },
        temperature: true,
        quirks: RequestQuirks { api_version_2023: true, ..RequestQuirks::default() },
        ..claude()
    }),
];

fn claude() -> Capabilities {
    Capabilities {
        tokens: TokenLimits { default_output: Some(4096), ..TokenLimits::default() },
        tools: ToolSupport {
            native: true,
            forced_choice: true,
            strict: true,
            ..ToolSupport::default()
        },
        stop_sequences: true,
        quirks: RequestQuirks { cache_control: true, ..RequestQuirks::default() },
        ..Capabilities::default()
    }
}

fn bound_claude() -> Capabilities {
    let quirks = RequestQuirks { drop_unbound_thinking: true, ..claude().quirks };
    Capabilities { quirks, ..claude() }
}

/// From 3.5 Flash-Lite and 3.6 Flash on, the models reject or ignore `temperature`.
const GEMINI: ModelTable = &[
    (&["gemini-1", "gemini-2", "gemma"], gemini),
    (&["gemini-3.5-flash-lite"], newest_gemini),
    (&["gemini-3-", "gemini-3.1-", "gemini-3.5-"], || Capabilities {
        temperature: true,
        ..newest_gemini()
    }),
    (&[""], newest_gemini),
];

fn newest_gemini() -> Capabilities {
    Capabilities {
        temperature: false,
        quirks: RequestQuirks {
            gemini: GeminiQuirks { placeholder_signatures: true, validated_mode: false },
            ..RequestQuirks::default()
        },
        ..gemini()
    }
}

fn gemini() -> Capabilities {
    Capabilities {
        tools: ToolSupport {
            native: true,
            max: Dialect::Gemini.limits().max_tools,
            forced_choice: true,
            ..ToolSupport::default()
        },
        temperature: true,
        stop_sequences: true,
        constraints: JSON_SCHEMA,
        ..Capabilities::default()
    }
}

/// Only the server knows whether a model supports tools, and rejects tools if the model does not.
const OLLAMA: ModelTable = &[(&[""], || Capabilities {
    tokens: TokenLimits { context: Some(DEFAULT_CONTEXT_TOKENS), ..TokenLimits::default() },
    tools: ToolSupport { native: true, ..ToolSupport::default() },
    temperature: true,
    stop_sequences: true,
    constraints: JSON_SCHEMA,
    ..Capabilities::default()
})];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_gemini_models_get_no_temperature() {
        for (model, temperature) in [
            ("gemini-2.5-flash", true),
            ("gemini-3-flash-preview", true),
            ("gemini-3.5-flash", true),
            ("gemini-3.5-flash-lite", false),
            ("gemini-3.6-flash", false),
            ("gemini-3.8-flash", false),
            ("gemini-4-argon", false),
            ("gemini-flash-latest", false),
        ] {
            let capabilities = look_up(ProviderApi::GeminiGenerate, model);
            assert_eq!(capabilities.temperature, temperature, "{model}");
            let signs = !model.starts_with("gemini-2");
            assert_eq!(capabilities.quirks.gemini.placeholder_signatures, signs, "{model}");
        }
    }

    #[test]
    fn openai_and_gemini_limit_the_number_of_tools_and_local_servers_do_not() {
        for (api, model, max_tools) in [
            (ProviderApi::OpenAiChat, "gpt-4.1", Some(128)),
            (ProviderApi::OpenAiChat, "gpt-5.6", Some(128)),
            (ProviderApi::OpenAiResponses, "gpt-6.1-terra", Some(128)),
            (ProviderApi::OpenAiResponses, "gpt-4o", Some(128)),
            (ProviderApi::OpenAiChat, "qwen3", None),
            (ProviderApi::OpenAiResponses, "qwen3", None),
            (ProviderApi::GeminiGenerate, "gemini-3.8-flash", Some(512)),
            (ProviderApi::Anthropic, "claude-sonnet-5", None),
            (ProviderApi::Ollama, "qwen3", None),
        ] {
            assert_eq!(look_up(api, model).tools.max, max_tools, "{api:?} {model}");
        }
    }

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
