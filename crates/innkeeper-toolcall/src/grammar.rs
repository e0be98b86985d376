//! Grammars: what makes a local model's server let through calls of the offered tools and nothing else.
//!
//! [`gbnf()`] is for llama.cpp, [`union()`] for servers that take a JSON Schema (Ollama's `format`,
//! the `response_format` of OpenAI-compatible servers), [`structural_tag()`] for vLLM and SGLang.
//! What a schema asks for and a grammar cannot hold is reported as a [`Loss`]: arguments have to be
//! validated all the same.

mod gbnf;
mod reference;
mod structural_tag;
mod union;
mod weight;

use std::fmt;

pub use gbnf::{Gbnf, Options as GbnfOptions, Shape, gbnf};
pub use structural_tag::{Tags, structural_tag};
pub use union::{Options as UnionOptions, Union, union};

/// The most repetitions asked of a grammar. llama.cpp refuses 2,000 and more of the simplest part;
/// half of it leaves room for parts made of two.
pub const REPEATS: u64 = 1_000;

/// The most JSON values in one tool's schema; the longest in use have some hundreds.
pub const VALUES: usize = 5_000;

/// How deep a schema may be followed, so that no stack overflows.
pub const DEPTH: usize = 48;

/// What a loss says instead of a keyword where a schema is deeper or larger than is followed.
pub const TOO_MUCH: &str = "(too deep or too large)";

/// A keyword of a tool's schema that a grammar does not hold as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The tool.
    pub tool: String,
    /// Where in its input schema, as a JSON pointer.
    pub pointer: String,
    /// The keyword; a boolean schema is called by its value.
    pub keyword: String,
    /// What it means for the calls.
    pub effect: Effect,
}

/// What becomes of a keyword that a grammar does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The model can write what the keyword forbids.
    Dropped,
    /// Some of what the keyword permits cannot be written.
    Narrowed,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, pointer, keyword, effect } = self;
        let effect = match effect {
            Effect::Dropped => "not held",
            Effect::Narrowed => "held too narrowly",
        };
        write!(f, "`{keyword}` at `{pointer}` in the input schema of `{tool}` is {effect}")
    }
}

/// The keywords that say something about a value and that no grammar here can hold.
const UNHELD: &[&str] = &[
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

/// Keywords that say nothing about which values are right.
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
