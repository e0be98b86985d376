//! The models and what they take, as data.

use crate::provider::ollama::CONTEXT;
use crate::provider::{Capabilities, Constraints, Sends, Wire};

/// Models of one wire by the beginning of their names, the first that fits, and what they take.
type Rows = &'static [(&'static [&'static str], fn() -> Capabilities)];

/// Names of models often have their maker in front, as `openai/gpt-4o`: it says nothing here.
pub(super) fn look_up(wire: Wire, model: &str) -> Capabilities {
    let model = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let rows = match wire {
        Wire::OpenAiChat => OPENAI_CHAT,
        Wire::OpenAiResponses => OPENAI_RESPONSES,
        Wire::Anthropic => ANTHROPIC,
        Wire::GeminiGenerate | Wire::GeminiInteractions => GEMINI,
        Wire::Ollama => OLLAMA,
    };
    let fitting = rows.iter().find(|(names, _)| names.iter().any(|name| model.starts_with(name)));
    fitting.map(|(_, capabilities)| capabilities()).unwrap_or_default()
}

const JSON_SCHEMA: Constraints =
    Constraints { json_schema: true, gbnf: false, structural_tag: false };

/// Models of OpenAI first; the last row is every other server that speaks like it.
const OPENAI_CHAT: Rows = &[
    // They never call tools over this wire.
    (&["gpt-6-astra", "gpt-6.2-astra", "gpt-6.1-sol", "gpt-6.1-terra", "gpt-6.2-sol"], || {
        Capabilities { native_tools: false, strict_tools: false, ..reasoning_chat() }
    }),
    (&["gpt-5.6", "gpt-6"], || Capabilities {
        sends: Sends { effort_none: true, max_completion_tokens: true, ..Sends::default() },
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
        sends: Sends { max_completion_tokens: true, ..Sends::default() },
        ..Capabilities::default()
    }
}

/// This wire has no stop sequences.
const OPENAI_RESPONSES: Rows = &[
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
        sends: Sends { encrypted_reasoning: true, ..Sends::default() },
        ..Capabilities::default()
    }),
    // Other servers that speak it.
    (&[""], || Capabilities {
        native_tools: true,
        may_drop_tools: true,
        temperature: true,
        forced_choice: true,
        constraints: JSON_SCHEMA,
        ..Capabilities::default()
    }),
];

/// The version of 2026-10-21 refuses `temperature` with every model.
const ANTHROPIC: Rows = &[
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
    // Other servers that speak it know the version of 2023 and no strict tools.
    (&[""], || Capabilities {
        temperature: true,
        strict_tools: false,
        may_drop_tools: true,
        sends: Sends { version_2023: true, ..Sends::default() },
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
        sends: Sends { cache_control: true, ..Sends::default() },
        ..Capabilities::default()
    }
}

fn bound_claude() -> Capabilities {
    let sends = Sends { drop_unbound_thoughts: true, ..claude().sends };
    Capabilities { sends, ..claude() }
}

const GEMINI: Rows = &[
    (&["gemini-1", "gemini-2", "gemma"], gemini),
    (&[""], || Capabilities { sends: Sends { signatures: true, ..Sends::default() }, ..gemini() }),
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

/// Whether a model takes tools, only the server knows: it refuses them where it does not.
const OLLAMA: Rows = &[(&[""], || Capabilities {
    native_tools: true,
    context_tokens: Some(CONTEXT),
    temperature: true,
    stop_sequences: true,
    constraints: JSON_SCHEMA,
    ..Capabilities::default()
})];
