//! Prints the log messages of servers.

use innkeeper_host::{Host, HostEvent};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::PlainChat;
use super::json_event::JsonEvent;
use crate::chat::command_work;
use crate::chat::server_log::{DEFAULT_LOG_LEVEL, LogMessage, LogMessageOutcome, ServerLog};
use crate::exit::CliError;
use crate::output::Style;

pub(super) struct ServerMessages {
    /// `None` after the end of the host.
    events: Option<Receiver<HostEvent>>,
    log: ServerLog,
}

impl ServerMessages {
    pub(super) fn new(host: &Host) -> Self {
        Self { events: Some(host.events()), log: ServerLog::new(DEFAULT_LOG_LEVEL) }
    }

    /// Returns the next event of the host; waits forever after the end of the host.
    pub(super) async fn next(&mut self) -> Result<HostEvent, RecvError> {
        match &mut self.events {
            Some(events) => events.recv().await,
            None => std::future::pending().await,
        }
    }
}

impl PlainChat<'_> {
    /// Prints the log message of an event, if the level and the limit of the server allow the message.
    pub(super) fn on_host_event(
        &mut self,
        event: Result<HostEvent, RecvError>,
    ) -> Result<(), CliError> {
        match event {
            Ok(HostEvent::Message { server, level, logger, data, .. }) => {
                let message = LogMessage {
                    server: &server,
                    level: &level,
                    logger: logger.as_deref(),
                    data: data.as_deref(),
                };
                match self.servers.log.on_message(message, Instant::now()) {
                    LogMessageOutcome::Hidden | LogMessageOutcome::LeftOut => Ok(()),
                    LogMessageOutcome::Shown(line, _) => self.print_server_line(&line),
                }
            }
            Ok(_) => Ok(()),
            Err(RecvError::Lagged(_)) => {
                self.servers.log.on_lost();
                Ok(())
            }
            Err(RecvError::Closed) => {
                self.servers.events = None;
                Ok(())
            }
        }
    }

    /// Prints how many log messages were left out since the last call.
    pub(super) fn print_left_out_messages(&mut self) -> Result<(), CliError> {
        match self.servers.log.take_note(|_| false) {
            Some((_, note)) => self.print_server_line(&note),
            None => Ok(()),
        }
    }

    fn print_server_line(&mut self, text: &str) -> Result<(), CliError> {
        if self.output.is_json() {
            return Ok(self.output.print_json_line(&JsonEvent::Log { text })?);
        }
        self.end_line()?;
        let (label, text) = text.split_once(' ').unwrap_or(("log", text));
        Ok(self.output.labelled_status(Style::Dim, label, text)?)
    }

    /// Changes the level from which on log messages are shown, and asks the servers for the level.
    pub(super) async fn set_log_level(&mut self, argument: &str) -> Result<String, CliError> {
        self.servers.log.set_level(argument)?;
        let level = self.servers.log.level();
        let text = self.servers.log.level_text();
        command_work::request_log_level(self.session.host().clone(), level, text).await
    }
}
