//! The events of the host: states of servers, and the log messages of servers.

use innkeeper_host::{HostEvent, LogLevel};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::Instant;

use super::super::theme::Role;
use super::App;
use crate::chat::command_work;
use crate::chat::server_log::{LogMessage, LogMessageOutcome};

/// Maximum number of events that are handled before the next key.
const MAX_EVENTS_AT_ONCE: usize = 256;

impl App {
    /// Handles an event and those that wait behind the event.
    pub(super) fn on_host_event(
        &mut self,
        first: Result<HostEvent, RecvError>,
        events: &mut Receiver<HostEvent>,
    ) {
        let mut is_status_new = false;
        let mut next = first;
        for _ in 0..MAX_EVENTS_AT_ONCE {
            match next {
                Ok(HostEvent::Notification { .. } | HostEvent::CallFinished(_)) => {}
                Ok(HostEvent::Message { server, level, logger, data, .. }) => {
                    self.on_log_message(LogMessage {
                        server: &server,
                        level: &level,
                        logger: logger.as_deref(),
                        data: data.as_deref(),
                    });
                }
                Ok(_) => is_status_new = true,
                // The status is current in any case.
                Err(RecvError::Lagged(_)) => {
                    self.server_log.on_lost();
                    (is_status_new, self.is_dirty) = (true, true);
                }
                Err(RecvError::Closed) => {
                    self.leave();
                    return;
                }
            }
            next = match events.try_recv() {
                Ok(event) => Ok(event),
                Err(TryRecvError::Lagged(count)) => Err(RecvError::Lagged(count)),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            };
        }
        if is_status_new {
            self.update_status();
        }
    }

    fn on_log_message(&mut self, message: LogMessage<'_>) {
        match self.server_log.on_message(message, Instant::now()) {
            LogMessageOutcome::Hidden => {}
            LogMessageOutcome::Shown(line, level) => {
                self.show_left_out_messages();
                let role = match level {
                    LogLevel::Debug | LogLevel::Info | LogLevel::Notice => Role::Dim,
                    LogLevel::Warning => Role::Warning,
                    LogLevel::Error
                    | LogLevel::Critical
                    | LogLevel::Alert
                    | LogLevel::Emergency => Role::Error,
                };
                self.screen.on_server_line(role, line);
                self.is_dirty = true;
            }
            LogMessageOutcome::LeftOut => self.is_dirty = true,
        }
    }

    /// Shows how many log messages were left out.
    pub(super) fn show_left_out_messages(&mut self) {
        let transcript = &mut self.screen.transcript;
        match self.server_log.take_note(|text| transcript.has_recent_notice(text)) {
            Some((Some(replaced), note)) => transcript.replace_recent_notice(&replaced, note),
            Some((None, note)) => self.screen.on_server_line(Role::Dim, note),
            None => {}
        }
    }

    /// Changes the level from which on log messages are shown, and asks the servers for the level.
    pub(super) fn set_log_level(&mut self, argument: &str) {
        match self.server_log.set_level(argument) {
            Ok(()) => {
                let level = self.server_log.level();
                let text = self.server_log.level_text();
                let host = self.session.host().clone();
                let request = command_work::request_log_level(host, level, text);
                self.spawn_command("setting the level of log messages", Ok(request));
            }
            Err(error) => self.show_error(error.to_line()),
        }
    }
}
