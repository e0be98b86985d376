//! Calls written as Python: `[f(a=1), g(b="x")]`. Also lists of JSON, which begin alike.

use super::json::JsonCalls;
use super::{Data, LOOK_AHEAD, Lexer, NAME, Notes, Read, Said, Step, blank};
use crate::Json;
use crate::call::{Arguments, Reason};
use crate::event::Finish;
use crate::lexer::scan::DEPTH;
use crate::parse::End;

/// A list.
#[derive(Default)]
pub(crate) struct Pythonic {
    /// What the bracket turned out to begin.
    list: Option<JsonCalls>,
    name: String,
    named: bool,
    depth: usize,
    quote: Option<char>,
    escaped: bool,
    /// Whether it turned out to be a list of data.
    is_data: bool,
}

impl Pythonic {
    /// The first name, up to its bracket.
    fn head(&mut self, input: &str, at: &mut usize, notes: &mut Notes) -> Option<Step> {
        while let Some(letter) = input[*at..].chars().next() {
            match letter {
                '(' if !self.name.is_empty() => {
                    self.named = true;
                    notes.name = Some(self.name.clone());
                    notes.listed = true;
                    notes.at = *at;
                    return None;
                }
                _ if self.name.len() >= NAME => return Some(Step::Fail { used: *at }),
                _ if letter.is_alphanumeric() || "_.-/".contains(letter) => self.name.push(letter),
                _ => return Some(Step::Fail { used: *at }),
            }
            *at += letter.len_utf8();
        }
        Some(Step::More { held: 0 })
    }

    fn body(&mut self, input: &str, at: usize) -> Step {
        for (offset, letter) in input[at..].char_indices() {
            if self.escaped {
                self.escaped = false;
            } else if let Some(quote) = self.quote {
                match letter {
                    '\\' => self.escaped = true,
                    _ if letter == quote => self.quote = None,
                    _ => {}
                }
            } else {
                match letter {
                    '"' | '\'' => self.quote = Some(letter),
                    '(' | '[' | '{' if self.depth > DEPTH => {
                        return Step::Fail { used: at + offset };
                    }
                    '(' | '[' | '{' => self.depth += 1,
                    ')' | ']' | '}' => {
                        self.depth -= 1;
                        if self.depth == 0 {
                            return Step::Done { used: at + offset + letter.len_utf8() };
                        }
                    }
                    _ => {}
                }
            }
        }
        Step::More { held: 0 }
    }
}

impl Lexer for Pythonic {
    fn read(&mut self, input: &str, end: Option<Finish>, notes: &mut Notes) -> Step {
        if let Some(list) = &mut self.list {
            return list.read(input, end, notes);
        }
        let mut at = 0;
        if self.depth == 0 {
            // The bracket, white space, then the first letter of a name or a bracket.
            let first = 1 + blank(input.get(1..).unwrap_or_default());
            match input[first.min(input.len())..].chars().next() {
                _ if first > LOOK_AHEAD => return Step::Fail { used: 1 },
                None if end.is_some() => return Step::Fail { used: 1 },
                None => return Step::More { held: input.len() },
                Some('{') => return self.list.insert(JsonCalls::bare()).read(input, end, notes),
                Some('0'..='9' | '-' | '"' | '[') => {
                    self.is_data = true;
                    return Step::Fail { used: first };
                }
                Some(_) => at = first,
            }
            self.depth = 1;
        }
        if !self.named
            && let Some(step) = self.head(input, &mut at, notes)
        {
            return step;
        }
        self.body(input, at)
    }

    fn calls<'t>(&self, text: &'t str, end: End) -> Read<'t> {
        match &self.list {
            Some(list) => list.read_calls(text, end),
            None => Reader { text, at: 1, depth: 0 }
                .calls()
                .ok_or_else(|| Reason::Form("the list of calls is not Python".to_owned())),
        }
    }

    fn data(&mut self) -> Option<Data> {
        match &mut self.list {
            Some(list) => list.data(),
            None => self.is_data.then(|| Data::behind("["))?,
        }
    }

    fn meant(&self) -> bool {
        self.list.as_ref().is_some_and(Lexer::meant)
    }
}

