//! Lexer for JSON calls: bare, tagged, in lists or separated.

use std::ops::Range;

use super::json_scanner::{JsonScanner, Token};
use super::{
    DecodeResult, LexStatus, LexUpdate, Lexer, MAX_CALLS, MAX_LOOKAHEAD_BYTES, OpaqueJson,
    PrefixMatch, RawCall, leading_whitespace_len, match_after_whitespace, match_prefix,
    undecided_start,
};
use crate::Json;
use crate::call::{RawArguments, RejectReason};
use crate::event::TextEnd;
use crate::parse::{Completeness, parse_lenient};
use crate::tool::Tools;

/// Member names for the tool name.
const NAME_KEYS: &[&str] = &["name", "tool", "tool_name", "function", "function_name"];

/// Member names for the arguments.
const ARGUMENTS_KEYS: &[&str] =
    &["arguments", "params", "parameters", "args", "input", "tool_input"];

/// Names of other members that a call may have.
const METADATA_KEYS: &[&str] = &["type", "id", "call_id", "tool_call_id", "index"];

/// Whether `{` can start a call: a quoted key follows, also after a second bracket.
pub(super) fn match_object_start(text: &str, max_chars: usize) -> PrefixMatch {
    let bytes = text.as_bytes();
    let brackets = 1 + usize::from(bytes.get(1) == Some(&b'{'));
    let after = brackets
        + bytes
            .iter()
            .take(max_chars)
            .skip(brackets)
            .take_while(|byte| b" \t\r\n".contains(byte))
            .count();
    match bytes.get(after) {
        None => undecided_start(text, max_chars),
        Some(b'"' | b'\'') => PrefixMatch::Yes,
        Some(_) if after < max_chars => PrefixMatch::No,
        Some(_) => PrefixMatch::Yes,
    }
}

/// Whether `text`, which starts with a bracket, can be the body of a fenced block that is a call:
/// `Partial` if the text ends before the first key does.
pub(super) fn match_value_start(text: &str) -> PrefixMatch {
    let Some(object) = text.strip_prefix('{') else { return PrefixMatch::Yes };
    let mut rest = object[leading_whitespace_len(object)..].chars();
    match rest.next() {
        None => PrefixMatch::Partial,
        Some(quote @ ('"' | '\'')) => match rest.as_str().split_once(quote) {
            None => PrefixMatch::Partial,
            Some((key, _)) if key.contains('\\') || CallKey::from_text(key).is_some() => {
                PrefixMatch::Yes
            }
            Some(_) => PrefixMatch::No,
        },
        Some(_) => PrefixMatch::Yes,
    }
}

/// The position of the JSON in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonPlacement {
    /// Within text. Every member name must be a member name of a call.
    Bare,
    /// Before this closing marker.
    Tagged(&'static str),
    /// Before this closing marker, with the name of the tool as the only key of each object.
    Keyed(&'static str),
    /// After an opening marker; further calls follow after `;`.
    Separated,
}

/// The position of the lexer relative to the JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonPhase {
    Before,
    Inside,
    After,
}

/// The kind of the last key on the level of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKey {
    Name,
    Arguments,
    Metadata,
}

impl CallKey {
    fn from_text(key: &str) -> Option<Self> {
        match key {
            _ if NAME_KEYS.contains(&key) => Some(Self::Name),
            _ if ARGUMENTS_KEYS.contains(&key) => Some(Self::Arguments),
            _ if METADATA_KEYS.contains(&key) => Some(Self::Metadata),
            _ => None,
        }
    }
}

/// A lexer for JSON objects `{"name", "arguments"}` or lists of these objects.
#[derive(Debug)]
pub(crate) struct JsonCalls {
    placement: JsonPlacement,
    phase: JsonPhase,
    scan: JsonScanner,
    value: CurrentValue,
    members: CallMembers,
    /// Whether a key has shown that the value is not a call.
    is_opaque: bool,
    /// The number of bytes before the current input.
    base_offset: usize,
    value_ranges: Vec<Range<usize>>,
}

/// The value that is being read.
#[derive(Debug, Default)]
struct CurrentValue {
    start: usize,
    /// Whether the value is a list. Calls of a list are reported only after its end.
    is_list: bool,
    /// Whether the value has a second pair of brackets around it.
    is_doubled: bool,
}

impl CurrentValue {
    fn key_depth(&self) -> usize {
        1 + usize::from(self.is_list)
    }
}

