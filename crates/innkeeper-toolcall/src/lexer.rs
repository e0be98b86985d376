//! Lexers that find the end of one call, with one lexer per call syntax.
//!
//! A lexer processes every byte once, except for a bounded look-ahead. The lexer reports the tool
//! name as soon as the name is known, and the end of the call. Decoding starts after the call is
//! complete.

mod dispatch;
pub(crate) mod fence;
mod gemma;
mod gemma_key;
mod gemma_value;
pub(crate) mod harmony_message;
mod json_calls;
mod json_scanner;
mod name_first;
mod opaque_json;
mod pythonic;
mod react;
mod tag_syntax;
mod tagged_parameters;
mod tagged_value;
mod tool_code;
mod tool_parameters;

use std::ops::Range;

pub(crate) use opaque_json::OpaqueJson;
use tag_syntax::TagSyntax;
use tagged_parameters::TaggedParameters;

use crate::call::{RawArguments, RejectReason};
use crate::event::TextEnd;
use crate::format::LexerKind;
use crate::parse::Completeness;
use crate::repair::Repair;
use crate::tool::Tools;

/// Maximum look-ahead of a lexer in bytes: white space between two markers.
pub(crate) const MAX_LOOKAHEAD_BYTES: usize = 256;

/// Maximum length of an undecided start of a call without a lexer.
const MAX_HELD_BYTES: usize = 64;

/// Maximum length of a tool name in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 256;

/// Whether the text before the arguments of a call is one word that can be the name of a tool, and
/// not prose.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() < MAX_NAME_BYTES
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:/".contains(c))
}

/// Maximum number of calls in one list. A longer list is not a list of calls.
pub(crate) const MAX_CALLS: usize = 64;

/// Maximum number of arguments of one call.
pub(crate) const MAX_ARGUMENTS: usize = 1024;

/// The state of a lexer after its input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LexStatus {
    /// The lexer has consumed all but the last `held` bytes and needs these bytes again with more
    /// input.
    NeedMore { held: usize },
    /// The call ends after this many bytes of the input.
    Done { used: usize },
    /// The text is not a call. The bytes after the first `used` are not processed.
    NotACall { used: usize },
}

/// Information that one step of a lexer has found.
#[derive(Debug, Default)]
pub(crate) struct LexUpdate {
    /// The name of the called tool.
    pub(crate) name: Option<String>,
    /// The position in the input at which the name became known.
    pub(crate) name_at: usize,
    /// Whether the call is part of a list. Calls of a list are reported together.
    pub(crate) in_list: bool,
    /// The range of the input that belongs to the arguments.
    pub(crate) fragment: Option<Range<usize>>,
}

/// A decoded call before validation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawCall<'t> {
    pub(crate) name: String,
    pub(crate) arguments: RawArguments<'t>,
    /// The syntax repairs made while decoding.
    pub(crate) repairs: Vec<Repair>,
}

impl<'t> RawCall<'t> {
    fn new(name: impl Into<String>, arguments: RawArguments<'t>) -> Self {
        Self { name: name.into(), arguments, repairs: Vec::new() }
    }
}

/// What a complete call with raw values shows.
#[derive(Debug)]
pub(crate) struct RawEnd {
    /// The tags that end a value or its call. Such a tag after the call, without its opening tag,
    /// shows that a value contained the end of the call.
    pub(crate) closers: Vec<String>,
    /// Whether the call has all its tags, and its values have none of them.
    pub(crate) is_regular: bool,
}

/// The calls of a complete text, or the reason why decoding failed.
pub(crate) type DecodeResult<'t> = Result<Vec<RawCall<'t>>, RejectReason>;

/// A lexer that finds the end of one call or of one list of calls.
pub(crate) trait Lexer: Send {
    /// Processes more input. `text_end` is `Some` if no input follows. `tools` are the offered
    /// tools, whose arguments help to find the end of a raw value.
    fn lex(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        tools: &Tools,
        update: &mut LexUpdate,
    ) -> LexStatus;

