//! Shortens tool results in the requests to a model whose context window is known.
//!
//! Two kinds of results are shortened in the middle: new results that cannot fit, also without any
//! other message, and in a small window the results of earlier iterations, because a summary in
//! their place costs a request with nearly the whole window. The conversation keeps them whole.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::content::{Content, ContentBlock, ContentSupport};
use crate::conversation::{
    Conversation, Message, ToolResult, estimate_content_tokens, estimate_message_tokens,
    newest_iteration_start,
};

/// Minimum number of tokens of a shortened result: its line about the omission and some text.
const MIN_RESULT_TOKENS: usize = 128;

/// Maximum budget of a small window. Above, the results of earlier iterations stay as they are, so
/// that the provider's prompt cache serves them.
const SMALL_BUDGET_TOKENS: usize = 16_384;

/// The share of the budget that a result of an earlier iteration may take in a small window.
const OLD_RESULT_SHARE: usize = 24;

/// Number of bytes per token, as the estimates count.
const BYTES_PER_TOKEN: usize = 4;

/// The number of tokens that each result of a message may take, by the number of the message. The
/// number counts all messages that were ever added, because old ones are evicted.
#[derive(Debug, Default)]
pub(super) struct ResultLimits(BTreeMap<u64, usize>);

/// What the limits of one request depend on.
pub(super) struct LimitedRequest<'r> {
    pub(super) conversation: &'r Conversation,
    pub(super) support: ContentSupport,
    /// The estimated tokens of the system prompt and the tools.
    pub(super) fixed_tokens: usize,
    /// The estimated tokens that the request may have.
    pub(super) budget: usize,
}

impl ResultLimits {
    /// Returns the conversation as the requests contain it.
    pub(super) fn apply<'c>(
        &self,
        conversation: &'c Conversation,
        support: ContentSupport,
    ) -> Cow<'c, Conversation> {
        if self.0.is_empty() {
            return Cow::Borrowed(conversation);
        }
        let first = first_number(conversation);
        let shortened = (first..).zip(conversation.messages()).map(|(number, message)| {
            match (message, self.0.get(&number)) {
                (Message::ToolResults(results), Some(limit)) => {
                    let results = results.iter().map(|result| shorten(result, *limit, support));
                    Message::ToolResults(results.collect())
                }
                (message, _) => message.clone(),
            }
        });
        Cow::Owned(conversation.with_messages(shortened.collect()))
    }

    /// Limits the results of the newest iteration if they do not fit, even if the request contains
    /// only them and the last user message. Returns whether a limit has changed.
    pub(super) fn limit_newest(&mut self, request: &LimitedRequest<'_>) -> bool {
        let shortened = self.apply(request.conversation, request.support);
        let messages = shortened.messages();
        let Some(start) = newest_iteration_start(messages) else { return false };
        let Some(Message::ToolResults(results)) = messages.last() else { return false };
        let estimate = |message: &Message| estimate_message_tokens(message, request.support);
        let user_message = messages.iter().rfind(|message| matches!(message, Message::User(_)));
        let needed = request.fixed_tokens
            + user_message.map_or(0, estimate)
            + messages[start..].iter().map(estimate).sum::<usize>();
        if needed <= request.budget {
            return false;
        }
        let sizes: Vec<usize> = results
            .iter()
            .map(|result| estimate_content_tokens(&result.content, request.support))
            .collect();
        let others = needed - sizes.iter().sum::<usize>().min(needed);
        // The estimate may be too small, and the model needs room for its next calls.
        let room = (request.budget / 4 * 3).saturating_sub(others);
        let limit = equal_share(&sizes, room).max(MIN_RESULT_TOKENS);
        let number = request.conversation.added_messages().saturating_sub(1);
        self.lower(number, limit)
    }

    /// Limits the results of earlier iterations in a small window. Returns whether a limit has
    /// changed.
    pub(super) fn limit_old(&mut self, request: &LimitedRequest<'_>) -> bool {
        if request.budget > SMALL_BUDGET_TOKENS {
            return false;
        }
        let limit = (request.budget / OLD_RESULT_SHARE).max(MIN_RESULT_TOKENS);
        let messages = request.conversation.messages();
        let Some(end) = newest_iteration_start(messages) else { return false };
        let first = first_number(request.conversation);
        let mut has_changed = false;
        for (number, message) in (first..).zip(&messages[..end]) {
            if let Message::ToolResults(results) = message
                && results
                    .iter()
                    .any(|result| estimate_content_tokens(&result.content, request.support) > limit)
            {
                has_changed |= self.lower(number, limit);
            }
        }
        has_changed
    }

    fn lower(&mut self, number: u64, limit: usize) -> bool {
        let current = self.0.entry(number).or_insert(usize::MAX);
        let is_lower = limit < *current;
        *current = limit.min(*current);
        is_lower
    }
}

pub(super) fn can_shorten(messages: &[Message], support: ContentSupport) -> bool {
    let Some(Message::ToolResults(results)) = messages.last() else { return false };
    results
        .iter()
        .any(|result| estimate_content_tokens(&result.content, support) > MIN_RESULT_TOKENS)
}

/// Returns the number of the first message.
fn first_number(conversation: &Conversation) -> u64 {
    conversation.added_messages().saturating_sub(conversation.messages().len() as u64)
}

/// Returns the largest limit for which the sizes together fit the room: small results stay whole.
fn equal_share(sizes: &[usize], room: usize) -> usize {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let mut rest = room;
    for (at, size) in sorted.iter().enumerate() {
        let share = rest / (sorted.len() - at);
        if *size > share {
            return share;
        }
        rest -= size;
    }
    usize::MAX
}

/// Returns a result with at most about this number of tokens.
fn shorten(result: &ToolResult, max_tokens: usize, support: ContentSupport) -> ToolResult {
    if estimate_content_tokens(&result.content, support) <= max_tokens {
        return result.clone();
    }
    let blocks = result.content.blocks();
    let media = blocks.iter().filter(|block| block.media().is_some()).cloned();
    let media = Content::from(media.collect::<Vec<_>>());
    let media_tokens = estimate_content_tokens(&media, support);
    let reason = "it does not fit in the context window";
    let keeps_media = media_tokens + MIN_RESULT_TOKENS / 2 <= max_tokens;
    let lines = blocks.iter().filter_map(|block| match block.media() {
        Some(_) if keeps_media => None,
        Some(_) => Some(block.to_text_with_reason(reason)),
        None => block.to_text().map(Cow::into_owned),
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let room = if keeps_media { max_tokens - media_tokens } else { max_tokens };
    let mut shortened = vec![ContentBlock::from(without_middle(&text, room * BYTES_PER_TOKEN))];
    if keeps_media {
        shortened.extend(media.blocks().iter().cloned());
    }
    ToolResult { content: shortened.into(), ..result.clone() }
}

/// Returns a text of at most about `max_bytes`, with a line in place of its middle.
fn without_middle(text: &str, max_bytes: usize) -> String {
    let line = |omitted: usize| {
        format!(
            "\n[{omitted} of {} bytes omitted here, because the result does not fit in the context \
             window. Ask for less: a part, a filter or a lower limit.]\n",
            text.len()
        )
    };
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let room = max_bytes.saturating_sub(line(text.len()).len());
    let head = &text[..text.floor_char_boundary(room / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - room / 2)..];
    format!("{head}{}{tail}", line(text.len() - head.len() - tail.len()))
}

#[cfg(test)]
mod tests;
