//! Lexer for calls with each argument between tags, as raw text.

use std::collections::HashSet;
use std::ops::Range;

use memchr::memmem;

use super::tag_syntax::{HeadEnd, TagSyntax, ValueEnd};
use super::tagged_value::{ValueScan, is_key_char};
use super::tool_parameters::ToolParameters;
use super::{
    DecodeResult, LexStatus, LexUpdate, Lexer, MAX_NAME_BYTES, PrefixMatch, RawCall, RawEnd,
    is_name, leading_whitespace_len, match_after_whitespace, match_prefix,
};
use crate::Json;
use crate::call::{RawArguments, RejectReason};
use crate::event::TextEnd;
use crate::parse::{Completeness, parse_strict};
use crate::repair::quote_backticks;
use crate::resolve::resolve;
use crate::tool::Tools;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterPhase {
    CallPrefix,
    Head,
    BetweenArguments,
    Key,
    BeforeValue,
    Value,
    Tail,
}

/// An argument that was read.
#[derive(Debug)]
pub(super) struct Argument {
    /// The text of the tag with the key.
    head: String,
    range: Range<usize>,
    /// Whether the value has its closing tag.
    is_closed: bool,
}

/// A lexer for one call.
#[derive(Debug)]
pub(crate) struct TaggedParameters {
    pub(super) syntax: TagSyntax,
    pub(super) phase: ParameterPhase,
    /// The number of bytes before the current input.
    pub(super) base_offset: usize,
    head: Head,
    pub(super) parameters: ToolParameters,
    pub(super) current: CurrentArgument,
    pub(super) arguments: Vec<Argument>,
    pub(super) doubts: Doubts,
}

/// The text up to the end of the tool name.
#[derive(Debug, Default)]
struct Head {
    text: String,
    /// The name of the tool, if it isn't simply the text.
    name: Option<String>,
    /// Whether only the name of an offered tool makes the text a call.
    requires_tool: bool,
}

impl Head {
    fn name(&self, syntax: &TagSyntax) -> String {
        self.name.clone().unwrap_or_else(|| syntax.name(&self.text))
    }
}

/// The argument that is being read.
#[derive(Debug, Default)]
pub(super) struct CurrentArgument {
    key: String,
    /// Whether white space follows the tag of the key.
    has_gap: bool,
    /// The closing tag of the value.
    pub(super) value_end: String,
    value_start: usize,
    pub(super) scan: ValueScan,
}

/// What speaks against the first reading of a call.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// Whether the call has a second reading.
    pub(super) is_ambiguous: bool,
    /// The arguments whose tags a value contained, although they hadn't come yet.
    pub(super) mentioned: HashSet<String>,
    /// Whether the tags of the call are on lines of their own.
    has_lines: bool,
    /// Whether a tag of the call is missing, so that all others must be there.
    is_damaged: bool,
}

impl TaggedParameters {
    /// Creates the lexer for `<function=name>`, after the marker.
    pub(super) fn function() -> Self {
        Self::new(TagSyntax::function())
    }

    /// Creates the lexer for `<function=name>`, including the marker.
    pub(super) fn tagged_function() -> Self {
        let mut lexer = Self::function();
        lexer.syntax.call.prefix = "<function=";
        lexer
    }

    /// Creates the lexer for `<parameter=name>` in place of `<function=name>`, after the marker.
    pub(super) fn misnamed_function() -> Self {
        let mut lexer = Self::function();
        lexer.head.requires_tool = true;
        lexer
    }

    /// Creates the lexer for `<parameter=name>` in place of `<function=name>`, including the marker.
    pub(super) fn tagged_misnamed_function() -> Self {
        let mut lexer = Self::misnamed_function();
        lexer.syntax.call.prefix = "<parameter=";
        lexer
    }

    pub(super) fn new(syntax: TagSyntax) -> Self {
        Self {
            syntax,
            phase: ParameterPhase::CallPrefix,
            base_offset: 0,
            head: Head::default(),
            parameters: ToolParameters::default(),
            current: CurrentArgument::default(),
            arguments: Vec::new(),
            doubts: Doubts::default(),
        }
    }

