//! Parse errors with positions and messages for the model.

use std::fmt;

/// A parse error and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The byte offset in the text.
    pub at: usize,
    /// The line number, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The kind of error.
    pub kind: ParseErrorKind,
}

/// The kind of a parse error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// Unexpected text or an unexpected end.
    Expected {
        /// The expected syntax.
        expected: ExpectedSyntax,
        /// The actual character; `None` at the end of the text.
        found: Option<char>,
    },
    /// A duplicate key in an object. The intended value is unclear.
    DuplicateKey,
    /// `NaN`, `Infinity` or `-Infinity`.
    NotFinite,
    /// Digits that are not a JSON number.
    InvalidNumber,
    /// A word that is not a JSON literal.
    BareWord,
    /// A line break, tab or other control character in a string.
    ControlCharacter,
    /// An invalid escape, or an escape with an unclear meaning.
    InvalidEscape,
    /// Half of a surrogate pair, which is not a character.
    LoneSurrogate,
    /// Another kind of quote inside a string. The end of the string is unclear.
    MixedQuotes,
    /// More than [`MAX_DEPTH`](super::MAX_DEPTH) nested arrays and objects.
    TooDeep,
    /// Text after the value.
    TrailingText,
}

/// The syntax that the parser expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedSyntax {
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
    DoubleBraceEnd,
    /// The closing quote of a string.
    Quote,
    /// The end of a comment.
    CommentEnd,
    /// The closing fence.
    FenceEnd,
}

impl ParseError {
    pub(super) fn new(text: &str, at: usize, kind: ParseErrorKind) -> Self {
        let before = &text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
        Self { at, line, column, kind }
    }
}

impl std::error::Error for ParseError {}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, line, column, kind } = self;
        write!(f, "line {line}, column {column} (byte {at}): {kind}")
    }
}

impl fmt::Display for ParseErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected { expected, found: None } => {
                write!(f, "expected {expected}, found the end of the text")
            }
            Self::Expected { expected, found: Some(found) } if found.is_control() => {
                write!(f, "expected {expected}, found a control character")
            }
            Self::Expected { expected, found: Some(found) } => {
                write!(f, "expected {expected}, found `{found}`")
            }
            Self::DuplicateKey => f.write_str("duplicate key in an object"),
            Self::NotFinite => f.write_str("NaN and Infinity are not JSON; use a number or null"),
            Self::InvalidNumber => f.write_str("not a JSON number; put text in double quotes"),
            Self::BareWord => f.write_str(
                "a bare word is not a value; put text in double quotes, or use true, false or null",
            ),
            Self::ControlCharacter => {
                f.write_str("a line break or tab in a string must be written as \\n or \\t")
            }
            Self::InvalidEscape => f.write_str("not a JSON escape; write a backslash as \\\\"),
            Self::LoneSurrogate => f.write_str("a lone surrogate is not a character"),
            Self::MixedQuotes => {
                f.write_str("a string must start and end with a plain double quote")
            }
            Self::TooDeep => write!(f, "nested deeper than {} levels", super::MAX_DEPTH),
            Self::TrailingText => f.write_str("unexpected text after the value"),
        }
    }
}

impl fmt::Display for ExpectedSyntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value => "a value",
            Self::ItemOrEnd => "a value or `]`",
            Self::KeyOrEnd => "a key in double quotes or `}`",
            Self::Key => "a key in double quotes",
            Self::Colon => "`:` after the key",
            Self::CommaOrArrayEnd => "`,` or `]` after the item",
            Self::CommaOrObjectEnd => "`,` or `}` after the member",
            Self::DoubleBraceEnd => "`}}` where `{{` opened the object",
            Self::Quote => "the closing quote of the string",
            Self::CommentEnd => "`*/` at the end of the comment",
            Self::FenceEnd => "the closing code fence",
        })
    }
}
