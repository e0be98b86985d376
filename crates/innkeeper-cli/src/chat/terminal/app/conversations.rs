//! The commands for conversations: redo, copy, change, removal and export.

use futures_util::FutureExt as _;
use innkeeper_agent::conversation::Conversation;

use super::super::theme::Role;
use super::commands::{server_of, user_text};
use super::{App, WorkResult};
use crate::chat::command_work;
use crate::chat::conversation_file::{self, ConversationFile};
use crate::exit::CliError;

pub(super) type OpenedConversation = Box<Result<(ConversationFile, Conversation), CliError>>;

impl App {
    pub(super) fn redo(&mut self) {
        if !self.require_idle() {
            return;
        }
        let restored = command_work::redo(&mut self.session);
        if restored.is_ok() {
            self.show_conversation();
        }
        self.show_outcome(restored);
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
        let forked = command_work::fork(&mut self.session, self.context.directory.as_deref());
        self.show_outcome(forked);
    }

    pub(super) fn resume(&mut self, id: &str) {
        if !self.require_idle() {
            return;
        }
        let directory = self.context.directory.as_deref();
        match command_work::open(&self.session, directory, &self.threads, id) {
            Ok(open) => {
                let open = open.map(|opened| WorkResult::Opened(Box::new(opened))).boxed();
                self.spawn_work("reading the conversation", open);
            }
            Err(error) => self.show_error(error.to_line()),
        }
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
        let directory = self.context.directory.as_deref();
        let remove = command_work::remove(&self.session, directory, &self.threads, id);
        self.spawn_command("removing the conversation", remove);
    }

    pub(super) fn export(&mut self, file: &str) {
        let export = command_work::export(&self.session, &self.threads, file);
        self.spawn_command("writing the conversation", export);
    }

    /// Reads the messages of earlier conversations if a key needs them.
    pub(super) fn read_earlier_messages(&mut self) {
        if !self.screen.editor.take_wish_for_earlier_messages()
            || self.searches.earlier_messages.is_some()
        {
            return;
        }
        let Some(directory) = self.context.directory.clone() else {
            return self.screen.on_earlier_messages(Vec::new());
        };
        let threads = self.searches.threads.clone();
        let current = self.session.file().map(ConversationFile::id);
        self.searches.earlier_messages = Some(Box::pin(async move {
            threads
                .run(move || conversation_file::earlier_messages(&directory, current.as_deref()))
                .await
                .unwrap_or_default()
        }));
    }
}
