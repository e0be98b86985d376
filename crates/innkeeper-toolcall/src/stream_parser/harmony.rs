//! Parser for Harmony messages, which consist of a header and a body.

use super::open_call::OpenCall;
use super::{ParseEventSink, ParseMode, ParseProgress, ToolCallParser, emit};
use crate::event::{IncompleteReason, ParseEvent, TextEnd};
use crate::lexer::harmony_message::{END_TOKENS, HarmonyMessage};
use crate::lexer::{PrefixMatch, match_after_whitespace, match_prefix};

pub(super) const HEADER_END: &str = "<|message|>";

/// Maximum length of a header. Real headers contain at most a tool name and a content type.
pub(super) const MAX_HEADER_BYTES: usize = 1024;

#[derive(Debug)]
pub(super) struct HarmonyHeader {
    text: String,
    /// Whether the header started in the prompt, so that plain text may follow.
    from_prompt: bool,
    /// Whether other text stands before the header on its line.
    inline: bool,
}

impl HarmonyHeader {
    pub(super) fn from_marker(marker: &str, inline: bool) -> Self {
        Self { text: marker.to_owned(), from_prompt: false, inline }
    }

    /// Creates the header that starts at the end of the prompt.
    pub(super) fn from_prompt_end() -> Self {
        Self { text: String::new(), from_prompt: true, inline: false }
    }

    fn recipient_and_channel(&self) -> (Option<&str>, &str) {
        let channel = self.text.rsplit_once("<|channel|>").map_or("", |(_, rest)| first_word(rest));
        (recipient(&self.text), channel)
    }

    /// Handles the end of the text inside the header.
    pub(super) fn finish(self, rest: &str, text_end: TextEnd, sink: &mut ParseEventSink<'_>) {
        let text = self.text.clone() + rest;
        let reason = match text_end {
            TextEnd::Stop => IncompleteReason::Stopped,
            TextEnd::Length => IncompleteReason::Length,
            TextEnd::Interrupted | TextEnd::Unknown => IncompleteReason::Interrupted,
        };
        match self.recipient_and_channel() {
            (Some(_), _) => sink(ParseEvent::Incomplete { index: None, reason, text: &text }),
            (None, _) => emit(&text, sink, ParseEvent::Text),
        }
    }
}

/// Returns the tool to which a header addresses its message.
pub(super) fn recipient(header: &str) -> Option<&str> {
    let (_, rest) = header.split_once("to=")?;
    // Some models use themselves as the recipient.
    Some(first_word(rest)).filter(|name| !["", "assistant", "user"].contains(name))
}

/// Returns the first word, which ends at white space or at a marker.
fn first_word(text: &str) -> &str {
    text.split(|letter: char| letter.is_whitespace() || letter == '<').next().unwrap_or_default()
}

/// A message that is not a call.
#[derive(Debug)]
pub(super) struct HarmonyBody {
    is_reasoning: bool,
}

impl HarmonyBody {
    pub(super) fn is_reasoning(&self) -> bool {
        self.is_reasoning
    }

    /// Emits a part of the body.
    pub(super) fn emit(&self, rest: &str, sink: &mut ParseEventSink<'_>) {
        emit(rest, sink, if self.is_reasoning { ParseEvent::Reasoning } else { ParseEvent::Text });
    }
}

