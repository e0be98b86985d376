//! Trims a conversation to the newest messages that fit a token budget.

use super::message::{Message, PartContent, starts_iteration};
use crate::content::{Content, ContentSupport, MediaKind};

/// Average number of bytes per token in English and JSON. The estimate serves limits only and is
/// never reported as a count.
const BYTES_PER_TOKEN: usize = 4;

/// Maximum number of tokens of one image: providers scale larger images down.
const MAX_IMAGE_TOKENS: usize = 1600;

/// Number of bytes of audio per token: speech of 32 kbit/s, at 32 tokens per second.
const BYTES_PER_AUDIO_TOKEN: usize = 125;

/// Estimated number of tokens for the role and the delimiters of a message.
const MESSAGE_OVERHEAD_TOKENS: usize = 4;

/// The token budget of the history in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryBudget {
    /// Maximum number of estimated tokens of all messages, without the response.
    pub max_tokens: usize,
}

/// The size of the smallest context windows in use.
impl Default for HistoryBudget {
    fn default() -> Self {
        Self { max_tokens: 8192 }
    }
}

/// Estimates the number of tokens in a text.
pub fn estimate_tokens(text: &str) -> usize {
    text.len().div_ceil(BYTES_PER_TOKEN)
}

impl HistoryBudget {
    /// Returns the newest messages that fit, beside a system prompt of `system_tokens` tokens. Media
    /// that the model does not take count as the line of text that replaces them.
    ///
    /// The result always contains the last user message and at least the newest iteration after it,
    /// then as many older iterations and as many complete earlier exchanges as fit. A call and its
    /// result are never separated.
    pub fn trim(
        &self,
        messages: &[Message],
        system_tokens: usize,
        support: ContentSupport,
    ) -> Vec<Message> {
        let estimate = |message: &Message| estimate_message_tokens(message, support);
        let mut remaining = self.max_tokens.saturating_sub(system_tokens);
        let last_user =
            messages.iter().rposition(|message| matches!(message, Message::User(_))).unwrap_or(0);
        let (before, now) = messages.split_at(last_user);
        let Some((user_message, exchange)) = now.split_first() else { return Vec::new() };
        remaining = remaining.saturating_sub(estimate(user_message));
        let recent =
            newest_fitting(&split_units(exchange, starts_iteration), estimate, &mut remaining, 1);
        let is_complete = recent.len() == exchange.len();
        let mut fitting = Vec::new();
        if is_complete {
            fitting.extend(newest_fitting(
                &split_units(before, starts_exchange),
                estimate,
                &mut remaining,
                0,
            ));
        }
        fitting.push(user_message.clone());
        fitting.extend(recent);
        fitting
    }
}

/// Returns the last user message and the iteration at the end, if there is one after it. A call and
/// its result are never separated.
pub(crate) fn latest_iteration(messages: &[Message]) -> Vec<Message> {
    let last_user = messages.iter().rposition(|message| matches!(message, Message::User(_)));
    let Some((user_message, exchange)) = messages[last_user.unwrap_or(0)..].split_first() else {
        return Vec::new();
    };
    let latest = split_units(exchange, starts_iteration).pop().unwrap_or_default();
    std::iter::once(user_message).chain(latest).cloned().collect()
}

/// Splits the messages into units that are never separated; a unit starts where `opens` returns
/// true.
fn split_units(
    messages: &[Message],
    opens: fn(Option<&Message>, &Message) -> bool,
) -> Vec<&[Message]> {
    let mut units = Vec::new();
    let mut rest = messages;
    while !rest.is_empty() {
        let next = rest.windows(2).position(|pair| opens(Some(&pair[0]), &pair[1]));
        let length = next.map_or(rest.len(), |at| at + 1);
        let (unit, tail) = rest.split_at(length);
        units.push(unit);
        rest = tail;
    }
    units
}

fn starts_exchange(_: Option<&Message>, message: &Message) -> bool {
    matches!(message, Message::User(_))
}

/// Returns the newest units that fit, but at least `least` units.
fn newest_fitting(
    units: &[&[Message]],
    estimate: impl Fn(&Message) -> usize,
    remaining: &mut usize,
    least: usize,
) -> Vec<Message> {
    let mut first = units.len();
    for (at, unit) in units.iter().enumerate().rev() {
        let weight: usize = unit.iter().map(&estimate).sum();
        if weight > *remaining && units.len() - at > least {
            break;
        }
        *remaining = remaining.saturating_sub(weight);
        first = at;
    }
    units[first..].concat()
}

/// Estimates the number of tokens in a message.
fn estimate_message_tokens(message: &Message, support: ContentSupport) -> usize {
    let content_tokens: usize = match message {
        Message::User(content) => estimate_content_tokens(content, support),
        Message::Assistant(assistant) => assistant
            .parts
            .iter()
            .map(|part| match (&part.provider_block, &part.content) {
                (Some(native), _) => estimate_tokens(native.json.get()),
                (None, PartContent::Text(text) | PartContent::Reasoning(text)) => {
                    estimate_tokens(text)
                }
                (None, PartContent::ToolCall(call)) => {
                    estimate_tokens(&call.name) + estimate_tokens(&call.arguments)
                }
                (None, PartContent::Other) => 0,
            })
            .sum(),
        Message::ToolResults(results) => results
            .iter()
            .map(|result| {
                estimate_content_tokens(&result.content, support) + MESSAGE_OVERHEAD_TOKENS
            })
            .sum(),
    };
    content_tokens + MESSAGE_OVERHEAD_TOKENS
}

/// Estimates the number of tokens in a content: its text, with the line of each medium, and the
/// data that the model takes.
fn estimate_content_tokens(content: &Content, support: ContentSupport) -> usize {
    let media = content.media().filter(|media| support.accepts(media.kind));
    let media_tokens = media.map(|media| match media.kind {
        MediaKind::Image => estimate_tokens(media.data).min(MAX_IMAGE_TOKENS),
        MediaKind::Audio => media.data.len().div_ceil(BYTES_PER_AUDIO_TOKEN),
        MediaKind::Document => estimate_tokens(media.data),
    });
    estimate_tokens(&content.to_text()) + media_tokens.sum::<usize>()
}

#[cfg(test)]
mod tests;