/// Reads the calls; what is nested deeper than the limit is refused.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take(&mut self, wanted: char) -> bool {
        self.at += blank(self.rest());
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn calls(&mut self) -> Option<Vec<Said<'static>>> {
        let mut calls = Vec::new();
        while !self.take(']') {
            let name = self.word("(")?;
            if name.is_empty() || !self.take('(') {
                return None;
            }
            let arguments = self.members(')', "=")?;
            calls.push(Said::new(name, Arguments::Value(Json::Object(arguments))));
            self.take(',');
        }
        Some(calls)
    }

    /// Everything up to one of `ends`, trimmed.
    fn word(&mut self, ends: &str) -> Option<String> {
        let end = self.rest().find(|letter| ends.contains(letter))?;
        let word = self.rest()[..end].trim().to_owned();
        self.at += end;
        Some(word)
    }

    /// `key=value` or `"key": value`, until `close`.
    fn members(&mut self, close: char, between: &str) -> Option<Vec<(String, Json)>> {
        let mut seen = std::collections::HashSet::new();
        let mut members = Vec::new();
        while !self.take(close) {
            let key = match self.rest().chars().next()? {
                quote @ ('"' | '\'') => self.string(quote)?,
                _ => self.word("=:,)}")?,
            };
            if key.is_empty() || !self.take(between.chars().next()?) || !seen.insert(key.clone()) {
                return None;
            }
            let value = self.value()?;
            members.push((key, value));
            if !self.take(',') && !self.rest().starts_with(close) {
                return None;
            }
        }
        Some(members)
    }

    fn value(&mut self) -> Option<Json> {
        if self.depth == DEPTH {
            return None;
        }
        self.depth += 1;
        let value = self.one();
        self.depth -= 1;
        value
    }

    fn one(&mut self) -> Option<Json> {
        self.at += blank(self.rest());
        match self.rest().chars().next()? {
            quote @ ('"' | '\'') => self.string(quote).map(Json::String),
            '{' => {
                self.at += 1;
                self.members('}', ":").map(Json::Object)
            }
            open @ ('[' | '(') => {
                self.at += 1;
                let close = if open == '[' { ']' } else { ')' };
                let mut items = Vec::new();
                while !self.take(close) {
                    items.push(self.value()?);
                    if !self.take(',') && !self.rest().starts_with(close) {
                        return None;
                    }
                }
                Some(Json::Array(items))
            }
            _ => match self.word(",)]}")?.as_str() {
                "True" | "true" => Some(Json::Bool(true)),
                "False" | "false" => Some(Json::Bool(false)),
                "None" | "null" => Some(Json::Null),
                number => match crate::parse::strict(number) {
                    Ok(value @ Json::Number(_)) => Some(value),
                    Ok(_) | Err(_) => None,
                },
            },
        }
    }

    fn string(&mut self, quote: char) -> Option<String> {
        let mut letters = self.rest().char_indices();
        letters.next()?;
        let mut text = String::new();
        while let Some((offset, letter)) = letters.next() {
            match letter {
                '\\' => match letters.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'x' => text.push(code(&mut letters, 2)?),
                    'u' => text.push(code(&mut letters, 4)?),
                    'U' => text.push(code(&mut letters, 8)?),
                    plain @ ('\\' | '\'' | '"') => text.push(plain),
                    '\n' => {}
                    other => text.extend(['\\', other]),
                },
                _ if letter == quote => {
                    self.at += offset + letter.len_utf8();
                    return Some(text);
                }
                _ => text.push(letter),
            }
        }
        None
    }
}

/// A letter written as its number in `digits` hexadecimal digits.
fn code(letters: &mut impl Iterator<Item = (usize, char)>, digits: usize) -> Option<char> {
    let mut number = 0;
    for _ in 0..digits {
        number = number * 16 + letters.next()?.1.to_digit(16)?;
    }
    char::from_u32(number)
}
