//! Reader of the journal in which fixture servers record received messages.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::client_messages::ClientMessageChecker;

/// Interval between reads.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A line of a journal.
#[derive(Clone, Debug)]
pub struct JournalEntry {
    /// The time in milliseconds since 1970.
    pub ts_ms: u64,
    /// The process id of the server.
    pub pid: u32,
    /// The name of the fixture server.
    pub server: String,
    /// `start`, `recv`, `stdin_eof`, `signal`, `exit`, `child`, `sleeper` or `error`.
    pub event: String,
    /// The received message or the details of the event; the text where the nesting is too deep for
    /// a tree.
    pub message: Value,
    /// The unchanged text of `message`.
    pub raw: String,
}

impl JournalEntry {
    /// Returns the method of a received request or notification.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        if self.event == "recv" { self.message.get("method")?.as_str() } else { None }
    }

    fn parse(line: &str) -> Option<Self> {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(line).ok()?;
        let member = |name: &str| serde_json::from_str::<Value>(members.get(name)?.get()).ok();
        let raw = members.get("message")?.get();
        Some(Self {
            ts_ms: member("ts_ms")?.as_u64()?,
            pid: u32::try_from(member("pid")?.as_u64()?).ok()?,
            server: member("server")?.as_str()?.to_owned(),
            event: member("event")?.as_str()?.to_owned(),
            message: member("message").unwrap_or_else(|| Value::String(raw.to_owned())),
            raw: raw.to_owned(),
        })
    }
}

/// The entries of one or several fixture servers in order.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// The entries.
    pub entries: Vec<JournalEntry>,
}

impl Journal {
    /// Reads a journal; a missing file is an empty journal.
    ///
    /// # Panics
    ///
    /// If a received message violates the schema of the specification, and as
    /// [`Journal::read_unchecked`].
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let journal = Self::read_unchecked(path);
        journal.assert_valid_messages();
        journal
    }

    /// As [`Journal::read`], for clients that send invalid messages on purpose.
    ///
    /// # Panics
    ///
    /// If a complete line is invalid. An incomplete last line is ignored.
    #[must_use]
    pub fn read_unchecked(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let complete_lines = text.rfind('\n').map_or("", |end| &text[..end]);
        let entries = complete_lines
            .lines()
            .map(|line| {
                JournalEntry::parse(line).unwrap_or_else(|| panic!("invalid journal line: {line}"))
            })
            .collect();
        Self { entries }
    }

    /// Panics if a received message violates the schema of the specification.
    fn assert_valid_messages(&self) {
        let mut checkers: HashMap<u32, ClientMessageChecker> = HashMap::new();
        for entry in self.entries.iter().filter(|entry| entry.event == "recv") {
            // A message that is nested too deeply for a tree has no check.
            if entry.message.is_string() && !entry.raw.starts_with('"') {
                continue;
            }
            let checked = checkers.entry(entry.pid).or_default().check(&entry.message);
            if let Err(violations) = checked {
                panic!("`{}` received {}: {violations}", entry.server, entry.raw);
            }
        }
    }

    /// Reads the journal repeatedly until it meets a condition; requires a running clock.
    ///
    /// # Panics
    ///
    /// If the journal does not meet the condition within the limit; the message lists all entries.
    /// As [`Journal::read`].
    pub async fn wait_for(path: &Path, limit: Duration, condition: impl Fn(&Self) -> bool) -> Self {
        let looking = async {
            loop {
                let journal = Self::read_unchecked(path);
                if condition(&journal) {
                    return journal;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        match tokio::time::timeout(limit, looking).await {
            Ok(journal) => {
                journal.assert_valid_messages();
                journal
            }
            Err(_) => {
                let journal = Self::read_unchecked(path);
                panic!("condition not met within {limit:?}; journal: {journal:#?}")
            }
        }
    }

    /// Returns the entries of this server.
    #[must_use]
    pub fn for_server(&self, server: &str) -> Self {
        let entries = self.entries.iter().filter(|entry| entry.server == server);
        Self { entries: entries.cloned().collect() }
    }

    /// Returns the received methods in order.
    #[must_use]
    pub fn methods(&self) -> Vec<&str> {
        self.entries.iter().filter_map(JournalEntry::method).collect()
    }

    /// Returns how often a method was received.
    #[must_use]
    pub fn count(&self, method: &str) -> usize {
        self.received(method).len()
    }

    /// Returns the messages with this method in order.
    #[must_use]
    pub fn received(&self, method: &str) -> Vec<&JournalEntry> {
        self.entries.iter().filter(|entry| entry.method() == Some(method)).collect()
    }

    /// Returns the parameters of each message with this method; null if absent.
    #[must_use]
    pub fn params(&self, method: &str) -> Vec<&Value> {
        self.received(method).into_iter().map(|entry| &entry.message["params"]).collect()
    }

    /// Returns the received responses to requests of the server.
    #[must_use]
    pub fn responses(&self) -> Vec<&Value> {
        let received = self.entries.iter().filter(|entry| entry.event == "recv");
        received
            .map(|entry| &entry.message)
            .filter(|message| message.get("method").is_none())
            .collect()
    }

    /// Returns the entries of one event, such as `start`.
    #[must_use]
    pub fn events(&self, event: &str) -> Vec<&JournalEntry> {
        self.entries.iter().filter(|entry| entry.event == event).collect()
    }

    /// Returns the process ids of the started servers in order.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.events("start").into_iter().map(|entry| entry.pid).collect()
    }
}
