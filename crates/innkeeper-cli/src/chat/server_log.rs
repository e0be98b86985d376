//! The log messages of servers that the chat shows, bounded for servers that log without an end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_host::LogLevel;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::exit::CliError;
use crate::output::{escape_inline, shorten};

/// The level from which on messages are shown, unless the person chooses another level.
pub(crate) const DEFAULT_LOG_LEVEL: LogLevel = LogLevel::Warning;

/// Number of messages of a server that are shown at once; further messages of the server are shown
/// after an interval each, and else counted.
const MAX_BURST: u32 = 10;
const MESSAGE_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum number of characters of a shown message.
const MAX_MESSAGE_CHARS: usize = 400;

#[derive(Clone, Copy, Debug)]
pub(crate) struct LogMessage<'m> {
    pub(crate) server: &'m Arc<str>,
    pub(crate) level: &'m str,
    pub(crate) logger: Option<&'m str>,
    /// Any JSON value.
    pub(crate) data: Option<&'m RawValue>,
}

/// What becomes of a log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogMessageOutcome {
    /// The message is below the level.
    Hidden,
    /// The line and the level of the message.
    Shown(String, LogLevel),
    /// The message is counted.
    LeftOut,
}

/// Decides which log messages are shown.
#[derive(Debug)]
pub(crate) struct ServerLog {
    /// The lowest shown level; `None` shows no message.
    level: Option<LogLevel>,
    allowances: BTreeMap<Arc<str>, Allowance>,
    /// The messages that were left out since the last note.
    left_out: BTreeMap<Arc<str>, u64>,
    /// Whether messages were lost since the last note, of servers that are not known.
    has_lost: bool,
    note: Option<Note>,
}

/// The messages of a server that may still be shown.
#[derive(Debug)]
struct Allowance {
    messages: u32,
    since: Instant,
}

/// The text about messages that were left out.
#[derive(Clone, Debug, Default)]
struct Note {
    counts: BTreeMap<Arc<str>, u64>,
    has_lost: bool,
}

impl ServerLog {
    pub(crate) fn new(level: LogLevel) -> Self {
        Self {
            level: Some(level),
            allowances: BTreeMap::new(),
            left_out: BTreeMap::new(),
            has_lost: false,
            note: None,
        }
    }

    pub(crate) fn level(&self) -> Option<LogLevel> {
        self.level
    }

    /// Changes the level to the argument of `/log`: the name of a level, or `off`.
    ///
    /// # Errors
    ///
    /// Without a name of a level, the error lists the names and says which messages are shown.
    pub(crate) fn set_level(&mut self, argument: &str) -> Result<(), CliError> {
        let level = match argument {
            "off" => None,
            name => match LogLevel::from_name(name) {
                Some(level) => Some(level),
                None => return Err(self.level_error(name)),
            },
        };
        self.level = level;
        Ok(())
    }

    fn level_error(&self, name: &str) -> CliError {
        let levels = LogLevel::ALL.map(LogLevel::as_str).join(", ");
        CliError::usage(match name {
            "" => format!("{}\nusage: /log LEVEL with {levels} or off", self.level_text()),
            _ => format!("no level `{name}`: use {levels} or off"),
        })
    }

    /// Says which messages are shown.
    pub(crate) fn level_text(&self) -> String {
        match self.level {
            Some(level) => format!("log messages from `{}` on are shown", level.as_str()),
            None => "no log messages are shown".to_owned(),
        }
    }

    /// Returns what becomes of a message. A level that the protocol does not have counts as a warning.
    pub(crate) fn on_message(
        &mut self,
        message: LogMessage<'_>,
        now: Instant,
    ) -> LogMessageOutcome {
        let level = LogLevel::from_name(message.level).unwrap_or(LogLevel::Warning);
        if self.level.is_none_or(|lowest| level < lowest) {
            return LogMessageOutcome::Hidden;
        }
        let allowance = self
            .allowances
            .entry(message.server.clone())
            .or_insert(Allowance { messages: MAX_BURST, since: now });
        if allowance.take(now) {
            return LogMessageOutcome::Shown(message.to_line(), level);
        }
        *self.left_out.entry(message.server.clone()).or_default() += 1;
        LogMessageOutcome::LeftOut
    }

    /// Counts messages that were lost because the program did not read them in time.
    pub(crate) fn on_lost(&mut self) {
        self.has_lost |= self.level.is_some();
    }

    /// Returns the text about the messages that were left out since the last call, and the text that
    /// the first one replaces; `None` without such messages. `is_shown` says whether a person still
    /// sees a text close to the end.
    pub(crate) fn take_note(
        &mut self,
        is_shown: impl FnOnce(&str) -> bool,
    ) -> Option<(Option<String>, String)> {
        if self.left_out.is_empty() && !self.has_lost {
            return None;
        }
        let last = self.note.take().filter(|note| is_shown(&note.text()));
        let replaced = last.as_ref().map(Note::text);
        let mut note = last.unwrap_or_default();
        for (server, count) in std::mem::take(&mut self.left_out) {
            *note.counts.entry(server).or_default() += count;
        }
        note.has_lost |= std::mem::take(&mut self.has_lost);
        let text = note.text();
        self.note = Some(note);
        Some((replaced, text))
    }
}

