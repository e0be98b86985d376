//! Calls whose arguments stand one by one between tags, as raw text.
//!
//! A value may hold the very tags that end it. A closing tag counts only where a legal
//! continuation follows: the next argument, or the end of the call.

use std::collections::HashSet;
use std::ops::Range;

use super::{ARGUMENTS, Begins, Lexer, NAME, Notes, Read, Said, Step, begins, blank, follows};
use crate::Json;
use crate::call::{Arguments, Reason};
use crate::event::Finish;
use crate::parse::{End, strict};

/// The tags of one way of writing.
#[derive(Debug)]
struct Tags {
    /// What the call begins with, behind its marker.
    lead: &'static str,
    /// What ends the call's head.
    head: Head,
    /// What begins an argument, what ends its key, and what begins its value after that.
    argument: String,
    key_end: &'static str,
    value: &'static str,
    /// What ends a value and a call.
    value_end: String,
    end: String,
    /// What may stand round the whole.
    outer: Option<&'static str>,
    /// What may follow a call whose last value was never closed.
    next: Vec<String>,
    /// Whether one line end at each side of a value belongs to the tags.
    framed: bool,
    /// How an argument says what type it has.
    typed: Typed,
}

/// How the name of the tool ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    /// At this text.
    At(&'static str),
    /// At a quote, with `>` or `/>` behind it.
    Quote,
    /// At the first argument or the end of the call.
    Tag,
}

/// How an argument says what type it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typed {
    /// Only the tool's schema knows.
    Schema,
    /// `name="…" string="true|false"`, or without it as above.
    String,
    /// `key="…" type="…"`.
    Named,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Lead,
    Head,
    Between,
    Key,
    Lane,
    Value,
    Tail,
}

/// One call.
#[derive(Debug)]
pub(crate) struct Parameters {
    tags: Tags,
    phase: Phase,
    before: usize,
    head: String,
    key: String,
    value: usize,
    found: Vec<(String, Range<usize>)>,
}

impl Parameters {
    /// `<function=name>`, the marker read already.
    pub(super) fn function() -> Self {
        Self::new(Tags {
            lead: "",
            head: Head::At(">"),
            argument: "<parameter=".to_owned(),
            key_end: ">",
            value: "",
            value_end: "</parameter>".to_owned(),
            end: "</function>".to_owned(),
            outer: Some("</tool_call>"),
            next: vec!["</tool_call>".to_owned()],
            framed: true,
            typed: Typed::Schema,
        })
    }

    /// The same with the marker before it.
    pub(super) fn tagged_function() -> Self {
        let mut lexer = Self::function();
        lexer.tags.lead = "<function=";
        lexer
    }

    /// GLM's: the name, then `<arg_key>` and `<arg_value>`.
    pub(super) fn glm() -> Self {
        Self::new(Tags {
            lead: "",
            head: Head::Tag,
            argument: "<arg_key>".to_owned(),
            key_end: "</arg_key>",
            value: "<arg_value>",
            value_end: "</arg_value>".to_owned(),
            end: "</tool_call>".to_owned(),
            outer: None,
            next: vec!["<tool_call>".to_owned()],
            framed: false,
            typed: Typed::Schema,
        })
    }

    /// `<invoke name="…">`, each tag with `prefix` behind its `<` or `</`.
    pub(super) fn invoke(prefix: &'static str) -> Self {
        Self::new(Tags {
            lead: "",
            head: Head::Quote,
            argument: format!("<{prefix}parameter name=\""),
            key_end: ">",
            value: "",
            value_end: format!("</{prefix}parameter>"),
            end: format!("</{prefix}invoke>"),
            outer: None,
            next: vec![
                format!("<{prefix}invoke name=\""),
                "</｜DSML｜".to_owned(),
                "</function_calls>".to_owned(),
                "</minimax:tool_call>".to_owned(),
            ],
            framed: false,
            typed: Typed::String,
        })
    }

