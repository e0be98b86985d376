//! The one pass over a text, with a stack of its own instead of calls inside calls.

use std::collections::HashSet;

use super::End;
use super::error::{Expected, ParseError, Problem};
use super::number::{Digits, kind};
use super::string::Quote;
use crate::json::Json;
use crate::repair::{Repair, Slip, note};

/// Where something is wrong, and what.
pub(super) type Fault = (usize, Problem);

/// Members up to which a repeated key is looked for one by one.
const FEW: usize = 16;

/// A text that is being read.
pub(super) struct Machine<'t> {
    text: &'t str,
    /// The next byte to be read.
    pub(super) at: usize,
    /// Where the JSON ends: before a closing fence, for one.
    pub(super) end: usize,
    /// How the text ended; `None` where only JSON is accepted.
    pub(super) lenient: Option<End>,
    /// How many arrays and objects may be open.
    depth: usize,
    frames: Vec<Frame>,
    slips: Vec<Repair>,
    /// Characters looked at, for a test.
    pub(super) steps: usize,
}

/// An array or object that is open.
enum Frame {
    Array(Vec<Json>),
    Object(Members),
}

#[derive(Default)]
struct Members {
    list: Vec<(String, Json)>,
    /// The keys, once they are more than a [`FEW`].
    keys: HashSet<String>,
    /// The key whose value comes next.
    key: String,
    /// Whether it was opened by `{{`, so that `}}` closes it.
    doubled: bool,
}

/// What comes next.
enum State {
    /// A value; after the comma at this place, if there was one.
    Value(Expected, Option<usize>),
    /// A key; after the comma at this place, if there was one.
    Key(Expected, Option<usize>),
    Colon,
    /// A comma or closer, after a value that shows its own end or not.
    After {
        closed: bool,
    },
    Done(Json),
}

impl<'t> Machine<'t> {
    /// A reader of `text`, lenient if it is told how the text ended.
    pub(super) fn new(text: &'t str, lenient: Option<End>, depth: usize) -> Self {
        let (frames, slips) = (Vec::new(), Vec::new());
        Self { text, at: 0, end: text.len(), lenient, depth, frames, slips, steps: 0 }
    }

    /// The value and what was repaired.
    pub(super) fn read(mut self) -> Result<(Json, Vec<Repair>), ParseError> {
        let text = self.text;
        let json = self.run().map_err(|(at, problem)| ParseError::new(text, at, problem))?;
        Ok((json, self.slips))
    }

    pub(super) fn run(&mut self) -> Result<Json, Fault> {
        if !self.is_strict() {
            self.unwrap()?;
        }
        let mut state = State::Value(Expected::Value, None);
        loop {
            let broken = self.skip()?;
            state = match state {
                State::Value(expected, comma) => self.value(expected, comma)?,
                State::Key(expected, comma) => self.key(expected, comma)?,
                State::Colon => {
                    self.take(':', Expected::Colon)?;
                    State::Value(Expected::Value, None)
                }
                State::After { closed } => self.after(closed, broken)?,
                State::Done(json) if self.peek().is_none() => return Ok(json),
                State::Done(_) => return Err((self.at, Problem::Trailing)),
            };
        }
    }

    fn value(&mut self, expected: Expected, comma: Option<usize>) -> Result<State, Fault> {
        let at = self.at;
        let Some(first) = self.peek() else { return self.expected_at(at, expected) };
        match first {
            ']' if expected == Expected::ItemOrEnd => self.close(),
            ']' if comma.is_some() && !self.is_strict() => self.drop_comma(comma),
            '{' => {
                let doubled = !self.is_strict() && self.rest().starts_with("{{");
                if doubled {
                    self.slip(self.at, Slip::DoubledBraces);
                    self.next();
                }
                self.open(Frame::Object(Members { doubled, ..Members::default() }))
            }
            '[' => self.open(Frame::Array(Vec::new())),
            '-' | '+' | '.' | '0'..='9' => self.number(),
            _ if is_word(first) => self.literal(),
            _ => match self.quote() {
                Some(quote) => {
                    let text = self.string(quote, false)?;
                    Ok(self.add(Json::String(text), true))
                }
                None => self.expected_at(at, expected),
            },
        }
    }

