//! The commands of the chat on a terminal.

use std::io::{self, Write as _};
use std::path::Path;

use base64::Engine as _;
use crossterm::event::EventStream;
use innkeeper_agent::content::{Content, ContentBlock, MediaContent};
use innkeeper_agent::conversation::Message;
use innkeeper_host::Host;
use serde_json::{Map, Value};

use super::super::theme::Role;
use super::{App, WorkResult};
use crate::chat::conversation_file::ConversationFile;
use crate::chat::listings;
use crate::chat::permanent_rules;
use crate::chat::session;
use crate::chat::slash_command::{SlashCommand, help_text};
use crate::cli::ModelSelectionArgs;
use crate::exit::CliError;
use crate::input_file;
use crate::model_selection::select_model;

/// Maximum number of bytes of an attached file.
const MAX_ATTACHED_BYTES: u64 = 8 << 20;

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
        let host = self.session.host().clone();
        match command {
            SlashCommand::Help => self.show(format!("{}{KEYS_HELP}", help_text())),
            SlashCommand::Tools => {
                let hidden = self.session.hidden_servers();
                self.show(listings::tools(&host, self.session.approver(), hidden, argument));
            }
            SlashCommand::Servers => {
                self.show(listings::servers(&host, self.session.hidden_servers()));
            }
            SlashCommand::Prompts => self.show(listings::prompts(&host)),
            SlashCommand::Resources => self.show(listings::resources(&host)),
            SlashCommand::Rules => {
                match permanent_rules::run_command(self.session.approver(), argument) {
                    Ok(text) => self.show(text),
                    Err(error) => self.show_error(error.to_line()),
                }
            }
            SlashCommand::Tokens => self.show(listings::tokens(self.session.tokens())),
            SlashCommand::List => self.list_conversations(),
            SlashCommand::Disable | SlashCommand::Enable => {
                let is_hidden = command == SlashCommand::Disable;
                match self.session.set_hidden(argument, is_hidden) {
                    Ok(text) => self.show(text),
                    Err(error) => self.show_error(error.to_line()),
                }
            }
            SlashCommand::Reload => self.reload(),
            SlashCommand::Restart => self.restart(host, argument),
            SlashCommand::Model => self.switch_model(argument),
            SlashCommand::Prompt => self.send_prompt(host, argument),
            SlashCommand::Attach => self.attach(host, argument),
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
            SlashCommand::Save => self.save(argument),
            SlashCommand::Copy => self.copy()?,
            SlashCommand::Edit => self.edit().await?,
            SlashCommand::Quit => self.is_over = true,
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

    fn list_conversations(&mut self) {
        match self.context.directory.clone() {
            Some(directory) => self.show(listings::conversations(&directory)),
            None => self.show_error("conversations are not stored"),
        }
    }

    fn restart(&mut self, host: Host, server: &str) {
        if server.is_empty() {
            return self.show_error("usage: /restart SERVER");
        }
        let server = server.to_owned();
        let label = format!("restarting {server}");
        let restart = async move {
            let problem = host.restart_server(&server).await.err().map(|error| error.to_string());
            WorkResult::Restarted(server, problem)
        };
        self.spawn_work(&label, Box::pin(restart));
    }

    fn reload(&mut self) {
        if self.require_idle() {
            let reload = self.session.reload();
            let reload = async { WorkResult::Reloaded(reload.await) };
            self.spawn_work("applying the configuration", Box::pin(reload));
        }
    }

    fn switch_model(&mut self, argument: &str) {
        let mut words = argument.split_whitespace();
        let Some(provider) = words.next() else {
            let text =
                format!("model: {}\nusage: /model PROVIDER [MODEL]", self.session.model_label());
            return self.show(text);
        };
        if !self.require_idle() {
            return;
        }
        let selection = ModelSelectionArgs {
            provider: Some(provider.to_owned()),
            name: words.next().map(str::to_owned),
            ..ModelSelectionArgs::default()
        };
        match select_model(&selection, &self.context.environment) {
            Ok(selected) => {
                let prepare =
                    async move { WorkResult::ModelPrepared(Box::new(selected.prepare().await)) };
                self.spawn_work("preparing the model", Box::pin(prepare));
            }
            Err(error) => self.show_error(error.to_line()),
        }
    }

    fn send_prompt(&mut self, host: Host, argument: &str) {
        if !self.require_idle() {
            return;
        }
        let words = shlex::split(argument).unwrap_or_default();
        let Some((name, pairs)) = words.split_first() else {
            return self.show_error("usage: /prompt SERVER.NAME [KEY=VALUE …]");
        };
        let mut arguments = Map::new();
        for pair in pairs {
            let Some((key, value)) = pair.split_once('=') else {
                return self.show_error(format!("`{pair}` is not KEY=VALUE"));
            };
            arguments.insert(key.to_owned(), Value::from(value));
        }
        let get = session::get_prompt(
            host,
            self.session.hidden_servers().clone(),
            name.clone(),
            arguments,
        );
        self.spawn_work("getting the prompt", Box::pin(async { WorkResult::Prompt(get.await) }));
    }

    fn attach(&mut self, host: Host, argument: &str) {
        if argument.is_empty() {
            return self.show_error("usage: /attach URI|FILE");
        }
        let label = argument.to_owned();
        if !is_uri(argument) {
            let read = read_file(Path::new(argument));
            return self.on_attached(label, read);
        }
        let read =
            session::read_resource(host, self.session.hidden_servers().clone(), label.clone());
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
        let file = match self.context.directory.as_deref().map(ConversationFile::create) {
            Some(Ok(file)) => Some(file),
            Some(Err(error)) => return self.show_error(error.to_line()),
            None => None,
        };
        let cleared = self.session.clear(file);
        self.screen.transcript.clear();
        self.show("new conversation".to_owned());
        self.report_storage(cleared);
    }

    fn save(&mut self, title: &str) {
        let stored = match title.is_empty() {
            true => Ok(self.session.file().is_some()),
            false => self.session.set_title(title),
        };
        match (stored, self.session.file()) {
            (Ok(true), Some(file)) => {
                let id = file.id();
                let title = file.title().map(|title| format!(" as `{title}`")).unwrap_or_default();
                self.show(format!("stored{title}; continue with: innkeeper chat --resume {id}"));
            }
            (Ok(_), _) => self.show_error("the conversation is not stored"),
            (Err(error), _) => self.report_storage(Err(error)),
        }
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
        let environment = &self.context.environment;
        let editor = environment.get("VISUAL").or_else(|| environment.get("EDITOR"));
        let words = shlex::split(editor.unwrap_or("vi")).unwrap_or_default();
        let Some((program, arguments)) = words.split_first() else { return Ok(()) };
        let mut file = tempfile::Builder::new().prefix("innkeeper-").suffix(".md").tempfile()?;
        file.write_all(self.screen.editor.text().as_bytes())?;
        self.guard.suspend()?;
        #[expect(clippy::disallowed_methods, reason = "the editor of the user needs the terminal")]
        let mut editor = tokio::process::Command::new(program);
        let status = editor.args(arguments).arg(file.path()).status().await;
        self.guard.resume()?;
        self.keys = EventStream::new();
        self.terminal.clear()?;
        match status {
            Ok(status) if status.success() => {
                let text = input_file::read(file.path(), MAX_ATTACHED_BYTES)?;
                self.screen.editor.set_text(text.trim_end());
            }
            Ok(status) => self.show_error(format!("`{program}` failed: {status}")),
            Err(error) => self.show_error(format!("cannot start `{program}`: {error}")),
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
                    let earlier = self.session.set_model(model);
                    self.show(format!(
                        "the conversation continues with {}",
                        self.session.model_label()
                    ));
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
                let stored = self.session.on_compacted(&compacted);
                self.show(format!(
                    "a summary replaces {} messages for the model",
                    compacted.messages
                ));
                self.report_storage(stored);
            }
            WorkResult::Compacted(Err(error)) => self.show_error(error.to_string()),
            WorkResult::Attached(label, content) => self.on_attached(label, content),
            WorkResult::Prompt(Ok(content)) => {
                let text = content.to_text().into_owned();
                self.send_content(&text, content);
            }
            WorkResult::Prompt(Err(error)) => self.show_error(error.to_line()),
            WorkResult::Opened(opened) => self.on_opened(opened),
            WorkResult::Removed(id, removed) => self.on_removed(&id, removed),
            WorkResult::Exported(file, written) => self.on_exported(&file, written),
            WorkResult::LogLevelSet(level, problem) => self.on_log_level(level, problem),
            WorkResult::Restarted(server, None) => self.show(format!("{server} is ready")),
            WorkResult::Restarted(server, Some(problem)) => {
                self.show_error(format!("{server} did not restart: {problem}"));
            }
            WorkResult::Reloaded(Ok(text)) => self.show(text),
            WorkResult::Reloaded(Err(error)) => self.show_error(error.to_line()),
        }
        self.update_status();
        self.send_queued();
    }
}

