//! Lexer for calls with each argument between tags, as raw text.
//!
//! A value may contain the same tags that end values. A closing tag counts only before a valid
//! continuation: the next argument or the end of the call.

use std::collections::HashSet;
use std::ops::Range;

use super::{
    DecodeResult, LexStatus, LexUpdate, Lexer, MAX_ARGUMENTS, MAX_NAME_BYTES, PrefixMatch, RawCall,
    is_name, leading_whitespace_len, match_after_whitespace, match_prefix,
};
use crate::Json;
use crate::call::{RawArguments, RejectReason};
use crate::event::TextEnd;
use crate::parse::{Completeness, parse_strict};

/// The tags of one call syntax.
#[derive(Debug)]
struct TagSyntax {
    /// The text between the marker and the tool name.
    call_prefix: &'static str,
    /// The end of the text with the tool name.
    head_end: HeadEnd,
    /// The start of an argument, then the end of its key and the start of its value.
    argument_start: String,
    key_end: &'static str,
    value_start: &'static str,
    /// The ends of a value and of a call.
    value_end: String,
    call_end: String,
    /// The closing tag of an optional outer element.
    outer_end: Option<&'static str>,
    /// The texts that may follow a call whose last value has no closing tag.
    continuations: Vec<String>,
    /// Whether one line end at each side of a value belongs to the tags.
    trims_newlines: bool,
    /// The source of the type of an argument.
    type_source: TypeSource,
}

/// The end of the tool name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeadEnd {
    /// This text.
    Text(&'static str),
    /// A quote with `>` or `/>` after it.
    Quote,
    /// The first argument or the end of the call.
    NextTag,
}

/// The source of the type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TypeSource {
    /// The schema of the tool.
    Schema,
    /// `name="…" string="true|false"`; the schema if the attribute `string` is missing.
    StringAttribute,
    /// `key="…" type="…"`.
    TypeAttribute,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParameterPhase {
    CallPrefix,
    Head,
    BetweenArguments,
    Key,
    BeforeValue,
    Value,
    Tail,
}

/// A lexer for one call.
#[derive(Debug)]
pub(crate) struct TaggedParameters {
    syntax: TagSyntax,
    phase: ParameterPhase,
    base_offset: usize,
    head: String,
    key: String,
    value_start: usize,
    argument_ranges: Vec<(String, Range<usize>)>,
}

impl TaggedParameters {
    /// Creates the lexer for `<function=name>`, after the marker.
    pub(super) fn function() -> Self {
        Self::new(TagSyntax {
            call_prefix: "",
            head_end: HeadEnd::Text(">"),
            argument_start: "<parameter=".to_owned(),
            key_end: ">",
            value_start: "",
            value_end: "</parameter>".to_owned(),
            call_end: "</function>".to_owned(),
            outer_end: Some("</tool_call>"),
            continuations: vec!["</tool_call>".to_owned()],
            trims_newlines: true,
            type_source: TypeSource::Schema,
        })
    }

    /// Creates the lexer for `<function=name>`, including the marker.
    pub(super) fn tagged_function() -> Self {
        let mut lexer = Self::function();
        lexer.syntax.call_prefix = "<function=";
        lexer
    }

    /// Creates the lexer for GLM: the name, then `<arg_key>` and `<arg_value>`.
    pub(super) fn glm() -> Self {
        Self::new(TagSyntax {
            call_prefix: "",
            head_end: HeadEnd::NextTag,
            argument_start: "<arg_key>".to_owned(),
            key_end: "</arg_key>",
            value_start: "<arg_value>",
            value_end: "</arg_value>".to_owned(),
            call_end: "</tool_call>".to_owned(),
            outer_end: None,
            continuations: vec!["<tool_call>".to_owned()],
            trims_newlines: false,
            type_source: TypeSource::Schema,
        })
    }

    /// Creates the lexer for `<invoke name="…">`, with `prefix` after the `<` or `</` of each tag.
    pub(super) fn invoke(prefix: &'static str) -> Self {
        Self::new(TagSyntax {
            call_prefix: "",
            head_end: HeadEnd::Quote,
            argument_start: format!("<{prefix}parameter name=\""),
            key_end: ">",
            value_start: "",
            value_end: format!("</{prefix}parameter>"),
            call_end: format!("</{prefix}invoke>"),
            outer_end: None,
            continuations: vec![
                format!("<{prefix}invoke name=\""),
                "</｜DSML｜".to_owned(),
                "</function_calls>".to_owned(),
                "</minimax:tool_call>".to_owned(),
            ],
            trims_newlines: false,
            type_source: TypeSource::StringAttribute,
        })
    }