impl Allowance {
    /// Takes a message, if one is left.
    fn take(&mut self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.since);
        let new = elapsed.as_millis() / MESSAGE_INTERVAL.as_millis();
        if new > 0 {
            let new = u32::try_from(new).unwrap_or(u32::MAX);
            self.messages = self.messages.saturating_add(new).min(MAX_BURST);
            self.since = now;
        }
        match self.messages.checked_sub(1) {
            Some(left) => {
                self.messages = left;
                true
            }
            None => false,
        }
    }
}

impl Note {
    fn text(&self) -> String {
        let counts = self.counts.iter().map(|(server, count)| format!("{count} of {server}"));
        let lost = self.has_lost.then(|| "some that came too fast".to_owned());
        let counts = counts.chain(lost).collect::<Vec<_>>().join(", ");
        format!("log messages left out: {counts}; /log LEVEL changes what is shown")
    }
}

impl LogMessage<'_> {
    /// Returns the message as one line of safe text.
    fn to_line(self) -> String {
        let data = self.data.map_or("null", RawValue::get);
        let text = serde_json::from_str::<String>(data).unwrap_or_else(|_| data.to_owned());
        let logger = self.logger.map(|logger| format!(" ({logger})")).unwrap_or_default();
        let line = format!("log {} {}{logger}: {}", self.server, self.level, text.trim_end());
        shorten(&escape_inline(&line), MAX_MESSAGE_CHARS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(log: &mut ServerLog, server: &str, level: &str, data: &str) -> LogMessageOutcome {
        let data = RawValue::from_string(data.to_owned()).unwrap();
        let server = Arc::from(server);
        let message = LogMessage { server: &server, level, logger: Some("db"), data: Some(&data) };
        log.on_message(message, Instant::now())
    }

    fn shown(line: &str, level: LogLevel) -> LogMessageOutcome {
        LogMessageOutcome::Shown(line.to_owned(), level)
    }

    #[tokio::test(start_paused = true)]
    async fn messages_from_the_level_on_are_shown_with_server_and_level() {
        let mut log = ServerLog::new(DEFAULT_LOG_LEVEL);
        assert_eq!(send(&mut log, "a", "notice", "1"), LogMessageOutcome::Hidden);
        let line = "log a warning (db): disk is full";
        assert_eq!(
            send(&mut log, "a", "warning", r#""disk is full\n""#),
            shown(line, LogLevel::Warning)
        );
        let line = r#"log a alert (db): {"code":7}"#;
        assert_eq!(send(&mut log, "a", "alert", r#"{"code":7}"#), shown(line, LogLevel::Alert));
        let unknown = shown("log a odd (db): 1", LogLevel::Warning);
        assert_eq!(send(&mut log, "a", "odd", "1"), unknown);
        log.set_level("debug").unwrap();
        assert_ne!(send(&mut log, "a", "debug", "1"), LogMessageOutcome::Hidden);
        log.set_level("off").unwrap();
        assert_eq!(send(&mut log, "a", "emergency", "1"), LogMessageOutcome::Hidden);
    }

    /// Attack: terminal | a server logs ten thousand messages | 10 are shown, others are counted, and
    /// another server is shown | No unbounded memory
    #[tokio::test(start_paused = true)]
    async fn messages_of_a_flood_are_counted_and_other_servers_are_shown() {
        let mut log = ServerLog::new(DEFAULT_LOG_LEVEL);
        let outcomes: Vec<_> = (0..10_000).map(|_| send(&mut log, "a", "error", "1")).collect();
        assert_eq!(outcomes.iter().filter(|it| **it == LogMessageOutcome::LeftOut).count(), 9_990);
        assert_ne!(send(&mut log, "b", "error", "1"), LogMessageOutcome::LeftOut);
        let text = "log messages left out: 9990 of a; /log LEVEL changes what is shown".to_owned();
        assert_eq!(log.take_note(|_| false), Some((None, text.clone())));
        assert_eq!(log.take_note(|_| true), None);
        send(&mut log, "a", "error", "1");
        let more = text.replace("9990", "9991");
        assert_eq!(log.take_note(|last| last == text), Some((Some(text), more)));
        send(&mut log, "a", "error", "1");
        log.on_lost();
        let other = "log messages left out: 1 of a, some that came too fast; /log LEVEL changes \
                     what is shown";
        assert_eq!(log.take_note(|_| false), Some((None, other.to_owned())));
        tokio::time::advance(MESSAGE_INTERVAL).await;
        assert_ne!(send(&mut log, "a", "error", "1"), LogMessageOutcome::LeftOut);
        assert_eq!(send(&mut log, "a", "error", "1"), LogMessageOutcome::LeftOut);
    }

    /// Attack: terminal | a log message has terminal sequences and a megabyte of text | the line has
    /// at most 400 characters without sequences | Foreign text stays text
    #[tokio::test(start_paused = true)]
    async fn a_message_is_one_short_line_of_safe_text() {
        let mut log = ServerLog::new(DEFAULT_LOG_LEVEL);
        let data = serde_json::to_string(&format!("\u{1b}[2J\n{}", "x".repeat(1 << 20))).unwrap();
        let outcome = send(&mut log, "a", "error", &data);
        let LogMessageOutcome::Shown(line, _) = outcome else { panic!("{outcome:?}") };
        assert!(line.starts_with("log a error (db): \\u{1b}[2J\\nxx"), "{line}");
        assert!(line.chars().count() <= MAX_MESSAGE_CHARS + 1);
    }
}
