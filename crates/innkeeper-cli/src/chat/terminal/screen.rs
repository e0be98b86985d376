//! The state of the screen: keys and events change the state, and the state draws itself.

mod draw;
mod keys;
mod question_queue;
mod suggestions;

use std::collections::VecDeque;

use innkeeper_agent::agent::AgentEvent;
use innkeeper_agent::run::RunOutcome;
use tokio::time::{Duration, Instant};

use super::block::BlockContent;
use super::editor::Editor;
use super::question_panel::QuestionPanel;
use super::theme::{Role, Theme};
use super::transcript::Transcript;
use crate::chat::question::Question;
use crate::chat::slash_command::SlashCommand;
use question_queue::QuestionQueue;
use suggestions::Suggestions;

/// Time in which a second Ctrl-C leaves the chat.
const LEAVE_DELAY: Duration = Duration::from_secs(2);

/// Maximum number of messages that wait for the end of a run.
const MAX_QUEUED_MESSAGES: usize = 16;

/// What the program does because of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Send a message to the model.
    Send(String),
    /// Run a command.
    Command(SlashCommand, String),
    /// Stop the response and its calls.
    Interrupt,
    /// Leave at once: the servers get little time to stop.
    Quit,
    /// Look for values of the end of this text before the cursor, because a person pressed Tab or
    /// typed a name behind `@`.
    Complete { text: String, is_automatic: bool },
}

/// The facts of the last line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatusFacts {
    pub(crate) model: String,
    pub(crate) ready_servers: usize,
    pub(crate) servers: usize,
    /// The tokens so far, as the providers report them.
    pub(crate) tokens: String,
    /// The share of the context that the last request took, shown if there is room.
    pub(crate) context: String,
    /// What is attached to the next message.
    pub(crate) attachments: Vec<String>,
}

#[derive(Debug)]
struct RunView {
    start: Instant,
    /// What the run waits for.
    waits_for: String,
}

#[derive(Debug)]
struct HistorySearch {
    text: String,
    /// The index of the shown message.
    found: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Screen {
    theme: Theme,
    pub(crate) transcript: Transcript,
    pub(crate) editor: Editor,
    questions: QuestionQueue,
    suggestions: Option<Suggestions>,
    search: Option<HistorySearch>,
    run: Option<RunView>,
    queued: VecDeque<String>,
    last_interrupt: Option<Instant>,
    /// A hint below the transcript until the next key.
    hint: Option<String>,
    pub(crate) status: StatusFacts,
    /// What is in progress besides a run, such as a change of the model.
    pub(crate) work: Option<String>,
}

impl Screen {
    pub(crate) fn new(theme: Theme) -> Self {
        Self {
            theme,
            transcript: Transcript::default(),
            editor: Editor::new(),
            questions: QuestionQueue::default(),
            suggestions: None,
            search: None,
            run: None,
            queued: VecDeque::new(),
            last_interrupt: None,
            hint: None,
            status: StatusFacts::default(),
            work: None,
        }
    }

    /// Whether the screen changes by itself with the time.
    pub(crate) fn is_animated(&self) -> bool {
        self.questions.is_changing() || self.run.is_some() || self.work.is_some()
    }

    /// Shows a message that was sent, and the start of its run.
    pub(crate) fn on_sent(&mut self, message: &str, now: Instant) {
        self.transcript.push(BlockContent::User(message.to_owned()));
        self.transcript.unselect();
        self.transcript.scroll_to_end();
        self.run = Some(RunView { start: now, waits_for: "waiting for the model".to_owned() });
    }

    /// Shows an event of the run.
    pub(crate) fn on_event(
        &mut self,
        event: &AgentEvent,
        server_of: impl Fn(&str) -> Option<String>,
        now: Instant,
    ) {
        let waits_for = match event {
            AgentEvent::Text(_) => Some("the model writes".to_owned()),
            AgentEvent::Reasoning(_) => Some("the model reasons".to_owned()),
            AgentEvent::ToolCallDetected { tool } => {
                Some(format!("the model writes a call of {tool}"))
            }
            AgentEvent::ToolCallStarted { tool, .. } => Some(format!("calling {tool}")),
            AgentEvent::ToolCallFinished(_)
            | AgentEvent::Retrying { .. }
            | AgentEvent::Planned(_) => Some("waiting for the model".to_owned()),
            AgentEvent::HistorySummaryStarted { .. } => {
                Some("the model writes a summary".to_owned())
            }
            AgentEvent::ToolCallProgress { .. }
            | AgentEvent::Warned(_)
            | AgentEvent::ToolsOmitted(_)
            | AgentEvent::ResponseFinished { .. }
            | AgentEvent::HistoryShortened { .. }
            | AgentEvent::MessagesAdded(_)
            | AgentEvent::Finished(_) => None,
        };
        if let (Some(waits_for), Some(run)) = (waits_for, &mut self.run) {
            run.waits_for = waits_for;
        }
        self.transcript.on_event(event, server_of, now);
        if let AgentEvent::Finished(result) = event {
            self.run = None;
            if let Some((role, text)) = outcome_notice(&result.outcome) {
                self.transcript.notice(role, text);
            }
        }
    }

