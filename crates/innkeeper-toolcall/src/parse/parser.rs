//! Single-pass JSON parser with an explicit stack.

use std::collections::HashSet;

use super::Completeness;
use super::error::{ExpectedSyntax, ParseError, ParseErrorKind};
use super::number::{NumberSyntax, classify_number};
use super::string::Quote;
use crate::json::Json;
use crate::repair::{Repair, SyntaxSlip, push_repair};

pub(super) type LocatedError = (usize, ParseErrorKind);

/// Number of members up to which the search for duplicate keys is linear.
const MAX_LINEAR_KEYS: usize = 16;

pub(super) struct Parser<'t> {
    text: &'t str,
    /// The position of the next byte.
    pub(super) at: usize,
    /// The end of the JSON, for example before a closing fence.
    pub(super) end: usize,
    /// The way in which the text ended; `None` in strict mode.
    pub(super) lenient_end: Option<Completeness>,
    /// Maximum number of open arrays and objects.
    max_depth: usize,
    open_containers: Vec<OpenContainer>,
    repairs: Vec<Repair>,
    /// Number of processed characters, for a test.
    pub(super) steps: usize,
}

/// An open array or object.
enum OpenContainer {
    Array(Vec<Json>),
    Object(ObjectBuilder),
}

#[derive(Default)]
struct ObjectBuilder {
    members: Vec<(String, Json)>,
    /// The keys, if there are more than [`MAX_LINEAR_KEYS`].
    keys: HashSet<String>,
    /// The key of the next value.
    pending_key: String,
    /// Whether `{{` opened the object, so that `}}` closes it.
    double_braced: bool,
}

/// The expected next token.
enum ParseState {
    /// A value, with the position of the preceding comma, if any.
    Value(ExpectedSyntax, Option<usize>),
    /// A key, with the position of the preceding comma, if any.
    Key(ExpectedSyntax, Option<usize>),
    Colon,
    /// A comma or a closing bracket. `closed` is whether the previous value has an explicit end.
    AfterValue {
        closed: bool,
    },
    Done(Json),
}

impl<'t> Parser<'t> {
    /// Creates a parser. The parser is lenient if `lenient_end` is `Some`.
    pub(super) fn new(text: &'t str, lenient_end: Option<Completeness>, max_depth: usize) -> Self {
        Self {
            text,
            at: 0,
            end: text.len(),
            lenient_end,
            max_depth,
            open_containers: Vec::new(),
            repairs: Vec::new(),
            steps: 0,
        }
    }

    pub(super) fn parse(mut self) -> Result<(Json, Vec<Repair>), ParseError> {
        let text = self.text;
        let json =
            self.parse_document().map_err(|(at, problem)| ParseError::new(text, at, problem))?;
        Ok((json, self.repairs))
    }

    pub(super) fn parse_document(&mut self) -> Result<Json, LocatedError> {
        if !self.is_strict() {
            self.strip_fence()?;
        }
        let mut state = ParseState::Value(ExpectedSyntax::Value, None);
        loop {
            let saw_newline = self.skip_trivia()?;
            state = match state {
                ParseState::Value(expected, comma) => self.parse_value(expected, comma)?,
                ParseState::Key(expected, comma) => self.parse_key(expected, comma)?,
                ParseState::Colon => {
                    self.expect_char(':', ExpectedSyntax::Colon)?;
                    ParseState::Value(ExpectedSyntax::Value, None)
                }
                ParseState::AfterValue { closed } => self.parse_after_value(closed, saw_newline)?,
                ParseState::Done(json) if self.peek().is_none() => return Ok(json),
                ParseState::Done(_) => return Err((self.at, ParseErrorKind::TrailingText)),
            };
        }
    }

    fn parse_value(
        &mut self,
        expected: ExpectedSyntax,
        comma: Option<usize>,
    ) -> Result<ParseState, LocatedError> {
        let at = self.at;
        let Some(first) = self.peek() else { return self.expected_at(at, expected) };
        match first {
            ']' if expected == ExpectedSyntax::ItemOrEnd => self.close_container(),
            ']' if comma.is_some() && !self.is_strict() => self.drop_comma(comma),
            '{' => {
                let double_braced = !self.is_strict() && self.rest().starts_with("{{");
                if double_braced {
                    self.record_slip(self.at, SyntaxSlip::DoubledBraces);
                    self.next();
                }
                self.open_container(OpenContainer::Object(ObjectBuilder {
                    double_braced,
                    ..ObjectBuilder::default()
                }))
            }
            '[' => self.open_container(OpenContainer::Array(Vec::new())),
            '-' | '+' | '.' | '0'..='9' => self.parse_number(),
            _ if is_word(first) => self.parse_literal(),
            _ => match self.peek_quote() {
                Some(quote) => {
                    let text = self.parse_string(quote, false)?;
                    Ok(self.add_value(Json::String(text), true))
                }
                None => self.expected_at(at, expected),
            },
        }
    }