/// The members of a call so far.
#[derive(Debug)]
struct CallMembers {
    last_key: CallKey,
    name: Option<String>,
    /// The depth at which the arguments end, while the lexer is inside the arguments.
    arguments_depth: Option<usize>,
    has_arguments: bool,
}

impl JsonCalls {
    pub(super) fn bare() -> Self {
        Self::new(JsonPlacement::Bare)
    }

    pub(super) fn tagged(close: &'static str) -> Self {
        Self::new(JsonPlacement::Tagged(close))
    }

    pub(super) fn keyed(close: &'static str) -> Self {
        Self::new(JsonPlacement::Keyed(close))
    }

    pub(super) fn separated() -> Self {
        Self::new(JsonPlacement::Separated)
    }

    fn new(placement: JsonPlacement) -> Self {
        let close = match placement {
            JsonPlacement::Tagged(close) | JsonPlacement::Keyed(close) => Some(close),
            JsonPlacement::Bare | JsonPlacement::Separated => None,
        };
        Self {
            placement,
            phase: JsonPhase::Before,
            scan: JsonScanner::new(close),
            value: CurrentValue::default(),
            members: CallMembers {
                last_key: CallKey::Metadata,
                name: None,
                arguments_depth: None,
                has_arguments: false,
            },
            is_opaque: false,
            base_offset: 0,
            value_ranges: Vec::new(),
        }
    }

    /// Lexes white space and the first bracket.
    fn lex_value_start(&mut self, input: &str, at: &mut usize) -> Option<LexStatus> {
        *at += leading_whitespace_len(&input[*at..]);
        let rest = &input[*at..];
        match rest.as_bytes().first() {
            None => Some(self.need_more(input, *at)),
            Some(b'{' | b'[') => {
                self.phase = JsonPhase::Inside;
                self.value.start = self.base_offset + *at;
                self.value.is_list = rest.starts_with('[');
                // Models copy the doubled brackets of templates.
                self.value.is_doubled =
                    self.placement == JsonPlacement::Bare && rest.starts_with("{{");
                *at += usize::from(self.value.is_doubled);
                if self.placement == JsonPlacement::Bare {
                    self.scan.set_strict_depth(self.value.key_depth());
                }
                self.members.last_key = CallKey::Metadata;
                None
            }
            // Some models add a fence around tagged JSON. Bare JSON starts with its bracket.
            Some(b'`') => match rest.find('\n') {
                Some(end) if end < 16 => {
                    *at += end;
                    self.lex_value_start(input, at)
                }
                None if rest.len() < 16 => Some(self.need_more(input, *at)),
                Some(_) | None => Some(LexStatus::NotACall { used: *at }),
            },
            Some(_) => Some(LexStatus::NotACall { used: *at }),
        }
    }

    fn lex_value(
        &mut self,
        input: &str,
        at: &mut usize,
        update: &mut LexUpdate,
    ) -> Option<LexStatus> {
        let mut from = self.members.arguments_depth.map(|_| *at);
        loop {
            let token = self.scan.next_token(input, at);
            match token {
                Token::NeedMore => {
                    self.record_arguments(from, *at, update);
                    return Some(self.need_more(input, *at));
                }
                Token::Unbalanced => {
                    self.record_arguments(from, *at, update);
                    return Some(LexStatus::NotACall { used: *at });
                }
                Token::Marker => {
                    self.record_arguments(from, *at, update);
                    self.value_ranges.push(self.value.start..self.base_offset + *at);
                    self.phase = JsonPhase::After;
                    return None;
                }
                Token::Close { depth } if self.members.arguments_depth == Some(depth) => {
                    self.record_arguments(from.take(), *at, update);
                    self.members.arguments_depth = None;
                }
                Token::Close { depth: 0 } => {
                    self.value_ranges.push(self.value.start..self.base_offset + *at);
                    self.phase = JsonPhase::After;
                    return None;
                }
                Token::Close { .. } => {}
                Token::Key { text, depth } if depth == self.value.key_depth() => {
                    if let Some(status) = self.on_key(&text, *at) {
                        return Some(status);
                    }
                }
                Token::Text { text, depth } if depth == self.value.key_depth() => {
                    self.on_string(text, *at, update);
                }
                Token::Open { depth, .. }
                    if depth == self.value.key_depth() + 1
                        && self.members.last_key == CallKey::Arguments
                        && !self.members.has_arguments =>
                {
                    self.members.has_arguments = true;
                    self.members.arguments_depth = Some(self.value.key_depth());
                    from = Some(*at - 1);
                }
                Token::Scalar { depth: 1 } | Token::Text { depth: 1, .. } if self.value.is_list => {
                    return Some(LexStatus::NotACall { used: *at });
                }
                Token::Open { .. }
                | Token::Key { .. }
                | Token::Text { .. }
                | Token::Scalar { .. } => {}
            }
        }
    }

