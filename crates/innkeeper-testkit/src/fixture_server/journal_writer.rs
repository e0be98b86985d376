//! Writer of the fixture server's journal, one JSON line per event.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Appends events to the journal file; without a file, does nothing.
#[derive(Clone, Debug)]
pub(super) struct JournalWriter {
    server: String,
    file: Option<Arc<File>>,
}

impl JournalWriter {
    /// Opens the journal for appending, and creates it if necessary.
    pub(super) fn open(server: &str, path: Option<&str>) -> io::Result<Self> {
        let file = match path {
            Some(path) => Some(Arc::new(OpenOptions::new().create(true).append(true).open(path)?)),
            None => None,
        };
        Ok(Self { server: server.to_owned(), file })
    }

    pub(super) fn record_event(&self, event: &str, message: &Value) {
        self.append(event, &message.to_string());
    }

    /// Records a received line: unchanged if the line is JSON, else as a string.
    pub(super) fn record_received(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) => self.append("recv", raw.get()),
            Err(_) => self.append("recv", &json!(text).to_string()),
        }
    }

    /// Writes one event in a single write, because several servers may append to one file.
    fn append(&self, event: &str, message: &str) {
        let Some(file) = &self.file else { return };
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let line = format!(
            "{{\"ts_ms\":{millis},\"pid\":{},\"server\":{},\"event\":\"{event}\",\"message\":{message}}}\n",
            std::process::id(),
            json!(self.server),
        );
        // A write error shows as a missing line in the test that reads the journal.
        let _ = (&**file).write_all(line.as_bytes());
    }
}