    /// Decodes the calls. `text` is the complete input of this lexer, and `completeness` the way in
    /// which the call ended.
    ///
    /// # Errors
    ///
    /// Returns the reason why the call cannot be decoded.
    fn decode<'t>(&self, text: &'t str, end: Completeness) -> DecodeResult<'t>;

    /// Whether only the closing brackets of the call are missing. Called after the model stopped by
    /// itself inside the call, with `held` bytes unprocessed.
    fn lacks_only_closers(&mut self, _held: usize) -> bool {
        false
    }

    /// After a failure, returns the enclosing JSON value if that value is data.
    fn take_opaque_json(&mut self) -> Option<OpaqueJson> {
        None
    }

    /// The number of brackets that the call has opened and not closed; 0 for a syntax without
    /// brackets.
    fn depth(&self) -> usize {
        0
    }

    /// What a complete call shows if its syntax has raw values; `None` for a syntax with escapes.
    /// `text` is the complete input of this lexer.
    fn raw_end(&self, _text: &str) -> Option<RawEnd> {
        None
    }

    /// Whether text that is not a valid call was intended as a call.
    fn was_intended(&self) -> bool {
        true
    }
}

/// Creates the lexer for a call syntax.
pub(crate) fn new_lexer(lexer_kind: LexerKind) -> Box<dyn Lexer> {
    match lexer_kind {
        LexerKind::ToolCall => Box::new(dispatch::ToolCallTag::default()),
        LexerKind::Function => Box::new(dispatch::FunctionTag::default()),
        LexerKind::MisnamedFunction => Box::new(TaggedParameters::misnamed_function()),
        LexerKind::NamedFunction => Box::new(TaggedParameters::new(TagSyntax::named_function())),
        LexerKind::MiniMax => Box::new(TaggedParameters::new(TagSyntax::minimax())),
        LexerKind::Hunyuan => Box::new(TaggedParameters::new(TagSyntax::hunyuan())),
        LexerKind::TaggedJson { close } => Box::new(json_calls::JsonCalls::tagged(close)),
        LexerKind::KeyedJson { close } => Box::new(json_calls::JsonCalls::keyed(close)),
        LexerKind::SeparatedJson => Box::new(json_calls::JsonCalls::separated()),
        LexerKind::Mistral => Box::new(dispatch::MistralToolCalls::default()),
        LexerKind::NameFirst { separators, close } => {
            Box::new(name_first::NameFirst::new(separators, close))
        }
        LexerKind::Invoke { prefix } => Box::new(TaggedParameters::new(TagSyntax::invoke(prefix))),
        LexerKind::Xtml => Box::new(TaggedParameters::new(TagSyntax::xtml())),
        LexerKind::Gemma(tokens) => Box::new(gemma::Gemma::new(tokens)),
        LexerKind::Pythonic => Box::new(pythonic::Pythonic::default()),
        LexerKind::BareJson => Box::new(json_calls::JsonCalls::bare()),
        LexerKind::Fence => Box::new(fence::Fence::default()),
        LexerKind::ToolCode => Box::new(tool_code::ToolCode::default()),
        LexerKind::React => Box::new(react::React::default()),
    }
}

/// Whether a text that starts with the marker of a call syntax can be a call, as far as its first
/// bytes show: `No` if the lexer rejects the text within `max_chars` characters and the rejected
/// text has no effect on the text after it; `Partial` if more text decides.
pub(crate) fn match_call_start(lexer_kind: LexerKind, text: &str, max_chars: usize) -> PrefixMatch {
    match lexer_kind {
        LexerKind::BareJson => json_calls::match_object_start(text, max_chars),
        LexerKind::Pythonic => pythonic::match_list_start(text, max_chars),
        LexerKind::Fence => fence::match_block_start(text, max_chars),
        LexerKind::ToolCall
        | LexerKind::Function
        | LexerKind::MisnamedFunction
        | LexerKind::NamedFunction
        | LexerKind::MiniMax
        | LexerKind::Hunyuan
        | LexerKind::ToolCode
        | LexerKind::KeyedJson { .. }
        | LexerKind::TaggedJson { .. }
        | LexerKind::SeparatedJson
        | LexerKind::Mistral
        | LexerKind::NameFirst { .. }
        | LexerKind::Invoke { .. }
        | LexerKind::Xtml
        | LexerKind::Gemma(_)
        | LexerKind::React => PrefixMatch::Yes,
    }
}