    fn on_key(&mut self, key: &str, at: usize) -> Option<LexStatus> {
        let call_key = CallKey::from_text(key);
        if call_key.is_none() && self.placement == JsonPlacement::Bare {
            self.is_opaque = true;
            return Some(LexStatus::NotACall { used: at });
        }
        self.members.last_key = call_key.unwrap_or(CallKey::Metadata);
        None
    }

    fn on_string(&mut self, text: String, at: usize, update: &mut LexUpdate) {
        match self.members.last_key {
            CallKey::Name if self.members.name.is_none() => {
                update.name = Some(text.clone());
                update.in_list = self.value.is_list;
                update.name_at = at;
                self.members.name = Some(text);
            }
            CallKey::Arguments => self.members.has_arguments = true,
            CallKey::Name | CallKey::Metadata => {}
        }
        self.members.last_key = CallKey::Metadata;
    }

    /// Reports the arguments only after the name of the tool is known.
    fn record_arguments(&self, from: Option<usize>, to: usize, update: &mut LexUpdate) {
        if let (Some(from), Some(_), false) = (from, &self.members.name, self.value.is_list) {
            update.fragment = Some(from..to);
        }
    }

    /// Lexes the text after the value.
    fn lex_after_value(
        &mut self,
        input: &str,
        at: &mut usize,
        text_end: Option<TextEnd>,
    ) -> Option<LexStatus> {
        let rest = &input[*at..];
        let ended = text_end.map(|_| false);
        match self.placement {
            JsonPlacement::Bare if self.value.is_doubled => match match_prefix(rest, "}") {
                PrefixMatch::Partial if text_end.is_none() => Some(self.need_more(input, *at)),
                PrefixMatch::Partial | PrefixMatch::No => Some(LexStatus::Done { used: *at }),
                PrefixMatch::Yes => {
                    *at += 1;
                    if let Some(range) = self.value_ranges.last_mut() {
                        range.end += 1;
                    }
                    Some(LexStatus::Done { used: *at })
                }
            },
            JsonPlacement::Bare => Some(LexStatus::Done { used: *at }),
            JsonPlacement::Tagged(close) | JsonPlacement::Keyed(close) => {
                let fenced = &["```", close];
                match match_after_whitespace(rest, fenced, ended) {
                    PrefixMatch::Partial => Some(self.need_more(input, *at)),
                    PrefixMatch::No => Some(LexStatus::Done { used: *at }),
                    PrefixMatch::Yes => {
                        *at += leading_whitespace_len(rest);
                        let rest = &input[*at..];
                        if match_prefix(rest, close) == PrefixMatch::Yes {
                            return Some(LexStatus::Done { used: *at + close.len() });
                        }
                        *at += "```".len();
                        None
                    }
                }
            }
            JsonPlacement::Separated => match match_after_whitespace(rest, &[";"], ended) {
                PrefixMatch::Partial => Some(self.need_more(input, *at)),
                PrefixMatch::No => Some(LexStatus::Done { used: *at }),
                PrefixMatch::Yes => {
                    let after = leading_whitespace_len(rest) + 1;
                    match match_after_whitespace(&rest[after..], &["{"], ended) {
                        PrefixMatch::Partial => Some(self.need_more(input, *at)),
                        PrefixMatch::No => Some(LexStatus::Done { used: *at }),
                        PrefixMatch::Yes if self.value_ranges.len() == MAX_CALLS => {
                            Some(LexStatus::Done { used: *at })
                        }
                        PrefixMatch::Yes => {
                            *at += after;
                            self.scan = JsonScanner::new(None);
                            self.phase = JsonPhase::Before;
                            None
                        }
                    }
                }
            },
        }
    }

    pub(super) fn decode_values(
        &self,
        text: &str,
        completeness: Completeness,
    ) -> DecodeResult<'static> {
        let mut calls = Vec::new();
        for value in &self.value_ranges {
            let mut repairs = Vec::new();
            let text = text.get(value.clone()).unwrap_or_default();
            let value = parse_lenient(text, completeness, &mut repairs)
                .map_err(RejectReason::InvalidJson)?;
            let first = calls.len();
            decode_value(value, self.placement, &mut calls)?;
            if let Some(call) = calls.get_mut(first) {
                call.repairs = repairs;
            }
        }
        Ok(calls)
    }

    fn need_more(&mut self, input: &str, at: usize) -> LexStatus {
        self.base_offset += at;
        LexStatus::NeedMore { held: input.len() - at }
    }
}

