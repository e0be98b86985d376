//! Calls that are JSON: bare, between tags, in lists, one after another.

use std::ops::Range;

use super::scan::{Scan, Token};
use super::{
    Begins, CALLS, Data, LOOK_AHEAD, Lexer, Notes, Read, Said, Step, begins, blank, follows,
};
use crate::Json;
use crate::call::{Arguments, Reason};
use crate::event::Finish;
use crate::parse::{End, lenient};

/// Keys that name the tool.
const NAMES: &[&str] = &["name", "tool", "tool_name", "function", "function_name"];

/// Keys that hold the arguments.
const ARGUMENTS: &[&str] = &["arguments", "params", "parameters", "args", "input", "tool_input"];

/// Keys that may stand beside them.
const BESIDE: &[&str] = &["type", "id", "call_id", "tool_call_id", "index"];

/// Where the JSON may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// In mid-text: every key has to be one of a call.
    Bare,
    /// Before a closing marker.
    Tagged(&'static str),
    /// After an opening marker, others behind it after `;`.
    Separated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Lead,
    Body,
    Tail,
}

/// What the last key on the level of calls was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Name,
    Arguments,
    Beside,
}

/// JSON objects `{"name", "arguments"}`, or lists of them.
#[derive(Debug)]
pub(crate) struct JsonCalls {
    style: Style,
    phase: Phase,
    scan: Scan,
    /// Whether the value is a list; then nothing is told before its end.
    list: bool,
    key: Key,
    name: Option<String>,
    /// The depth at which the arguments end, while they are read.
    in_arguments: Option<usize>,
    has_arguments: bool,
    /// Whether a key told that this is no call.
    is_data: bool,
    /// How many bytes came before this input.
    before: usize,
    begun: usize,
    values: Vec<Range<usize>>,
}

impl JsonCalls {
    pub(super) fn bare() -> Self {
        Self::new(Style::Bare)
    }

    pub(super) fn tagged(close: &'static str) -> Self {
        Self::new(Style::Tagged(close))
    }

    pub(super) fn separated() -> Self {
        Self::new(Style::Separated)
    }

    fn new(style: Style) -> Self {
        let close = match style {
            Style::Tagged(close) => Some(close),
            Style::Bare | Style::Separated => None,
        };
        Self {
            style,
            phase: Phase::Lead,
            scan: Scan::new(close),
            list: false,
            key: Key::Beside,
            name: None,
            in_arguments: None,
            has_arguments: false,
            is_data: false,
            before: 0,
            begun: 0,
            values: Vec::new(),
        }
    }

    /// White space, then the first bracket.
    fn lead(&mut self, input: &str, at: &mut usize) -> Option<Step> {
        *at += blank(&input[*at..]);
        let rest = &input[*at..];
        match rest.as_bytes().first() {
            None => Some(self.more(input, *at)),
            Some(b'{' | b'[') => {
                self.phase = Phase::Body;
                self.begun = self.before + *at;
                self.list = rest.starts_with('[');
                if self.style == Style::Bare {
                    self.scan.strict_to(self.level());
                }
                self.key = Key::Beside;
                None
            }
            // Some models put a fence round what is tagged already.
            Some(b'`') if self.style != Style::Bare => match rest.find('\n') {
                Some(end) if end < 16 => {
                    *at += end;
                    self.lead(input, at)
                }
                None if rest.len() < 16 => Some(self.more(input, *at)),
                Some(_) | None => Some(Step::Fail { used: *at }),
            },
            Some(_) => Some(Step::Fail { used: *at }),
        }
    }

