//! The commands of the chat on a terminal.

use std::io::{self, Write as _};
use std::path::Path;

use base64::Engine as _;
use futures_util::FutureExt as _;
use innkeeper_agent::content::Content;
use innkeeper_agent::conversation::Message;
use innkeeper_host::Host;

use super::super::theme::Role;
use super::{App, WorkResult};
use crate::chat::attachment::{is_uri, read_file};
use crate::chat::command_work::{self, CommandWork};
use crate::chat::slash_command::{SlashCommand, help_text};
use crate::chat::{external_editor, listings, permanent_rules};
use crate::exit::CliError;

/// Maximum number of bytes for the clipboard: terminals accept no more in one sequence.
const MAX_COPIED_BYTES: usize = 74_000;

/// The keys, below the commands of `/help`.
const KEYS_HELP: &str = "\nkeys\n  Enter sends, Alt-Enter or Ctrl-J starts a line, Esc stops the response\n  \
    Up and Down recall messages, Ctrl-R searches them, Ctrl-X opens an editor\n  \
    @ suggests resources and files, Tab takes a suggestion, Up and Down select one for Enter\n  \
    PageUp and PageDown scroll, Ctrl-Home and Ctrl-End show the start and the end\n  \
    Tab selects a block, Ctrl-O opens and closes all calls and reasoning\n  \
    Ctrl-C stops the response, Ctrl-C twice leaves";

impl App {
    pub(super) async fn run_command(
        &mut self,
        command: SlashCommand,
        argument: &str,
    ) -> io::Result<()> {
        if let Err(error) = self.session.check_command(command) {
            self.show_error(error.to_line());
            return Ok(());
        }
        let host = self.session.host().clone();
        match command {
            SlashCommand::Help => self.show(format!("{}{KEYS_HELP}", help_text())),
            SlashCommand::Tools => {
                let hidden = &self.session.servers().hidden;
                self.show(listings::tools(&host, self.session.approver(), hidden, argument));
            }
            SlashCommand::Servers => {
                self.show(listings::servers(&host, &self.session.servers().hidden));
            }
            SlashCommand::Prompts => self.show(listings::prompts(&host)),
            SlashCommand::Resources => self.show(listings::resources(&host)),
            SlashCommand::Rules => {
                let listed = permanent_rules::run_command(self.session.approver(), argument);
                self.show_outcome(listed);
            }
            SlashCommand::Tokens => self.show(listings::tokens(self.session.tokens())),
            SlashCommand::Disable | SlashCommand::Enable => {
                let is_hidden = command == SlashCommand::Disable;
                let changed = self.session.servers().set_hidden(argument, is_hidden);
                self.show_outcome(changed);
            }
            SlashCommand::Reload => self.reload(),
            SlashCommand::List => {
                self.show_outcome(command_work::list(self.context.directory.as_deref()));
            }
            SlashCommand::Restart => self.restart(host, argument),
            SlashCommand::Model => self.switch_model(argument),
            SlashCommand::Prompt => self.send_prompt(argument),
            SlashCommand::Attach => self.attach(argument),
            SlashCommand::Detach => {
                self.attachments.clear();
                self.update_status();
            }
            SlashCommand::Undo => self.undo(),
            SlashCommand::Redo => self.redo(),
            SlashCommand::Fork => self.fork(),
            SlashCommand::Resume => self.resume(argument),
            SlashCommand::Remove => self.remove(argument),
            SlashCommand::Export => self.export(argument),
            SlashCommand::Log => self.set_log_level(argument),
            SlashCommand::Details => self.screen.transcript.toggle_all_details(),
            SlashCommand::Compact => self.compact(),
            SlashCommand::Clear => self.clear(),
            SlashCommand::Save => {
                let saved = command_work::save(&mut self.session, argument);
                self.show_outcome(saved);
            }
            SlashCommand::Copy => self.copy()?,
            SlashCommand::Edit => self.edit().await?,
            SlashCommand::Quit => self.leave(),
        }
        Ok(())
    }

    pub(super) fn show(&mut self, text: String) {
        self.screen.transcript.notice(Role::Text, text);
        self.screen.transcript.scroll_to_end();
    }

    pub(super) fn show_error(&mut self, text: impl Into<String>) {
        self.screen.transcript.notice(Role::Error, text);
        self.screen.transcript.scroll_to_end();
    }

    /// Returns whether no run and no other work uses the conversation.
    pub(super) fn require_idle(&mut self) -> bool {
        let is_idle = self.run.is_none() && self.work.is_empty();
        if !is_idle {
            self.show_error("wait for the end of the run, or stop it with Esc");
        }
        is_idle
    }

    /// Shows the text or the error of a command.
    pub(super) fn show_outcome(&mut self, outcome: Result<String, CliError>) {
        match outcome {
            Ok(text) => self.show(text),
            Err(error) => self.show_error(error.to_line()),
        }
    }

    /// Does the work of a command, and shows its text or its error.
    pub(super) fn spawn_command(&mut self, label: &str, work: Result<CommandWork, CliError>) {
        match work {
            Ok(work) => self.spawn_work(label, work.map(WorkResult::Done).boxed()),
            Err(error) => self.show_error(error.to_line()),
        }
    }

    fn restart(&mut self, host: Host, server: &str) {
        let label = format!("restarting {server}");
        self.spawn_command(&label, command_work::restart(host, server));
    }

    fn reload(&mut self) {
        if self.require_idle() {
            let reload = self.session.reload().boxed();
            self.spawn_command("applying the configuration", Ok(reload));
        }
    }

