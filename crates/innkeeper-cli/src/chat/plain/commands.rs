//! The commands of the chat line by line.

use std::path::Path;

use super::json_event::JsonEvent;
use super::{MAX_SHOWN_CHARS, PlainChat};
use crate::chat::attachment::{is_uri, read_file};
use crate::chat::slash_command::{SlashCommand, help_text};
use crate::chat::{command_work, external_editor, listings, permanent_rules};
use crate::exit::CliError;
use crate::output::shorten;

impl PlainChat<'_> {
    pub(super) async fn run_command(
        &mut self,
        command: SlashCommand,
        argument: &str,
    ) -> Result<(), CliError> {
        if let Err(error) = self.session.check_command(command) {
            return self.show_error(&error);
        }
        if command == SlashCommand::Prompt {
            return self.send_prompt(argument).await;
        }
        match self.perform(command, argument).await {
            Ok(text) => self.show(&text),
            Err(error) => self.show_error(&error),
        }
    }

    fn show(&mut self, text: &str) -> Result<(), CliError> {
        if self.output.is_json() {
            return Ok(self.output.print_json_line(&JsonEvent::Notice { text })?);
        }
        Ok(self.output.print_untrusted(text)?)
    }

    /// Prints why a command did nothing.
    fn show_error(&mut self, error: &CliError) -> Result<(), CliError> {
        let text = error.to_line();
        if self.output.is_json() {
            return self.show(&text);
        }
        Ok(self.note(&text)?)
    }

    /// Does the work of a command and returns its text.
    async fn perform(&mut self, command: SlashCommand, argument: &str) -> Result<String, CliError> {
        let host = self.session.host().clone();
        let session = &mut self.session;
        let directory = self.context.directory.as_deref();
        match command {
            SlashCommand::Help => Ok(help_text()),
            SlashCommand::Tools => {
                let hidden = &session.servers().hidden;
                Ok(listings::tools(&host, session.approver(), hidden, argument))
            }
            SlashCommand::Servers => Ok(listings::servers(&host, &session.servers().hidden)),
            SlashCommand::Prompts => Ok(listings::prompts(&host)),
            SlashCommand::Resources => Ok(listings::resources(&host)),
            SlashCommand::Rules => permanent_rules::run_command(session.approver(), argument),
            SlashCommand::Disable => session.servers().set_hidden(argument, true),
            SlashCommand::Enable => session.servers().set_hidden(argument, false),
            SlashCommand::Reload => session.reload().await,
            SlashCommand::Tokens => Ok(listings::tokens(session.tokens())),
            SlashCommand::Restart => command_work::restart(host, argument)?.await,
            SlashCommand::Undo => match session.remove_last_exchange() {
                Ok(Some(message)) => {
                    let text = format!("removed: {}", shorten(&message, MAX_SHOWN_CHARS));
                    self.draft.text = message;
                    Ok(text)
                }
                Ok(None) => Ok("the conversation is empty".to_owned()),
                Err(error) => Err(command_work::storage_error(error)),
            },
            SlashCommand::Redo => command_work::redo(session),
            SlashCommand::Fork => command_work::fork(session, directory),
            SlashCommand::Compact => match session.compact().await {
                Ok(compacted) => command_work::compacted(session, &compacted),
                Err(error) => Err(CliError::failure(error.to_string())),
            },
            SlashCommand::Clear => command_work::clear(session, directory),
            SlashCommand::Save => command_work::save(session, argument),
            SlashCommand::List => command_work::list(directory),
            SlashCommand::Resume => self.resume(argument).await,
            SlashCommand::Remove => {
                command_work::remove(session, directory, &self.threads, argument)?.await
            }
            SlashCommand::Export => command_work::export(session, &self.threads, argument)?.await,
            SlashCommand::Model => self.switch_model(argument).await,
            SlashCommand::Attach => self.attach(argument).await,
            SlashCommand::Detach => {
                let count = std::mem::take(&mut self.attachments).len();
                Ok(format!("removed {count} attachments of the next message"))
            }
            SlashCommand::Log => self.set_log_level(argument).await,
            SlashCommand::Edit => self.edit().await,
            SlashCommand::Prompt
            | SlashCommand::Details
            | SlashCommand::Copy
            | SlashCommand::Quit => {
                Err(CliError::usage("this command needs the chat on a whole screen"))
            }
        }
    }

    async fn resume(&mut self, id: &str) -> Result<String, CliError> {
        let directory = self.context.directory.as_deref();
        let open = command_work::open(&self.session, directory, &self.threads, id)?;
        let (file, conversation) = open.await?;
        let id = file.id();
        self.session.resume(file, conversation).map_err(command_work::storage_error)?;
        Ok(format!("continues {id}"))
    }

    async fn switch_model(&mut self, argument: &str) -> Result<String, CliError> {
        let Some(selected) = command_work::select(argument, &self.context.environment)? else {
            return Ok(command_work::model_text(&self.session));
        };
        let prepared = selected.prepare(None).await?;
        let (text, earlier) = command_work::set_model(&mut self.session, prepared);
        match earlier {
            Some(local) => local.stop().await.map(|()| text),
            None => Ok(text),
        }
    }

    async fn attach(&mut self, argument: &str) -> Result<String, CliError> {
        if argument.is_empty() {
            return Err(CliError::usage("usage: /attach URI|FILE"));
        }
        let content = match is_uri(argument) {
            true => self.session.servers().clone().read_resource(argument.to_owned()).await?,
            false => read_file(Path::new(argument))?,
        };
        self.attachments.push((argument.to_owned(), content));
        Ok(format!("attached {argument} to the next message"))
    }

    async fn send_prompt(&mut self, argument: &str) -> Result<(), CliError> {
        let content = match command_work::prompt(self.session.servers(), argument) {
            Ok(get) => get.await,
            Err(error) => Err(error),
        };
        match content {
            Ok(content) => {
                self.show(&format!("sends: {}", content.to_text()))?;
                self.converse(content).await
            }
            Err(error) => self.show_error(&error),
        }
    }

    /// Opens the draft in the editor of the user. The next empty line sends the draft.
    async fn edit(&mut self) -> Result<String, CliError> {
        if !self.inputs.has_person || self.output.is_json() {
            return Err(CliError::usage("this command needs a terminal"));
        }
        let text = external_editor::edit(&self.context.environment, &self.draft.text).await?;
        self.draft.is_ready = !text.is_empty();
        self.draft.text = text;
        Ok(match self.draft.is_ready {
            true => format!(
                "{}\nEnter sends this text, /edit changes the text, another line is sent instead",
                self.draft.text
            ),
            false => "the text is empty".to_owned(),
        })
    }
}
