//! The events of the host: states of servers, and the log messages of servers.

use std::time::Duration;

use innkeeper_host::{HostEvent, LogLevel};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Instant, timeout};

use super::super::theme::Role;
use super::{App, WorkResult};
use crate::chat::server_log::{LogMessage, LogMessageOutcome};

/// Maximum number of events that are handled before the next key.
const MAX_EVENTS_AT_ONCE: usize = 256;

/// Time for servers to accept a level; messages wait meanwhile.
const SET_LEVEL_TIMEOUT: Duration = Duration::from_secs(5);

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
                    self.is_over = true;
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
        let is_shown = |text: &str| transcript.has_recent_notice(text);
        match self.server_log.take_note(is_shown) {
            Some((Some(replaced), note)) => transcript.replace_recent_notice(&replaced, note),
            Some((None, note)) => self.screen.on_server_line(Role::Dim, note),
            None => {}
        }
    }

    /// Changes the level from which on log messages are shown, and asks the servers for the level.
    pub(super) fn set_log_level(&mut self, argument: &str) {
        let level = match argument {
            "" => {
                let text = match self.server_log.level() {
                    Some(level) => format!("log messages from `{}` on are shown", level.as_str()),
                    None => "no log messages are shown".to_owned(),
                };
                let levels = LogLevel::ALL.map(LogLevel::as_str).join(", ");
                return self.show(format!("{text}\nusage: /log LEVEL with {levels} or off"));
            }
            "off" => {
                self.server_log.set_level(None);
                return self.show("no log messages are shown".to_owned());
            }
            name => match LogLevel::from_name(name) {
                Some(level) => level,
                None => {
                    let levels = LogLevel::ALL.map(LogLevel::as_str).join(", ");
                    return self.show_error(format!("no level `{name}`: use {levels} or off"));
                }
            },
        };
        self.server_log.set_level(Some(level));
        let host = self.session.host().clone();
        let set = async move {
            let set = timeout(SET_LEVEL_TIMEOUT, host.set_log_level(None, level)).await;
            let problem = match set {
                Ok(set) => set.err().map(|error| error.to_string()),
                Err(_) => Some("a server does not respond".to_owned()),
            };
            WorkResult::LogLevelSet(level, problem)
        };
        self.spawn_work("setting the level of log messages", Box::pin(set));
    }

    pub(super) fn on_log_level(&mut self, level: LogLevel, problem: Option<String>) {
        self.show(format!("log messages from `{}` on are shown", level.as_str()));
        if let Some(problem) = problem {
            self.show_error(format!("not every server accepted the level: {problem}"));
        }
    }
}
