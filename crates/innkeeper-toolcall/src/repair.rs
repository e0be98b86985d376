//! What was changed in a call so that it could be read, each change on its own.

use std::fmt;

/// The most repairs that are kept one by one for one call; what comes after is counted. A model
/// that writes Python makes some for each key, and nobody reads more than these.
pub const REPAIRS: usize = 100;

/// The most characters of a name or pointer in a message.
const QUOTED: usize = 60;

/// One change that was made to what a model said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// The text of the arguments was not JSON.
    Text {
        /// Where, as a byte offset in that text.
        at: usize,
        /// What was wrong.
        slip: Slip,
    },
    /// A string held JSON, and that text was not quite JSON either.
    Encoded {
        /// The JSON pointer of the string.
        pointer: String,
        /// Where, as a byte offset in the decoded string.
        at: usize,
        /// What was wrong.
        slip: Slip,
    },
    /// A value was not of the type that its schema asks for.
    Value {
        /// The JSON pointer of the value; empty for the arguments as a whole.
        pointer: String,
        /// What was done.
        change: Change,
    },
    /// The name was not exactly that of an offered tool.
    Name {
        /// The name as the model said it.
        said: String,
        /// The name of the offered tool.
        taken: String,
        /// How they differ.
        change: NameChange,
    },
    /// More was changed than is listed.
    More {
        /// How many changes are not listed.
        count: usize,
    },
}

/// What can be wrong with a text that is almost JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slip {
    /// A fence of three back-ticks around the whole.
    Fence,
    /// `{{` and `}}` around the members of an object.
    DoubledBraces,
    /// A `//` or `/* */` comment.
    Comment,
    /// A comma before a closing bracket.
    TrailingComma,
    /// No comma between two members or items that stand on lines of their own.
    MissingComma,
    /// A string between single quotes.
    SingleQuotes,
    /// A string between typographic quotes.
    SmartQuotes,
    /// `True`, `False` or `None`.
    PythonLiteral,
    /// A key without quotes.
    UnquotedKey,
    /// Digits with a zero in front, read as a string so that none is lost.
    LeadingZero,
    /// A backslash before a character that cannot be escaped; told once for each string.
    InvalidEscape,
    /// A line break, tab or other control character in a string; told once for each string.
    ControlCharacter,
    /// A closing bracket or fence that the model left out when it stopped.
    MissingCloser,
}

/// How a value was brought to the type of its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// No arguments at all became an empty object.
    Empty,
    /// A string became the number it spells.
    StringToNumber,
    /// A string became the boolean it spells.
    StringToBoolean,
    /// A string became `null`.
    StringToNull,
    /// A string became the array or object whose JSON it holds.
    StringToJson,
    /// A number became a string of its digits.
    NumberToString,
    /// A boolean became a string.
    BooleanToString,
    /// A single value became an array of one.
    ScalarToArray,
}

/// How a name differs from that of the offered tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameChange {
    /// In upper and lower case.
    Case,
    /// By a prefix that some models put before every name.
    Prefix,
    /// By the server's name, which was left out.
    Server,
    /// By what stands between its words: `.`, `_`, `-` or `/`.
    Separators,
}

/// Adds `repair` to a list that is kept short.
pub(crate) fn note(repairs: &mut Vec<Repair>, repair: Repair) {
    let (unlisted, added) = match repair {
        Repair::More { count } => (true, count),
        Repair::Text { .. }
        | Repair::Encoded { .. }
        | Repair::Value { .. }
        | Repair::Name { .. } => (repairs.len() >= REPAIRS, 1),
    };
    match repairs.last_mut() {
        Some(Repair::More { count }) => *count += added,
        _ if unlisted => repairs.push(Repair::More { count: added }),
        _ => repairs.push(repair),
    }
}

/// `text` between back-ticks, shortened.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { at, slip } => write!(f, "{slip} (byte {at})"),
            Self::Encoded { pointer, at, slip } => {
                write!(f, "in the JSON text at {}: {slip} (byte {at})", quoted(pointer))
            }
            Self::Value { pointer, change } if pointer.is_empty() => {
                write!(f, "arguments: {change}")
            }
            Self::Value { pointer, change } => write!(f, "{}: {change}", quoted(pointer)),
            Self::Name { said, taken, change } => {
                write!(f, "{} is taken as {}: {change}", quoted(said), quoted(taken))
            }
            Self::More { count } => write!(f, "{count} more"),
        }
    }
}

impl fmt::Display for Slip {
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
            Self::UnquotedKey => "key without quotes accepted",
            Self::LeadingZero => "number with a leading zero read as a string",
            Self::InvalidEscape => "invalid escape taken literally",
            Self::ControlCharacter => "control character in a string accepted",
            Self::MissingCloser => "missing closer added",
        })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "nothing read as an empty object",
            Self::StringToNumber => "string read as a number",
            Self::StringToBoolean => "string read as a boolean",
            Self::StringToNull => "string read as null",
            Self::StringToJson => "string read as the JSON in it",
            Self::NumberToString => "number read as a string",
            Self::BooleanToString => "boolean read as a string",
            Self::ScalarToArray => "single value read as an array of one",
        })
    }
}

impl fmt::Display for NameChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Case => "another case",
            Self::Prefix => "a prefix that is not part of the name",
            Self::Server => "the server's name was left out",
            Self::Separators => "other separators",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slip(at: usize) -> Repair {
        Repair::Text { at, slip: Slip::Comment }
    }

    #[test]
    fn repairs_up_to_the_limit_are_listed_and_those_past_it_are_counted() {
        let mut repairs = Vec::new();
        (0..REPAIRS).for_each(|at| note(&mut repairs, slip(at)));
        assert_eq!(repairs.last(), Some(&slip(REPAIRS - 1)));
        note(&mut repairs, slip(REPAIRS));
        assert_eq!(repairs.last(), Some(&Repair::More { count: 1 }));
        for repair in repairs.clone() {
            note(&mut repairs, repair);
        }
        assert_eq!(repairs.len(), REPAIRS + 1);
        assert_eq!(repairs.last(), Some(&Repair::More { count: REPAIRS + 2 }));
    }

    #[test]
    fn a_repair_is_told_in_words() {
        let value = |pointer: &str| Repair::Value {
            pointer: pointer.to_owned(),
            change: Change::StringToNumber,
        };
        let name = Repair::Name {
            said: "Get_Time".to_owned(),
            taken: "get_time".to_owned(),
            change: NameChange::Case,
        };
        let long = "x".repeat(QUOTED + 1);
        let words =
            [slip(7), value("/a"), value(""), name, Repair::More { count: 2 }, value(&long)]
                .map(|one| one.to_string());
        assert_eq!(
            words,
            [
                "comment removed (byte 7)".to_owned(),
                "`/a`: string read as a number".to_owned(),
                "arguments: string read as a number".to_owned(),
                "`Get_Time` is taken as `get_time`: another case".to_owned(),
                "2 more".to_owned(),
                format!("`{}…`: string read as a number", "x".repeat(QUOTED)),
            ]
        );
    }
}
