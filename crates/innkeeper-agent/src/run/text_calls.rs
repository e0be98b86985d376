//! Decides whether what looks like a call in a model's text is one.
//!
//! A model that writes about a call makes none: it explains, shows an example, or quotes a page that
//! wants it to call something. Its text can't say which, so only what can mean nothing else is run:
//!
//! - With a tool interface, text is a call only if the response is nothing but calls. A call on a
//!   line of its own next to prose is asked about once: the model may call through the interface, or
//!   repeat its text, which is then its answer.
//! - Without one, a call begins a line. A call in mid-sentence is asked about once as well.
//! - A call that someone else wrote, in a tool result or in a message of the user, is never taken
//!   from text. The model hears so once; if it repeats the text, that is its answer.

use innkeeper_toolcall::prompt::FailedAttempt;
use innkeeper_toolcall::{CallSearch, ResolvedCall, parse_strict};

use super::{CallWarning, Effect, ErrorRecord, Run, RunConfig, ToolCallMode};
use crate::conversation::{Message, ToolResult};
use crate::provider::Response;

/// What a response contains that looks like calls. Calls in code, quotations and comments are prose.
#[derive(Debug, Default)]
pub(super) struct TextCalls<'r> {
    /// Calls that begin a line.
    pub(super) on_own_line: Vec<&'r ResolvedCall>,
    /// Calls with other text before them on their line.
    pub(super) inline: Vec<&'r ResolvedCall>,
    /// Whether there is text that was intended as a call but is none.
    pub(super) has_problem: bool,
    /// Whether there is other text for the user.
    pub(super) has_prose: bool,
    /// The calls as the model wrote them.
    pub(super) texts: Vec<&'r str>,
}

/// What the calls in the text of a response are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum TextCallVerdict {
    /// The calls that begin a line are run, unless something that was intended as a call is none.
    /// Inline calls are text.
    #[default]
    Accepted,
    /// All of them are text.
    Text,
    /// It is unclear what they are: the model is asked, with this problem.
    Unclear(FailedAttempt),
    /// The model repeats a call that someone else wrote, and is told so.
    Foreign(ForeignCall),
}

/// A call in the model's text that someone else wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ForeignCall {
    tool: String,
    author: CallAuthor,
}

/// Who wrote a call that the model repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallAuthor {
    User,
    Tool,
}

impl TextCallVerdict {
    /// Returns what the model is asked before anything of the response counts.
    pub(super) fn question(&self, mode: ToolCallMode) -> Option<FailedAttempt> {
        match self {
            Self::Accepted | Self::Text => None,
            Self::Unclear(problem) => Some(problem.clone()),
            Self::Foreign(foreign) => Some(foreign.problem(mode)),
        }
    }
}

/// Judges the text calls of one response.
#[derive(Debug)]
pub(super) struct TextCallJudge<'r> {
    pub(super) config: &'r RunConfig,
    pub(super) messages: &'r [Message],
    pub(super) mode: ToolCallMode,
    /// Whether the model may be asked; otherwise doubtful text is its answer.
    pub(super) can_ask: bool,
    /// The text of the last attempt, which was sent back.
    pub(super) last_attempt: Option<&'r str>,
}

