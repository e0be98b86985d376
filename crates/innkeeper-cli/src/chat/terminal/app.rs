//! The loop of the chat on a terminal: keys, events of the run, questions and results of commands.

mod chat_terminal;
mod closing;
mod commands;
mod completion;
mod conversations;
mod guard;
mod host_events;
mod messages;
mod pasted_files;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::Event;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use innkeeper_agent::agent::{AgentEvent, AgentStream, CompactError, CompactedHistory};
use innkeeper_agent::content::Content;
use innkeeper_host::Environment;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep_until};

use super::screen::{Action, Screen};
use super::theme::{Role, Theme};
use crate::chat::file_thread::FileThreads;
use crate::chat::listings;
use crate::chat::question::Question;
use crate::chat::server_log::{DEFAULT_LOG_LEVEL, ServerLog};
use crate::chat::session::ChatSession;
use crate::exit::CliError;
use crate::local_model::LocalModel;
use crate::model_selection::PreparedModel;
use chat_terminal::ChatTerminal;
use completion::{Searches, next_result};
use conversations::OpenedConversation;

/// Minimum time between two frames.
const FRAME_INTERVAL: Duration = Duration::from_millis(16);

/// Time between two frames while only the time changes.
const ANIMATION_INTERVAL: Duration = Duration::from_millis(120);

/// What the chat needs besides its session.
pub(crate) struct ChatContext {
    pub(crate) environment: Environment,
    pub(crate) theme: Theme,
    /// The directory of the stored conversations; `None` if conversations are not stored.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) questions: Receiver<Question>,
    /// Log lines while the chat has the screen.
    pub(crate) log_lines: Receiver<String>,
}

/// What a chat leaves.
pub(crate) struct ChatEnd {
    pub(crate) session: ChatSession,
    /// Whether the servers get little time to stop.
    pub(crate) is_urgent: bool,
}

/// The result of work beside the run.
enum WorkResult {
    ModelPrepared(Box<Result<PreparedModel, CliError>>),
    LocalModelStopped(Result<(), CliError>),
    Compacted(Result<CompactedHistory, CompactError>),
    Attached(String, Result<Content, CliError>),
    Prompt(Result<Content, CliError>),
    Opened(OpenedConversation),
    /// The text of a command that changes nothing on the screen.
    Done(Result<String, CliError>),
}

struct App {
    screen: Screen,
    session: ChatSession,
    context: ChatContext,
    run: Option<AgentStream>,
    work: FuturesUnordered<BoxFuture<'static, WorkResult>>,
    searches: Searches,
    server_log: ServerLog,
    threads: FileThreads,
    /// What is attached to the next message.
    attachments: Vec<(String, Content)>,
    terminal: ChatTerminal,
    is_dirty: bool,
    leaving: Option<Leaving>,
}

/// How the chat ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    InOrder,
    /// The person, or the end of the terminal, leaves no time for servers to stop.
    AtOnce,
}

/// Runs the chat until the person leaves. `first_message` is sent at once.
pub(crate) async fn run(
    session: ChatSession,
    context: ChatContext,
    first_message: Option<String>,
) -> Result<ChatEnd, CliError> {
    let failure = |error| CliError::failure("cannot use the terminal").with_source(error);
    let terminal = ChatTerminal::open().map_err(failure)?;
    let mut app = App {
        screen: Screen::new(context.theme),
        session,
        context,
        run: None,
        work: FuturesUnordered::new(),
        searches: Searches::default(),
        server_log: ServerLog::new(DEFAULT_LOG_LEVEL),
        threads: FileThreads::default(),
        attachments: Vec::new(),
        terminal,
        is_dirty: true,
        leaving: None,
    };
    app.greet();
    if let Some(message) = first_message {
        app.send(&message);
    }
    let ended = app.run_loop().await;
    // Stores what was displayed of a response, also if the terminal is closed.
    app.interrupt();
    ended.map_err(failure)?;
    Ok(ChatEnd { session: app.session, is_urgent: app.leaving == Some(Leaving::AtOnce) })
}

impl App {
    /// Shows a continued conversation, or how to begin.
    fn greet(&mut self) {
        let conversation = self.session.agent().conversation();
        let host = self.session.host().clone();
        if conversation.messages().is_empty() {
            let text = "Ask something, or type /help. Tools that may change something ask first.";
            self.screen.transcript.notice(Role::Dim, text);
        } else {
            self.screen
                .transcript
                .show_conversation(&conversation, |tool| commands::server_of(&host, tool));
            let users = conversation.messages().iter().filter_map(commands::user_text);
            self.screen.editor.remember(users);
        }
        let failed = crate::hosting::failed_servers(&host);
        for server in failed {
            let text = format!("{}: {}", server.name, server.reason);
            self.screen.transcript.notice(Role::Error, text);
            for hint in server.hints {
                self.screen.transcript.notice(Role::Dim, format!("hint: {hint}"));
            }
        }
        self.update_status();
    }

