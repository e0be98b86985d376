//! Rules of the providers' JSON Schema dialects, as data.
//!
//! Sources: for OpenAI strict, the documentation of structured outputs (no `oneOf`, `default` or
//! look-around, a list of formats, closed objects with all properties required). For Anthropic
//! strict, the schema transformation of its SDK. For Gemini, `parametersJsonSchema`. Where a
//! provider documents nothing, the rules use the smaller set and move other keywords to the
//! description. `limits.rs` has the limits.

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
    /// Whether the provider compiles the schema to a grammar.
    pub(super) is_strict: bool,
    /// Whether a strict schema requires every property; optional properties become nullable.
    pub(super) all_required: bool,
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
    is_strict: false,
    all_required: false,
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
    is_strict: true,
    all_required: true,
    ..FULL_JSON_SCHEMA
};

/// Without references: Anthropic's limits count inlined targets, and recursion is rejected.
pub(super) const ANTHROPIC_STRICT: DialectRules = DialectRules {
    full_json_schema: false,
    allows_refs: false,
    allowed_keywords: &["format"],
    allowed_formats: ANTHROPIC_FORMATS,
    is_strict: true,
    ..FULL_JSON_SCHEMA
};

pub(super) const GEMINI: DialectRules = DialectRules {
    full_json_schema: false,
    allows_refs: false,
    allowed_keywords: &["minimum", "maximum", "minItems", "maxItems"],
    scalar_enums_only: true,
    allows_additional_properties: false,
    ..FULL_JSON_SCHEMA
};

pub(super) const OLLAMA: DialectRules = DialectRules {
    full_json_schema: false,
    allows_refs: false,
    allows_additional_properties: false,
    ..FULL_JSON_SCHEMA
};