impl Lexer for JsonCalls {
    fn lex(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        _tools: &Tools,
        update: &mut LexUpdate,
    ) -> LexStatus {
        let mut at = 0;
        loop {
            let status = match self.phase {
                JsonPhase::Before => self.lex_value_start(input, &mut at),
                JsonPhase::Inside => self.lex_value(input, &mut at, update),
                JsonPhase::After => self.lex_after_value(input, &mut at, text_end),
            };
            if let Some(status) = status {
                return status;
            }
        }
    }

    fn decode<'t>(&self, text: &'t str, completeness: Completeness) -> DecodeResult<'t> {
        self.decode_values(text, completeness)
    }

    fn lacks_only_closers(&mut self, held: usize) -> bool {
        // Arguments would follow, so a call that ends after its name is not complete.
        let open = self.phase == JsonPhase::Inside
            && !self.value.is_list
            && self.members.name.is_some()
            && self.members.has_arguments;
        if open {
            self.value_ranges.push(self.value.start..self.base_offset + held);
        }
        open
    }

    fn take_opaque_json(&mut self) -> Option<OpaqueJson> {
        let scan = std::mem::replace(&mut self.scan, JsonScanner::new(None));
        (self.placement == JsonPlacement::Bare && self.is_opaque).then(|| OpaqueJson::new(scan))
    }

    fn depth(&self) -> usize {
        self.scan.depth()
    }

    fn was_intended(&self) -> bool {
        match self.placement {
            JsonPlacement::Bare => self.members.name.is_some() && self.members.has_arguments,
            // Prose can mention the marker.
            JsonPlacement::Tagged(_) | JsonPlacement::Keyed(_) | JsonPlacement::Separated => {
                self.phase != JsonPhase::Before
            }
        }
    }
}

/// Decodes the calls of a value: an object is one call, a list several.
fn decode_value(
    value: Json,
    placement: JsonPlacement,
    calls: &mut Vec<RawCall<'static>>,
) -> Result<(), RejectReason> {
    match value {
        Json::Array(items) => {
            items.into_iter().try_for_each(|item| decode_value(item, placement, calls))
        }
        Json::Object(members) if matches!(placement, JsonPlacement::Keyed(_)) => {
            let [(name, value)] = <[_; 1]>::try_from(members).map_err(|_| {
                RejectReason::Malformed(
                    "a call must have the tool's name as its only key".to_owned(),
                )
            })?;
            calls.push(RawCall::new(name, RawArguments::Value(value)));
            Ok(())
        }
        Json::Object(members) => {
            calls.push(decode_object(members, placement == JsonPlacement::Bare)?);
            Ok(())
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
            Err(RejectReason::Malformed(
                "a call must be an object with a name and arguments".to_owned(),
            ))
        }
    }
}

/// Decodes one call object. `{"type": "function", "function": {…}}` is unwrapped.
fn decode_object(
    members: Vec<(String, Json)>,
    bare: bool,
) -> Result<RawCall<'static>, RejectReason> {
    let mut name = None;
    let mut arguments = None;
    for (key, value) in members {
        match value {
            Json::Object(inner) if key == "function" && name.is_none() => {
                return decode_object(inner, bare);
            }
            Json::String(text) if NAME_KEYS.contains(&key.as_str()) => {
                if name.replace(text).is_some() {
                    return Err(RejectReason::Malformed(
                        "the call has two members with a name".to_owned(),
                    ));
                }
            }
            value if ARGUMENTS_KEYS.contains(&key.as_str()) => {
                if arguments.replace(value).is_some() {
                    return Err(RejectReason::Malformed(
                        "the call has two members with arguments".to_owned(),
                    ));
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
    let Some(name) = name else {
        return Err(RejectReason::Malformed("the call has no name".to_owned()));
    };
    match arguments {
        Some(value) => Ok(RawCall::new(name, RawArguments::Value(value))),
        None if bare => Err(RejectReason::Malformed(
            "the call has no arguments; write `{}` for a tool without parameters".to_owned(),
        )),
        None => Ok(RawCall::new(name, RawArguments::Value(Json::Object(Vec::new())))),
    }
}

const _: () = assert!(MAX_LOOKAHEAD_BYTES > 16, "the look-ahead must include a fence's first line");