    fn lex_call_prefix(&mut self, input: &str, at: &mut usize) -> Option<LexStatus> {
        match match_prefix(&input[*at..], self.syntax.call.prefix) {
            PrefixMatch::Yes => {
                *at += self.syntax.call.prefix.len();
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
        tools: &Tools,
        update: &mut LexUpdate,
    ) -> Option<LexStatus> {
        while let Some(letter) = input[*at..].chars().next() {
            match self.match_head_end(&input[*at..], tools) {
                HeadMatch::End { length, phase } => {
                    *at += length;
                    let name = self.head.name(&self.syntax);
                    if !self.syntax.is_head(&self.head.text)
                        || self.head.requires_tool && resolve(tools, &name).is_none()
                    {
                        return Some(LexStatus::NotACall { used: *at });
                    }
                    self.parameters = ToolParameters::for_tool(tools, &name);
                    self.doubts.has_lines = self.head.text.ends_with('\n');
                    update.name = Some(name);
                    update.name_at = *at;
                    self.phase = phase;
                    return None;
                }
                HeadMatch::NeedMore => return Some(self.need_more(input, *at)),
                HeadMatch::No if letter == '<' || self.head.text.len() >= MAX_NAME_BYTES => {
                    return Some(LexStatus::NotACall { used: *at });
                }
                HeadMatch::No => {}
            }
            self.head.text.push(letter);
            *at += letter.len_utf8();
        }
        Some(self.need_more(input, input.len()))
    }

    fn match_head_end(&mut self, rest: &str, tools: &Tools) -> HeadMatch {
        let arguments = ParameterPhase::BetweenArguments;
        match self.syntax.call.head_end {
            HeadEnd::Text(end) => {
                HeadMatch::from_prefix(match_prefix(rest, end), end.len(), arguments)
            }
            HeadEnd::TagEnd => match match_prefix(rest, "/>") {
                PrefixMatch::No => HeadMatch::from_prefix(match_prefix(rest, ">"), 1, arguments),
                matched => HeadMatch::from_prefix(matched, 2, ParameterPhase::Tail),
            },
            HeadEnd::NextTag { separator } => {
                if match_prefix(rest, separator) == PrefixMatch::Yes {
                    return HeadMatch::from_prefix(PrefixMatch::Yes, separator.len(), arguments);
                }
                let tags = [&*self.syntax.argument.start, &*self.syntax.call.end];
                let results = tags.map(|tag| match_prefix(rest, tag));
                if results.contains(&PrefixMatch::Yes) {
                    HeadMatch::from_prefix(PrefixMatch::Yes, 0, arguments)
                } else if results.contains(&PrefixMatch::Partial)
                    || match_prefix(rest, separator) == PrefixMatch::Partial
                {
                    HeadMatch::NeedMore
                } else {
                    self.match_damaged_head(rest, tools)
                }
            }
        }
    }

    /// Accepts two kinds of damage after a name: the key without its opening tag, and a closing tag
    /// of a value at a tool without arguments.
    fn match_damaged_head(&mut self, rest: &str, tools: &Tools) -> HeadMatch {
        let key_end = match_prefix(rest, self.syntax.argument.key_end);
        let value_end = self.syntax.argument.value_end("");
        let results = [key_end, match_prefix(rest, &value_end)];
        let words = self.head.text.split_once(char::is_whitespace);
        match (results, words) {
            ([PrefixMatch::Yes, _], Some((name, key))) => {
                let name = name.to_owned();
                let key = key.trim().to_owned();
                let is_listed = ToolParameters::for_tool(tools, &name).lists(&key);
                self.head.name = Some(name);
                if !is_listed {
                    return HeadMatch::No;
                }
                self.current.key = key;
                self.doubts.is_damaged = true;
                let length = self.syntax.argument.key_end.len();
                HeadMatch::End { length, phase: ParameterPhase::BeforeValue }
            }
            ([_, PrefixMatch::Yes], _) if is_without_arguments(tools, self.head.text.trim()) => {
                self.doubts.is_damaged = true;
                let phase = ParameterPhase::BetweenArguments;
                HeadMatch::End { length: value_end.len(), phase }
            }
            (results, _) if results.contains(&PrefixMatch::Partial) => HeadMatch::NeedMore,
            _ => HeadMatch::No,
        }
    }

    fn lex_between_arguments(
        &mut self,
        input: &str,
        at: &mut usize,
        text_end: Option<TextEnd>,
    ) -> Option<LexStatus> {
        let blank = leading_whitespace_len(&input[*at..]);
        self.doubts.has_lines |= input[*at..*at + blank].contains('\n');
        *at += blank;
        let rest = &input[*at..];
        if rest.is_empty() {
            // All values are closed and the model stopped by itself: only the end of the call is
            // missing.
            let is_complete = text_end == Some(TextEnd::Stop) && !self.arguments.is_empty();
            return Some(if is_complete {
                LexStatus::Done { used: *at }
            } else {
                self.need_more(input, *at)
            });
        }
        match (
            match_prefix(rest, &self.syntax.call.end),
            match_prefix(rest, &self.syntax.argument.start),
        ) {
            (PrefixMatch::Yes, _) => {
                *at += self.syntax.call.end.len();
                self.phase = ParameterPhase::Tail;
                None
            }
            (PrefixMatch::Partial, _) | (_, PrefixMatch::Partial) => {
                Some(self.need_more(input, *at))
            }
            (_, PrefixMatch::Yes) => {
                *at += self.syntax.argument.start.len();
                self.current.key.clear();
                self.phase = ParameterPhase::Key;
                None
            }
            (PrefixMatch::No, PrefixMatch::No) => Some(LexStatus::NotACall { used: *at }),
        }
    }

    fn lex_key(&mut self, input: &str, at: &mut usize) -> Option<LexStatus> {
        while let Some(letter) = input[*at..].chars().next() {
            match match_prefix(&input[*at..], self.syntax.argument.key_end) {
                PrefixMatch::Yes => {
                    *at += self.syntax.argument.key_end.len();
                    self.phase = ParameterPhase::BeforeValue;
                    return None;
                }
                PrefixMatch::Partial => return Some(self.need_more(input, *at)),
                PrefixMatch::No
                    if self.current.key.len() >= MAX_NAME_BYTES || !is_key_char(letter) =>
                {
                    return Some(LexStatus::NotACall { used: *at });
                }
                PrefixMatch::No => {}
            }
            self.current.key.push(letter);
            *at += letter.len_utf8();
        }
        Some(self.need_more(input, input.len()))
    }

    /// Lexes the text between the key and the value.
    fn lex_before_value(&mut self, input: &str, at: &mut usize) -> Option<LexStatus> {
        let rest = &input[*at..];
        let skipped = match self.syntax.argument.value_start {
            "" => 0,
            _ => leading_whitespace_len(rest),
        };
        self.current.has_gap |= skipped > 0;
        match match_prefix(&rest[skipped..], self.syntax.argument.value_start) {
            PrefixMatch::Yes => *at += skipped + self.syntax.argument.value_start.len(),
            PrefixMatch::Partial => return Some(self.need_more(input, *at + skipped)),
            // The tag before the value is missing.
            PrefixMatch::No
                if !self.current.has_gap
                    && !rest.starts_with('<')
                    && self.parameters.lists(&self.current.key) =>
            {
                self.doubts.is_damaged = true;
            }
            PrefixMatch::No => return Some(LexStatus::NotACall { used: *at + skipped }),
        }
        let (name, _) = self.syntax.parse_argument_key(&self.current.key);
        self.current.value_end = self.syntax.argument.value_end(&name);
        self.current.value_start = self.base_offset + *at;
        self.current.scan = ValueScan::default();
        self.current.has_gap = false;
        self.parameters.give(name);
        self.phase = ParameterPhase::Value;
        None
    }

    /// Ends the current value at `end`.
    pub(super) fn push_argument(&mut self, end: usize, is_closed: bool) {
        let head = std::mem::take(&mut self.current.key);
        self.arguments.push(Argument { head, range: self.current.value_start..end, is_closed });
    }

    fn lex_tail(&mut self, input: &str, at: usize, text_end: Option<TextEnd>) -> LexStatus {
        let Some(outer) = self.syntax.call.outer_end else { return LexStatus::Done { used: at } };
        match match_after_whitespace(&input[at..], &[outer], text_end.map(|_| false)) {
            PrefixMatch::Yes => {
                LexStatus::Done { used: at + leading_whitespace_len(&input[at..]) + outer.len() }
            }
            PrefixMatch::Partial => self.need_more(input, at),
            PrefixMatch::No => LexStatus::Done { used: at },
        }
    }

    pub(super) fn need_more(&mut self, input: &str, at: usize) -> LexStatus {
        self.base_offset += at;
        LexStatus::NeedMore { held: input.len() - at }
    }

    /// Returns the value of an argument without the line breaks that belong to its tags; `None` if
    /// the closing tag is missing and a line break may belong to either.
    fn value_text<'t>(&self, argument: &Argument, text: &'t str) -> Option<&'t str> {
        let value = text.get(argument.range.clone()).unwrap_or_default();
        let after_start = strip_first_break(value);
        let before_end = strip_last_break(value);
        let unframed = after_start.and_then(strip_last_break);
        match (argument.is_closed, self.syntax.argument.trims_newlines) {
            (_, true) if unframed.is_some() => unframed,
            (true, _) => Some(value),
            (false, true) => (after_start.or(before_end).is_none()).then_some(value),
            (false, false) if self.doubts.has_lines => before_end.or(Some(value)),
            (false, false) => before_end.is_none().then_some(value),
        }
    }

