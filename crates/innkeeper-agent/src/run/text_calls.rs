//! Decides whether what looks like a call in a model's text is one.
//!
//! A model that writes about a call makes none: it explains, shows an example, or quotes a page that
//! wants it to call something. Its text can't say which, so only what can mean nothing else is run:
//!
//! - With a tool interface, text is a call only if the response is nothing but calls. A call on a
//!   line of its own next to prose is asked about once: the model may call through the interface, or
//!   repeat its text, which is then its answer.
//! - Without one, a call begins a line at the top level of its Markdown. A call in mid-sentence, in a
//!   list or between tags is asked about once as well.
//! - A call in code or in a quotation is text, unless the response is nothing else.
//! - A call that someone else wrote, in a tool result or in a message of the user, is never taken
//!   from text. The model hears so once; if it repeats the text, that is its answer.

use std::borrow::Cow;
use std::time::Duration;

use innkeeper_toolcall::prompt::FailedAttempt;
use innkeeper_toolcall::{CallSearch, ResolvedCall, is_blank, parse_strict, resolve, suggest};

use super::rejected_call::RejectedTextCall;
use super::response_parser::ParsedResponse;
use super::{CallWarning, Effect, Run, RunConfig, ToolCallMode};
use crate::content::Content;
use crate::conversation::{Message, ToolResult};
use crate::provider::Response;

/// What a response contains that looks like calls. Calls in code, quotations and comments are prose.
#[derive(Debug, Default)]
pub(super) struct TextCalls<'r> {
    /// Calls that begin a line at the top level.
    pub(super) on_own_line: Vec<&'r ResolvedCall>,
    /// Calls that begin a line of a list, between tags and the like.
    pub(super) doubtful: Vec<&'r ResolvedCall>,
    /// Calls with other text before them on their line.
    pub(super) inline: Vec<&'r ResolvedCall>,
    /// What was intended as a call but is none.
    pub(super) problems: Vec<&'r RejectedTextCall>,
    /// Whether a call ended before its text did.
    pub(super) has_early_end: bool,
    /// Whether the response is nothing but a quoted call.
    pub(super) is_wrapped: bool,
    /// The other text for the user.
    pub(super) prose: Prose,
    /// The calls as the model wrote them.
    pub(super) texts: Vec<&'r str>,
}

/// Text next to calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Prose {
    #[default]
    None,
    /// Signs only.
    Signs,
    Words,
}

impl Prose {
    pub(super) fn of(text: &str) -> Self {
        match text {
            _ if is_blank(text) => Self::None,
            _ if text.contains(char::is_alphabetic) => Self::Words,
            _ => Self::Signs,
        }
    }
}

impl TextCalls<'_> {
    /// Whether nothing looks like a call.
    pub(super) fn is_empty(&self) -> bool {
        self.on_own_line.is_empty()
            && self.doubtful.is_empty()
            && self.inline.is_empty()
            && self.problems.is_empty()
            && !self.has_early_end
    }
}

