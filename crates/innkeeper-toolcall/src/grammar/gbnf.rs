//! Tools as a GBNF grammar, llama.cpp's notation.
//!
//! JSON is written on one line, with at most one space after a comma or colon. Of an object, the
//! listed properties come in their order: the required ones always, any of the others or none; more
//! properties only where `additionalProperties` allows them in so many words. A schema without
//! `type` has the type its keywords speak of. A tuple (`prefixItems`) is written whole. The formats
//! `date`, `time`, `date-time`, `uuid` and `ipv4` are held, with no 29 February and no leap second.
//! A schema that no finite value fits, as one that requires itself, gives a grammar without an end.
//! Several properties of one name cannot be ruled out where any name is allowed.

mod combined;
mod convert;
mod number;
mod object;
mod prose;
mod range;
mod rules;
mod string;

use self::convert::Converter;
use self::rules::{Rules, Shared, literal};
use super::Loss;
use crate::{Family, Tool, Tools};

/// What the whole answer looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One call: `{"name": …, "arguments": …}`.
    Call,
    /// A JSON list of one or more calls.
    Calls,
    /// Text, with any number of calls in the family's own form. The text never holds the family's
    /// trigger except where a call follows: what the schema forbids cannot be written after it.
    Prose(Family),
    /// One call in the family's own form, from its trigger on: for a server that starts applying
    /// the grammar when the trigger appears (llama.cpp's `grammar_lazy` with the trigger in
    /// `grammar_triggers` and `preserved_tokens`).
    Triggered(Family),
}

/// How a grammar is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The most characters of a string whose schema sets no limit, so that a weak model cannot run
    /// away inside one; at most [`REPEATS`](super::REPEATS). `None`: no limit. Default: 1,000.
    pub string_limit: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { string_limit: Some(super::REPEATS) }
    }
}

/// A grammar, and what it does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gbnf {
    /// The rules, `root` first.
    pub text: String,
    /// What the arguments still have to be checked for.
    pub losses: Vec<Loss>,
}

/// The grammar of the calls of these tools; none without tools, as there is nothing to allow.
pub fn gbnf(tools: &Tools, shape: Shape, options: Options) -> Option<Gbnf> {
    if tools.is_empty() {
        return None;
    }
    let mut rules = Rules::new(options.string_limit);
    let mut losses = Vec::new();
    let mut calls = Vec::new();
    for tool in tools.iter() {
        let arguments = Converter::new(tool, options, &mut rules, &mut losses).arguments();
        let body = call(&mut rules, shape, tool, &arguments);
        let name = rules.rule(&format!("call-{}", tool.name), body);
        calls.push(name);
    }
    let call = rules.rule("call", calls.join(" | "));
    let root = match shape {
        Shape::Call => call,
        Shape::Calls => {
            let space = rules.shared(Shared::Space);
            format!(r#""[" {call} ("," {space} {call})* "]""#)
        }
        Shape::Prose(family) => prose::rules(&mut rules, family.trigger(), &call),
        Shape::Triggered(family) => format!("{} {call}", literal(family.trigger())),
    };
    Some(Gbnf { text: rules.text(&root), losses })
}

/// One tool's call; after a trigger, what follows it.
fn call(rules: &mut Rules, shape: Shape, tool: &Tool, arguments: &str) -> String {
    match shape {
        Shape::Call | Shape::Calls => {
            let space = rules.shared(Shared::Space);
            let name = literal(&serde_json::Value::from(tool.name.as_str()).to_string());
            format!(
                r#""{{\"name\":" {space} {name} "," {space} "\"arguments\":" {space} {arguments} "}}""#
            )
        }
        Shape::Prose(family) | Shape::Triggered(family) => {
            let begin = family.begin(&tool.name);
            let rest = begin.strip_prefix(family.trigger()).unwrap_or(&begin);
            format!("{} {arguments} {}", literal(rest), literal(family.end()))
        }
    }
}

#[cfg(test)]
mod tests;
