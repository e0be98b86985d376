//! Repairs: the changes that make a model's call valid.

use std::fmt;

/// Maximum number of listed repairs per call; further repairs are only counted. A model that writes
/// Python needs several repairs per key.
pub const MAX_REPAIRS: usize = 100;

/// Maximum number of characters of a name or pointer in a message.
const MAX_QUOTED_CHARS: usize = 60;

/// A change to a model's call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// The text of the arguments was not valid JSON.
    Syntax {
        /// Byte offset in the text.
        at: usize,
        /// Kind of the syntax error.
        slip: SyntaxSlip,
    },
    /// A string contained almost valid JSON.
    EmbeddedSyntax {
        /// JSON pointer of the string.
        pointer: String,
        /// Byte offset in the decoded string.
        at: usize,
        /// Kind of the syntax error.
        slip: SyntaxSlip,
    },
    /// A value did not have the type of its schema.
    Coercion {
        /// JSON pointer of the value; empty for the arguments as a whole.
        pointer: String,
        /// Kind of the conversion.
        kind: CoercionKind,
    },
    /// The name was not exactly the name of an available tool.
    Name {
        /// The name in the model's call.
        written_name: String,
        /// The name of the available tool.
        resolved_name: String,
        /// Difference between the names.
        change: NameChange,
    },
    /// More repairs than the list can contain.
    Omitted {
        /// Number of repairs that are not listed.
        count: usize,
    },
}

/// A repairable syntax error of almost valid JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntaxSlip {
    /// A fence of three back-ticks around the JSON.
    Fence,
    /// `{{` and `}}` around the members of an object.
    DoubledBraces,
    /// A `//` or `/* */` comment.
    Comment,
    /// A comma before a closing bracket.
    TrailingComma,
    /// A missing comma between two members or items on separate lines.
    MissingComma,
    /// A string in single quotes.
    SingleQuotes,
    /// A string in typographic quotes.
    SmartQuotes,
    /// `True`, `False` or `None`.
    PythonLiteral,
    /// A key without quotes.
    UnquotedKey,
    /// A number with a leading zero. The value becomes a string, so that no digit is lost.
    LeadingZero,
    /// A backslash before a character that cannot be escaped; reported once per string.
    InvalidEscape,
    /// A line break, tab or other control character in a string; reported once per string.
    ControlCharacter,
    /// A missing closing bracket or fence at the end of the model's text.
    MissingCloser,
}

/// A conversion of a value to the type of its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoercionKind {
    /// Missing arguments became an empty object.
    EmptyToObject,
    /// A string became the number that it contains.
    StringToNumber,
    /// A string became the boolean that it contains.
    StringToBoolean,
    /// A string became `null`.
    StringToNull,
    /// A string became the array or object whose JSON it contains.
    StringToJson,
    /// A whole number with a fraction or an exponent got digits only.
    FractionToInteger,
    /// A number became a string of its digits.
    NumberToString,
    /// A boolean became a string.
    BooleanToString,
    /// A single value became an array with one item.
    ScalarToArray,
}

/// A difference between a written name and the name of the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameChange {
    /// Letter case.
    Case,
    /// A prefix that some models put before every name.
    Prefix,
    /// The name of the server is missing.
    Server,
    /// The separators `.`, `_`, `-` or `/`.
    Separators,
    /// Markup behind the name, such as a closing tag or a channel token.
    Markup,
}

/// Adds a repair, or counts the repair if the list is full.
pub(crate) fn push_repair(repairs: &mut Vec<Repair>, repair: Repair) {
    let (unlisted, added) = match repair {
        Repair::Omitted { count } => (true, count),
        Repair::Syntax { .. }
        | Repair::EmbeddedSyntax { .. }
        | Repair::Coercion { .. }
        | Repair::Name { .. } => (repairs.len() >= MAX_REPAIRS, 1),
    };
    match repairs.last_mut() {
        Some(Repair::Omitted { count }) => *count += added,
        _ if unlisted => repairs.push(Repair::Omitted { count: added }),
        _ => repairs.push(repair),
    }
}

