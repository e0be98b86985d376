//! What each provider takes of JSON Schema, as data.
//!
//! OpenAI strict: facts of its structured outputs (no `oneOf`, `default` or look-around, a list of
//! formats, closed objects with all properties required, ten levels, 5,000 properties). Anthropic
//! strict: what its SDK keeps when it transforms a schema, and the limits per request. Gemini:
//! `parametersJsonSchema` and the names of parameters. Where a provider is silent, the smaller set is
//! taken: what it leaves out stands in the description.

use crate::alias::NameRules;

/// What a form of schema may say.
#[derive(Debug)]
pub(super) struct Rules {
    /// Full JSON Schema, unions and negations included.
    pub(super) full: bool,
    /// Whether `$ref` into `$defs` may stay.
    pub(super) refs: bool,
    /// Keywords without schemas in them that may stay, where the form is not full.
    pub(super) keywords: &'static [&'static str],
    /// Values of `format` that may stay.
    pub(super) formats: &'static [&'static str],
    /// Whether `enum` has strings and numbers only.
    pub(super) simple_choices: bool,
    /// Whether `additionalProperties` may be said.
    pub(super) additional: bool,
    pub(super) parameters: Option<NameRules>,
    pub(super) strict: Option<Strict>,
}

/// What a strict form asks beside that.
#[derive(Debug)]
pub(super) struct Strict {
    /// Every property is required, and one that was not may be `null`.
    pub(super) all_required: bool,
    /// Levels of nesting: a root is one, each property or item one more, a union none.
    pub(super) deepest: usize,
    /// Properties of all objects together.
    pub(super) most_properties: usize,
    /// Properties that are not required, in all tools of a request.
    pub(super) most_optional: usize,
    /// Properties that are unions or have several types, in all tools of a request.
    pub(super) most_unions: usize,
    /// Strict tools in a request.
    pub(super) most_tools: usize,
}

/// Formats that OpenAI enforces.
const OPENAI_FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
/// Formats that Anthropic enforces.
const ANTHROPIC_FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

const FULL: Rules = Rules {
    full: true,
    refs: true,
    keywords: &[],
    formats: &[],
    simple_choices: false,
    additional: true,
    parameters: None,
    strict: None,
};

pub(super) const OPENAI: Rules = FULL;

pub(super) const ANTHROPIC: Rules = FULL;

/// Without references, so that it can stand inside another schema.
pub(super) const JSON_SCHEMA: Rules = Rules { refs: false, ..FULL };

pub(super) const OPENAI_STRICT: Rules = Rules {
    full: false,
    keywords: &[
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
    formats: OPENAI_FORMATS,
    strict: Some(Strict {
        all_required: true,
        deepest: 10,
        most_properties: 5000,
        most_optional: usize::MAX,
        most_unions: usize::MAX,
        most_tools: usize::MAX,
    }),
    ..FULL
};

/// Without references: the limits count what they stand for, and recursion is refused.
pub(super) const ANTHROPIC_STRICT: Rules = Rules {
    full: false,
    refs: false,
    keywords: &["format"],
    formats: ANTHROPIC_FORMATS,
    strict: Some(Strict {
        all_required: false,
        deepest: usize::MAX,
        most_properties: usize::MAX,
        most_optional: 24,
        most_unions: 16,
        most_tools: 20,
    }),
    ..FULL
};

pub(super) const GEMINI: Rules = Rules {
    full: false,
    refs: false,
    keywords: &["minimum", "maximum", "minItems", "maxItems"],
    simple_choices: true,
    additional: false,
    parameters: Some(NameRules::GEMINI_PARAMETER),
    ..FULL
};

pub(super) const OLLAMA: Rules = Rules { full: false, refs: false, additional: false, ..FULL };