    async fn run_loop(&mut self) -> io::Result<()> {
        let mut host_events = self.session.host().events();
        let mut next_frame = Instant::now();
        let mut last_frame = next_frame;
        while self.leaving.is_none() {
            let now = Instant::now();
            let is_due = self.screen.is_animated() && now >= last_frame + ANIMATION_INTERVAL;
            if (self.is_dirty && now >= next_frame) || is_due {
                self.draw(now)?;
                last_frame = Instant::now();
                next_frame = last_frame + FRAME_INTERVAL;
            }
            let wake = match (self.is_dirty, self.screen.is_animated()) {
                (true, _) => Some(next_frame),
                (false, true) => Some(last_frame + ANIMATION_INTERVAL),
                (false, false) => None,
            };
            tokio::select! {
                biased;
                event = self.terminal.next_event() => match event {
                    Some(event) => self.on_terminal_event(event?).await?,
                    None => self.leave_at_once(),
                },
                Some(question) = self.context.questions.recv() => {
                    self.screen.on_question(question);
                    self.is_dirty = true;
                }
                Some(result) = self.work.next(), if !self.work.is_empty() => {
                    self.on_work(result);
                }
                finished = next_result(&mut self.searches.completion) => {
                    if let Some(action) = self.on_completion(finished) {
                        self.perform(action).await?;
                    }
                }
                messages = next_result(&mut self.searches.earlier_messages) => {
                    self.screen.on_earlier_messages(messages);
                    self.is_dirty = true;
                }
                event = next_event(&mut self.run) => self.on_agent_event(event),
                Some(line) = self.context.log_lines.recv() => {
                    self.screen.transcript.notice(Role::Warning, line.trim_end().to_owned());
                    self.is_dirty = true;
                }
                event = host_events.recv() => self.on_host_event(event, &mut host_events),
                () = sleep_until(wake.unwrap_or(now)), if wake.is_some() => {}
            }
        }
        Ok(())
    }

    fn draw(&mut self, now: Instant) -> io::Result<()> {
        self.screen.drop_withdrawn_questions();
        self.show_left_out_messages();
        self.terminal.draw(&mut self.screen, now)?;
        self.is_dirty = false;
        Ok(())
    }

    async fn on_terminal_event(&mut self, event: Event) -> io::Result<()> {
        self.is_dirty = true;
        match event {
            Event::Key(key) => {
                if let Some(action) = self.screen.on_key(key, Instant::now()) {
                    self.perform(action).await?;
                }
                self.read_earlier_messages();
            }
            Event::Paste(text) => {
                if !self.attach_pasted_images(&text).await? {
                    self.screen.on_paste(&text);
                }
            }
            Event::Resize(..) => self.terminal.resize()?,
            Event::FocusGained | Event::FocusLost | Event::Mouse(_) => {}
        }
        Ok(())
    }

    async fn perform(&mut self, action: Action) -> io::Result<()> {
        let mut next = Some(action);
        while let Some(action) = next.take() {
            match action {
                Action::Send(text) => self.send(&text),
                Action::Interrupt => self.interrupt(),
                Action::Quit => self.leave_at_once(),
                Action::Command(command, argument) => self.run_command(command, &argument).await?,
                Action::Complete { text, is_automatic } => next = self.complete(text, is_automatic),
            }
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.leaving.get_or_insert(Leaving::InOrder);
    }

    fn leave_at_once(&mut self) {
        self.leaving = Some(Leaving::AtOnce);
    }

    /// Shows that a conversation cannot be stored.
    fn report_storage(&mut self, stored: io::Result<()>) {
        if let Err(error) = stored {
            let text = format!("cannot store the conversation: {error}");
            self.screen.transcript.notice(Role::Error, text);
        }
    }

    fn update_status(&mut self) {
        let (ready, all) = listings::server_counts(self.session.host());
        let totals = self.session.tokens();
        let total = totals.usage.total_tokens();
        let status = &mut self.screen.status;
        status.model = self.session.model_label();
        (status.ready_servers, status.servers) = (ready, all);
        let cost = totals.usage.cost.map(|cost| format!(" · cost {cost}")).unwrap_or_default();
        status.tokens = if total == 0 { String::new() } else { format!("{total} tokens{cost}") };
        let percent = totals.context_percent();
        status.context = percent.map(|percent| format!("context {percent} %")).unwrap_or_default();
        status.attachments = self.attachments.iter().map(|(label, _)| label.clone()).collect();
        self.is_dirty = true;
    }

    fn spawn_work(&mut self, label: &str, work: BoxFuture<'static, WorkResult>) {
        self.screen.work = Some(label.to_owned());
        self.work.push(work);
    }

    fn stop_local_model(&mut self, local: LocalModel) {
        let stopping = async move { WorkResult::LocalModelStopped(local.stop().await) };
        self.spawn_work("stopping the local model", Box::pin(stopping));
    }
}

/// Returns the next event of a run; waits forever without a run.
async fn next_event(run: &mut Option<AgentStream>) -> AgentEvent {
    if let Some(stream) = run
        && let Some(event) = stream.next().await
    {
        return event;
    }
    std::future::pending().await
}
