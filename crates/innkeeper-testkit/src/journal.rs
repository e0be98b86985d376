//! Reading the journal in which fixture servers record what reached them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;

/// How long to wait before looking again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// One line of a journal.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When, in milliseconds since 1970.
    pub ts_ms: u64,
    /// The process that wrote it.
    pub pid: u32,
    /// The fixture server's name.
    pub server: String,
    /// `start`, `recv`, `stdin_eof`, `signal`, `exit`, `child`, `sleeper` or `error`.
    pub event: String,
    /// The message received, or what there is to say of the event; its text where it is nested
    /// too deep for a tree.
    pub message: Value,
    /// The text of `message` exactly as it was received.
    pub raw: String,
}

impl Entry {
    /// The method of a received request or notification.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        if self.event == "recv" { self.message.get("method")?.as_str() } else { None }
    }

    fn read(line: &str) -> Option<Self> {
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

/// What one or several fixture servers recorded, in the order they did.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// The lines.
    pub entries: Vec<Entry>,
}

impl Journal {
    /// Reads a journal; one that does not exist yet is empty.
    ///
    /// # Panics
    ///
    /// When a whole line cannot be read. A last line still being written is left out.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let entries = whole
            .lines()
            .map(|line| Entry::read(line).unwrap_or_else(|| panic!("not a journal line: {line}")))
            .collect();
        Self { entries }
    }

    /// Reads the journal again and again until it is as wanted; for a clock that is not stopped.
    ///
    /// # Panics
    ///
    /// When it is not within the limit; the message has every line.
    pub async fn until(path: &Path, limit: Duration, wanted: impl Fn(&Self) -> bool) -> Self {
        let looking = async {
            loop {
                let journal = Self::read(path);
                if wanted(&journal) {
                    return journal;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        match tokio::time::timeout(limit, looking).await {
            Ok(journal) => journal,
            Err(_) => panic!("not within {limit:?}; the journal has {:#?}", Self::read(path)),
        }
    }

    /// Only what this server recorded.
    #[must_use]
    pub fn of(&self, server: &str) -> Self {
        let mine = self.entries.iter().filter(|entry| entry.server == server);
        Self { entries: mine.cloned().collect() }
    }

    /// The methods received, in order.
    #[must_use]
    pub fn methods(&self) -> Vec<&str> {
        self.entries.iter().filter_map(Entry::method).collect()
    }

    /// How often a method was received.
    #[must_use]
    pub fn count(&self, method: &str) -> usize {
        self.received(method).len()
    }

    /// The messages with this method, in order.
    #[must_use]
    pub fn received(&self, method: &str) -> Vec<&Entry> {
        self.entries.iter().filter(|entry| entry.method() == Some(method)).collect()
    }

    /// The parameters of each message with this method, null where there were none.
    #[must_use]
    pub fn params(&self, method: &str) -> Vec<&Value> {
        self.received(method).into_iter().map(|entry| &entry.message["params"]).collect()
    }

    /// The responses received, to requests of the server's own.
    #[must_use]
    pub fn responses(&self) -> Vec<&Value> {
        let received = self.entries.iter().filter(|entry| entry.event == "recv");
        received
            .map(|entry| &entry.message)
            .filter(|message| message.get("method").is_none())
            .collect()
    }

    /// The lines of one event, such as `start`.
    #[must_use]
    pub fn events(&self, event: &str) -> Vec<&Entry> {
        self.entries.iter().filter(|entry| entry.event == event).collect()
    }

    /// The process ids of the servers that started, in order.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.events("start").into_iter().map(|entry| entry.pid).collect()
    }
}
