//! Limits of the providers for the tools of a request, as one table.
//!
//! The table has what the providers publish, or what their errors say where they publish nothing:
//!
//! - OpenAI: the descriptions in its SDK (names), its API reference (128 functions), its errors
//!   (`array schema missing items`), and the guide to structured outputs (the limits of `strict`).
//!   Descriptions have had no limit since May 2025. Azure still limits them to 1,024 characters,
//!   and says so in an error that names the tool.
//! - Anthropic: the documentation of tools (names; older endpoints accept only 64 of the 128
//!   characters), its errors (keys of `properties`), and the limits of `strict`, which its SDK does
//!   not check. The number of tools has no published limit.
//! - Gemini: the descriptions in its SDK (names and parameters, 512 declarations; some versions
//!   accept only 63 of the 128 characters of a name), and its errors (`items: missing field`,
//!   `enum[0]: cannot be empty`). The depth has a limit that no page states; the error names the
//!   tool.
//! - Ollama: nothing; the rules are those of OpenAI's API, which its models are trained for.
//!
//! A run handles what this table does not know when a provider rejects a tool by name.

use super::Dialect;
use crate::alias::NameRules;

/// The limits of one provider for the tools of a request. `None` and `usize::MAX` mean no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolLimits {
    /// Rules for the names of tools.
    pub tool_names: NameRules,
    /// Rules for the keys of `properties`.
    pub parameter_names: Option<NameRules>,
    /// Maximum number of tools in a request.
    pub max_tools: Option<usize>,
    /// Whether every schema of an array must have `items`.
    pub requires_items: bool,
    /// Whether `enum` may contain an empty string.
    pub allows_empty_choices: bool,
    /// The limits of a schema that is sent as `strict`; `None` if the provider has no such form.
    pub strict: Option<StrictLimits>,
}

/// The limits of schemas that are sent as `strict`. A schema beyond them is sent without `strict`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrictLimits {
    /// Maximum nesting depth: the root counts 1, each property or item adds 1, a union adds 0.
    pub max_depth: usize,
    /// Maximum number of properties of all objects.
    pub max_properties: usize,
    /// Maximum number of optional properties in all tools of a request.
    pub max_optional: usize,
    /// Maximum number of properties with a union or several types in all tools of a request.
    pub max_unions: usize,
    /// Maximum number of strict tools in a request.
    pub max_tools: usize,
    /// Maximum number of values in all `enum` lists.
    pub max_choices: usize,
    /// The limit of the text in one `enum` list.
    pub enum_text: EnumTextLimit,
    /// Maximum number of characters of all names of properties and definitions, and of all strings
    /// in `enum` lists.
    pub max_text_chars: usize,
}

/// The limit of the text in one `enum` list, unless the list is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnumTextLimit {
    /// Maximum number of characters of the strings in the list.
    pub max_chars: usize,
    /// Maximum number of values of a list whose text has no limit.
    pub unlimited_choices: usize,
}

const NO_STRICT_LIMITS: StrictLimits = StrictLimits {
    max_depth: usize::MAX,
    max_properties: usize::MAX,
    max_optional: usize::MAX,
    max_unions: usize::MAX,
    max_tools: usize::MAX,
    max_choices: usize::MAX,
    enum_text: EnumTextLimit { max_chars: usize::MAX, unlimited_choices: usize::MAX },
    max_text_chars: usize::MAX,
};

const OPENAI: ToolLimits = ToolLimits {
    tool_names: NameRules::OPENAI,
    parameter_names: None,
    max_tools: Some(128),
    requires_items: true,
    allows_empty_choices: true,
    strict: None,
};

const OPENAI_STRICT: ToolLimits = ToolLimits {
    strict: Some(StrictLimits {
        max_depth: 10,
        max_properties: 5_000,
        max_choices: 1_000,
        enum_text: EnumTextLimit { max_chars: 15_000, unlimited_choices: 250 },
        max_text_chars: 120_000,
        ..NO_STRICT_LIMITS
    }),
    ..OPENAI
};

const ANTHROPIC: ToolLimits = ToolLimits {
    tool_names: NameRules::ANTHROPIC,
    parameter_names: Some(NameRules::ANTHROPIC_PARAMETER),
    max_tools: None,
    requires_items: false,
    ..OPENAI
};

const ANTHROPIC_STRICT: ToolLimits = ToolLimits {
    strict: Some(StrictLimits {
        max_optional: 24,
        max_unions: 16,
        max_tools: 20,
        ..NO_STRICT_LIMITS
    }),
    ..ANTHROPIC
};

const GEMINI: ToolLimits = ToolLimits {
    tool_names: NameRules::GEMINI,
    parameter_names: Some(NameRules::GEMINI_PARAMETER),
    max_tools: Some(512),
    allows_empty_choices: false,
    ..OPENAI
};

const OLLAMA: ToolLimits =
    ToolLimits { tool_names: NameRules::OLLAMA, max_tools: None, requires_items: false, ..OPENAI };

const JSON_SCHEMA: ToolLimits = OLLAMA;

impl Dialect {
    /// Returns the limits of the provider for tools in this dialect.
    pub fn limits(self) -> &'static ToolLimits {
        match self {
            Self::OpenAi => &OPENAI,
            Self::OpenAiStrict => &OPENAI_STRICT,
            Self::Anthropic => &ANTHROPIC,
            Self::AnthropicStrict => &ANTHROPIC_STRICT,
            Self::Gemini => &GEMINI,
            Self::Ollama => &OLLAMA,
            Self::JsonSchema => &JSON_SCHEMA,
        }
    }
}
