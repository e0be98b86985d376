//! Rules of the providers' JSON Schema dialects, as data.
//!
//! Sources: for OpenAI strict, the documentation of structured outputs (no `oneOf`, `default` or
//! look-around, a list of formats, closed objects with all properties required, ten levels, 5,000
//! properties). For Anthropic strict, the schema transformation of its SDK, and the limits per
//! request. For Gemini, `parametersJsonSchema` and the rules for parameter names. Where a provider
//! documents nothing, the rules use the smaller set and move other keywords to the description.

use crate::alias::NameRules;

/// The supported features of a dialect.
#[derive(Debug)]
pub(super) struct DialectRules {
    /// Whether the dialect is full JSON Schema, including unions and negations.
    pub(super) full_json_schema: bool,
    /// Whether the dialect supports `$ref` to `$defs`.
    pub(super) allows_refs: bool,
    /// Supported keywords without subschemas, if the dialect is not full JSON Schema.
    pub(super) allowed_keywords: &'static [&'static str],
    /// Supported values of `format`.
    pub(super) allowed_formats: &'static [&'static str],
    /// Whether `enum` supports only strings and numbers.
    pub(super) scalar_enums_only: bool,
    /// Whether the dialect supports `additionalProperties`.
    pub(super) allows_additional_properties: bool,
    pub(super) parameter_names: Option<NameRules>,
    pub(super) strict: Option<StrictRules>,
}

/// Additional rules of a strict dialect.
#[derive(Debug)]
pub(super) struct StrictRules {
    /// Whether every property must be required; optional properties become nullable.
    pub(super) all_required: bool,
    /// Maximum nesting depth: the root counts 1, each property or item adds 1, a union adds 0.
    pub(super) max_depth: usize,
    /// Maximum number of properties of all objects.
    pub(super) max_properties: usize,
    /// Maximum number of optional properties in all tools of a request.
    pub(super) max_optional: usize,
    /// Maximum number of properties with a union or several types in all tools of a request.
    pub(super) max_unions: usize,
    /// Maximum number of strict tools in a request.
    pub(super) max_tools: usize,
}

/// Formats that OpenAI enforces.
const OPENAI_FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
/// Formats that Anthropic enforces.
const ANTHROPIC_FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

const FULL_JSON_SCHEMA: DialectRules = DialectRules {
    full_json_schema: true,
    allows_refs: true,
    allowed_keywords: &[],
    allowed_formats: &[],
    scalar_enums_only: false,
    allows_additional_properties: true,
    parameter_names: None,
    strict: None,
};

pub(super) const OPENAI: DialectRules = FULL_JSON_SCHEMA;

pub(super) const ANTHROPIC: DialectRules = FULL_JSON_SCHEMA;

/// Without references, for use inside another schema.
pub(super) const JSON_SCHEMA: DialectRules =
    DialectRules { allows_refs: false, ..FULL_JSON_SCHEMA };

pub(super) const OPENAI_STRICT: DialectRules = DialectRules {
    full_json_schema: false,
    allowed_keywords: &[
        "pattern",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
    ],
    allowed_formats: OPENAI_FORMATS,
    strict: Some(StrictRules {
        all_required: true,
        max_depth: 10,
        max_properties: 5000,
        max_optional: usize::MAX,
        max_unions: usize::MAX,
        max_tools: usize::MAX,
    }),
    ..FULL_JSON_SCHEMA
};

/// Without references: Anthropic's limits count inlined targets, and recursion is rejected.
pub(super) const ANTHROPIC_STRICT: DialectRules = DialectRules {
    full_json_schema: false,
    allows_refs: false,
    allowed_keywords: &["format"],
    allowed_formats: ANTHROPIC_FORMATS,
    strict: Some(StrictRules {
        all_required: false,
        max_depth: usize::MAX,
        max_properties: usize::MAX,
        max_optional: 24,
        max_unions: 16,
        max_tools: 20,
    }),
    ..FULL_JSON_SCHEMA
};

pub(super) const GEMINI: DialectRules = DialectRules {
    full_json_schema: false,
    allows_refs: false,
    allowed_keywords: &["minimum", "maximum", "minItems", "maxItems"],
    scalar_enums_only: true,
    allows_additional_properties: false,
    parameter_names: Some(NameRules::GEMINI_PARAMETER),
    ..FULL_JSON_SCHEMA
};

pub(super) const OLLAMA: DialectRules = DialectRules {
    full_json_schema: false,
    allows_refs: false,
    allows_additional_properties: false,
    ..FULL_JSON_SCHEMA
};