    /// Shows that the user interrupted the run.
    pub(crate) fn on_interrupted(&mut self) {
        self.run = None;
        self.transcript.interrupt_calls();
        self.transcript.notice(Role::Warning, "interrupted");
        if !self.queued.is_empty() {
            // The user decides again about what was to follow.
            let draft = Some(self.editor.text()).filter(|text| !text.trim().is_empty());
            let texts: Vec<String> = self.queued.drain(..).chain(draft).collect();
            self.editor.set_text(&texts.join("\n"));
        }
        self.drop_withdrawn_questions();
    }

    /// Adds a question, which is shown when the earlier ones are answered and nobody types.
    pub(crate) fn on_question(&mut self, question: Question) {
        self.questions.add(question);
    }

    /// Removes questions for whose answer nobody waits.
    pub(crate) fn drop_withdrawn_questions(&mut self) {
        if self.questions.drop_withdrawn() {
            self.transcript.notice(Role::Dim, "a question was withdrawn");
        }
    }

    /// Shows a line of a server. While the model writes, the line is above the response, which continues
    /// below the line.
    pub(crate) fn on_server_line(&mut self, role: Role, line: String) {
        match self.run.is_some() {
            true => self.transcript.notice_before_response(role, line),
            false => self.transcript.notice(role, line),
        }
    }

    /// Adds the messages of earlier conversations, newest first, to the history.
    pub(crate) fn on_earlier_messages(&mut self, messages: Vec<String>) {
        let added = self.editor.add_earlier_messages(messages);
        if let Some(HistorySearch { found: Some(at), .. }) = &mut self.search {
            *at += added;
        } else {
            self.extend_search("");
        }
    }

    /// Returns the next message that was typed during a run.
    pub(crate) fn take_queued(&mut self) -> Option<String> {
        self.queued.pop_front()
    }

    /// Shows a hint until the next key.
    pub(crate) fn set_hint(&mut self, hint: String) {
        self.hint = Some(hint);
    }

    /// Returns whether a message is typed, to which a pasted file can be attached.
    pub(crate) fn takes_attachments(&self) -> bool {
        let is_command = self.editor.text_before_cursor().starts_with('/');
        !self.questions.is_shown() && self.search.is_none() && !is_command
    }

    /// Inserts a pasted text.
    pub(crate) fn on_paste(&mut self, text: &str) {
        if !self.questions.is_shown() && self.extend_search(text.lines().next().unwrap_or_default())
        {
            return;
        }
        let field = self.questions.ready_panel();
        field.and_then(QuestionPanel::editor_mut).unwrap_or(&mut self.editor).paste(text);
    }
}

/// Returns the notice for the outcome of a run; `None` for a complete response.
fn outcome_notice(outcome: &RunOutcome) -> Option<(Role, String)> {
    let warning = |text: &str| Some((Role::Warning, text.to_owned()));
    match outcome {
        RunOutcome::Completed => None,
        RunOutcome::Truncated => warning("the response reached the token limit"),
        RunOutcome::Refused => warning("the model refused the request"),
        RunOutcome::IterationLimit => {
            warning("the model still called tools after the maximum number of iterations")
        }
        RunOutcome::Interrupted => warning("the run was interrupted"),
        RunOutcome::CallFailed => warning("a call failed"),
        RunOutcome::LoopDetected => {
            warning("the model repeated a call whose result did not change")
        }
        RunOutcome::NoValidCall { attempts } => {
            let last = attempts.last().map(|attempt| &*attempt.problem).unwrap_or_default();
            Some((Role::Error, format!("the model wrote no valid call: {last}")))
        }
        RunOutcome::Failed(error) => Some((Role::Error, failure_text(error))),
        RunOutcome::NotSent { reason } => Some((Role::Error, reason.clone())),
    }
}

/// Returns the text for the outcome of a run; `None` for a complete response.
pub(crate) fn outcome_text(outcome: &RunOutcome) -> Option<String> {
    outcome_notice(outcome).map(|(_, text)| text)
}

fn failure_text(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(&format!(": {cause_text}"));
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests;