    fn parse_key(
        &mut self,
        expected: ExpectedSyntax,
        comma: Option<usize>,
    ) -> Result<ParseState, LocatedError> {
        let at = self.at;
        let Some(first) = self.peek() else { return self.expected_at(at, expected) };
        if first == '}' && expected == ExpectedSyntax::KeyOrEnd {
            return self.close_container();
        }
        if first == '}' && comma.is_some() && !self.is_strict() {
            return self.drop_comma(comma);
        }
        let key = match self.peek_quote() {
            Some(quote) => self.parse_string(quote, true)?,
            None if opens_bare_key(first) && !self.is_strict() => self.parse_bare_key()?,
            None => return self.expected_at(at, expected),
        };
        if let Some(OpenContainer::Object(members)) = self.open_containers.last_mut()
            && !members.start_member(key)
        {
            return Err((at, ParseErrorKind::DuplicateKey));
        }
        Ok(ParseState::Colon)
    }

    fn parse_bare_key(&mut self) -> Result<String, LocatedError> {
        let at = self.at;
        let word = self.take_while(|character| is_word(character) || character == '-');
        if literal_value(word).is_some() || is_not_finite(word) {
            return Err((
                at,
                ParseErrorKind::Expected { expected: ExpectedSyntax::Key, found: self.char_at(at) },
            ));
        }
        self.record_slip(at, SyntaxSlip::UnquotedKey);
        Ok(word.to_owned())
    }

    fn parse_number(&mut self) -> Result<ParseState, LocatedError> {
        let at = self.at;
        let token =
            self.take_while(|character| is_word(character) || matches!(character, '+' | '-' | '.'));
        match classify_number(token) {
            NumberSyntax::Number => Ok(self.add_value(Json::Number(token.to_owned()), false)),
            NumberSyntax::LeadingZero if !self.is_strict() => {
                self.record_slip(at, SyntaxSlip::LeadingZero);
                Ok(self.add_value(Json::String(token.to_owned()), false))
            }
            NumberSyntax::LeadingZero | NumberSyntax::Other => {
                let unsigned = token.trim_start_matches(['-', '+']);
                let not_finite = is_not_finite(unsigned);
                Err((
                    at,
                    if not_finite {
                        ParseErrorKind::NotFinite
                    } else {
                        ParseErrorKind::InvalidNumber
                    },
                ))
            }
        }
    }

    fn parse_literal(&mut self) -> Result<ParseState, LocatedError> {
        let at = self.at;
        let word = self.take_while(is_word);
        match literal_value(word) {
            Some((json, false)) => Ok(self.add_value(json, true)),
            Some((json, true)) if !self.is_strict() => {
                self.record_slip(at, SyntaxSlip::PythonLiteral);
                Ok(self.add_value(json, true))
            }
            _ if is_not_finite(word) => Err((at, ParseErrorKind::NotFinite)),
            _ => Err((at, ParseErrorKind::BareWord)),
        }
    }

    /// Parses the text after a value in an array or object.
    fn parse_after_value(
        &mut self,
        closed: bool,
        saw_newline: bool,
    ) -> Result<ParseState, LocatedError> {
        let at = self.at;
        let in_object = matches!(self.open_containers.last(), Some(OpenContainer::Object(_)));
        let next = self.peek();
        let missing = saw_newline && !self.is_strict();
        match next {
            Some('}') if in_object => self.close_container(),
            Some(']') if !in_object => self.close_container(),
            Some(',') => {
                self.next();
                Ok(state_after_comma(in_object, Some(at)))
            }
            Some(_) if in_object && missing && self.peek_quote().is_some() => {
                self.record_slip(at, SyntaxSlip::MissingComma);
                Ok(state_after_comma(in_object, None))
            }
            Some('{' | '[') if !in_object && missing && closed && self.ends_with_container() => {
                self.record_slip(at, SyntaxSlip::MissingComma);
                Ok(state_after_comma(in_object, None))
            }
            None if closed && self.lenient_end == Some(Completeness::Stopped) => {
                self.record_slip(at, SyntaxSlip::MissingCloser);
                Ok(self.finish_container())
            }
            _ if in_object => self.expected_at(at, ExpectedSyntax::CommaOrObjectEnd),
            _ => self.expected_at(at, ExpectedSyntax::CommaOrArrayEnd),
        }
    }

    /// Whether the last item of the open array is an array or object.
    fn ends_with_container(&self) -> bool {
        match self.open_containers.last() {
            Some(OpenContainer::Array(items)) => {
                matches!(items.last(), Some(Json::Array(_) | Json::Object(_)))
            }
            Some(OpenContainer::Object(_)) | None => false,
        }
    }

