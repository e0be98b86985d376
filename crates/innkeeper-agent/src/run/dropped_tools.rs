//! Notices a server that drops the tools of a request, by the tokens that it read.
//!
//! Some servers ignore tools silently: the model answers as if it had none. The count of prompt
//! tokens shows that, but a count can also be small because the server leaves out what it has in its
//! cache. An answer is therefore thrown away only if the server counts its cached tokens and still
//! read too few. A response without an answer has nothing to lose.

use super::empty_response::has_answer;
use super::{Run, ToolCallMode, request};
use crate::provider::{Response, Usage};

/// Minimum number of tool tokens at which dropped tools are detectable.
pub(super) const MIN_DETECTABLE_TOKENS: u64 = 20;

impl Run {
    /// Returns whether the server read so few tokens that the tools cannot have been among them.
    pub(super) fn server_dropped_tools(&self, response: &Response) -> bool {
        let usage = response.usage.unwrap_or_default();
        let least = self.min_tool_tokens();
        self.tools.mode == ToolCallMode::Native
            && !self.requests.is_last
            && self.config.capabilities.tools.may_be_dropped
            && !self.tools.were_read
            && response.message.calls().next().is_none()
            && least > MIN_DETECTABLE_TOKENS
            && usage.prompt_tokens > 0
            && all_read_tokens(usage) < least
            && (counts_cached_tokens(usage) || !has_answer(response))
            && self.config.allows_prompt_mode()
    }

    /// Returns whether the server read so many tokens that the tools were among them.
    pub(super) fn counts_tools(&self, response: &Response) -> bool {
        let least = self.min_tool_tokens();
        self.tools.mode == ToolCallMode::Native
            && least > MIN_DETECTABLE_TOKENS
            && response.usage.is_some_and(|usage| all_read_tokens(usage) >= least)
    }

    /// Returns a number of tokens that the tools exceed in every tokenizer.
    fn min_tool_tokens(&self) -> u64 {
        request::estimate_tool_tokens(&self.config.tools.available) as u64 / 2
    }
}

/// Returns the most tokens that the server can have read: some servers count cached tokens next to
/// the others.
fn all_read_tokens(usage: Usage) -> u64 {
    usage.prompt_tokens.saturating_add(usage.cached_tokens)
}

/// Returns whether the server reports its cached tokens. Without such a report, the count may leave
/// them out.
fn counts_cached_tokens(usage: Usage) -> bool {
    usage.cached_tokens > 0
}