    fn body(&mut self, input: &str, at: &mut usize, notes: &mut Notes) -> Option<Step> {
        let mut from = self.in_arguments.map(|_| *at);
        loop {
            let token = self.scan.next(input, at);
            match token {
                Token::More => {
                    self.fragment(from, *at, notes);
                    return Some(self.more(input, *at));
                }
                Token::Odd => {
                    self.fragment(from, *at, notes);
                    return Some(Step::Fail { used: *at });
                }
                Token::Marker => {
                    self.fragment(from, *at, notes);
                    self.values.push(self.begun..self.before + *at);
                    self.phase = Phase::Tail;
                    return None;
                }
                Token::Close { depth } if self.in_arguments == Some(depth) => {
                    self.fragment(from.take(), *at, notes);
                    self.in_arguments = None;
                }
                Token::Close { depth: 0 } => {
                    self.values.push(self.begun..self.before + *at);
                    self.phase = Phase::Tail;
                    return None;
                }
                Token::Close { .. } => {}
                Token::Key { text, depth } if depth == self.level() => {
                    if let Some(step) = self.key(&text, *at) {
                        return Some(step);
                    }
                }
                Token::Text { text, depth } if depth == self.level() => self.text(text, *at, notes),
                Token::Open { depth, .. }
                    if depth == self.level() + 1
                        && self.key == Key::Arguments
                        && !self.has_arguments =>
                {
                    self.has_arguments = true;
                    self.in_arguments = Some(self.level());
                    from = Some(*at - 1);
                }
                Token::Scalar { depth: 1 } | Token::Text { depth: 1, .. } if self.list => {
                    return Some(Step::Fail { used: *at });
                }
                Token::Open { .. }
                | Token::Key { .. }
                | Token::Text { .. }
                | Token::Scalar { .. } => {}
            }
        }
    }

    /// The depth of the keys of a call.
    fn level(&self) -> usize {
        1 + usize::from(self.list)
    }

    fn key(&mut self, key: &str, at: usize) -> Option<Step> {
        self.key = if NAMES.contains(&key) {
            Key::Name
        } else if ARGUMENTS.contains(&key) {
            Key::Arguments
        } else if self.style == Style::Bare && !BESIDE.contains(&key) {
            self.is_data = true;
            return Some(Step::Fail { used: at });
        } else {
            Key::Beside
        };
        None
    }

    fn text(&mut self, text: String, at: usize, notes: &mut Notes) {
        match self.key {
            Key::Name if self.name.is_none() => {
                notes.name = Some(text.clone());
                notes.listed = self.list;
                notes.at = at;
                self.name = Some(text);
            }
            Key::Arguments => self.has_arguments = true,
            Key::Name | Key::Beside => {}
        }
        self.key = Key::Beside;
    }

    /// Arguments are told only when it is known whose they are.
    fn fragment(&self, from: Option<usize>, to: usize, notes: &mut Notes) {
        if let (Some(from), Some(_), false) = (from, &self.name, self.list) {
            notes.fragment = Some(from..to);
        }
    }

    /// What may stand behind the value.
    fn tail(&mut self, input: &str, at: &mut usize, end: Option<Finish>) -> Option<Step> {
        let rest = &input[*at..];
        let ended = end.map(|_| false);
        match self.style {
            Style::Bare => Some(Step::Done { used: *at }),
            Style::Tagged(close) => {
                let fenced = &["```", close];
                match follows(rest, fenced, ended) {
                    Begins::Perhaps => Some(self.more(input, *at)),
                    Begins::No => Some(Step::Done { used: *at }),
                    Begins::Yes => {
                        *at += blank(rest);
                        let rest = &input[*at..];
                        if begins(rest, close) == Begins::Yes {
                            return Some(Step::Done { used: *at + close.len() });
                        }
                        *at += "```".len();
                        None
                    }
                }
            }
            Style::Separated => match follows(rest, &[";"], ended) {
                Begins::Perhaps => Some(self.more(input, *at)),
                Begins::No => Some(Step::Done { used: *at }),
                Begins::Yes => {
                    let after = blank(rest) + 1;
                    match follows(&rest[after..], &["{"], ended) {
                        Begins::Perhaps => Some(self.more(input, *at)),
                        Begins::No => Some(Step::Done { used: *at }),
                        Begins::Yes if self.values.len() == CALLS => Some(Step::Done { used: *at }),
                        Begins::Yes => {
                            *at += after;
                            self.scan = Scan::new(None);
                            self.phase = Phase::Lead;
                            None
                        }
                    }
                }
            },
        }
    }