    /// Creates the lexer for Kimi K3.
    pub(super) fn xtml() -> Self {
        Self::new(TagSyntax {
            call_prefix: "",
            head_end: HeadEnd::Text("<|sep|>"),
            argument_start: "<|open|>argument ".to_owned(),
            key_end: "<|sep|>",
            value_start: "",
            value_end: "<|close|>argument<|sep|>".to_owned(),
            call_end: "<|close|>call<|sep|>".to_owned(),
            outer_end: None,
            continuations: vec!["<|open|>call ".to_owned(), "<|close|>tools".to_owned()],
            trims_newlines: false,
            type_source: TypeSource::TypeAttribute,
        })
    }

    fn new(syntax: TagSyntax) -> Self {
        Self {
            syntax,
            phase: ParameterPhase::CallPrefix,
            base_offset: 0,
            head: String::new(),
            key: String::new(),
            value_start: 0,
            argument_ranges: Vec::new(),
        }
    }

    fn lex_call_prefix(&mut self, input: &str, at: &mut usize) -> Option<LexStatus> {
        match match_prefix(&input[*at..], self.syntax.call_prefix) {
            PrefixMatch::Yes => {
                *at += self.syntax.call_prefix.len();
                self.phase = ParameterPhase::Head;
                None
            }
            PrefixMatch::Partial => Some(self.need_more(input, *at)),
            PrefixMatch::No => Some(LexStatus::NotACall { used: *at }),
        }
    }

    fn lex_head(
        &mut self,
        input: &str,
        at: &mut usize,
        update: &mut LexUpdate,
    ) -> Option<LexStatus> {
        while let Some(letter) = input[*at..].chars().next() {
            let rest = &input[*at..];
            let result = match self.syntax.head_end {
                HeadEnd::Text(end) => self.finish_head(
                    match_prefix(rest, end),
                    end.len(),
                    ParameterPhase::BetweenArguments,
                ),
                HeadEnd::Quote => match (match_prefix(rest, "\">"), match_prefix(rest, "\"/>")) {
                    (_, PrefixMatch::Yes) => {
                        self.finish_head(PrefixMatch::Yes, 3, ParameterPhase::Tail)
                    }
                    (PrefixMatch::No, PrefixMatch::Partial) => Err(true),
                    (matched, _) => self.finish_head(matched, 2, ParameterPhase::BetweenArguments),
                },
                HeadEnd::NextTag => {
                    match (
                        match_prefix(rest, &self.syntax.argument_start),
                        match_prefix(rest, &self.syntax.call_end),
                    ) {
                        (PrefixMatch::Yes, _) | (_, PrefixMatch::Yes) => {
                            self.finish_head(PrefixMatch::Yes, 0, ParameterPhase::BetweenArguments)
                        }
                        (PrefixMatch::Partial, _) | (_, PrefixMatch::Partial) => Err(true),
                        (PrefixMatch::No, PrefixMatch::No) => Err(false),
                    }
                }
            };
            match result {
                Ok(length) => {
                    *at += length;
                    update.name = Some(self.name());
                    update.name_at = *at;
                    return None;
                }
                Err(true) => return Some(self.need_more(input, *at)),
                Err(false) if letter == '<' || self.head.len() >= MAX_NAME_BYTES => {
                    return Some(LexStatus::NotACall { used: *at });
                }
                Err(false) => {}
            }
            self.head.push(letter);
            *at += letter.len_utf8();
        }
        Some(self.need_more(input, input.len()))
    }

    /// Returns the length of the end of the head, or `Err` with whether more text is needed.
    fn finish_head(
        &mut self,
        matched: PrefixMatch,
        length: usize,
        phase: ParameterPhase,
    ) -> Result<usize, bool> {
        match matched {
            PrefixMatch::Yes => {
                self.phase = phase;
                Ok(length)
            }
            PrefixMatch::Partial => Err(true),
            PrefixMatch::No => Err(false),
        }
    }

    fn lex_between_arguments(
        &mut self,
        input: &str,
        at: &mut usize,
        text_end: Option<TextEnd>,
    ) -> Option<LexStatus> {
        *at += leading_whitespace_len(&input[*at..]);
        let rest = &input[*at..];
        if rest.is_empty() {
            // All values are closed and the model stopped by itself: only the end of the call is
            // missing.
            let is_complete = text_end == Some(TextEnd::Stop) && !self.argument_ranges.is_empty();
            return Some(if is_complete {
                LexStatus::Done { used: *at }
            } else {
                self.need_more(input, *at)
            });
        }
        match (
            match_prefix(rest, &self.syntax.argument_start),
            match_prefix(rest, &self.syntax.call_end),
        ) {
            (PrefixMatch::Yes, _) => {
                *at += self.syntax.argument_start.len();
                self.key.clear();
                self.phase = ParameterPhase::Key;
                None
            }
            (_, PrefixMatch::Yes) => {
                *at += self.syntax.call_end.len();
                self.phase = ParameterPhase::Tail;
                None
            }
            (PrefixMatch::Partial, _) | (_, PrefixMatch::Partial) => {
                Some(self.need_more(input, *at))
            }
            (PrefixMatch::No, PrefixMatch::No) => Some(LexStatus::NotACall { used: *at }),
        }
    }