/// What the calls in the text of a response are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum TextCallVerdict {
    /// The calls on lines of their own are run, unless something that was intended as a call is none.
    /// Other calls are text.
    #[default]
    Accepted,
    /// All of them are text.
    Text,
    /// All of them are text, and so were those of the last attempt, which was rejected.
    Prose,
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
    /// Whether none of the calls counts.
    pub(super) fn is_text(&self) -> bool {
        match self {
            Self::Text | Self::Prose => true,
            Self::Accepted | Self::Unclear(_) | Self::Foreign(_) => false,
        }
    }

    /// Returns what the model is asked before anything of the response counts.
    pub(super) fn question(&self, mode: ToolCallMode) -> Option<FailedAttempt> {
        match self {
            Self::Accepted | Self::Text | Self::Prose => None,
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
        if self.is_insisted_prose(found, text) {
            return TextCallVerdict::Prose;
        }
        let begins_line = !found.on_own_line.is_empty() || !found.problems.is_empty();
        let begins_line = begins_line || found.has_early_end;
        let is_doubtful = !found.doubtful.is_empty() || found.is_wrapped;
        match self.mode {
            _ if is_doubtful && !begins_line => self.unclear(),
            ToolCallMode::Native if found.is_empty() => TextCallVerdict::Text,
            ToolCallMode::Native
                if begins_line
                    && found.prose == Prose::None
                    && !is_doubtful
                    && found.inline.is_empty() =>
            {
                TextCallVerdict::Accepted
            }
            ToolCallMode::Native if begins_line || found.prose != Prose::Words => self.unclear(),
            ToolCallMode::Native => TextCallVerdict::Text,
            ToolCallMode::Prompt if begins_line || found.inline.is_empty() => {
                TextCallVerdict::Accepted
            }
            ToolCallMode::Prompt => self.unclear(),
        }
    }

    /// Whether a response whose calls were sent back turns out to be prose about calls, or data that
    /// looks like calls: the model repeats it, or no tool is named.
    fn is_insisted_prose(&self, found: &TextCalls<'_>, text: &str) -> bool {
        let Some(last_attempt) = self.last_attempt else { return false };
        let is_only_problem = !found.problems.is_empty()
            && !found.has_early_end
            && found.on_own_line.is_empty()
            && found.doubtful.is_empty();
        // A model that repeats a call which it gets wrong is better made to call.
        let is_repeated = last_attempt.trim() == text.trim() && !self.config.can_constrain();
        is_only_problem
            && (found.prose != Prose::None || is_json_list(text))
            && (is_repeated || !self.names_tool(found, text))
    }

    /// Whether the response names a tool, or its calls nearly do.
    fn names_tool(&self, found: &TextCalls<'_>, text: &str) -> bool {
        let tools = &self.config.tools.known;
        text.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '-').any(
            |word| {
                let mut names = tools.iter().map(|tool| tool.name.rsplit('.').next());
                names.any(|name| name == Some(word))
            },
        ) || found.problems.iter().any(|problem| {
            resolve(tools, &problem.tool).is_some() || !suggest(tools, &problem.tool).is_empty()
        })
    }

    fn unclear(&self) -> TextCallVerdict {
        let problem = match self.mode {
            ToolCallMode::Native => NOT_THROUGH_INTERFACE,
            ToolCallMode::Prompt => NOT_ON_OWN_LINE,
        };
        match self.can_ask {
            true => TextCallVerdict::Unclear(FailedAttempt::new(problem)),
            false => TextCallVerdict::Text,
        }
    }

    /// Returns the first call that also stands in a message that the model did not write.
    fn foreign_call(&self, found: &TextCalls<'_>) -> Option<ForeignCall> {
        let calls = found.on_own_line.iter().chain(&found.doubtful).chain(&found.inline).copied();
        calls.clone().find_map(|call| {
            let search = CallSearch::new(&self.config.tools.known, [call]);
            // A call that is cut off is a call only in the model's text, which adds its end.
            let is_in = |content: &Content| {
                let joined = content.joined_text().map(Cow::from);
                [Some(content.to_text()), joined].into_iter().flatten().any(|text| {
                    search.find_in(&text).is_some()
                        || found.texts.iter().any(|call| text.contains(call))
                })
            };
            let mut authors = self.messages.iter().rev().filter_map(|message| match message {
                Message::User(content) => is_in(content).then_some(CallAuthor::User),
                Message::ToolResults(results) => results
                    .iter()
                    .any(|result| is_in(&result.content) && !self.is_result_of(result, call))
                    .then_some(CallAuthor::Tool),
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
            messages: self.history.conversation.messages(),
            mode: self.tools.mode,
            can_ask: !self.requests.is_last
                && self.requests.retries_remaining > 0
                && correction.can_ask_about_text(&self.config),
            last_attempt: correction.last_text(),
        }
    }

    /// Asks the model what the calls in its text are, if that is unclear.
    pub(super) fn question_about_text(
        &mut self,
        parsed: &mut ParsedResponse,
        response: &Response,
        jitter: f64,
    ) -> Option<Effect> {
        let problem = parsed.verdict.question(self.tools.mode)?;
        if let TextCallVerdict::Foreign(foreign) = &parsed.verdict {
            let notice = foreign.notice();
            self.calls.add_warning(CallWarning {
                call_id: String::new(),
                tool: foreign.tool.clone(),
                text: notice.clone(),
            });
            self.record_error(Some(foreign.tool.clone()), notice);
        }
        self.correction.asked_about_text = true;
        self.reject_text_calls(std::mem::take(parsed));
        let effect = self.request_correction(problem, response.message.visible_text(), jitter);
        // A question is no failure that a delay could end.
        Some(if let Effect::Sleep(_) = effect { Effect::Sleep(Duration::ZERO) } else { effect })
    }
}

const NOT_THROUGH_INTERFACE: &str = "a call in the text of an answer is not run: make it through the \
     tool interface; if you did not mean to call anything, repeat your answer";

const NOT_ON_OWN_LINE: &str = "a call counts only at the start of a line, outside of code, quotations, \
     lists, tables and tags: if you meant to make this call, write it on a line of its own; if not, \
     repeat your answer";

/// Whether the text is a list of objects, also in a block of code.
fn is_json_list(text: &str) -> bool {
    let text = text.trim_start().trim_start_matches('`').trim_start_matches("json");
    text.trim_start().strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with('{'))
}

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
