//! The commands for conversations: redo, copy, change, removal and export.

use std::path::{Path, PathBuf};

use innkeeper_agent::conversation::Conversation;

use super::super::theme::Role;
use super::commands::{server_of, user_text};
use super::{App, WorkResult};
use crate::chat::conversation_file::{self, ConversationFile};
use crate::chat::export;
use crate::exit::CliError;

/// A conversation with its file.
pub(super) type OpenedConversation = Box<Result<(ConversationFile, Conversation), CliError>>;

impl App {
    /// Returns the directory of the stored conversations; shows an error if there is none.
    fn conversation_directory(&mut self) -> Option<PathBuf> {
        if self.context.directory.is_none() {
            self.show_error("conversations are not stored");
        }
        self.context.directory.clone()
    }

    pub(super) fn redo(&mut self) {
        if !self.require_idle() {
            return;
        }
        match self.session.restore_exchange() {
            Ok(true) => {
                self.show_conversation();
                self.show("brought back the exchange".to_owned());
            }
            Ok(false) => {
                self.show_error("no removed exchange; a new message forgets what /undo removed");
            }
            Err(error) => self.report_storage(Err(error)),
        }
    }

    /// Replaces the transcript by the messages of the conversation.
    fn show_conversation(&mut self) {
        let host = self.session.host().clone();
        let conversation = self.session.agent().conversation();
        let transcript = &mut self.screen.transcript;
        transcript.show_conversation(&conversation, |tool| server_of(&host, tool));
        self.update_status();
    }

    pub(super) fn fork(&mut self) {
        if !self.require_idle() {
            return;
        }
        let Some(directory) = self.conversation_directory() else { return };
        match self.session.fork(&directory) {
            Ok(Some((id, earlier))) => self.show(format!(
                "the conversation continues as {id}; its state until now stays as {earlier}"
            )),
            Ok(None) => self.show_error("the conversation is empty"),
            Err(error) => self.show_error(error.to_line()),
        }
    }

    pub(super) fn resume(&mut self, id: &str) {
        if !self.require_idle() {
            return;
        }
        let Some(directory) = self.conversation_directory() else { return };
        if id.is_empty() {
            return self.show_error("usage: /resume ID; Tab completes the id, /list shows all");
        }
        let (threads, id) = (self.threads.clone(), id.to_owned());
        let current = self.session.file().map(ConversationFile::id);
        let open = async move {
            let open = move || ConversationFile::open_other(&directory, &id, current.as_deref());
            let opened = threads.run(open).await;
            WorkResult::Opened(Box::new(opened.unwrap_or_else(|| Err(thread_error()))))
        };
        self.spawn_work("reading the conversation", Box::pin(open));
    }

    pub(super) fn on_opened(&mut self, opened: OpenedConversation) {
        match *opened {
            Ok((file, conversation)) => {
                let users: Vec<_> = conversation.messages().iter().filter_map(user_text).collect();
                let resumed = self.session.resume(file, conversation);
                self.screen.editor.remember(users);
                self.show_conversation();
                if let Some(id) = self.session.file().map(ConversationFile::id) {
                    self.screen.transcript.notice(Role::Dim, format!("continues {id}"));
                }
                self.screen.transcript.scroll_to_end();
                self.report_storage(resumed);
            }
            Err(error) => self.show_error(error.to_line()),
        }
    }

    pub(super) fn remove(&mut self, id: &str) {
        let Some(directory) = self.conversation_directory() else { return };
        if id.is_empty() {
            return self.show_error("usage: /remove ID, with the whole id; Tab completes the id");
        }
        if self.session.file().is_some_and(|file| file.id() == id) {
            return self
                .show_error("the current conversation cannot be removed; /clear starts another");
        }
        let (threads, id) = (self.threads.clone(), id.to_owned());
        let remove = async move {
            let removed = id.clone();
            let removed =
                threads.run(move || conversation_file::remove(&directory, &removed)).await;
            WorkResult::Removed(id, removed.unwrap_or_else(|| Err(thread_error())))
        };
        self.spawn_work("removing the conversation", Box::pin(remove));
    }

    pub(super) fn on_removed(&mut self, id: &str, removed: Result<String, CliError>) {
        match removed {
            Ok(title) => self.show(format!("removed {id}: {title}")),
            Err(error) => self.show_error(error.to_line()),
        }
    }

    pub(super) fn export(&mut self, file: &str) {
        if file.is_empty() {
            return self.show_error("usage: /export FILE");
        }
        let conversation = self.session.agent().conversation();
        let title = self.session.file().and_then(|file| file.title().map(str::to_owned));
        let (threads, name) = (self.threads.clone(), file.to_owned());
        let write = async move {
            let path = name.clone();
            let written = threads.run(move || {
                let text = export::to_markdown(&conversation, title.as_deref());
                export::write_new_file(Path::new(&path), &text)
            });
            let written = written.await.map(|written| {
                written.map_err(|error| {
                    CliError::failure(format!("cannot write `{name}`")).with_source(error)
                })
            });
            WorkResult::Exported(name, written.unwrap_or_else(|| Err(thread_error())))
        };
        self.spawn_work("writing the conversation", Box::pin(write));
    }

    pub(super) fn on_exported(&mut self, file: &str, written: Result<(), CliError>) {
        match written {
            Ok(()) => self.show(format!("wrote `{file}`")),
            Err(error) => self.show_error(error.to_line()),
        }
    }

    /// Reads the messages of earlier conversations if a key needs them.
    pub(super) fn read_earlier_messages(&mut self) {
        if !self.screen.take_wish_for_earlier_messages() || self.earlier_messages.is_some() {
            return;
        }
        let Some(directory) = self.context.directory.clone() else {
            return self.screen.on_earlier_messages(Vec::new());
        };
        let threads = self.search_threads.clone();
        let current = self.session.file().map(ConversationFile::id);
        self.earlier_messages = Some(Box::pin(async move {
            let read = move || conversation_file::earlier_messages(&directory, current.as_deref());
            threads.run(read).await.unwrap_or_default()
        }));
    }
}

fn thread_error() -> CliError {
    CliError::failure("cannot start a thread")
}