    fn lex_key(&mut self, input: &str, at: &mut usize) -> Option<LexStatus> {
        while let Some(letter) = input[*at..].chars().next() {
            match match_prefix(&input[*at..], self.syntax.key_end) {
                PrefixMatch::Yes => {
                    *at += self.syntax.key_end.len();
                    self.phase = ParameterPhase::BeforeValue;
                    return None;
                }
                PrefixMatch::Partial => return Some(self.need_more(input, *at)),
                PrefixMatch::No if self.key.len() >= MAX_NAME_BYTES => {
                    return Some(LexStatus::NotACall { used: *at });
                }
                PrefixMatch::No => {}
            }
            self.key.push(letter);
            *at += letter.len_utf8();
        }
        Some(self.need_more(input, input.len()))
    }

    /// Lexes the text between the key and the value.
    fn lex_before_value(&mut self, input: &str, at: &mut usize) -> Option<LexStatus> {
        let skipped = if self.syntax.value_start.is_empty() {
            0
        } else {
            leading_whitespace_len(&input[*at..])
        };
        match match_prefix(&input[*at + skipped..], self.syntax.value_start) {
            PrefixMatch::Yes => {
                *at += skipped + self.syntax.value_start.len();
                self.value_start = self.base_offset + *at;
                self.phase = ParameterPhase::Value;
                None
            }
            PrefixMatch::Partial => Some(self.need_more(input, *at + skipped)),
            PrefixMatch::No => Some(LexStatus::NotACall { used: *at + skipped }),
        }
    }

    fn lex_value(
        &mut self,
        input: &str,
        at: &mut usize,
        text_end: Option<TextEnd>,
    ) -> Option<LexStatus> {
        let ended = text_end.map(|finish| finish == TextEnd::Stop);
        loop {
            let bytes = &input.as_bytes()[*at..];
            let offset = if self.syntax.trims_newlines {
                memchr::memchr2(b'<', b'\n', bytes)
            } else {
                memchr::memchr(b'<', bytes)
            };
            let Some(offset) = offset else { return Some(self.need_more(input, input.len())) };
            *at += offset;
            let rest = &input[*at..];
            let (matched, used, phase) = if let Some(line) = rest.strip_prefix('\n') {
                // The next argument ends a value without a closing tag only on a new line.
                (
                    match_prefix(line, &self.syntax.argument_start),
                    1,
                    ParameterPhase::BetweenArguments,
                )
            } else {
                self.match_value_end(rest, ended)
            };
            match matched {
                PrefixMatch::Yes if self.argument_ranges.len() == MAX_ARGUMENTS => {
                    return Some(LexStatus::NotACall { used: *at });
                }
                PrefixMatch::Yes => {
                    let key = std::mem::take(&mut self.key);
                    self.argument_ranges.push((key, self.value_start..self.base_offset + *at));
                    *at += used;
                    self.phase = phase;
                    return None;
                }
                PrefixMatch::Partial if text_end.is_none() => {
                    return Some(self.need_more(input, *at));
                }
                PrefixMatch::Partial | PrefixMatch::No => *at += 1,
            }
        }
    }

    /// Whether the value ends here, with the length of the closing tag and the next phase.
    fn match_value_end(
        &self,
        rest: &str,
        ended: Option<bool>,
    ) -> (PrefixMatch, usize, ParameterPhase) {
        let tags = &self.syntax;
        match match_prefix(rest, &tags.value_end) {
            PrefixMatch::Yes => {
                let used = tags.value_end.len();
                return (
                    match_after_whitespace(
                        &rest[used..],
                        &[&tags.argument_start, &tags.call_end],
                        ended,
                    ),
                    used,
                    ParameterPhase::BetweenArguments,
                );
            }
            PrefixMatch::Partial => return (PrefixMatch::Partial, 0, ParameterPhase::Value),
            PrefixMatch::No => {}
        }
        match match_prefix(rest, &tags.call_end) {
            PrefixMatch::Yes => {
                let used = tags.call_end.len();
                (
                    match_after_whitespace(&rest[used..], &tags.continuations, ended),
                    used,
                    ParameterPhase::Tail,
                )
            }
            result @ (PrefixMatch::Partial | PrefixMatch::No) => (result, 0, ParameterPhase::Value),
        }
    }