    /// The calls in all values that were read.
    pub(super) fn read_calls(&self, text: &str, end: End) -> Read<'static> {
        let mut calls = Vec::new();
        for value in &self.values {
            let mut repairs = Vec::new();
            let text = text.get(value.clone()).unwrap_or_default();
            let value = lenient(text, end, &mut repairs).map_err(Reason::Unreadable)?;
            let first = calls.len();
            said(value, self.style == Style::Bare, &mut calls)?;
            if let Some(call) = calls.get_mut(first) {
                call.repairs = repairs;
            }
        }
        Ok(calls)
    }

    fn more(&mut self, input: &str, at: usize) -> Step {
        self.before += at;
        Step::More { held: input.len() - at }
    }
}

impl Lexer for JsonCalls {
    fn read(&mut self, input: &str, end: Option<Finish>, notes: &mut Notes) -> Step {
        let mut at = 0;
        loop {
            let step = match self.phase {
                Phase::Lead => self.lead(input, &mut at),
                Phase::Body => self.body(input, &mut at, notes),
                Phase::Tail => self.tail(input, &mut at, end),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn calls<'t>(&self, text: &'t str, end: End) -> Read<'t> {
        self.read_calls(text, end)
    }

    fn stopped(&mut self, held: usize) -> bool {
        let open = self.phase == Phase::Body && !self.list && self.name.is_some();
        if open {
            self.values.push(self.begun..self.before + held);
        }
        open
    }

    fn data(&mut self) -> Option<Data> {
        let scan = std::mem::replace(&mut self.scan, Scan::new(None));
        (self.style == Style::Bare && self.is_data).then(|| Data::new(scan))
    }

    fn meant(&self) -> bool {
        self.style != Style::Bare || self.name.is_some() && self.has_arguments
    }
}

/// The calls a value holds: an object is one, a list several.
fn said(value: Json, bare: bool, calls: &mut Vec<Said<'static>>) -> Result<(), Reason> {
    match value {
        Json::Array(items) => items.into_iter().try_for_each(|item| said(item, bare, calls)),
        Json::Object(members) => {
            calls.push(one(members, bare)?);
            Ok(())
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
            Err(Reason::Form("a call has to be an object with a name and its arguments".to_owned()))
        }
    }
}

/// One call's object taken apart. `{"type": "function", "function": {…}}` is opened.
fn one(members: Vec<(String, Json)>, bare: bool) -> Result<Said<'static>, Reason> {
    let mut name = None;
    let mut arguments = None;
    for (key, value) in members {
        match value {
            Json::Object(inner) if key == "function" && name.is_none() => return one(inner, bare),
            Json::String(text) if NAMES.contains(&key.as_str()) => {
                if name.replace(text).is_some() {
                    return Err(Reason::Form("the call has two names".to_owned()));
                }
            }
            value if ARGUMENTS.contains(&key.as_str()) => {
                if arguments.replace(value).is_some() {
                    return Err(Reason::Form("the call has its arguments twice".to_owned()));
                }
            }
            Json::Null
            | Json::Bool(_)
            | Json::Number(_)
            | Json::String(_)
            | Json::Array(_)
            | Json::Object(_) => {}
        }
    }
    let Some(name) = name else { return Err(Reason::Form("the call has no name".to_owned())) };
    match arguments {
        Some(value) => Ok(Said::new(name, Arguments::Value(value))),
        None if bare => Err(Reason::Form(
            "the call has no arguments; where none are needed, write `{}`".to_owned(),
        )),
        None => Ok(Said::new(name, Arguments::Value(Json::Object(Vec::new())))),
    }
}

const _: () = assert!(LOOK_AHEAD > 16, "a fence's first line is looked at as a whole");
