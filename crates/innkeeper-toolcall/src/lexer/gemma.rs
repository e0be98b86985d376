//! Gemma 4's notation: `call:name{key:<|"|>text<|"|>,list:[1,2]}`.

use std::collections::HashSet;

use super::{Begins, LOOK_AHEAD, Lexer, NAME, Notes, Read, Said, Step, begins, follows};
use crate::Json;
use crate::call::{Arguments, Reason};
use crate::event::Finish;
use crate::lexer::scan::DEPTH;
use crate::parse::End;

/// What a string stands between.
const QUOTE: &str = "<|\"|>";

/// What ends a call; the server may have cut it off.
const CLOSE: &str = "<tool_call|>";

const HEAD: &str = "call:";

/// Words that other notations have for numbers that are none.
const NO_NUMBERS: &[&str] = &["NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"];

/// One call.
#[derive(Debug, Default)]
pub(crate) struct Gemma {
    head: String,
    depth: usize,
    in_string: bool,
    done: bool,
}

impl Gemma {
    /// `call:name{`.
    fn head(&mut self, input: &str, at: &mut usize, notes: &mut Notes) -> Option<Step> {
        for (offset, letter) in input.char_indices() {
            if letter == '{' {
                let Some(name) = self.head.trim_start().strip_prefix(HEAD) else {
                    return Some(Step::Fail { used: offset });
                };
                notes.name = Some(name.trim().to_owned());
                notes.at = offset;
                self.depth = 1;
                *at = offset + 1;
                return None;
            }
            if letter == '<' || self.head.len() >= NAME + HEAD.len() {
                return Some(Step::Fail { used: offset });
            }
            self.head.push(letter);
        }
        Some(Step::More { held: 0 })
    }

    fn body(&mut self, input: &str, at: &mut usize) -> Option<Step> {
        while *at < input.len() {
            let rest = &input[*at..];
            let Some(next) =
                rest.find(if self.in_string { &['<'][..] } else { &['<', '{', '}', '[', ']'][..] })
            else {
                *at = input.len();
                break;
            };
            *at += next;
            match rest.as_bytes()[next] {
                b'<' => match begins(&input[*at..], QUOTE) {
                    Begins::Perhaps => return Some(Step::More { held: input.len() - *at }),
                    Begins::Yes => {
                        self.in_string = !self.in_string;
                        *at += QUOTE.len() - 1;
                    }
                    Begins::No => {}
                },
                b'{' | b'[' if self.depth == DEPTH => return Some(Step::Fail { used: *at }),
                b'{' | b'[' => self.depth += 1,
                _ => self.depth -= 1,
            }
            *at += 1;
            if self.depth == 0 {
                self.done = true;
                return None;
            }
        }
        Some(Step::More { held: 0 })
    }
}

impl Lexer for Gemma {
    fn read(&mut self, input: &str, end: Option<Finish>, notes: &mut Notes) -> Step {
        let mut at = 0;
        if self.depth == 0 && !self.done {
            if let Some(step) = self.head(input, &mut at, notes) {
                return step;
            }
            at -= 1;
            notes.fragment = Some(at..at + 1);
            at += 1;
        }
        if !self.done {
            let from = notes.fragment.as_ref().map_or(0, |part| part.start);
            let step = self.body(input, &mut at);
            let read = match &step {
                Some(Step::More { held }) => input.len() - held,
                Some(Step::Fail { .. } | Step::Done { .. }) | None => at,
            };
            notes.fragment = Some(from..read);
            if let Some(step) = step {
                return step;
            }
        }
        match follows(&input[at..], &[CLOSE], end.map(|_| false)) {
            Begins::Yes => {
                let blank = super::blank(&input[at..]);
                Step::Done { used: at + blank + CLOSE.len() }
            }
            Begins::Perhaps if input.len() - at <= LOOK_AHEAD => {
                Step::More { held: input.len() - at }
            }
            Begins::Perhaps | Begins::No => Step::Done { used: at },
        }
    }

    fn calls<'t>(&self, text: &'t str, _end: End) -> Read<'t> {
        let name = self.head.trim_start().strip_prefix(HEAD).unwrap_or_default().trim();
        let from = text.find('{').unwrap_or(text.len());
        let mut reader = Reader { text, at: from, depth: 0 };
        let value = reader.value();
        let value = value.ok_or_else(|| {
            Reason::Form("its arguments are not in the notation of its name".to_owned())
        })?;
        Ok(vec![Said::new(name, Arguments::Value(value))])
    }

    fn meant(&self) -> bool {
        self.depth > 0
    }
}

/// Reads the notation; what is nested deeper than the limit is refused.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn blank(&mut self) {
        self.at += super::blank(self.rest());
    }

    fn take(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    fn value(&mut self) -> Option<Json> {
        self.blank();
        if self.take(QUOTE) {
            return self.string().map(Json::String);
        }
        if self.rest().starts_with(['{', '[']) {
            if self.depth == DEPTH {
                return None;
            }
            self.depth += 1;
            let value = if self.take("{") {
                self.object()
            } else {
                self.take("[").then(|| self.array())?
            };
            self.depth -= 1;
            return value;
        }
        let end = self.rest().find([',', '}', ']']).unwrap_or(self.rest().len());
        let word = self.rest()[..end].trim().to_owned();
        self.at += end;
        match crate::parse::strict(&word) {
            Ok(value) => Some(value),
            // Numbers that are none are refused as everywhere.
            Err(_) if word.is_empty() || NO_NUMBERS.contains(&word.as_str()) => None,
            Err(_) => Some(Json::String(word)),
        }
    }

    fn string(&mut self) -> Option<String> {
        let end = self.rest().find(QUOTE)?;
        let text = self.rest()[..end].to_owned();
        self.at += end + QUOTE.len();
        Some(text)
    }

    fn object(&mut self) -> Option<Json> {
        let mut seen = HashSet::new();
        let mut members = Vec::new();
        loop {
            self.blank();
            if self.take("}") {
                return Some(Json::Object(members));
            }
            let key = if self.take(QUOTE) {
                let key = self.string()?;
                self.blank();
                self.take(":").then_some(key)?
            } else {
                let end = self.rest().find([':', '}', '{'])?;
                let key = self.rest()[..end].trim().to_owned();
                self.at += end;
                self.take(":").then_some(key)?
            };
            if !seen.insert(key.clone()) {
                return None;
            }
            let value = self.value()?;
            members.push((key, value));
            self.blank();
            self.take(",");
        }
    }

    fn array(&mut self) -> Option<Json> {
        let mut items = Vec::new();
        loop {
            self.blank();
            if self.take("]") {
                return Some(Json::Array(items));
            }
            items.push(self.value()?);
            self.blank();
            self.take(",");
        }
    }
}
