//! Parser for strings with JSON, single or typographic quotes.

use super::error::{ExpectedSyntax, ParseErrorKind};
use super::parser::{LocatedError, Parser};
use crate::repair::SyntaxSlip;

/// The kind of quote around a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    /// `"`, the only quote of JSON.
    Double,
    /// `'`.
    Single,
    /// A typographic double quote, opening or closing.
    SmartDouble,
    /// A typographic single quote, opening or closing.
    SmartSingle,
}

impl Quote {
    /// Returns the kind of an opening quote.
    pub(super) fn from_opener(opener: char) -> Option<Self> {
        match opener {
            '"' => Some(Self::Double),
            '\'' => Some(Self::Single),
            '\u{201c}' | '\u{201d}' | '\u{201e}' => Some(Self::SmartDouble),
            '\u{2018}' | '\u{2019}' | '\u{201a}' => Some(Self::SmartSingle),
            _ => None,
        }
    }

    /// Returns the repair for this kind of quote, or `None` for the JSON quote.
    pub(super) fn slip(self) -> Option<SyntaxSlip> {
        match self {
            Self::Double => None,
            Self::Single => Some(SyntaxSlip::SingleQuotes),
            Self::SmartDouble | Self::SmartSingle => Some(SyntaxSlip::SmartQuotes),
        }
    }

    fn is_closed_by(self, character: char) -> bool {
        match self {
            Self::Double => character == '"',
            Self::Single => character == '\'',
            Self::SmartDouble => matches!(character, '\u{201c}' | '\u{201d}'),
            Self::SmartSingle => matches!(character, '\u{2018}' | '\u{2019}'),
        }
    }

    /// Whether a plain double quote inside the string makes the end of the string unclear.
    fn forbids_double_quote(self, key: bool) -> bool {
        match self {
            Self::Double => false,
            Self::Single => key,
            Self::SmartDouble | Self::SmartSingle => true,
        }
    }
}

/// The repairs that are reported at most once per string.
#[derive(Default)]
struct ReportedSlips {
    escape: bool,
    control: bool,
}

impl Parser<'_> {
    /// Parses a string, starting at the opening quote.
    pub(super) fn parse_string(&mut self, quote: Quote, key: bool) -> Result<String, LocatedError> {
        if let Some(slip) = quote.slip() {
            self.record_slip(self.at, slip);
        }
        self.next();
        let mut text = String::new();
        let mut reported = ReportedSlips::default();
        loop {
            text.push_str(self.take_plain());
            let at = self.at;
            let Some(character) = self.next() else {
                return self.expected_at(at, ExpectedSyntax::Quote);
            };
            match character {
                closer if quote.is_closed_by(closer) => return Ok(text),
                '\\' => self.parse_escape(at, &mut text, &mut reported)?,
                '"' if quote.forbids_double_quote(key) => {
                    return Err((at, ParseErrorKind::MixedQuotes));
                }
                '\0'..='\u{1f}' if self.is_strict() => {
                    return Err((at, ParseErrorKind::ControlCharacter));
                }
                '\0'..='\u{1f}' => {
                    if !reported.control {
                        self.record_slip(at, SyntaxSlip::ControlCharacter);
                    }
                    reported.control = true;
                    text.push(character);
                }
                other => text.push(other),
            }
        }
    }

    /// Consumes characters without a special meaning in any kind of string.
    fn take_plain(&mut self) -> &str {
        let rest = self.rest();
        let special =
            rest.bytes().position(|byte| !matches!(byte, b' '..=b'~') || b"\"'\\".contains(&byte));
        let length = special.unwrap_or(rest.len());
        self.at += length;
        self.steps += length;
        &rest[..length]
    }

    /// Parses an escape after its backslash at `at`.
    fn parse_escape(
        &mut self,
        at: usize,
        text: &mut String,
        reported: &mut ReportedSlips,
    ) -> Result<(), LocatedError> {
        let Some(escaped) = self.next() else {
            return self.expected_at(self.at, ExpectedSyntax::Quote);
        };
        let plain = match escaped {
            '"' | '\\' | '/' => escaped,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => self.parse_unicode_escape(at)?,
            'x' | '0' | '\0'..='\u{1f}' => return Err((at, ParseErrorKind::InvalidEscape)),
            _ if self.is_strict() => return Err((at, ParseErrorKind::InvalidEscape)),
            other => {
                if !reported.escape {
                    self.record_slip(at, SyntaxSlip::InvalidEscape);
                }
                reported.escape = true;
                if other != '\'' {
                    text.push('\\');
                }
                other
            }
        };
        text.push(plain);
        Ok(())
    }

    /// Parses the digits after `\u`, and the second half of a surrogate pair.
    fn parse_unicode_escape(&mut self, at: usize) -> Result<char, LocatedError> {
        let first = self.parse_four_hex_digits(at)?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        let is_high = first < 0xdc00;
        if !is_high || self.next() != Some('\\') || self.next() != Some('u') {
            return Err((at, ParseErrorKind::LoneSurrogate));
        }
        let second = self.parse_four_hex_digits(at)?;
        let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400);
        low.and_then(|low| char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + low))
            .ok_or((at, ParseErrorKind::LoneSurrogate))
    }

    fn parse_four_hex_digits(&mut self, at: usize) -> Result<u32, LocatedError> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.next().and_then(|digit| digit.to_digit(16));
            value = value * 16 + digit.ok_or((at, ParseErrorKind::InvalidEscape))?;
        }
        Ok(value)
    }
}