    /// Kimi K3's.
    pub(super) fn xtml() -> Self {
        Self::new(Tags {
            lead: "",
            head: Head::At("<|sep|>"),
            argument: "<|open|>argument ".to_owned(),
            key_end: "<|sep|>",
            value: "",
            value_end: "<|close|>argument<|sep|>".to_owned(),
            end: "<|close|>call<|sep|>".to_owned(),
            outer: None,
            next: vec!["<|open|>call ".to_owned(), "<|close|>tools".to_owned()],
            framed: false,
            typed: Typed::Named,
        })
    }

    fn new(tags: Tags) -> Self {
        Self {
            tags,
            phase: Phase::Lead,
            before: 0,
            head: String::new(),
            key: String::new(),
            value: 0,
            found: Vec::new(),
        }
    }

    fn lead(&mut self, input: &str, at: &mut usize) -> Option<Step> {
        match begins(&input[*at..], self.tags.lead) {
            Begins::Yes => {
                *at += self.tags.lead.len();
                self.phase = Phase::Head;
                None
            }
            Begins::Perhaps => Some(self.more(input, *at)),
            Begins::No => Some(Step::Fail { used: *at }),
        }
    }

    fn head(&mut self, input: &str, at: &mut usize, notes: &mut Notes) -> Option<Step> {
        while let Some(letter) = input[*at..].chars().next() {
            let rest = &input[*at..];
            let ends = match self.tags.head {
                Head::At(end) => self.ends(begins(rest, end), end.len(), Phase::Between),
                Head::Quote => match (begins(rest, "\">"), begins(rest, "\"/>")) {
                    (_, Begins::Yes) => self.ends(Begins::Yes, 3, Phase::Tail),
                    (Begins::No, Begins::Perhaps) => Err(true),
                    (found, _) => self.ends(found, 2, Phase::Between),
                },
                Head::Tag => {
                    match (begins(rest, &self.tags.argument), begins(rest, &self.tags.end)) {
                        (Begins::Yes, _) | (_, Begins::Yes) => {
                            self.ends(Begins::Yes, 0, Phase::Between)
                        }
                        (Begins::Perhaps, _) | (_, Begins::Perhaps) => Err(true),
                        (Begins::No, Begins::No) => Err(false),
                    }
                }
            };
            match ends {
                Ok(length) => {
                    *at += length;
                    notes.name = Some(self.name());
                    notes.at = *at;
                    return None;
                }
                Err(true) => return Some(self.more(input, *at)),
                Err(false) if letter == '<' || self.head.len() >= NAME => {
                    return Some(Step::Fail { used: *at });
                }
                Err(false) => {}
            }
            self.head.push(letter);
            *at += letter.len_utf8();
        }
        Some(self.more(input, input.len()))
    }

    /// The length of what ends the head, or whether more text is needed.
    fn ends(&mut self, found: Begins, length: usize, phase: Phase) -> Result<usize, bool> {
        match found {
            Begins::Yes => {
                self.phase = phase;
                Ok(length)
            }
            Begins::Perhaps => Err(true),
            Begins::No => Err(false),
        }
    }

    fn between(&mut self, input: &str, at: &mut usize, end: Option<Finish>) -> Option<Step> {
        *at += blank(&input[*at..]);
        let rest = &input[*at..];
        if rest.is_empty() {
            // All values are closed and the model had said all it wanted: the call's end is missing.
            let whole = end == Some(Finish::Stop) && !self.found.is_empty();
            return Some(if whole { Step::Done { used: *at } } else { self.more(input, *at) });
        }
        match (begins(rest, &self.tags.argument), begins(rest, &self.tags.end)) {
            (Begins::Yes, _) => {
                *at += self.tags.argument.len();
                self.key.clear();
                self.phase = Phase::Key;
                None
            }
            (_, Begins::Yes) => {
                *at += self.tags.end.len();
                self.phase = Phase::Tail;
                None
            }
            (Begins::Perhaps, _) | (_, Begins::Perhaps) => Some(self.more(input, *at)),
            (Begins::No, Begins::No) => Some(Step::Fail { used: *at }),
        }
    }

