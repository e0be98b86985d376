//! The chat line by line: for pipes, screen readers and programs.

mod json_event;
mod line_question;

use std::io::{self, BufRead as _, IsTerminal as _};
use std::sync::Arc;

use futures_util::StreamExt as _;
use innkeeper_agent::agent::{AgentEvent, ToolCallRecord};
use innkeeper_agent::run::RunOutcome;
use tokio::sync::mpsc::{Receiver, channel};

use super::listings;
use super::permanent_rules;
use super::question::Question;
use super::session::ChatSession;
use super::slash_command::{SlashCommand, TypedLine, help_text, parse_line};
use crate::exit::{CliError, CliExitCode};
use crate::output::{Output, Style, shorten};
use json_event::JsonEvent;
use line_question::{LineOutcome, LineQuestion};

/// Number of typed lines that wait.
const MAX_WAITING_LINES: usize = 64;

/// Maximum number of bytes of one typed line.
const MAX_LINE_BYTES: u64 = 4 << 20;

/// Maximum number of characters of arguments or a result on one line.
const MAX_SHOWN_CHARS: usize = 200;

/// A chat line by line.
struct PlainChat<'o> {
    session: ChatSession,
    output: &'o mut Output,
    /// The typed lines; closed at the end of the input.
    lines: Receiver<String>,
    questions: Receiver<Question>,
    /// The question that waits for a line.
    question: Option<LineQuestion>,
    /// Whether the input is a terminal, so that a person can answer questions.
    has_person: bool,
    /// Whether the last text has no newline at its end.
    has_open_line: bool,
    has_failed: bool,
}

/// Reads messages from stdin, one a line, and prints what happens. With `--json`, each event is one
/// JSON object a line.
pub(crate) async fn run(
    session: ChatSession,
    output: &mut Output,
    questions: Receiver<Question>,
    first_message: Option<String>,
) -> Result<ChatSession, CliError> {
    let mut chat = PlainChat {
        session,
        output,
        lines: read_lines()?,
        questions,
        question: None,
        has_person: io::stdin().is_terminal(),
        has_open_line: false,
        has_failed: false,
    };
    if let Some(message) = first_message {
        chat.converse(&message).await?;
    }
    chat.run_loop().await?;
    match chat.has_failed && !chat.has_person {
        true => {
            chat.session.finish().await?;
            Err(CliError::without_message(CliExitCode::Failed))
        }
        false => Ok(chat.session),
    }
}