    fn key(&mut self, expected: Expected, comma: Option<usize>) -> Result<State, Fault> {
        let at = self.at;
        let Some(first) = self.peek() else { return self.expected_at(at, expected) };
        if first == '}' && expected == Expected::KeyOrEnd {
            return self.close();
        }
        if first == '}' && comma.is_some() && !self.is_strict() {
            return self.drop_comma(comma);
        }
        let key = match self.quote() {
            Some(quote) => self.string(quote, true)?,
            None if opens_bare_key(first) && !self.is_strict() => self.bare_key()?,
            None => return self.expected_at(at, expected),
        };
        if let Some(Frame::Object(members)) = self.frames.last_mut()
            && !members.announce(key)
        {
            return Err((at, Problem::DuplicateKey));
        }
        Ok(State::Colon)
    }

    fn bare_key(&mut self) -> Result<String, Fault> {
        let at = self.at;
        let word = self.token(|character| is_word(character) || character == '-');
        if literal(word).is_some() || is_not_finite(word) {
            return Err((
                at,
                Problem::Expected { expected: Expected::Key, found: self.char_at(at) },
            ));
        }
        self.slip(at, Slip::UnquotedKey);
        Ok(word.to_owned())
    }

    fn number(&mut self) -> Result<State, Fault> {
        let at = self.at;
        let token = self.token(|one| is_word(one) || matches!(one, '+' | '-' | '.'));
        match kind(token) {
            Digits::Number => Ok(self.add(Json::Number(token.to_owned()), false)),
            Digits::LeadingZero if !self.is_strict() => {
                self.slip(at, Slip::LeadingZero);
                Ok(self.add(Json::String(token.to_owned()), false))
            }
            Digits::LeadingZero | Digits::Other => {
                let named = token.trim_start_matches(['-', '+']);
                let not_finite = is_not_finite(named);
                Err((at, if not_finite { Problem::NotFinite } else { Problem::Number }))
            }
        }
    }

    fn literal(&mut self) -> Result<State, Fault> {
        let at = self.at;
        let word = self.token(is_word);
        match literal(word) {
            Some((json, false)) => Ok(self.add(json, true)),
            Some((json, true)) if !self.is_strict() => {
                self.slip(at, Slip::PythonLiteral);
                Ok(self.add(json, true))
            }
            _ if is_not_finite(word) => Err((at, Problem::NotFinite)),
            _ => Err((at, Problem::Word)),
        }
    }

    /// After a value inside an array or object.
    fn after(&mut self, closed: bool, broken: bool) -> Result<State, Fault> {
        let at = self.at;
        let in_object = matches!(self.frames.last(), Some(Frame::Object(_)));
        let next = self.peek();
        let missing = broken && !self.is_strict();
        match next {
            Some('}') if in_object => self.close(),
            Some(']') if !in_object => self.close(),
            Some(',') => {
                self.next();
                Ok(next_part(in_object, Some(at)))
            }
            Some(_) if in_object && missing && self.quote().is_some() => {
                self.slip(at, Slip::MissingComma);
                Ok(next_part(in_object, None))
            }
            Some('{' | '[') if !in_object && missing && closed && self.ends_with_container() => {
                self.slip(at, Slip::MissingComma);
                Ok(next_part(in_object, None))
            }
            None if closed && self.lenient == Some(End::Stopped) => {
                self.slip(at, Slip::MissingCloser);
                Ok(self.finish())
            }
            _ if in_object => self.expected_at(at, Expected::CommaOrObjectEnd),
            _ => self.expected_at(at, Expected::CommaOrArrayEnd),
        }
    }

