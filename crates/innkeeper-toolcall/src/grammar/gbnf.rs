//! GBNF grammar of tool calls, for llama.cpp.
//!
//! The grammar writes JSON on one line, with at most one space after a comma or colon. The
//! properties of an object appear in the listed order: required properties always, others
//! optionally. Additional properties are possible only if `additionalProperties` allows them
//! explicitly. A schema without `type` has the type that its keywords imply. A tuple
//! (`prefixItems`) is always complete. The grammar enforces the formats `date`, `time`,
//! `date-time`, `uuid` and `ipv4`, without 29 February and leap seconds. A schema without finite
//! values, such as a schema that requires itself, gives a grammar without finite output. The
//! grammar cannot prevent duplicate property names where any name is allowed.

mod composition;
mod convert;
mod free_text;
mod number;
mod object;
mod range;
mod rules;
mod string;

use self::convert::SchemaConverter;
use self::rules::{RuleSet, SharedRule, literal};
use super::GrammarLoss;
use crate::{ModelFamily, Tool, Tools};

/// The shape of the model's complete output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputShape {
    /// One call: `{"name": …, "arguments": …}`.
    Call,
    /// A JSON array of one or more calls.
    Calls,
    /// Text with any number of calls in the family's own form. The family's trigger always starts a
    /// call, so that the model cannot write an invalid call after the trigger.
    FreeText(ModelFamily),
    /// One call in the family's own form, starting with its trigger: for a server that applies the
    /// grammar when the trigger appears (llama.cpp's `grammar_lazy` with the trigger in
    /// `grammar_triggers` and `preserved_tokens`).
    Triggered(ModelFamily),
}

/// Options of [`gbnf()`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GbnfOptions {
    /// Maximum number of characters of a string without `maxLength`, so that a weak model cannot
    /// write an endless string; at most [`MAX_REPEATS`](super::MAX_REPEATS). `None`: no limit.
    /// Default: 1,000.
    pub string_limit: Option<u64>,
}

impl Default for GbnfOptions {
    fn default() -> Self {
        Self { string_limit: Some(super::MAX_REPEATS) }
    }
}

/// A grammar, and the keywords that the grammar does not enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gbnf {
    /// The rules; the first rule is `root`.
    pub text: String,
    /// Keywords that the grammar does not enforce.
    pub losses: Vec<GrammarLoss>,
}

/// Returns the grammar of calls of these tools. `None` without tools, because no call is possible.
///
/// # Examples
///
/// ```
/// use innkeeper_toolcall::grammar::{GbnfOptions, OutputShape, gbnf};
/// use innkeeper_toolcall::{Tool, Tools};
///
/// let schema = serde_json::json!({"properties": {"path": {"type": "string"}}});
/// let tools = Tools::from_iter([Tool::new("read", "Reads a file.", schema)]);
/// let grammar = gbnf(&tools, OutputShape::Call, GbnfOptions::default());
/// let grammar = grammar.expect("a tool is available");
/// assert!(grammar.text.starts_with("root ::="));
/// assert!(grammar.losses.is_empty());
/// ```
pub fn gbnf(tools: &Tools, shape: OutputShape, options: GbnfOptions) -> Option<Gbnf> {
    if tools.is_empty() {
        return None;
    }
    let mut rules = RuleSet::new(options.string_limit);
    let mut losses = Vec::new();
    let mut calls = Vec::new();
    for tool in tools.iter() {
        let arguments =
            SchemaConverter::new(tool, options, &mut rules, &mut losses).convert_arguments();
        let body = call_rule(&mut rules, shape, tool, &arguments);
        let name = rules.add_rule(&format!("call-{}", tool.name), body);
        calls.push(name);
    }
    let call = rules.add_rule("call", calls.join(" | "));
    let root = match shape {
        OutputShape::Call => call,
        OutputShape::Calls => {
            let space = rules.use_shared(SharedRule::Space);
            format!(r#""[" {call} ("," {space} {call})* "]""#)
        }
        OutputShape::FreeText(family) => {
            free_text::free_text_rule(&mut rules, family.trigger(), &call)
        }
        OutputShape::Triggered(family) => format!("{} {call}", literal(family.trigger())),
    };
    Some(Gbnf { text: rules.render(&root), losses })
}

/// Rule of one tool's call, without the trigger if the shape is triggered.
fn call_rule(rules: &mut RuleSet, shape: OutputShape, tool: &Tool, arguments: &str) -> String {
    match shape {
        OutputShape::Call | OutputShape::Calls => {
            let space = rules.use_shared(SharedRule::Space);
            let name = literal(&serde_json::Value::from(tool.name.as_str()).to_string());
            format!(
                r#""{{\"name\":" {space} {name} "," {space} "\"arguments\":" {space} {arguments} "}}""#
            )
        }
        OutputShape::FreeText(family) | OutputShape::Triggered(family) => {
            let call_start = family.call_start(&tool.name);
            let rest = call_start.strip_prefix(family.trigger()).unwrap_or(&call_start);
            format!("{} {arguments} {}", literal(rest), literal(family.call_end()))
        }
    }
}

#[cfg(test)]
mod tests;