/// Reads the lines of stdin in a thread, which ends with the process.
fn read_lines() -> Result<Receiver<String>, CliError> {
    let (sender, receiver) = channel(MAX_WAITING_LINES);
    let thread = std::thread::Builder::new().name("innkeeper-input".to_owned());
    let started = thread.spawn(move || {
        let mut stdin = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = io::Read::take(&mut stdin, MAX_LINE_BYTES).read_until(b'\n', &mut line);
            if read.map_or(true, |bytes| bytes == 0) {
                return;
            }
            let line = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    started.map_err(|error| CliError::failure("cannot read the input").with_source(error))?;
    Ok(receiver)
}

impl PlainChat<'_> {
    async fn run_loop(&mut self) -> Result<(), CliError> {
        loop {
            self.print_prompt()?;
            let line = tokio::select! {
                line = self.lines.recv() => line,
                Some(question) = self.questions.recv(), if !self.has_question() => {
                    self.on_question(question)?;
                    continue;
                }
            };
            let Some(line) = line else { return Ok(()) };
            if self.answer_question(&line)? || line.trim().is_empty() {
                continue;
            }
            match parse_line(line.trim()) {
                TypedLine::Message(message) => self.converse(&message).await?,
                TypedLine::Command(SlashCommand::Quit, _) => return Ok(()),
                TypedLine::Command(command, argument) => {
                    self.run_command(command, &argument).await?;
                }
                TypedLine::UnknownCommand(name) => {
                    self.note(&format!("no command /{name}; /help lists the commands"))?;
                }
            }
        }
    }

    /// Sends a message, and prints the events until the run ends.
    async fn converse(&mut self, message: &str) -> Result<(), CliError> {
        let mut stream = self.session.run(message.into());
        loop {
            tokio::select! {
                // The text before a question is printed before the question.
                biased;
                event = stream.next() => match event {
                    Some(event) => {
                        let stored = self.session.record(&event);
                        self.print_event(&event)?;
                        stored.map_err(|error| {
                            CliError::failure("cannot store the conversation").with_source(error)
                        })?;
                    }
                    None => return Ok(()),
                },
                Some(question) = self.questions.recv(), if !self.has_question() => {
                    self.on_question(question)?;
                }
                Some(line) = self.lines.recv(), if self.has_question() => {
                    self.answer_question(&line)?;
                }
            }
        }
    }

    fn on_question(&mut self, question: Question) -> Result<(), CliError> {
        if self.output.is_json() {
            self.output.print_json_line(&JsonEvent::question(&question))?;
        }
        // Without a person, the dropped question is denied.
        if self.has_person && !self.output.is_json() {
            let question = LineQuestion::new(question);
            self.end_line()?;
            self.output.print_untrusted(&question.text())?;
            self.question = Some(question);
        }
        Ok(())
    }

    /// Returns whether a question waits for a line.
    fn has_question(&self) -> bool {
        self.question.as_ref().is_some_and(|question| !question.is_withdrawn())
    }

    /// Uses a line as the answer of the open question. Returns whether a question was open.
    fn answer_question(&mut self, line: &str) -> Result<bool, CliError> {
        let question = self.question.take().filter(|question| !question.is_withdrawn());
        let Some(question) = question else { return Ok(false) };
        match question.on_line(line) {
            LineOutcome::Answered(text) => self.note(&text)?,
            LineOutcome::Open(question, problem) => {
                if !problem.is_empty() {
                    self.note(&problem)?;
                }
                self.output.print_untrusted(&question.text())?;
                self.question = Some(*question);
            }
        }
        Ok(true)
    }

    async fn run_command(&mut self, command: SlashCommand, argument: &str) -> Result<(), CliError> {
        let host = self.session.host().clone();
        let text = match command {
            SlashCommand::Help => help_text(),
            SlashCommand::Tools => {
                let hidden = self.session.hidden_servers();
                listings::tools(&host, self.session.approver(), hidden, argument)
            }
            SlashCommand::Servers => listings::servers(&host, self.session.hidden_servers()),
            SlashCommand::Prompts => listings::prompts(&host),
            SlashCommand::Resources => listings::resources(&host),
            SlashCommand::Rules => permanent_rules::run_command(self.session.approver(), argument)
                .unwrap_or_else(|error| error.to_line()),
            SlashCommand::Tokens => listings::tokens(self.session.tokens()),
            SlashCommand::Disable | SlashCommand::Enable => {
                let is_hidden = command == SlashCommand::Disable;
                let done = self.session.set_hidden(argument, is_hidden);
                done.unwrap_or_else(|error| error.to_line())
            }
            SlashCommand::Reload => {
                self.session.reload().await.unwrap_or_else(|error| error.to_line())
            }
            SlashCommand::Restart => match host.restart_server(argument).await {
                Ok(()) => format!("{argument} is ready"),
                Err(error) => error.to_string(),
            },
            SlashCommand::Undo => match self.session.remove_last_exchange()? {
                Some(message) => format!("removed: {}", shorten(&message, MAX_SHOWN_CHARS)),
                None => "the conversation is empty".to_owned(),
            },
            SlashCommand::Compact => match self.session.compact().await {
                Ok(compacted) => {
                    self.session.on_compacted(&compacted)?;
                    format!("a summary replaces {} messages for the model", compacted.messages)
                }
                Err(error) => error.to_string(),
            },
            SlashCommand::Save => {
                if !argument.is_empty() {
                    self.session.set_title(argument)?;
                }
                match self.session.file() {
                    Some(file) => format!("stored as {}", file.id()),
                    None => "the conversation is not stored".to_owned(),
                }
            }
            SlashCommand::Model
            | SlashCommand::Prompt
            | SlashCommand::Attach
            | SlashCommand::Detach
            | SlashCommand::Clear
            | SlashCommand::List
            | SlashCommand::Redo
            | SlashCommand::Fork
            | SlashCommand::Resume
            | SlashCommand::Remove
            | SlashCommand::Export
            | SlashCommand::Log
            | SlashCommand::Details
            | SlashCommand::Copy
            | SlashCommand::Edit
            | SlashCommand::Quit => "this command needs the chat on a whole screen".to_owned(),
        };
        if self.output.is_json() {
            return Ok(self.output.print_json_line(&JsonEvent::Notice { text: &text })?);
        }
        Ok(self.output.print_untrusted(&text)?)
    }

    fn print_event(&mut self, event: &AgentEvent) -> Result<(), CliError> {
        if let AgentEvent::Finished(result) = event {
            self.has_failed |= !result.is_success();
        }
        if self.output.is_json() {
            return match JsonEvent::from_event(event) {
                Some(event) => Ok(self.output.print_json_line(&event)?),
                None => Ok(()),
            };
        }
        match event {
            AgentEvent::Text(text) if !text.is_empty() => {
                self.has_open_line = !text.ends_with('\n');
                self.output.print_chunk(text)?;
            }
            AgentEvent::ToolCallFinished(record) => self.print_call(record)?,
            AgentEvent::Retrying { delay } if !delay.is_zero() => {
                self.note(&format!("the request is sent again in {:.1} s", delay.as_secs_f64()))?;
            }
            AgentEvent::Warned(warning) => {
                self.note(&format!("{}: {}", warning.tool, warning.text))?;
            }
            AgentEvent::HistorySummaryStarted { messages } => {
                self.note(&format!("the model summarizes {messages} old messages"))?;
            }
            AgentEvent::Finished(result) => {
                self.end_line()?;
                if let Some(problem) = problem_of(&result.outcome) {
                    self.note(&problem)?;
                }
            }
            AgentEvent::Text(_)
            | AgentEvent::Reasoning(_)
            | AgentEvent::ToolCallDetected { .. }
            | AgentEvent::ToolCallStarted { .. }
            | AgentEvent::ToolCallProgress { .. }
            | AgentEvent::Planned(_)
            | AgentEvent::ResponseFinished { .. }
            | AgentEvent::HistoryShortened { .. }
            | AgentEvent::MessagesAdded(_)
            | AgentEvent::Retrying { .. } => {}
        }
        Ok(())
    }

    fn print_call(&mut self, record: &Arc<ToolCallRecord>) -> Result<(), CliError> {
        self.end_line()?;
        let (style, sign) = match record.success {
            true => (Style::Good, "called"),
            false => (Style::Error, "failed"),
        };
        let arguments = shorten(&record.arguments.to_string(), MAX_SHOWN_CHARS);
        let line = format!("`{}` {arguments} in {} ms", record.tool, record.elapsed.as_millis());
        self.output.labelled_status(style, sign, &line)?;
        let result = shorten(&record.result_text, MAX_SHOWN_CHARS);
        Ok(self.output.status(&format!("        {result}"))?)
    }

    fn print_prompt(&mut self) -> io::Result<()> {
        if self.has_person && !self.output.is_json() && !self.has_question() {
            self.end_line()?;
            self.output.print_chunk("> ")?;
        }
        Ok(())
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        self.output.labelled_status(Style::Note, "note", text)
    }

    /// Ends the line of the text.
    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_open_line) {
            self.output.print_data("")?;
        }
        Ok(())
    }
}

/// Returns what the user must know about the end of a run; `None` for a complete response.
fn problem_of(outcome: &RunOutcome) -> Option<String> {
    super::terminal::outcome_text(outcome)
}
