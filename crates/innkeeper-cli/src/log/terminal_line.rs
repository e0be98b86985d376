//! Log lines for a person at a terminal: one sentence for each fact, once.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use innkeeper_host::event::REPORTED_TARGET;
use tracing::Event;
use tracing::field::{Field, Visit};

use super::LogLevel;
use super::layer::ansi_code;
use crate::error_chain::error_chain;
use crate::output::escape_inline;

/// The kind of audit event that the command prints itself.
const REPORTED_AUDIT_KIND: &str = "start-failed";

/// The kind of audit event for an item that differs from its pin. A new version of a server can
/// change all its items, so there is one sentence for each server.
const PIN_AUDIT_KIND: &str = "pin-mismatch";
const PIN_SENTENCE: &str = "definitions differ from `mcp.lock`; run `innkeeper lock --check`";

/// Fields with the cause of a fact, in the order of preference.
const CAUSE_FIELDS: [&str; 5] = ["error", "why", "reason", "detail", "fault"];

/// Fields that help programs and not a person.
const HIDDEN_FIELDS: [&str; 7] =
    ["audit", "security", "severity", "id", "latency_ms", "outcome", "required"];

/// Maximum number of remembered lines. A line after them is written again.
const MAX_REMEMBERED_LINES: usize = 256;

/// Writes sentences, each of them once.
#[derive(Debug, Default)]
pub(super) struct TerminalLines {
    written: Mutex<HashSet<String>>,
}

impl TerminalLines {
    /// Writes the sentence of an event; nothing if the command prints the fact itself, or if the
    /// sentence was written before.
    pub(super) fn write(
        &self,
        line: &mut String,
        severity: LogLevel,
        event: &Event<'_>,
        colour: bool,
    ) {
        let mut fields = SentenceFields::default();
        event.record(&mut fields);
        if event.metadata().target() == REPORTED_TARGET || fields.is_reported {
            return;
        }
        let sentence = fields.sentence(event.metadata().name());
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.contains(&sentence) {
            return;
        }
        let (start, end) = match colour {
            true => (format!("\x1b[{}m", ansi_code(severity)), "\x1b[0m"),
            false => (String::new(), ""),
        };
        for part in [&start, severity.as_str(), end, ": ", &sentence, "\n"] {
            line.push_str(part);
        }
        if written.len() < MAX_REMEMBERED_LINES {
            written.insert(sentence);
        }
    }
}

/// The fields of an event, sorted by their place in a sentence.
#[derive(Default)]
struct SentenceFields {
    server: Option<String>,
    message: Option<String>,
    causes: [Option<String>; CAUSE_FIELDS.len()],
    others: Vec<(&'static str, String)>,
    is_reported: bool,
    is_pin_mismatch: bool,
}

impl SentenceFields {
    fn add(&mut self, field: &Field, value: String) {
        let name = field.name();
        self.is_reported |= name == "audit" && value == REPORTED_AUDIT_KIND;
        self.is_pin_mismatch |= name == "audit" && value == PIN_AUDIT_KIND;
        match name {
            "message" => self.message = Some(value),
            "server" => self.server = Some(value),
            _ if HIDDEN_FIELDS.contains(&name) => {}
            _ => match CAUSE_FIELDS.iter().position(|cause| *cause == name) {
                Some(index) => self.causes[index] = Some(value),
                None => self.others.push((name.strip_prefix("r#").unwrap_or(name), value)),
            },
        }
    }

    /// Returns `server `NAME`: message: cause (field value, …)`, safe to show on a terminal.
    fn sentence(self, event_name: &str) -> String {
        let server = self.server.map(|server| format!("server `{server}`"));
        if self.is_pin_mismatch {
            let parts: Vec<String> = server.into_iter().chain([PIN_SENTENCE.to_owned()]).collect();
            return escape_inline(&parts.join(": ")).into_owned();
        }
        let message = self.message.unwrap_or_else(|| event_name.to_owned());
        let causes = self.causes.into_iter().flatten();
        let parts: Vec<String> = server.into_iter().chain([message]).chain(causes).collect();
        let mut sentence = parts.join(": ");
        if !self.others.is_empty() {
            let others: Vec<String> =
                self.others.iter().map(|(name, value)| format!("{name} {value}")).collect();
            sentence.push_str(&format!(" ({})", others.join(", ")));
        }
        escape_inline(&sentence).into_owned()
    }
}

impl Visit for SentenceFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        // A person needs no more digits of a delay.
        self.add(field, format!("{value:.1}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.to_owned());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let chain: Vec<_> = error_chain(value).map(ToString::to_string).collect();
        self.add(field, chain.join(": "));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}"));
    }
}
