//! The chat line by line: for pipes, screen readers and programs.

mod json_event;
mod json_line;
mod json_response;
mod line_input;
mod line_question;
mod progress_filter;
mod repeated_text;
mod server_lines;

mod open_questions;

mod commands;
mod events;

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use futures_util::StreamExt as _;
use innkeeper_agent::content::Content;
use innkeeper_host::Environment;
use tokio::sync::mpsc::Receiver;

use super::attachment;
use super::command_work;
use super::file_thread::FileThreads;
use super::question::Question;
use super::session::ChatSession;
use super::slash_command::{SlashCommand, TypedLine, parse_line};
use crate::exit::CliError;
use crate::output::{Output, Style};
use events::RunText;
use json_event::JsonEvent;
use json_line::{JsonLine, LineProblem};
use line_input::{InputLine, LineInput, MAX_LINE_BYTES};
use line_question::{LineOutcome, LineQuestion};
use open_questions::{OpenQuestions, Withdrawn};
use server_lines::ServerMessages;

/// Maximum number of messages that a program sends during a run.
const MAX_WAITING_MESSAGES: usize = 64;

/// Maximum number of characters of arguments or a result on one line.
const MAX_SHOWN_CHARS: usize = 200;

/// What the chat needs besides its session.
pub(crate) struct PlainContext {
    pub(crate) environment: Environment,
    /// The directory of the stored conversations; `None` if conversations are not stored.
    pub(crate) directory: Option<PathBuf>,
    /// The questions to the person or the program.
    pub(crate) questions: Receiver<Question>,
    /// Whether a program answers the questions with JSON objects on stdin.
    pub(crate) has_responder: bool,
}

/// What a line sends or does.
enum PlainInput {
    /// A typed message or a command.
    Typed(String),
    /// A message as it is.
    Message(String),
}

/// What comes from stdin.
struct PlainInputs {
    lines: LineInput,
    /// What a program sent during a run.
    waiting: VecDeque<PlainInput>,
    /// Whether stdin is a terminal, so that a person can answer questions.
    has_person: bool,
}

/// The text for the editor.
#[derive(Default)]
struct Draft {
    text: String,
    /// Whether an empty line sends the text.
    is_ready: bool,
}

impl Draft {
    /// Takes the text if an empty line sends it.
    fn take_ready(&mut self) -> Option<String> {
        std::mem::take(&mut self.is_ready).then(|| std::mem::take(&mut self.text))
    }
}

/// A chat line by line.
struct PlainChat<'o> {
    session: ChatSession,
    context: PlainContext,
    output: &'o mut Output,
    inputs: PlainInputs,
    open: OpenQuestions,
    run_text: RunText,
    threads: FileThreads,
    servers: ServerMessages,
    /// What is attached to the next message.
    attachments: Vec<(String, Content)>,
    draft: Draft,
    /// Whether the last text has no newline at its end.
    has_open_line: bool,
    has_failed: bool,
}

/// What a chat leaves.
pub(crate) struct PlainEnd {
    pub(crate) session: ChatSession,
    /// Whether a response failed and no person saw it.
    pub(crate) has_failed: bool,
}

/// Reads messages from stdin, one a line, and prints what happens. With `--json`, each event is one
/// JSON object a line.
pub(crate) async fn run(
    session: ChatSession,
    context: PlainContext,
    output: &mut Output,
    first_message: Option<String>,
) -> Result<PlainEnd, CliError> {
    let servers = ServerMessages::new(session.host());
    let mut chat = PlainChat {
        session,
        context,
        output,
        inputs: PlainInputs {
            lines: LineInput::start()?,
            waiting: VecDeque::new(),
            has_person: io::stdin().is_terminal(),
        },
        open: OpenQuestions::default(),
        run_text: RunText::default(),
        threads: FileThreads::default(),
        servers,
        attachments: Vec::new(),
        draft: Draft::default(),
        has_open_line: false,
        has_failed: false,
    };
    if let Some(message) = first_message {
        chat.send(&message).await?;
    }
    chat.run_loop().await?;
    let has_failed = chat.has_failed && !chat.inputs.has_person;
    Ok(PlainEnd { session: chat.session, has_failed })
}