    fn key(&mut self, input: &str, at: &mut usize) -> Option<Step> {
        while let Some(letter) = input[*at..].chars().next() {
            match begins(&input[*at..], self.tags.key_end) {
                Begins::Yes => {
                    *at += self.tags.key_end.len();
                    self.phase = Phase::Lane;
                    return None;
                }
                Begins::Perhaps => return Some(self.more(input, *at)),
                Begins::No if self.key.len() >= NAME => return Some(Step::Fail { used: *at }),
                Begins::No => {}
            }
            self.key.push(letter);
            *at += letter.len_utf8();
        }
        Some(self.more(input, input.len()))
    }

    /// From the key to the value.
    fn lane(&mut self, input: &str, at: &mut usize) -> Option<Step> {
        let skipped = if self.tags.value.is_empty() { 0 } else { blank(&input[*at..]) };
        match begins(&input[*at + skipped..], self.tags.value) {
            Begins::Yes => {
                *at += skipped + self.tags.value.len();
                self.value = self.before + *at;
                self.phase = Phase::Value;
                None
            }
            Begins::Perhaps => Some(self.more(input, *at + skipped)),
            Begins::No => Some(Step::Fail { used: *at + skipped }),
        }
    }

    fn value(&mut self, input: &str, at: &mut usize, end: Option<Finish>) -> Option<Step> {
        let ended = end.map(|finish| finish == Finish::Stop);
        loop {
            let bytes = &input.as_bytes()[*at..];
            let hit = if self.tags.framed {
                memchr::memchr2(b'<', b'\n', bytes)
            } else {
                memchr::memchr(b'<', bytes)
            };
            let Some(hit) = hit else { return Some(self.more(input, input.len())) };
            *at += hit;
            let rest = &input[*at..];
            let (found, used, phase) = if let Some(line) = rest.strip_prefix('\n') {
                // Only on a line of its own does the next argument end a value without its tag.
                (begins(line, &self.tags.argument), 1, Phase::Between)
            } else {
                self.closed(rest, ended)
            };
            match found {
                Begins::Yes if self.found.len() == ARGUMENTS => {
                    return Some(Step::Fail { used: *at });
                }
                Begins::Yes => {
                    let key = std::mem::take(&mut self.key);
                    self.found.push((key, self.value..self.before + *at));
                    *at += used;
                    self.phase = phase;
                    return None;
                }
                Begins::Perhaps if end.is_none() => return Some(self.more(input, *at)),
                Begins::Perhaps | Begins::No => *at += 1,
            }
        }
    }

    /// Whether the value ends here, how long the tag is, and what comes after it.
    fn closed(&self, rest: &str, ended: Option<bool>) -> (Begins, usize, Phase) {
        let tags = &self.tags;
        match begins(rest, &tags.value_end) {
            Begins::Yes => {
                let used = tags.value_end.len();
                return (
                    follows(&rest[used..], &[&tags.argument, &tags.end], ended),
                    used,
                    Phase::Between,
                );
            }
            Begins::Perhaps => return (Begins::Perhaps, 0, Phase::Value),
            Begins::No => {}
        }
        match begins(rest, &tags.end) {
            Begins::Yes => {
                let used = tags.end.len();
                (follows(&rest[used..], &tags.next, ended), used, Phase::Tail)
            }
            found @ (Begins::Perhaps | Begins::No) => (found, 0, Phase::Value),
        }
    }

    fn tail(&mut self, input: &str, at: usize, end: Option<Finish>) -> Step {
        let Some(outer) = self.tags.outer else { return Step::Done { used: at } };
        match follows(&input[at..], &[outer], end.map(|_| false)) {
            Begins::Yes => Step::Done { used: at + blank(&input[at..]) + outer.len() },
            Begins::Perhaps => self.more(input, at),
            Begins::No => Step::Done { used: at },
        }
    }