    fn open_container(&mut self, frame: OpenContainer) -> Result<ParseState, LocatedError> {
        if self.open_containers.len() == self.max_depth {
            return Err((self.at, ParseErrorKind::TooDeep));
        }
        self.next();
        let state = match frame {
            OpenContainer::Array(_) => ParseState::Value(ExpectedSyntax::ItemOrEnd, None),
            OpenContainer::Object(_) => ParseState::Key(ExpectedSyntax::KeyOrEnd, None),
        };
        self.open_containers.push(frame);
        Ok(state)
    }

    fn drop_comma(&mut self, comma: Option<usize>) -> Result<ParseState, LocatedError> {
        self.record_slip(comma.unwrap_or(self.at), SyntaxSlip::TrailingComma);
        self.close_container()
    }

    fn close_container(&mut self) -> Result<ParseState, LocatedError> {
        self.next();
        if matches!(self.open_containers.last(), Some(OpenContainer::Object(members)) if members.double_braced)
        {
            match self.peek() {
                Some('}') => drop(self.next()),
                None if self.lenient_end == Some(Completeness::Stopped) => {
                    self.record_slip(self.at, SyntaxSlip::MissingCloser);
                }
                Some(_) | None => return self.expected_at(self.at, ExpectedSyntax::DoubleBraceEnd),
            }
        }
        Ok(self.finish_container())
    }

    /// Closes the innermost array or object and adds it to its parent.
    fn finish_container(&mut self) -> ParseState {
        let json = match self.open_containers.pop() {
            Some(OpenContainer::Array(items)) => Json::Array(items),
            Some(OpenContainer::Object(members)) => Json::Object(members.members),
            None => Json::Null,
        };
        self.add_value(json, true)
    }

    fn add_value(&mut self, json: Json, closed: bool) -> ParseState {
        match self.open_containers.last_mut() {
            None => return ParseState::Done(json),
            Some(OpenContainer::Array(items)) => items.push(json),
            Some(OpenContainer::Object(members)) => {
                members.members.push((std::mem::take(&mut members.pending_key), json));
            }
        }
        ParseState::AfterValue { closed }
    }

    fn expect_char(
        &mut self,
        character: char,
        expected: ExpectedSyntax,
    ) -> Result<(), LocatedError> {
        if self.peek() != Some(character) {
            return self.expected_at(self.at, expected);
        }
        self.next();
        Ok(())
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let from = self.at;
        while self.peek().is_some_and(&belongs) {
            self.next();
        }
        &self.text[from..self.at]
    }

    /// Returns the next character as a quote, if the character may open a string.
    fn peek_quote(&self) -> Option<Quote> {
        let quote = Quote::from_opener(self.peek()?)?;
        (quote == Quote::Double || !self.is_strict()).then_some(quote)
    }

    pub(super) fn is_strict(&self) -> bool {
        self.lenient_end.is_none()
    }

    pub(super) fn record_slip(&mut self, at: usize, slip: SyntaxSlip) {
        push_repair(&mut self.repairs, Repair::Syntax { at, slip });
    }

    pub(super) fn expected_at<T>(
        &self,
        at: usize,
        expected: ExpectedSyntax,
    ) -> Result<T, LocatedError> {
        Err((at, ParseErrorKind::Expected { expected, found: self.char_at(at) }))
    }

    /// Consumes the next character.
    pub(super) fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        self.steps += 1;
        Some(character)
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.char_at(self.at)
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.text[at..self.end].chars().next()
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..self.end]
    }
}

impl ObjectBuilder {
    /// Starts a member with the given key. Returns `false` if the key already exists.
    fn start_member(&mut self, key: String) -> bool {
        let new = if self.members.len() < MAX_LINEAR_KEYS {
            self.members.iter().all(|(existing, _)| *existing != key)
        } else {
            if self.keys.is_empty() {
                self.keys.extend(self.members.iter().map(|(existing, _)| existing.clone()));
            }
            self.keys.insert(key.clone())
        };
        self.pending_key = key;
        new
    }
}

fn state_after_comma(in_object: bool, comma: Option<usize>) -> ParseState {
    if in_object {
        ParseState::Key(ExpectedSyntax::Key, comma)
    } else {
        ParseState::Value(ExpectedSyntax::Value, comma)
    }
}

/// Returns the value of a literal, and whether only Python has the literal.
fn literal_value(word: &str) -> Option<(Json, bool)> {
    match word {
        "null" => Some((Json::Null, false)),
        "true" => Some((Json::Bool(true), false)),
        "false" => Some((Json::Bool(false), false)),
        "None" => Some((Json::Null, true)),
        "True" => Some((Json::Bool(true), true)),
        "False" => Some((Json::Bool(false), true)),
        _ => None,
    }
}

fn is_not_finite(word: &str) -> bool {
    matches!(word, "NaN" | "nan" | "Infinity" | "inf")
}

fn opens_bare_key(character: char) -> bool {
    is_word(character) && !character.is_numeric()
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}