    /// Returns the reason why the text doesn't have exactly one reading.
    fn find_doubt(&self, text: &str) -> Option<String> {
        if self.doubts.is_ambiguous || !self.parameters.has_given(&self.doubts.mentioned) {
            return Some("a value contains the start of an argument that is missing".to_owned());
        }
        for (index, argument) in self.arguments.iter().enumerate() {
            let (name, _) = self.syntax.parse_argument_key(&argument.head);
            if index > 0 && !self.parameters.accepts(&name) {
                let name = quote_backticks(&name);
                return Some(format!(
                    "the tool has no argument {name}, which may be part of a value"
                ));
            }
            let value = text.get(argument.range.clone()).unwrap_or_default();
            // A tag in a value without a closing tag may be the wrong closing tag.
            if !argument.is_closed
                && (self.doubts.is_damaged
                    || value.contains('<')
                    || self.value_text(argument, text).is_none())
            {
                return Some(format!("the value of {} has no end", quote_backticks(&name)));
            }
        }
        None
    }
}

/// The result of a comparison with the end of a head.
enum HeadMatch {
    End { length: usize, phase: ParameterPhase },
    NeedMore,
    No,
}

impl HeadMatch {
    fn from_prefix(matched: PrefixMatch, length: usize, phase: ParameterPhase) -> Self {
        match matched {
            PrefixMatch::Yes => Self::End { length, phase },
            PrefixMatch::Partial => Self::NeedMore,
            PrefixMatch::No => Self::No,
        }
    }
}

