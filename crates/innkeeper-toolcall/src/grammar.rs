//! Grammars that restrict a local model's output to valid calls of the available tools.
//!
//! [`gbnf()`] is for llama.cpp, [`call_schema()`] for servers that accept a JSON Schema (Ollama's
//! `format`, the `response_format` of OpenAI-compatible servers), [`structural_tag()`] for vLLM and
//! SGLang. A [`GrammarLoss`] reports each schema keyword that a grammar cannot enforce, so
//! arguments need validation even with a grammar.

mod call_schema;
mod gbnf;
mod reference;
mod structural_tag;
mod value_count;

use std::fmt;

pub use call_schema::{CallSchema, CallSchemaOptions, call_schema};
pub use gbnf::{Gbnf, GbnfOptions, OutputShape, gbnf};
pub use structural_tag::{TagOptions, structural_tag};

/// Maximum number of repetitions in a grammar. llama.cpp rejects 2,000 and more repetitions of the
/// simplest element; half of that number leaves room for elements with two parts.
pub const MAX_REPEATS: u64 = 1_000;

/// Maximum number of JSON values in the schema of one tool; the longest known schemas have some
/// hundreds.
pub const MAX_SCHEMA_VALUES: usize = 5_000;

/// Maximum depth of a schema; protects the stack.
pub const MAX_SCHEMA_DEPTH: usize = 48;

/// Keyword of a loss that reports a schema above the depth or size limit.
pub const LIMIT_EXCEEDED: &str = "(too deep or too large)";

/// A keyword of a tool's schema that a grammar does not enforce exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrammarLoss {
    /// Name of the tool.
    pub tool: String,
    /// JSON pointer into the tool's input schema.
    pub pointer: String,
    /// The keyword. For a boolean schema, its value.
    pub keyword: String,
    /// Effect of the loss on calls.
    pub kind: GrammarLossKind,
}

/// Effect of a keyword that a grammar does not enforce exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrammarLossKind {
    /// The model can write values that the keyword forbids.
    Dropped,
    /// The model cannot write some values that the keyword allows.
    Narrowed,
}

impl fmt::Display for GrammarLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, pointer, keyword, kind } = self;
        let effect = match kind {
            GrammarLossKind::Dropped => "not enforced",
            GrammarLossKind::Narrowed => "enforced too strictly",
        };
        if keyword == LIMIT_EXCEEDED {
            return write!(
                f,
                "the schema at `{pointer}` of `{tool}` is too deep or too large and is {effect}"
            );
        }
        write!(f, "`{keyword}` at `{pointer}` in the input schema of `{tool}` is {effect}")
    }
}

/// Keywords that restrict values and that no grammar of this module can enforce.
const UNSUPPORTED: &[&str] = &[
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "maxProperties",
    "minContains",
    "minProperties",
    "multipleOf",
    "not",
    "pattern",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "$dynamicRef",
    "$recursiveRef",
];

/// Keywords that do not restrict values.
const ANNOTATIONS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "example",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];