    fn more(&mut self, input: &str, at: usize) -> Step {
        self.before += at;
        Step::More { held: input.len() - at }
    }

    fn name(&self) -> String {
        match self.tags.typed {
            Typed::Named => attribute(&self.head, "tool").unwrap_or_default(),
            Typed::Schema | Typed::String => self.head.trim().trim_matches('"').to_owned(),
        }
    }
}

impl Lexer for Parameters {
    fn read(&mut self, input: &str, end: Option<Finish>, notes: &mut Notes) -> Step {
        let mut at = 0;
        let mut from = (!matches!(self.phase, Phase::Lead | Phase::Head)).then_some(0);
        loop {
            let step = match self.phase {
                Phase::Lead => self.lead(input, &mut at),
                Phase::Head => {
                    let step = self.head(input, &mut at, notes);
                    from = Some(at);
                    step
                }
                Phase::Between => self.between(input, &mut at, end),
                Phase::Key => self.key(input, &mut at),
                Phase::Lane => self.lane(input, &mut at),
                Phase::Value => self.value(input, &mut at, end),
                Phase::Tail => Some(self.tail(input, at, end)),
            };
            if let Some(step) = step {
                let to = match step {
                    Step::More { held } => input.len() - held,
                    Step::Done { used } | Step::Fail { used } => used,
                };
                notes.fragment = from.filter(|from| *from < to).map(|from| from..to);
                return step;
            }
        }
    }

    fn calls<'t>(&self, text: &'t str, _end: End) -> Read<'t> {
        let mut seen = HashSet::new();
        let mut raw = Vec::new();
        let mut values = Vec::new();
        for (head, span) in &self.found {
            let mut value = text.get(span.clone()).unwrap_or_default();
            if self.tags.framed {
                let from = value.strip_prefix("\r\n").or_else(|| value.strip_prefix('\n'));
                value = from.unwrap_or(value);
                let to = value.strip_suffix("\r\n").or_else(|| value.strip_suffix('\n'));
                value = to.unwrap_or(value);
            }
            let (key, kind) = self.argument(head);
            if !seen.insert(key.clone()) {
                return Err(Reason::DuplicateArgument(key));
            }
            match kind.as_deref() {
                None => raw.push((key, value.to_owned())),
                Some("true" | "string") => values.push((key, Json::String(value.to_owned()))),
                Some(_) => {
                    let read = strict(value).unwrap_or_else(|_| Json::String(value.to_owned()));
                    values.push((key, read));
                }
            }
        }
        let arguments = match (raw.is_empty(), values.is_empty()) {
            (_, true) => Arguments::Raw(raw),
            (true, false) => Arguments::Value(Json::Object(values)),
            (false, false) => {
                return Err(Reason::Form("some of its arguments do not say their type".to_owned()));
            }
        };
        Ok(vec![Said::new(self.name(), arguments)])
    }

    fn meant(&self) -> bool {
        !matches!(self.phase, Phase::Lead | Phase::Head)
    }
}

impl Parameters {
    /// An argument's name and what it says of its type.
    fn argument(&self, head: &str) -> (String, Option<String>) {
        match self.tags.typed {
            Typed::Schema => (head.trim().trim_matches('"').to_owned(), None),
            Typed::String => {
                let (name, rest) = head.split_once('"').unwrap_or((head, ""));
                (name.to_owned(), attribute(rest, "string"))
            }
            Typed::Named => {
                let kind = attribute(head, "type").unwrap_or_else(|| "string".to_owned());
                (attribute(head, "key").unwrap_or_default(), Some(kind))
            }
        }
    }
}

/// The value of `name="…"`, its entities resolved.
fn attribute(text: &str, name: &str) -> Option<String> {
    let from = text.find(&format!("{name}=\""))? + name.len() + 2;
    let value = text[from..].split('"').next()?;
    Some(
        value
            .replace("&quot;", "\"")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&"),
    )
}
