//! Lexers that select a call syntax by the characters after a marker.

use super::json_calls::JsonCalls;
use super::name_first::NameFirst;
use super::tag_syntax::TagSyntax;
use super::tagged_parameters::TaggedParameters;
use super::{
    DecodeResult, LexStatus, LexUpdate, Lexer, MAX_LOOKAHEAD_BYTES, MAX_NAME_BYTES, PrefixMatch,
    RawEnd, leading_whitespace_len, match_prefix,
};
use crate::event::TextEnd;
use crate::parse::Completeness;
use crate::tool::Tools;

/// The lexer for the text after a marker; unknown before the first character that is not white
/// space.
enum DispatchTarget {
    Unknown,
    Json(JsonCalls),
    NameFirst(NameFirst),
    TaggedParameters(Box<TaggedParameters>),
}

impl DispatchTarget {
    fn as_lexer_mut(&mut self) -> Option<&mut dyn Lexer> {
        match self {
            Self::Unknown => None,
            Self::Json(lexer) => Some(lexer),
            Self::NameFirst(lexer) => Some(lexer),
            Self::TaggedParameters(lexer) => Some(lexer.as_mut()),
        }
    }
}

/// Skips white space, calls `choose` once, and passes all further input to the chosen lexer.
struct LexerDispatch {
    target: DispatchTarget,
    whitespace_len: usize,
}

impl LexerDispatch {
    const fn new() -> Self {
        Self { target: DispatchTarget::Unknown, whitespace_len: 0 }
    }

    /// Processes input. `choose` returns `None` if it needs more text.
    fn lex(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        tools: &Tools,
        update: &mut LexUpdate,
        choose: impl FnOnce(&str) -> Option<DispatchTarget>,
    ) -> LexStatus {
        let mut at = 0;
        if self.target.as_lexer_mut().is_none() {
            at = leading_whitespace_len(input);
            self.whitespace_len += at;
            if at == input.len() {
                return LexStatus::NeedMore { held: 0 };
            }
            match choose(&input[at..]) {
                Some(chosen) => self.target = chosen,
                None => return LexStatus::NeedMore { held: input.len() - at },
            }
        }
        let Some(lexer) = self.target.as_lexer_mut() else {
            return LexStatus::NotACall { used: at };
        };
        match lexer.lex(&input[at..], text_end, tools, update) {
            LexStatus::NeedMore { held } => {
                shift_offsets(update, at);
                LexStatus::NeedMore { held }
            }
            LexStatus::Done { used } => {
                shift_offsets(update, at);
                LexStatus::Done { used: at + used }
            }
            LexStatus::NotACall { used } => {
                shift_offsets(update, at);
                LexStatus::NotACall { used: at + used }
            }
        }
    }

    fn decode<'t>(&self, text: &'t str, completeness: Completeness) -> DecodeResult<'t> {
        let text = text.get(self.whitespace_len..).unwrap_or_default();
        match &self.target {
            DispatchTarget::Unknown => Ok(Vec::new()),
            DispatchTarget::Json(lexer) => lexer.decode(text, completeness),
            DispatchTarget::NameFirst(lexer) => lexer.decode(text, completeness),
            DispatchTarget::TaggedParameters(lexer) => lexer.decode(text, completeness),
        }
    }
}

impl LexerDispatch {
    fn depth(&self) -> usize {
        match &self.target {
            DispatchTarget::Unknown => 0,
            DispatchTarget::Json(lexer) => lexer.depth(),
            DispatchTarget::NameFirst(lexer) => lexer.depth(),
            DispatchTarget::TaggedParameters(lexer) => lexer.depth(),
        }
    }

    fn raw_end(&self, text: &str) -> Option<RawEnd> {
        match &self.target {
            DispatchTarget::TaggedParameters(lexer) => lexer.raw_end(text),
            DispatchTarget::Unknown | DispatchTarget::Json(_) | DispatchTarget::NameFirst(_) => {
                None
            }
        }
    }

    fn was_intended(&self) -> bool {
        match &self.target {
            DispatchTarget::Unknown => false,
            DispatchTarget::Json(lexer) => lexer.was_intended(),
            DispatchTarget::NameFirst(lexer) => lexer.was_intended(),
            DispatchTarget::TaggedParameters(lexer) => lexer.was_intended(),
        }
    }
}

fn shift_offsets(update: &mut LexUpdate, by: usize) {
    update.name_at += by;
    update.fragment = update.fragment.take().map(|range| range.start + by..range.end + by);
}

/// The lexer for the text after `<tool_call>`.
pub(crate) struct ToolCallTag(LexerDispatch);

impl Default for ToolCallTag {
    fn default() -> Self {
        Self(LexerDispatch::new())
    }
}