fn strip_first_break(text: &str) -> Option<&str> {
    text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n'))
}

fn strip_last_break(text: &str) -> Option<&str> {
    text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n'))
}

/// Whether an offered tool with this name takes no arguments.
fn is_without_arguments(tools: &Tools, name: &str) -> bool {
    resolve(tools, name).is_some() && ToolParameters::for_tool(tools, name).is_empty()
}

impl Lexer for TaggedParameters {
    fn lex(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        tools: &Tools,
        update: &mut LexUpdate,
    ) -> LexStatus {
        let mut at = 0;
        let mut from =
            (!matches!(self.phase, ParameterPhase::CallPrefix | ParameterPhase::Head)).then_some(0);
        loop {
            let status = match self.phase {
                ParameterPhase::CallPrefix => self.lex_call_prefix(input, &mut at),
                ParameterPhase::Head => {
                    let status = self.lex_head(input, &mut at, tools, update);
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
        if let Some(doubt) = self.find_doubt(text) {
            return Err(RejectReason::Malformed(doubt));
        }
        let mut seen = HashSet::new();
        let mut raw = Vec::new();
        let mut values = Vec::new();
        for argument in &self.arguments {
            let value = self.value_text(argument, text).unwrap_or_default();
            let (key, kind) = self.syntax.parse_argument_key(&argument.head);
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
        Ok(vec![RawCall::new(self.head.name(&self.syntax), arguments)])
    }

    fn raw_end(&self, text: &str) -> Option<RawEnd> {
        let value_end = match &self.syntax.argument.value_end {
            ValueEnd::Tag(tag) => tag.clone(),
            ValueEnd::Named(start) => (*start).to_owned(),
        };
        let closers = vec![value_end, self.syntax.call.end.clone()];
        let starts = [&self.syntax.call.start, &self.syntax.argument.start];
        let are_regular = self.arguments.iter().all(|argument| {
            let value = text.get(argument.range.clone()).unwrap_or_default();
            let mut tags = closers.iter().chain(starts);
            argument.is_closed
                && !tags.any(|tag| memmem::find(value.as_bytes(), tag.as_bytes()).is_some())
        });
        let is_regular = !self.doubts.is_damaged && are_regular;
        Some(RawEnd { closers, is_regular })
    }

    fn was_intended(&self) -> bool {
        match self.phase {
            ParameterPhase::CallPrefix => false,
            ParameterPhase::Head => {
                !self.head.requires_tool
                    && self.syntax.is_head(&self.head.text)
                    && is_name(&self.head.name(&self.syntax))
            }
            ParameterPhase::BetweenArguments
            | ParameterPhase::Key
            | ParameterPhase::BeforeValue
            | ParameterPhase::Value
            | ParameterPhase::Tail => true,
        }
    }
}
