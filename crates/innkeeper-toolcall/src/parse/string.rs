//! Strings between any of the quotes that models write, with their escapes.

use super::error::{Expected, Problem};
use super::machine::{Fault, Machine};
use crate::repair::Slip;

/// What opens a string, and so what closes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    /// `"`, the only one of JSON.
    Double,
    /// `'`.
    Single,
    /// A typographic double quote, high or low.
    SmartDouble,
    /// A typographic single quote, high or low.
    SmartSingle,
}

impl Quote {
    /// The quote a string opens with.
    pub(super) fn of(opener: char) -> Option<Self> {
        match opener {
            '"' => Some(Self::Double),
            '\'' => Some(Self::Single),
            '\u{201c}' | '\u{201d}' | '\u{201e}' => Some(Self::SmartDouble),
            '\u{2018}' | '\u{2019}' | '\u{201a}' => Some(Self::SmartSingle),
            _ => None,
        }
    }

    /// The repair that reading it is; none for the quote of JSON.
    pub(super) fn slip(self) -> Option<Slip> {
        match self {
            Self::Double => None,
            Self::Single => Some(Slip::SingleQuotes),
            Self::SmartDouble | Self::SmartSingle => Some(Slip::SmartQuotes),
        }
    }

    fn closes(self, character: char) -> bool {
        match self {
            Self::Double => character == '"',
            Self::Single => character == '\'',
            Self::SmartDouble => matches!(character, '\u{201c}' | '\u{201d}'),
            Self::SmartSingle => matches!(character, '\u{2018}' | '\u{2019}'),
        }
    }

    /// Whether a plain double quote inside makes the end of the string a guess.
    fn mixed(self, key: bool) -> bool {
        match self {
            Self::Double => false,
            Self::Single => key,
            Self::SmartDouble | Self::SmartSingle => true,
        }
    }
}

/// The repairs told once for each string.
#[derive(Default)]
struct Told {
    escape: bool,
    control: bool,
}

impl Machine<'_> {
    /// Reads a string whose opening quote comes next.
    pub(super) fn string(&mut self, quote: Quote, key: bool) -> Result<String, Fault> {
        if let Some(slip) = quote.slip() {
            self.slip(self.at, slip);
        }
        self.next();
        let mut text = String::new();
        let mut told = Told::default();
        loop {
            text.push_str(self.plain());
            let at = self.at;
            let Some(character) = self.next() else {
                return self.expected_at(at, Expected::Quote);
            };
            match character {
                closer if quote.closes(closer) => return Ok(text),
                '\\' => self.escape(at, &mut text, &mut told)?,
                '"' if quote.mixed(key) => return Err((at, Problem::MixedQuotes)),
                '\0'..='\u{1f}' if self.is_strict() => {
                    return Err((at, Problem::ControlCharacter));
                }
                '\0'..='\u{1f}' => {
                    if !told.control {
                        self.slip(at, Slip::ControlCharacter);
                    }
                    told.control = true;
                    text.push(character);
                }
                other => text.push(other),
            }
        }
    }

    /// Reads what means nothing but itself in a string of any quote: most of it, at once.
    fn plain(&mut self) -> &str {
        let rest = self.rest();
        let special = |byte: &u8| !matches!(byte, b' '..=b'~') || b"\"'\\".contains(byte);
        let length = rest.bytes().position(|byte| special(&byte)).unwrap_or(rest.len());
        self.at += length;
        self.steps += length;
        &rest[..length]
    }

    /// Reads an escape after its backslash, which is at `at`.
    fn escape(&mut self, at: usize, text: &mut String, told: &mut Told) -> Result<(), Fault> {
        let Some(escaped) = self.next() else {
            return self.expected_at(self.at, Expected::Quote);
        };
        let plain = match escaped {
            '"' | '\\' | '/' => escaped,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => self.unicode(at)?,
            'x' | '0' | '\0'..='\u{1f}' => return Err((at, Problem::Escape)),
            _ if self.is_strict() => return Err((at, Problem::Escape)),
            other => {
                if !told.escape {
                    self.slip(at, Slip::InvalidEscape);
                }
                told.escape = true;
                if other != '\'' {
                    text.push('\\');
                }
                other
            }
        };
        text.push(plain);
        Ok(())
    }

    /// Reads the digits after `\u`, and the other half of a pair.
    fn unicode(&mut self, at: usize) -> Result<char, Fault> {
        let first = self.four_digits(at)?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        let high = first < 0xdc00;
        if !high || self.next() != Some('\\') || self.next() != Some('u') {
            return Err((at, Problem::LoneSurrogate));
        }
        let second = self.four_digits(at)?;
        let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400);
        low.and_then(|low| char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + low))
            .ok_or((at, Problem::LoneSurrogate))
    }

    fn four_digits(&mut self, at: usize) -> Result<u32, Fault> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.next().and_then(|digit| digit.to_digit(16));
            value = value * 16 + digit.ok_or((at, Problem::Escape))?;
        }
        Ok(value)
    }
}