/// Quotes a text with back-ticks, shortened.
pub(crate) fn quote_backticks(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { at, slip } => write!(f, "{slip} (byte {at})"),
            Self::EmbeddedSyntax { pointer, at, slip } => {
                write!(f, "in the JSON text at {}: {slip} (byte {at})", quote_backticks(pointer))
            }
            Self::Coercion { pointer, kind } if pointer.is_empty() => {
                write!(f, "arguments: {kind}")
            }
            Self::Coercion { pointer, kind } => {
                write!(f, "{}: {kind}", quote_backticks(pointer))
            }
            Self::Name { written_name: written, resolved_name: resolved, change } => {
                write!(
                    f,
                    "{} resolved to {}: {change}",
                    quote_backticks(written),
                    quote_backticks(resolved)
                )
            }
            Self::Omitted { count } => write!(f, "{count} more"),
        }
    }
}

impl fmt::Display for SyntaxSlip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fence => "code fence removed",
            Self::DoubledBraces => "doubled braces removed",
            Self::Comment => "comment removed",
            Self::TrailingComma => "trailing comma removed",
            Self::MissingComma => "missing comma added",
            Self::SingleQuotes => "single quotes read as double quotes",
            Self::SmartQuotes => "typographic quotes read as double quotes",
            Self::PythonLiteral => "Python literal read as JSON",
            Self::UnquotedKey => "unquoted key accepted",
            Self::LeadingZero => "number with a leading zero read as a string",
            Self::InvalidEscape => "invalid escape taken literally",
            Self::ControlCharacter => "control character in a string accepted",
            Self::MissingCloser => "missing closer added",
        })
    }
}

impl fmt::Display for CoercionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EmptyToObject => "missing arguments read as an empty object",
            Self::StringToNumber => "string read as a number",
            Self::StringToBoolean => "string read as a boolean",
            Self::StringToNull => "string read as null",
            Self::StringToJson => "string parsed as JSON",
            Self::FractionToInteger => "whole number written as an integer",
            Self::NumberToString => "number read as a string",
            Self::BooleanToString => "boolean read as a string",
            Self::ScalarToArray => "single value wrapped in an array",
        })
    }
}

impl fmt::Display for NameChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Case => "different case",
            Self::Prefix => "known prefix removed",
            Self::Server => "missing server name",
            Self::Separators => "different separators",
            Self::Markup => "stray markup removed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment_slip(at: usize) -> Repair {
        Repair::Syntax { at, slip: SyntaxSlip::Comment }
    }

    #[test]
    fn repairs_up_to_the_limit_are_listed_and_those_past_it_are_counted() {
        let mut repairs = Vec::new();
        (0..MAX_REPAIRS).for_each(|at| push_repair(&mut repairs, comment_slip(at)));
        assert_eq!(repairs.last(), Some(&comment_slip(MAX_REPAIRS - 1)));
        push_repair(&mut repairs, comment_slip(MAX_REPAIRS));
        assert_eq!(repairs.last(), Some(&Repair::Omitted { count: 1 }));
        for repair in repairs.clone() {
            push_repair(&mut repairs, repair);
        }
        assert_eq!(repairs.len(), MAX_REPAIRS + 1);
        assert_eq!(repairs.last(), Some(&Repair::Omitted { count: MAX_REPAIRS + 2 }));
    }

    #[test]
    fn a_repair_is_displayed_as_a_message() {
        let value = |pointer: &str| Repair::Coercion {
            pointer: pointer.to_owned(),
            kind: CoercionKind::StringToNumber,
        };
        let name = Repair::Name {
            written_name: "Get_Time".to_owned(),
            resolved_name: "get_time".to_owned(),
            change: NameChange::Case,
        };
        let long = "x".repeat(MAX_QUOTED_CHARS + 1);
        let messages = [
            comment_slip(7),
            value("/a"),
            value(""),
            name,
            Repair::Omitted { count: 2 },
            value(&long),
        ]
        .map(|repair| repair.to_string());
        assert_eq!(
            messages,
            [
                "comment removed (byte 7)".to_owned(),
                "`/a`: string read as a number".to_owned(),
                "arguments: string read as a number".to_owned(),
                "`Get_Time` resolved to `get_time`: different case".to_owned(),
                "2 more".to_owned(),
                format!("`{}…`: string read as a number", "x".repeat(MAX_QUOTED_CHARS)),
            ]
        );
    }
}