impl Lexer for ToolCallTag {
    fn lex(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        tools: &Tools,
        update: &mut LexUpdate,
    ) -> LexStatus {
        self.0.lex(input, text_end, tools, update, |rest| {
            if rest.starts_with(['{', '[', '`']) {
                return Some(DispatchTarget::Json(JsonCalls::tagged("</tool_call>")));
            }
            let function = match_prefix(rest, "<function=");
            let parameter = match_prefix(rest, "<parameter=");
            let lexer = match (function, parameter) {
                (PrefixMatch::Yes, _) => TaggedParameters::tagged_function(),
                (_, PrefixMatch::Yes) => TaggedParameters::tagged_misnamed_function(),
                (PrefixMatch::Partial, _) | (_, PrefixMatch::Partial) => return None,
                (PrefixMatch::No, PrefixMatch::No) => TaggedParameters::new(TagSyntax::glm()),
            };
            Some(DispatchTarget::TaggedParameters(Box::new(lexer)))
        })
    }

    fn decode<'t>(&self, text: &'t str, completeness: Completeness) -> DecodeResult<'t> {
        self.0.decode(text, completeness)
    }

    fn lacks_only_closers(&mut self, held: usize) -> bool {
        self.0.target.as_lexer_mut().is_some_and(|lexer| lexer.lacks_only_closers(held))
    }

    fn depth(&self) -> usize {
        self.0.depth()
    }

    fn raw_end(&self, text: &str) -> Option<RawEnd> {
        self.0.raw_end(text)
    }

    fn was_intended(&self) -> bool {
        self.0.was_intended()
    }
}

/// The lexer for the text after `<function=`: parameters in tags, or the JSON of Llama 3.1.
pub(crate) struct FunctionTag(LexerDispatch);

impl Default for FunctionTag {
    fn default() -> Self {
        Self(LexerDispatch::new())
    }
}

impl Lexer for FunctionTag {
    fn lex(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        tools: &Tools,
        update: &mut LexUpdate,
    ) -> LexStatus {
        self.0.lex(input, text_end, tools, update, |rest| {
            let name = rest.find(['{', '>', '<', '\n']).unwrap_or(rest.len());
            let after = rest[name..].trim_start_matches('>');
            let body = &after[leading_whitespace_len(after)..];
            if body.is_empty() && rest.len() <= MAX_NAME_BYTES + MAX_LOOKAHEAD_BYTES {
                return None;
            }
            Some(match body.starts_with('{') {
                // Llama also forgets the end of its tag.
                true if after.len() == rest.len() - name => {
                    DispatchTarget::NameFirst(NameFirst::new(&[], "</function>"))
                }
                true => DispatchTarget::NameFirst(NameFirst::new(&[">"], "</function>")),
                false => DispatchTarget::TaggedParameters(Box::new(TaggedParameters::function())),
            })
        })
    }

    fn decode<'t>(&self, text: &'t str, completeness: Completeness) -> DecodeResult<'t> {
        self.0.decode(text, completeness)
    }

    fn lacks_only_closers(&mut self, held: usize) -> bool {
        self.0.target.as_lexer_mut().is_some_and(|lexer| lexer.lacks_only_closers(held))
    }

    fn depth(&self) -> usize {
        self.0.depth()
    }

    fn raw_end(&self, text: &str) -> Option<RawEnd> {
        self.0.raw_end(text)
    }

    fn was_intended(&self) -> bool {
        self.0.was_intended()
    }
}

/// The lexer for the text after `[TOOL_CALLS]`.
pub(crate) struct MistralToolCalls(LexerDispatch);

impl Default for MistralToolCalls {
    fn default() -> Self {
        Self(LexerDispatch::new())
    }
}

impl Lexer for MistralToolCalls {
    fn lex(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        tools: &Tools,
        update: &mut LexUpdate,
    ) -> LexStatus {
        self.0.lex(input, text_end, tools, update, |rest| {
            Some(match rest.starts_with(['{', '[']) {
                true => DispatchTarget::Json(JsonCalls::separated()),
                false => DispatchTarget::NameFirst(NameFirst::adjacent()),
            })
        })
    }

    fn decode<'t>(&self, text: &'t str, completeness: Completeness) -> DecodeResult<'t> {
        self.0.decode(text, completeness)
    }

    fn lacks_only_closers(&mut self, held: usize) -> bool {
        self.0.target.as_lexer_mut().is_some_and(|lexer| lexer.lacks_only_closers(held))
    }

    fn depth(&self) -> usize {
        self.0.depth()
    }

    fn was_intended(&self) -> bool {
        self.0.was_intended()
    }
}
