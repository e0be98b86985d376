//! The messages of a history as lines of JSON, for the request that summarizes them.

use std::borrow::Cow;

use innkeeper_toolcall::quote_for_prompt;

use crate::conversation::{Conversation, Message, PartContent, cuts, estimate_tokens};
use crate::tool_output::result_line;

/// Number of bytes to which the texts of one message are cut for a summary if the message alone
/// exceeds the budget; halved until the message fits.
const INITIAL_EXCERPT_BYTES: usize = 64 << 10;
const MIN_EXCERPT_BYTES: usize = 64;

/// Returns the messages up to the last place of `cuts` up to `cut` that fits, one JSON object a line
/// behind the earlier summary, and that place.
pub(super) fn transcript(
    conversation: &Conversation,
    cut: usize,
    max_tokens: usize,
) -> (String, usize) {
    let omitted = conversation.omitted_history();
    let mut text = String::new();
    if let Some(summary) = &omitted.summary {
        push_line(&mut text, &format!(r#"{{"earlier_summary": {}}}"#, quote_for_prompt(summary)));
    }
    let mut from = omitted.messages;
    for to in cuts(conversation.messages(), omitted.messages).take_while(|at| *at <= cut) {
        let unit = &conversation.messages()[from..to];
        let mut lines = lines(unit, usize::MAX);
        let is_first = from == omitted.messages;
        let room = max_tokens.saturating_sub(estimate_tokens(&text));
        let mut excerpt_bytes = INITIAL_EXCERPT_BYTES;
        while is_first && estimate_tokens(&lines) > room && excerpt_bytes >= MIN_EXCERPT_BYTES {
            lines = self::lines(unit, excerpt_bytes);
            excerpt_bytes /= 2;
        }
        if is_first && estimate_tokens(&lines) > room {
            lines = without_middle_lines(&lines, room);
        }
        if !is_first && estimate_tokens(&lines) > room {
            break;
        }
        push_line(&mut text, &lines);
        from = to;
    }
    (text, from)
}

fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// Returns the messages as lines of JSON. A text of more than `max_bytes` bytes loses its middle.
fn lines(messages: &[Message], max_bytes: usize) -> String {
    let mut lines = String::new();
    let quote = |text: &str| quote_for_prompt(&excerpt(text, max_bytes));
    for message in messages {
        match message {
            Message::User(content) => {
                push_line(&mut lines, &format!(r#"{{"user": {}}}"#, quote(&content.to_text())));
            }
            Message::Assistant(assistant) => {
                for part in &assistant.parts {
                    match &part.content {
                        PartContent::Text(text) if !text.trim().is_empty() => {
                            push_line(&mut lines, &format!(r#"{{"assistant": {}}}"#, quote(text)));
                        }
                        PartContent::ToolCall(call) => {
                            let tool = quote_for_prompt(&call.name);
                            let arguments = quote(&call.arguments);
                            let line =
                                format!(r#"{{"call_of": {tool}, "arguments": {arguments}}}"#);
                            push_line(&mut lines, &line);
                        }
                        PartContent::Text(_) | PartContent::Reasoning(_) | PartContent::Other => {}
                    }
                }
            }
            Message::ToolResults(results) => {
                for result in results.iter() {
                    let text = result.content.to_text();
                    let text = excerpt(&text, max_bytes);
                    push_line(&mut lines, &result_line(&result.name, None, &text, result.is_error));
                }
            }
        }
    }
    lines
}

/// Returns the first and the last of the lines, about `max_tokens` in total. One line stands for the
/// other lines.
fn without_middle_lines(lines: &str, max_tokens: usize) -> String {
    let all: Vec<&str> = lines.lines().collect();
    let head = count_fitting(all.iter(), max_tokens / 2);
    let tail = count_fitting(all[head..].iter().rev(), max_tokens / 2);
    let (head, rest) = all.split_at(head);
    let (omitted, tail) = rest.split_at(rest.len() - tail);
    let marker = format!(r#"{{"omitted_lines": {}}}"#, omitted.len());
    [head, &[&marker], tail].concat().join("\n")
}

fn count_fitting<'l>(lines: impl Iterator<Item = &'l &'l str>, max_tokens: usize) -> usize {
    let mut tokens = 0;
    let fitting = lines.take_while(|line| {
        tokens += estimate_tokens(line) + 1;
        tokens <= max_tokens
    });
    fitting.count()
}

/// Returns the text, without its middle if it has more than `max_bytes` bytes.
fn excerpt(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return text.into();
    }
    let head = &text[..text.floor_char_boundary(max_bytes / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - max_bytes / 2)..];
    let omitted = text.len() - head.len() - tail.len();
    format!("{head}[{omitted} of {} bytes omitted]{tail}", text.len()).into()
}