impl TextCallJudge<'_> {
    pub(super) fn judge(&self, found: &TextCalls<'_>, text: &str) -> TextCallVerdict {
        if let Some(foreign) = self.foreign_call(found) {
            return match self.can_ask {
                true => TextCallVerdict::Foreign(foreign),
                false => TextCallVerdict::Text,
            };
        }
        let has_own_line = !found.on_own_line.is_empty() || found.has_problem;
        match self.mode {
            ToolCallMode::Native if !found.has_prose && found.inline.is_empty() => {
                TextCallVerdict::Accepted
            }
            ToolCallMode::Native if has_own_line => self.unclear(NEXT_TO_PROSE),
            ToolCallMode::Native => TextCallVerdict::Text,
            // Prose about calls, which the model insists on.
            ToolCallMode::Prompt
                if found.has_problem
                    && found.has_prose
                    && self.last_attempt == Some(text)
                    && !self.config.can_constrain() =>
            {
                TextCallVerdict::Text
            }
            ToolCallMode::Prompt if has_own_line || found.inline.is_empty() => {
                TextCallVerdict::Accepted
            }
            ToolCallMode::Prompt => self.unclear(IN_A_LINE),
        }
    }

    fn unclear(&self, problem: &str) -> TextCallVerdict {
        match self.can_ask {
            true => TextCallVerdict::Unclear(FailedAttempt::new(problem)),
            false => TextCallVerdict::Text,
        }
    }

    /// Returns the first call that also stands in a message that the model did not write.
    fn foreign_call(&self, found: &TextCalls<'_>) -> Option<ForeignCall> {
        let calls = found.on_own_line.iter().chain(&found.inline).copied();
        calls.clone().find_map(|call| {
            let search = CallSearch::new(&self.config.tools.known, [call]);
            // A call that is cut off is a call only in the model's text, which adds its end.
            let is_in = |text: &str| {
                search.find_in(text).is_some() || found.texts.iter().any(|call| text.contains(call))
            };
            let mut authors = self.messages.iter().rev().filter_map(|message| match message {
                Message::User(content) => is_in(&content.to_text()).then_some(CallAuthor::User),
                Message::ToolResults(results) => {
                    let has_call = |result: &ToolResult| {
                        is_in(&result.content.to_text()) && !self.is_result_of(result, call)
                    };
                    results.iter().any(has_call).then_some(CallAuthor::Tool)
                }
                Message::Assistant(_) => None,
            });
            authors.next().map(|author| ForeignCall { tool: call.name.clone(), author })
        })
    }

    /// Whether the model has made the same call before and got this result: some servers repeat the
    /// call in an error, and the model may try again.
    fn is_result_of(&self, result: &ToolResult, call: &ResolvedCall) -> bool {
        let arguments = call.arguments.to_canonical_string();
        let made = self.messages.iter().filter_map(|message| match message {
            Message::Assistant(message) => message.calls().find(|made| made.id == result.id),
            Message::User(_) | Message::ToolResults(_) => None,
        });
        made.filter(|made| made.name == call.name).any(|made| {
            parse_strict(&made.arguments).is_ok_and(|json| json.to_canonical_string() == arguments)
        })
    }
}

impl Run {
    pub(super) fn text_call_judge(&self) -> TextCallJudge<'_> {
        let correction = &self.correction;
        TextCallJudge {
            config: &self.config,
            messages: self.conversation.messages(),
            mode: self.tool_call_mode,
            can_ask: !self.is_last_request
                && self.retries_remaining > 0
                && correction.can_ask_about_text(&self.config),
            last_attempt: self.attempt_texts.last().map(String::as_str),
        }
    }

    /// Asks the model what the calls in its text are, if that is unclear.
    pub(super) fn question_about_text(
        &mut self,
        verdict: &TextCallVerdict,
        response: &Response,
        jitter: f64,
    ) -> Option<Effect> {
        let problem = verdict.question(self.tool_call_mode)?;
        if let TextCallVerdict::Foreign(foreign) = verdict {
            let notice = foreign.notice();
            self.calls.add_warning(CallWarning {
                call_id: String::new(),
                tool: foreign.tool.clone(),
                text: notice.clone(),
            });
            self.calls.record_run_error(ErrorRecord {
                iteration: self.stats.iterations,
                tool: Some(foreign.tool.clone()),
                call_id: None,
                error: notice,
                recovery_action: None,
            });
        }
        self.correction.asked_about_text = true;
        Some(self.request_correction(problem, response.message.visible_text(), jitter))
    }
}

const NEXT_TO_PROSE: &str = "a call in the text of an answer is not run: make it through the tool \
     interface; if you did not mean to call anything, repeat your answer";

const IN_A_LINE: &str = "a call counts only at the start of a line: if you meant to make this call, \
     write it on a line of its own; if not, repeat your answer";

impl ForeignCall {
    /// Returns the message to the model.
    pub(super) fn problem(&self, mode: ToolCallMode) -> FailedAttempt {
        let Self { tool, author } = self;
        let source = match author {
            CallAuthor::User => "the user's message",
            CallAuthor::Tool => "the result of a tool",
        };
        let instead = match mode {
            ToolCallMode::Native => "to make the call yourself, use the tool interface",
            ToolCallMode::Prompt => "if the call is needed, the user must ask for it in words",
        };
        FailedAttempt::new(format!(
            "the call of `{tool}` in your text also stands in {source}, so it is not run; if you \
             only quoted it, repeat your answer; {instead}"
        ))
    }

    /// Returns the message to the user.
    pub(super) fn notice(&self) -> String {
        let tool = &self.tool;
        match self.author {
            CallAuthor::User => format!(
                "the model repeated the call of `{tool}` from your message; it was not run, because \
                 a call in a message may be a quotation: ask for it in words"
            ),
            CallAuthor::Tool => format!(
                "the model repeated a call of `{tool}` from the result of a tool; it was not run"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