/// The result for the start of a call that its text does not decide: a short start is compared again
/// with more text; a lexer reads a longer start.
fn undecided_start(text: &str, max_chars: usize) -> PrefixMatch {
    if text.len() > max_chars.min(MAX_HELD_BYTES) { PrefixMatch::Yes } else { PrefixMatch::Partial }
}

/// Whether a call can continue with `next` after its marker. If not, the text is not a call, as in
/// [`match_call_start`].
pub(crate) fn may_follow(lexer_kind: LexerKind, next: u8) -> bool {
    match lexer_kind {
        LexerKind::BareJson => b" \t\r\n\"'{".contains(&next),
        LexerKind::Pythonic => {
            !next.is_ascii() || next.is_ascii_alphanumeric() || b" \t\r\n{[\"_.-/".contains(&next)
        }
        LexerKind::ToolCall
        | LexerKind::Function
        | LexerKind::MisnamedFunction
        | LexerKind::NamedFunction
        | LexerKind::MiniMax
        | LexerKind::Hunyuan
        | LexerKind::ToolCode
        | LexerKind::KeyedJson { .. }
        | LexerKind::TaggedJson { .. }
        | LexerKind::SeparatedJson
        | LexerKind::Mistral
        | LexerKind::NameFirst { .. }
        | LexerKind::Invoke { .. }
        | LexerKind::Xtml
        | LexerKind::Gemma(_)
        | LexerKind::Fence
        | LexerKind::React => true,
    }
}

/// The result of a comparison of a text with an expected prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrefixMatch {
    Yes,
    No,
    Partial,
}

/// Compares the start of `text`, which may be incomplete, with `expected`.
pub(crate) fn match_prefix(text: &str, expected: &str) -> PrefixMatch {
    // Most texts differ in the first bytes, where a loop is faster than a call of `memcmp`.
    let equal = text.bytes().zip(expected.bytes()).take_while(|(text, byte)| text == byte).count();
    if equal == expected.len() {
        PrefixMatch::Yes
    } else if equal == text.len() {
        PrefixMatch::Partial
    } else {
        PrefixMatch::No
    }
}

/// Returns at most the first `count` bytes, so that a search in them has a bound.
fn first_bytes(text: &str, count: usize) -> &str {
    &text[..text.floor_char_boundary(count)]
}

/// Returns the length of the leading white space.
pub(crate) fn leading_whitespace_len(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t', '\r', '\n']).len()
}

/// Whether white space and then one of the `expected` texts follows. An empty list accepts only the
/// end of the text. At the end of the text, `ended` decides.
pub(crate) fn match_after_whitespace(
    text: &str,
    expected: &[impl AsRef<str>],
    ended: Option<bool>,
) -> PrefixMatch {
    let rest = &text[leading_whitespace_len(text)..];
    if text.len() - rest.len() > MAX_LOOKAHEAD_BYTES {
        return PrefixMatch::No;
    }
    if rest.is_empty() {
        return match ended {
            Some(true) => PrefixMatch::Yes,
            Some(false) => PrefixMatch::No,
            None => PrefixMatch::Partial,
        };
    }
    let mut result = PrefixMatch::No;
    for candidate in expected {
        match match_prefix(rest, candidate.as_ref()) {
            PrefixMatch::Yes => return PrefixMatch::Yes,
            PrefixMatch::Partial if ended.is_none() => result = PrefixMatch::Partial,
            PrefixMatch::Partial | PrefixMatch::No => {}
        }
    }
    result
}