    fn switch_model(&mut self, argument: &str) {
        if argument.is_empty() {
            return self.show(command_work::model_text(&self.session));
        }
        if !self.require_idle() {
            return;
        }
        match command_work::select(argument, &self.context.environment) {
            Ok(Some(selected)) => {
                let prepare = async move {
                    WorkResult::ModelPrepared(Box::new(selected.prepare(None).await))
                };
                self.spawn_work("preparing the model", Box::pin(prepare));
            }
            Ok(None) => self.show(command_work::model_text(&self.session)),
            Err(error) => self.show_error(error.to_line()),
        }
    }

    fn send_prompt(&mut self, argument: &str) {
        if !self.require_idle() {
            return;
        }
        match command_work::prompt(self.session.servers(), argument) {
            Ok(get) => self.spawn_work("getting the prompt", get.map(WorkResult::Prompt).boxed()),
            Err(error) => self.show_error(error.to_line()),
        }
    }

    fn attach(&mut self, argument: &str) {
        if argument.is_empty() {
            return self.show_error("usage: /attach URI|FILE");
        }
        let label = argument.to_owned();
        if !is_uri(argument) {
            let read = read_file(Path::new(argument));
            return self.on_attached(label, read);
        }
        let read = self.session.servers().clone().read_resource(label.clone());
        let read = async move { WorkResult::Attached(label, read.await) };
        self.spawn_work("reading the resource", Box::pin(read));
    }

    fn on_attached(&mut self, label: String, content: Result<Content, CliError>) {
        match content {
            Ok(content) => self.attachments.push((label, content)),
            Err(error) => self.show_error(error.to_line()),
        }
        self.update_status();
    }

    fn undo(&mut self) {
        if !self.require_idle() {
            return;
        }
        match self.session.remove_last_exchange() {
            Ok(Some(message)) => {
                let host = self.session.host().clone();
                let conversation = self.session.agent().conversation();
                let transcript = &mut self.screen.transcript;
                transcript.show_conversation(&conversation, |tool| server_of(&host, tool));
                transcript.notice(Role::Dim, "removed the last exchange; what its tools did stays; /redo brings the exchange back");
                self.screen.editor.set_text(&message);
            }
            Ok(None) => self.show_error("the conversation is empty"),
            Err(error) => self.report_storage(Err(error)),
        }
    }

    fn compact(&mut self) {
        if self.require_idle() {
            let compact = self.session.compact();
            let compact = Box::pin(async { WorkResult::Compacted(compact.await) });
            self.spawn_work("the model summarizes the older messages", compact);
        }
    }

    fn clear(&mut self) {
        if !self.require_idle() {
            return;
        }
        let cleared = command_work::clear(&mut self.session, self.context.directory.as_deref());
        if cleared.is_ok() {
            self.screen.transcript.clear();
        }
        self.show_outcome(cleared);
    }

    /// Copies a text with the sequence OSC 52, which also works over SSH.
    fn copy(&mut self) -> io::Result<()> {
        let Some(text) = self.screen.transcript.copied_text() else {
            self.show_error("nothing to copy");
            return Ok(());
        };
        let end = text.floor_char_boundary(MAX_COPIED_BYTES);
        let encoded = base64::prelude::BASE64_STANDARD.encode(&text[..end]);
        let mut stdout = io::stdout();
        write!(stdout, "\u{1b}]52;c;{encoded}\u{7}")?;
        stdout.flush()?;
        let note = match end == text.len() {
            true => format!("copied {end} bytes"),
            false => format!("copied the first {end} of {} bytes", text.len()),
        };
        self.screen.set_hint(note);
        Ok(())
    }

    /// Opens the message in the editor of the user.
    async fn edit(&mut self) -> io::Result<()> {
        let text = self.screen.editor.text();
        let edit = external_editor::edit(&self.context.environment, &text);
        match self.terminal.lend_to(edit).await? {
            Ok(text) => self.screen.editor.set_text(&text),
            Err(error) => self.show_error(error.to_line()),
        }
        Ok(())
    }

    pub(super) fn on_work(&mut self, result: WorkResult) {
        if self.work.is_empty() {
            self.screen.work = None;
        }
        match result {
            WorkResult::ModelPrepared(prepared) => match *prepared {
                Ok(model) => {
                    let (text, earlier) = command_work::set_model(&mut self.session, model);
                    self.show(text);
                    if let Some(local) = earlier {
                        self.stop_local_model(local);
                    }
                }
                Err(error) => self.show_error(error.to_line()),
            },
            WorkResult::LocalModelStopped(stopped) => {
                if let Err(error) = stopped {
                    self.show_error(error.to_line());
                }
            }
            WorkResult::Compacted(Ok(compacted)) => {
                let text = command_work::compacted(&mut self.session, &compacted);
                self.show_outcome(text);
            }
            WorkResult::Compacted(Err(error)) => self.show_error(error.to_string()),
            WorkResult::Attached(label, content) => self.on_attached(label, content),
            WorkResult::Prompt(Ok(content)) => {
                let text = content.to_text().into_owned();
                self.send_content(&text, content);
            }
            WorkResult::Prompt(Err(error)) => self.show_error(error.to_line()),
            WorkResult::Opened(opened) => self.on_opened(opened),
            WorkResult::Done(outcome) => self.show_outcome(outcome),
        }
        self.update_status();
        self.send_queued();
    }
}

pub(super) fn server_of(host: &Host, tool: &str) -> Option<String> {
    let catalog = host.catalog();
    let found = catalog.tools().find(|listed| listed.public_name == tool)?;
    Some(found.server.to_owned())
}

pub(super) fn user_text(message: &Message) -> Option<String> {
    match message {
        Message::User(content) => Some(content.to_text().into_owned()),
        Message::Assistant(_) | Message::ToolResults(_) => None,
    }
}