impl ToolCallParser {
    pub(super) fn parse_harmony_header(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        sink: &mut ParseEventSink<'_>,
    ) -> ParseProgress {
        let ParseMode::HarmonyHeader(header) = &mut self.mode else {
            return ParseProgress::continue_after(0);
        };
        if header.from_prompt && header.text.is_empty() {
            let first = input.trim_start();
            let results = [match_prefix(first, "<|"), match_prefix(first, "to=")];
            if results.contains(&PrefixMatch::Partial)
                && !results.contains(&PrefixMatch::Yes)
                && text_end.is_none()
                && input.len() < MAX_HEADER_BYTES
            {
                return ParseProgress::wait_after(0);
            }
            if !results.contains(&PrefixMatch::Yes) {
                self.mode = ParseMode::Text;
                return ParseProgress::continue_after(0);
            }
        }
        let mut at = 0;
        while let Some(letter) = input[at..].chars().next() {
            let rest = &input[at..];
            match match_prefix(rest, HEADER_END) {
                PrefixMatch::Yes => {
                    header.text.push_str(HEADER_END);
                    self.start_harmony_body(sink);
                    return ParseProgress::continue_after(at + HEADER_END.len());
                }
                PrefixMatch::Partial => return ParseProgress::wait_after(at),
                PrefixMatch::No => {}
            }
            // Garbled: the message ends inside its header, or another message starts.
            let garbled = ["<|end|>", "<|start|>", "<|return|>", "<|call|>"];
            let ends_early =
                garbled.iter().any(|token| match_prefix(rest, token) == PrefixMatch::Yes);
            let long = header.text.len() >= MAX_HEADER_BYTES;
            if long || ends_early && !header.text.is_empty() {
                let text = std::mem::take(&mut header.text);
                let event = if long { ParseEvent::Text } else { ParseEvent::Markup };
                emit(&text, sink, event);
                self.mode = ParseMode::Text;
                return ParseProgress::continue_after(at);
            }
            if garbled.iter().any(|token| match_prefix(rest, token) == PrefixMatch::Partial) {
                return ParseProgress::wait_after(at);
            }
            header.text.push(letter);
            at += letter.len_utf8();
        }
        ParseProgress::wait_after(at)
    }

    fn start_harmony_body(&mut self, sink: &mut ParseEventSink<'_>) {
        let ParseMode::HarmonyHeader(header) = std::mem::replace(&mut self.mode, ParseMode::Text)
        else {
            return;
        };
        self.context.reset();
        let (recipient, channel) = header.recipient_and_channel();
        self.mode = match recipient {
            Some(name) => {
                let lexer = Box::new(HarmonyMessage::new(name));
                let mut call = OpenCall::with_lexer(lexer, None, &header.text, ParseMode::Text);
                call.set_inline(header.inline);
                ParseMode::OpenCall(Box::new(call))
            }
            None => {
                emit(&header.text, sink, ParseEvent::Markup);
                ParseMode::HarmonyBody(HarmonyBody { is_reasoning: channel == "analysis" })
            }
        };
    }

    pub(super) fn parse_harmony_body(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        sink: &mut ParseEventSink<'_>,
    ) -> ParseProgress {
        let ParseMode::HarmonyBody(body) = &self.mode else {
            return ParseProgress::continue_after(0);
        };
        let is_reasoning = body.is_reasoning;
        let mut from = 0;
        while let Some(offset) = memchr::memchr(b'<', &input.as_bytes()[from..]) {
            let at = from + offset;
            let (matched, length) = match_message_end(&input[at..], text_end);
            match matched {
                PrefixMatch::No => from = at + 1,
                PrefixMatch::Partial => {
                    HarmonyBody { is_reasoning }.emit(&input[..at], sink);
                    return ParseProgress::wait_after(at);
                }
                PrefixMatch::Yes => {
                    HarmonyBody { is_reasoning }.emit(&input[..at], sink);
                    emit(&input[at..at + length], sink, ParseEvent::Markup);
                    self.mode = ParseMode::Text;
                    return ParseProgress::continue_after(at + length);
                }
            }
        }
        HarmonyBody { is_reasoning }.emit(input, sink);
        ParseProgress::wait_after(input.len())
    }
}

/// Whether the message ends here, with the length of the end token. An end token counts only if a
/// new message can start after the token.
fn match_message_end(rest: &str, text_end: Option<TextEnd>) -> (PrefixMatch, usize) {
    let ended = text_end.map(|_| true);
    let mut result = PrefixMatch::No;
    for token in &END_TOKENS[..3] {
        match match_prefix(rest, token) {
            PrefixMatch::Yes => {
                return (
                    match_after_whitespace(
                        &rest[token.len()..],
                        &["<|start|>", "<|channel|>"],
                        ended,
                    ),
                    token.len(),
                );
            }
            PrefixMatch::Partial => result = PrefixMatch::Partial,
            PrefixMatch::No => {}
        }
    }
    match match_prefix(rest, "<|start|>assistant") {
        PrefixMatch::Yes => (PrefixMatch::Yes, 0),
        PrefixMatch::Partial => (PrefixMatch::Partial, 0),
        PrefixMatch::No => (result, 0),
    }
}