impl PlainChat<'_> {
    async fn run_loop(&mut self) -> Result<(), CliError> {
        while let Some(input) = self.next_input().await? {
            let line = match input {
                PlainInput::Message(message) => {
                    self.send(&message).await?;
                    continue;
                }
                PlainInput::Typed(line) => line,
            };
            let line = line.trim();
            if line.is_empty() {
                if let Some(message) = self.draft.take_ready() {
                    self.send(&message).await?;
                }
                continue;
            }
            match parse_line(line) {
                TypedLine::Message(message) => self.send(&message).await?,
                TypedLine::Command(SlashCommand::Quit, _) => return Ok(()),
                TypedLine::Command(command, argument) => {
                    self.run_command(command, &argument).await?;
                }
                TypedLine::UnknownCommand(name) => {
                    let text = format!("no command /{name}; /help lists the commands");
                    self.report_problem(&LineProblem { id: None, text })?;
                }
            }
        }
        Ok(())
    }

    /// Waits for the next message or command; `None` at the end of the input.
    async fn next_input(&mut self) -> Result<Option<PlainInput>, CliError> {
        if let Some(waiting) = self.inputs.waiting.pop_front() {
            return Ok(Some(waiting));
        }
        loop {
            self.print_left_out_messages()?;
            self.print_prompt()?;
            tokio::select! {
                biased;
                withdrawn = self.open.withdrawn() => self.on_withdrawn(withdrawn)?,
                Some(question) = self.context.questions.recv(), if !self.open.has_line() => {
                    self.on_question(question)?;
                }
                event = self.servers.next() => self.on_host_event(event)?,
                line = self.inputs.lines.next() => {
                    let Some(line) = line else { return Ok(None) };
                    if let Some(input) = self.on_line(line)? {
                        return Ok(Some(input));
                    }
                }
            }
        }
    }

    async fn send(&mut self, message: &str) -> Result<(), CliError> {
        let attached = std::mem::take(&mut self.attachments);
        let (_, content) = attachment::to_message(&attached, message);
        self.converse(content).await
    }

    /// Sends a message, and prints the events until the run ends.
    async fn converse(&mut self, message: Content) -> Result<(), CliError> {
        let mut stream = self.session.run(message);
        loop {
            tokio::select! {
                // The text before a question is printed before the question.
                biased;
                event = stream.next() => match event {
                    Some(event) => {
                        let stored = self.session.record(&event);
                        self.print_event(&event)?;
                        self.session.finish_event(event);
                        stored.map_err(command_work::storage_error)?;
                    }
                    None => return Ok(()),
                },
                withdrawn = self.open.withdrawn() => self.on_withdrawn(withdrawn)?,
                Some(question) = self.context.questions.recv(), if !self.open.has_line() => {
                    self.on_question(question)?;
                }
                event = self.servers.next() => self.on_host_event(event)?,
                line = self.inputs.lines.next(), if self.reads_during_run() => {
                    self.on_line_during_run(line)?;
                }
            }
        }
    }

    /// Returns whether lines are read during a run: answers only.
    fn reads_during_run(&self) -> bool {
        let is_answerable = self.open.has_line() || self.context.has_responder;
        is_answerable && !self.inputs.lines.is_closed()
    }

    fn on_line_during_run(&mut self, line: Option<InputLine>) -> Result<(), CliError> {
        let Some(line) = line else {
            // Nobody can answer any more.
            self.open.clear();
            return Ok(());
        };
        let Some(input) = self.on_line(line)? else { return Ok(()) };
        if self.inputs.waiting.len() < MAX_WAITING_MESSAGES {
            self.inputs.waiting.push_back(input);
            return Ok(());
        }
        let text = format!("the message is lost: {MAX_WAITING_MESSAGES} messages wait");
        self.report_problem(&LineProblem { id: None, text })
    }

    /// Uses a line as the answer of an open question, or returns what the line sends or does.
    fn on_line(&mut self, line: InputLine) -> Result<Option<PlainInput>, CliError> {
        let Some(line) = line else {
            let text = format!("the line is longer than {} MiB", MAX_LINE_BYTES >> 20);
            self.report_problem(&LineProblem { id: None, text })?;
            return Ok(None);
        };
        if !self.output.is_json() {
            // The person ended the line of the prompt.
            self.has_open_line = false;
            return match self.open.take_line() {
                Some(question) => self.respond_by_line(question, &line).map(|()| None),
                None => Ok(Some(PlainInput::Typed(line))),
            };
        }
        let used = json_line::parse(&line).and_then(|parsed| match parsed {
            JsonLine::Typed(line) => Ok(Some(PlainInput::Typed(line))),
            JsonLine::Message(message) => Ok(Some(PlainInput::Message(message))),
            JsonLine::Response(id) => self.open.respond(id, &line).map(|()| None),
        });
        match used {
            Ok(input) => Ok(input),
            Err(problem) => self.report_problem(&problem).map(|()| None),
        }
    }

    fn on_question(&mut self, question: Question) -> Result<(), CliError> {
        if self.output.is_json() {
            let has_responder = self.context.has_responder && !self.inputs.lines.is_closed();
            let id = has_responder.then(|| self.open.next_id());
            self.output.print_json_line(&JsonEvent::question(&question, id))?;
            if has_responder {
                self.open.add(question);
            }
            // Without a responder, the dropped question is denied.
            return Ok(());
        }
        if self.inputs.has_person && !self.inputs.lines.is_closed() {
            let question = LineQuestion::new(question);
            self.end_line()?;
            self.output.print_untrusted(&question.text())?;
            self.open.set_line(question);
        }
        Ok(())
    }

    /// Uses a line as the answer of the question to the person.
    fn respond_by_line(&mut self, question: LineQuestion, line: &str) -> Result<(), CliError> {
        match question.on_line(line) {
            LineOutcome::Answered(text) => self.note(&text)?,
            LineOutcome::Open(question, problem) => {
                if !problem.is_empty() {
                    self.note(&problem)?;
                }
                self.output.print_untrusted(&question.text())?;
                self.open.set_line(*question);
            }
        }
        Ok(())
    }

    fn on_withdrawn(&mut self, withdrawn: Withdrawn) -> Result<(), CliError> {
        match withdrawn {
            Withdrawn::Line => Ok(self.note("the question was withdrawn")?),
            Withdrawn::Id(id) => {
                Ok(self.output.print_json_line(&JsonEvent::QuestionWithdrawn { id })?)
            }
        }
    }

    /// Prints why a line has no effect.
    fn report_problem(&mut self, problem: &LineProblem) -> Result<(), CliError> {
        let LineProblem { id, text } = problem;
        if self.output.is_json() {
            return Ok(self.output.print_json_line(&JsonEvent::Error { id: *id, text })?);
        }
        Ok(self.note(text)?)
    }

    fn print_prompt(&mut self) -> io::Result<()> {
        if self.inputs.has_person && !self.output.is_json() && !self.open.has_line() {
            self.end_line()?;
            self.output.print_chunk("> ")?;
            self.has_open_line = true;
        }
        Ok(())
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        self.output.labelled_status(Style::Note, "note", text)
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_open_line) {
            self.output.print_data("")?;
        }
        Ok(())
    }
}
