//! What a model wrote, as JSON: exactly ([`strict`]), or with the slips models make ([`lenient`]).
//!
//! Both read the text once, from left to right, and need time and memory in proportion to its
//! length. A text that is JSON means the same to both and needs no repair.
//!
//! # What is repaired, and what is not
//!
//! A slip is repaired where only one meaning is possible:
//!
//! - A fence of three back-ticks (`json`, `json5`, `jsonc` or no word after it) is taken away
//!   around the whole text, not inside. `{{` opens an object that `}}` closes.
//! - `//` and `/* */` comments outside strings are skipped; `#` is not a comment.
//! - One comma before a closer is dropped; two commas, or a comma after an opener, are not.
//! - A comma is added where a line break stands between a value and the next key in quotes, or
//!   between two items that are arrays or objects. Two strings in a row may be meant as one.
//! - A string may stand between single quotes, or typographic ones of one kind. A plain double
//!   quote in a typographic string, or in a single-quoted key, is refused: the quotes were mixed,
//!   and where the string ends is a guess.
//! - `True`, `False` and `None` are literals. Any other bare word is refused as a value. A key may
//!   be a bare word of letters, digits, `_`, `$` and `-` that is not a literal.
//! - An unknown escape keeps its backslash (`\d` is a backslash and a `d`), except `\'`, which is
//!   the quote. `\x`, `\0`, a bad `\u` and a backslash before a line break are refused: they mean
//!   something elsewhere.
//! - Control characters in strings are kept as they are.
//! - `007` becomes the string `"007"`: as a number it would lose its zeros. `.5`, `+1`, `0x1F` and
//!   `1_000` are refused.
//! - Closers are added only when the model stopped by itself ([`End::Stopped`]), and only after a
//!   value that shows its own end: a string with its quote, a closed bracket, a literal. After a
//!   number, a comma, a key or an opener something may be missing, so nothing is closed.
//!
//! Never accepted: a key that stands twice, `NaN`, `Infinity`, half a surrogate pair (no character
//! is meant by it, and a string cannot hold it), more than [`DEPTH`] levels, text after the value.

mod around;
mod error;
mod machine;
mod number;
mod string;
#[cfg(test)]
mod tests;

use self::machine::Machine;
use crate::json::Json;
use crate::repair::{Repair, note};

pub use self::error::{Expected, ParseError, Problem};
pub(crate) use self::number::is_number;

/// The most arrays and objects inside one another. Arguments in use have less than twenty; what
/// walks over a value later may call itself once for each.
pub const DEPTH: usize = 128;

/// How the text of a call came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The format said so: a closing marker, or brackets that balance.
    Complete,
    /// The model stopped by itself before the format was closed.
    Stopped,
    /// The generation was cut, by its length or by an interruption. Something is missing.
    Cut,
}

/// Reads exactly JSON, except that keys must not repeat.
///
/// # Errors
///
/// The first place that is not JSON.
pub fn strict(text: &str) -> Result<Json, ParseError> {
    Machine::new(text, None, DEPTH).read().map(|(json, _)| json)
}

/// Reads JSON with the slips models make; each repair is added to `repairs`.
///
/// # Errors
///
/// The first place that can be read in no way, or in more than one. `repairs` is then as before.
pub fn lenient(text: &str, end: End, repairs: &mut Vec<Repair>) -> Result<Json, ParseError> {
    let (json, slips) = Machine::new(text, Some(end), DEPTH).read()?;
    slips.into_iter().for_each(|slip| note(repairs, slip));
    Ok(json)
}

/// Reads the JSON that a string inside a value holds, with at most `depth` levels of its own.
pub(crate) fn encoded(
    text: &str,
    depth: usize,
    pointer: &str,
    repairs: &mut Vec<Repair>,
) -> Option<Json> {
    let (json, slips) = Machine::new(text, Some(End::Complete), depth).read().ok()?;
    for slip in slips {
        let slip = match slip {
            Repair::Text { at, slip } => Repair::Encoded { pointer: pointer.to_owned(), at, slip },
            other @ (Repair::Encoded { .. }
            | Repair::Value { .. }
            | Repair::Name { .. }
            | Repair::More { .. }) => other,
        };
        note(repairs, slip);
    }
    Some(json)
}