    /// Whether the last item of the open array is an array or object.
    fn ends_with_container(&self) -> bool {
        match self.frames.last() {
            Some(Frame::Array(items)) => {
                matches!(items.last(), Some(Json::Array(_) | Json::Object(_)))
            }
            Some(Frame::Object(_)) | None => false,
        }
    }

    fn open(&mut self, frame: Frame) -> Result<State, Fault> {
        if self.frames.len() == self.depth {
            return Err((self.at, Problem::TooDeep));
        }
        self.next();
        let state = match frame {
            Frame::Array(_) => State::Value(Expected::ItemOrEnd, None),
            Frame::Object(_) => State::Key(Expected::KeyOrEnd, None),
        };
        self.frames.push(frame);
        Ok(state)
    }

    fn drop_comma(&mut self, comma: Option<usize>) -> Result<State, Fault> {
        self.slip(comma.unwrap_or(self.at), Slip::TrailingComma);
        self.close()
    }

    fn close(&mut self) -> Result<State, Fault> {
        self.next();
        if matches!(self.frames.last(), Some(Frame::Object(members)) if members.doubled) {
            match self.peek() {
                Some('}') => drop(self.next()),
                None if self.lenient == Some(End::Stopped) => {
                    self.slip(self.at, Slip::MissingCloser);
                }
                Some(_) | None => return self.expected_at(self.at, Expected::DoubledEnd),
            }
        }
        Ok(self.finish())
    }

    /// The innermost array or object is a value of what it stands in.
    fn finish(&mut self) -> State {
        let json = match self.frames.pop() {
            Some(Frame::Array(items)) => Json::Array(items),
            Some(Frame::Object(members)) => Json::Object(members.list),
            None => Json::Null,
        };
        self.add(json, true)
    }

    fn add(&mut self, json: Json, closed: bool) -> State {
        match self.frames.last_mut() {
            None => return State::Done(json),
            Some(Frame::Array(items)) => items.push(json),
            Some(Frame::Object(members)) => {
                members.list.push((std::mem::take(&mut members.key), json));
            }
        }
        State::After { closed }
    }

    fn take(&mut self, character: char, expected: Expected) -> Result<(), Fault> {
        if self.peek() != Some(character) {
            return self.expected_at(self.at, expected);
        }
        self.next();
        Ok(())
    }

    fn token(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let from = self.at;
        while self.peek().is_some_and(&belongs) {
            self.next();
        }
        &self.text[from..self.at]
    }

    /// The quote that comes next, if it may open a string.
    fn quote(&self) -> Option<Quote> {
        let quote = Quote::of(self.peek()?)?;
        (quote == Quote::Double || !self.is_strict()).then_some(quote)
    }

    pub(super) fn is_strict(&self) -> bool {
        self.lenient.is_none()
    }

    pub(super) fn slip(&mut self, at: usize, slip: Slip) {
        note(&mut self.slips, Repair::Text { at, slip });
    }

    pub(super) fn expected_at<T>(&self, at: usize, expected: Expected) -> Result<T, Fault> {
        Err((at, Problem::Expected { expected, found: self.char_at(at) }))
    }

    /// Takes the next character.
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

impl Members {
    /// Makes `key` the next one; false if it is there already.
    fn announce(&mut self, key: String) -> bool {
        let new = if self.list.len() < FEW {
            self.list.iter().all(|(known, _)| *known != key)
        } else {
            if self.keys.is_empty() {
                self.keys.extend(self.list.iter().map(|(known, _)| known.clone()));
            }
            self.keys.insert(key.clone())
        };
        self.key = key;
        new
    }
}

fn next_part(in_object: bool, comma: Option<usize>) -> State {
    if in_object { State::Key(Expected::Key, comma) } else { State::Value(Expected::Value, comma) }
}

/// The literal a word is, and whether it is one of Python alone.
fn literal(word: &str) -> Option<(Json, bool)> {
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