    fn lex_tail(&mut self, input: &str, at: usize, text_end: Option<TextEnd>) -> LexStatus {
        let Some(outer) = self.syntax.outer_end else { return LexStatus::Done { used: at } };
        match match_after_whitespace(&input[at..], &[outer], text_end.map(|_| false)) {
            PrefixMatch::Yes => {
                LexStatus::Done { used: at + leading_whitespace_len(&input[at..]) + outer.len() }
            }
            PrefixMatch::Partial => self.need_more(input, at),
            PrefixMatch::No => LexStatus::Done { used: at },
        }
    }

    fn need_more(&mut self, input: &str, at: usize) -> LexStatus {
        self.base_offset += at;
        LexStatus::NeedMore { held: input.len() - at }
    }

    fn name(&self) -> String {
        match self.syntax.type_source {
            TypeSource::TypeAttribute => attribute_value(&self.head, "tool").unwrap_or_default(),
            TypeSource::Schema | TypeSource::StringAttribute => {
                self.head.trim().trim_matches('"').to_owned()
            }
        }
    }
}

impl Lexer for TaggedParameters {
    fn lex(&mut self, input: &str, text_end: Option<TextEnd>, update: &mut LexUpdate) -> LexStatus {
        let mut at = 0;
        let mut from =
            (!matches!(self.phase, ParameterPhase::CallPrefix | ParameterPhase::Head)).then_some(0);
        loop {
            let status = match self.phase {
                ParameterPhase::CallPrefix => self.lex_call_prefix(input, &mut at),
                ParameterPhase::Head => {
                    let status = self.lex_head(input, &mut at, update);
                    from = Some(at);
                    status
                }
                ParameterPhase::BetweenArguments => {
                    self.lex_between_arguments(input, &mut at, text_end)
                }
                ParameterPhase::Key => self.lex_key(input, &mut at),
                ParameterPhase::BeforeValue => self.lex_before_value(input, &mut at),
                ParameterPhase::Value => self.lex_value(input, &mut at, text_end),
                ParameterPhase::Tail => Some(self.lex_tail(input, at, text_end)),
            };
            if let Some(status) = status {
                let to = match status {
                    LexStatus::NeedMore { held } => input.len() - held,
                    LexStatus::Done { used } | LexStatus::NotACall { used } => used,
                };
                update.fragment = from.filter(|from| *from < to).map(|from| from..to);
                return status;
            }
        }
    }

    fn decode<'t>(&self, text: &'t str, _end: Completeness) -> DecodeResult<'t> {
        let mut seen = HashSet::new();
        let mut raw = Vec::new();
        let mut values = Vec::new();
        for (head, span) in &self.argument_ranges {
            let mut value = text.get(span.clone()).unwrap_or_default();
            if self.syntax.trims_newlines {
                let from = value.strip_prefix("\r\n").or_else(|| value.strip_prefix('\n'));
                value = from.unwrap_or(value);
                let to = value.strip_suffix("\r\n").or_else(|| value.strip_suffix('\n'));
                value = to.unwrap_or(value);
            }
            let (key, kind) = self.parse_argument_key(head);
            if !seen.insert(key.clone()) {
                return Err(RejectReason::DuplicateArgument(key));
            }
            match kind.as_deref() {
                None => raw.push((key, value.to_owned())),
                Some("true" | "string") => values.push((key, Json::String(value.to_owned()))),
                Some(_) => {
                    let read =
                        parse_strict(value).unwrap_or_else(|_| Json::String(value.to_owned()));
                    values.push((key, read));
                }
            }
        }
        let arguments = match (raw.is_empty(), values.is_empty()) {
            (_, true) => RawArguments::TextPairs(raw),
            (true, false) => RawArguments::Value(Json::Object(values)),
            (false, false) => {
                return Err(RejectReason::Malformed(
                    "some arguments of the call have no type".to_owned(),
                ));
            }
        };
        Ok(vec![RawCall::new(self.name(), arguments)])
    }

    fn was_intended(&self) -> bool {
        match self.phase {
            ParameterPhase::CallPrefix => false,
            ParameterPhase::Head => is_name(&self.name()),
            _ => true,
        }
    }
}

impl TaggedParameters {
    /// Returns the name of an argument and its declared type.
    fn parse_argument_key(&self, head: &str) -> (String, Option<String>) {
        match self.syntax.type_source {
            TypeSource::Schema => (head.trim().trim_matches('"').to_owned(), None),
            TypeSource::StringAttribute => {
                let (name, rest) = head.split_once('"').unwrap_or((head, ""));
                (name.to_owned(), attribute_value(rest, "string"))
            }
            TypeSource::TypeAttribute => {
                let kind = attribute_value(head, "type").unwrap_or_else(|| "string".to_owned());
                (attribute_value(head, "key").unwrap_or_default(), Some(kind))
            }
        }
    }
}

/// Returns the value of the attribute `name`, with entities decoded.
fn attribute_value(text: &str, name: &str) -> Option<String> {
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
