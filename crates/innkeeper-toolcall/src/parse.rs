//! JSON parser for model text, strict ([`parse_strict`]) or lenient ([`parse_lenient`]).
//!
//! Both modes read the text once, from left to right, and need time and memory in proportion to its
//! length. Valid JSON has the same value in both modes and needs no repair.
//!
//! # Repaired and rejected syntax
//!
//! The lenient mode repairs an error only where exactly one meaning is possible:
//!
//! - A fence of three back-ticks (`json`, `json5`, `jsonc` or no word after it) around the entire
//!   text is removed. `{{` opens an object that `}}` closes.
//! - `//` and `/* */` comments outside of strings are skipped; `#` does not start a comment.
//! - One comma before a closing bracket is dropped; two commas, or a comma after an opening
//!   bracket, are rejected.
//! - A comma is added if a line break separates a value from the next quoted key, or separates two
//!   items that are arrays or objects. Two strings in a row may be meant as one string, so no comma
//!   is added.
//! - A string may have single quotes or one kind of typographic quotes. A plain double quote in a
//!   typographic string, or in a single-quoted key, is rejected: the quotes are mixed, and the end
//!   of the string is unclear.
//! - `True`, `False` and `None` are literals. Any other bare word is rejected as a value. A key may
//!   be a bare word of letters, digits, `_`, `$` and `-` that is not a literal.
//! - An unknown escape keeps its backslash (`\d` is a backslash and a `d`), except `\'`, which is
//!   the quote. `\x`, `\0`, an invalid `\u` and a backslash before a line break are rejected,
//!   because they have a meaning in other languages.
//! - Control characters in strings are kept.
//! - `007` becomes the string `"007"`, because a number would lose its zeros. `.5`, `+1`, `0x1F`
//!   and `1_000` are rejected.
//! - Closing brackets are added only if the model stopped by itself ([`Completeness::Stopped`]),
//!   and only after a value with an explicit end: a quoted string, a closed bracket or a literal.
//!   After a number, a comma, a key or an opening bracket, content may be missing.
//!
//! Both modes reject duplicate keys, `NaN`, `Infinity`, half of a surrogate pair (which is not a
//! character and cannot be stored in a string), more than [`MAX_DEPTH`] levels, and text after the
//! value.

mod error;
mod number;
mod parser;
mod string;
#[cfg(test)]
mod tests;
mod trivia;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::value::RawValue;

use self::parser::Parser;
use crate::json::Json;
use crate::repair::{Repair, push_repair};

pub use self::error::{ExpectedSyntax, ParseError, ParseErrorKind};
pub(crate) use self::number::is_number;

/// Maximum number of nested arrays and objects. Arguments in use have less than twenty levels.
/// Later code may recurse once per level.
pub const MAX_DEPTH: usize = 128;

/// The way in which the text of a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    /// The call format shows the end: a closing marker or balanced brackets.
    Complete,
    /// The model stopped by itself before the end of the call format.
    Stopped,
    /// The generation was cut off by its maximum length or by an interruption. Text is missing.
    Truncated,
}

/// Parses JSON without repairs. Duplicate keys are an error.
///
/// # Errors
///
/// Returns the first position that is not valid JSON.
pub fn parse_strict(text: &str) -> Result<Json, ParseError> {
    Parser::new(text, None, MAX_DEPTH).parse().map(|(json, _)| json)
}

/// Supports JSON deserializers only. Duplicate keys are an error.
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        parse_strict(raw.get()).map_err(D::Error::custom)
    }
}

/// Parses JSON with common model errors. Each repair is added to `repairs`.
///
/// # Errors
///
/// Returns the first position with no possible meaning, or with several. `repairs` is then
/// unchanged.
pub fn parse_lenient(
    text: &str,
    completeness: Completeness,
    repairs: &mut Vec<Repair>,
) -> Result<Json, ParseError> {
    let (json, slips) = Parser::new(text, Some(completeness), MAX_DEPTH).parse()?;
    slips.into_iter().for_each(|slip| push_repair(repairs, slip));
    Ok(json)
}

/// Parses JSON text inside a string value, with at most `depth` levels.
pub(crate) fn parse_embedded(
    text: &str,
    depth: usize,
    pointer: &str,
    repairs: &mut Vec<Repair>,
) -> Option<Json> {
    let (json, slips) = Parser::new(text, Some(Completeness::Complete), depth).parse().ok()?;
    for slip in slips {
        let slip = match slip {
            Repair::Syntax { at, slip } => {
                Repair::EmbeddedSyntax { pointer: pointer.to_owned(), at, slip }
            }
            other @ (Repair::EmbeddedSyntax { .. }
            | Repair::Coercion { .. }
            | Repair::Name { .. }
            | Repair::Omitted { .. }) => other,
        };
        push_repair(repairs, slip);
    }
    Some(json)
}