/// Returns the server of a tool.
pub(super) fn server_of(host: &Host, tool: &str) -> Option<String> {
    let catalog = host.catalog();
    let found = catalog.tools().find(|listed| listed.public_name == tool)?;
    Some(found.server.to_owned())
}

/// Returns the text of a user message.
pub(super) fn user_text(message: &Message) -> Option<String> {
    match message {
        Message::User(content) => Some(content.to_text().into_owned()),
        Message::Assistant(_) | Message::ToolResults(_) => None,
    }
}

/// Returns whether a text is a URI and not a path.
fn is_uri(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.len() > 1
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
            && (rest.starts_with('/') || !Path::new(text).exists())
    })
}

/// Reads a file as an attachment: an image by its extension, else text.
fn read_file(path: &Path) -> Result<Content, CliError> {
    let failure =
        |error| CliError::failure(format!("cannot read `{}`", path.display())).with_source(error);
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let mime_type = match &*extension {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    };
    let Some(mime_type) = mime_type else {
        let text = input_file::read(path, MAX_ATTACHED_BYTES).map_err(failure)?;
        return Ok(format!("File `{}`:\n{text}", path.display()).into());
    };
    let bytes = input_file::read_bytes(path, MAX_ATTACHED_BYTES).map_err(failure)?;
    let data = base64::prelude::BASE64_STANDARD.encode(bytes);
    let image = MediaContent { mime_type: Some(mime_type.to_owned()), data: data.into() };
    Ok(ContentBlock::Image(image).into())
}
