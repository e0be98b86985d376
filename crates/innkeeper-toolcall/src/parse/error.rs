//! Why a text is not JSON, with the place, in words that a model can act on.

use std::fmt;

/// Why a text could not be read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The byte offset in the text.
    pub at: usize,
    /// The line, from one.
    pub line: usize,
    /// The column in characters, from one.
    pub column: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// Something else should stand here.
    Expected {
        /// What should.
        expected: Expected,
        /// What does; `None` at the end of the text.
        found: Option<char>,
    },
    /// A key stands twice in one object, and nobody can tell which value is meant.
    DuplicateKey,
    /// `NaN`, `Infinity` or `-Infinity`.
    NotFinite,
    /// Digits that JSON has no number for.
    Number,
    /// A word that is no JSON literal.
    Word,
    /// A line break, tab or other control character in a string.
    ControlCharacter,
    /// A backslash before something that cannot be escaped, or whose meaning cannot be told.
    Escape,
    /// Half of a surrogate pair, which is no character.
    LoneSurrogate,
    /// Another kind of quote inside a string, so that its end cannot be told.
    MixedQuotes,
    /// More arrays and objects inside one another than [`DEPTH`](super::DEPTH).
    TooDeep,
    /// More text after the value.
    Trailing,
}

/// What should stand at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Any value.
    Value,
    /// A value or the end of the array.
    ItemOrEnd,
    /// A key or the end of the object.
    KeyOrEnd,
    /// A key.
    Key,
    /// The colon after a key.
    Colon,
    /// A comma, or the end of the array.
    CommaOrArrayEnd,
    /// A comma, or the end of the object.
    CommaOrObjectEnd,
    /// The second `}` of an object that `{{` opened.
    DoubledEnd,
    /// The closing quote of a string.
    Quote,
    /// The end of a comment.
    CommentEnd,
    /// The closing fence.
    FenceEnd,
}

impl ParseError {
    pub(super) fn new(text: &str, at: usize, problem: Problem) -> Self {
        let before = &text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
        Self { at, line, column, problem }
    }
}

impl std::error::Error for ParseError {}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, line, column, problem } = self;
        write!(f, "line {line}, column {column} (byte {at}): {problem}")
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected { expected, found: None } => {
                write!(f, "expected {expected}, but the text ends")
            }
            Self::Expected { expected, found: Some(found) } if found.is_control() => {
                write!(f, "expected {expected}, found a control character")
            }
            Self::Expected { expected, found: Some(found) } => {
                write!(f, "expected {expected}, found `{found}`")
            }
            Self::DuplicateKey => f.write_str("the same key stands twice in one object"),
            Self::NotFinite => f.write_str("NaN and Infinity are not JSON; use a number or null"),
            Self::Number => f.write_str("not a JSON number; put it in double quotes if it is text"),
            Self::Word => f.write_str(
                "a bare word is not a value; put text in double quotes, or use true, false or null",
            ),
            Self::ControlCharacter => {
                f.write_str("a line break or tab in a string must be written as \\n or \\t")
            }
            Self::Escape => f.write_str("not a JSON escape; write a backslash as \\\\"),
            Self::LoneSurrogate => f.write_str("half of a surrogate pair is not a character"),
            Self::MixedQuotes => {
                f.write_str("a string must open and close with the same plain double quotes")
            }
            Self::TooDeep => write!(f, "more than {} values inside one another", super::DEPTH),
            Self::Trailing => f.write_str("nothing may follow the value"),
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value => "a value",
            Self::ItemOrEnd => "a value or `]`",
            Self::KeyOrEnd => "a key in double quotes or `}`",
            Self::Key => "a key in double quotes",
            Self::Colon => "`:` after the key",
            Self::CommaOrArrayEnd => "`,` or `]` after the item",
            Self::CommaOrObjectEnd => "`,` or `}` after the member",
            Self::DoubledEnd => "`}}` where `{{` opened the object",
            Self::Quote => "the closing quote of the string",
            Self::CommentEnd => "`*/` at the end of the comment",
            Self::FenceEnd => "the closing code fence",
        })
    }
}
