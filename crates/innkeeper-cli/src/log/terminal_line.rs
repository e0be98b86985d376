//! Log lines for a person at a terminal: one sentence for each fact, once.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use innkeeper_host::event::REPORTED_TARGET;
use tracing::field::{Field, Visit};

use super::layer::{MaskedEvent, ansi_code};
use super::{CAUSE_FIELDS, LogLevel, TerminalStyle};
use crate::error_chain::error_chain;
use crate::text::{escape_inline, wrap_message};

/// The kinds of audit events whose fact every command prints itself: as the state of a server, or as
/// the error of a call.
const REPORTED_AUDIT_KINDS: [&str; 3] = ["start-failed", "tool-refused", "arguments-refused"];

/// The kinds of audit events about the definitions of a server.
const FINDING_AUDIT_KINDS: [&str; 2] = ["security-warning", "guard-finding"];

/// The kind of audit event for an item that differs from its pin. A new version of a server can
/// change all its items, so there is one sentence for each server.
const PIN_AUDIT_KIND: &str = "pin-mismatch";
const PIN_SENTENCE: &str = "differs from `mcp.lock`: run `innkeeper lock --check`";

/// Fields that help programs and not a person.
const HIDDEN_FIELDS: [&str; 8] =
    ["audit", "security", "severity", "id", "latency_ms", "outcome", "required", "count"];

/// Endings of field names with the unit of the value.
const UNIT_ENDINGS: [(&str, &str); 2] = [("_ms", "ms"), ("_s", "s")];

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
        MaskedEvent { event, mask }: &MaskedEvent<'_>,
        style: TerminalStyle,
    ) {
        let mut fields = SentenceFields::default();
        event.record(&mut fields);
        for cause in fields.causes.iter_mut().flatten() {
            *cause = mask.apply(cause).into_owned();
        }
        let is_reported = event.metadata().target() == REPORTED_TARGET
            || fields.has_audit_kind(&REPORTED_AUDIT_KINDS)
            || style.prints_findings && fields.has_audit_kind(&FINDING_AUDIT_KINDS);
        if is_reported {
            return;
        }
        let sentence = fields.sentence(event.metadata().name());
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.contains(&sentence) {
            return;
        }
        let (start, end) = match style.colour {
            true => (format!("\x1b[{}m", ansi_code(severity)), "\x1b[0m"),
            false => (String::new(), ""),
        };
        let text = format!("{start}{}{end}: {sentence}", severity.as_str());
        line.push_str(&wrap_message(&text, style.columns));
        line.push('\n');
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
    others: Vec<String>,
    audit_kind: Option<String>,
}

impl SentenceFields {
    fn add(&mut self, field: &Field, value: String) {
        let name = field.name();
        match name {
            "audit" => self.audit_kind = Some(value),
            "message" => self.message = Some(value),
            "server" => self.server = Some(value),
            _ if HIDDEN_FIELDS.contains(&name) => {}
            _ => match CAUSE_FIELDS.iter().position(|cause| *cause == name) {
                Some(index) => self.causes[index] = Some(value),
                None => self.others.push(other_text(name, &value)),
            },
        }
    }

    fn has_audit_kind(&self, kinds: &[&str]) -> bool {
        self.audit_kind.as_deref().is_some_and(|kind| kinds.contains(&kind))
    }

    /// Returns `server `NAME`: message: cause (field value, …)`, safe to show on a terminal.
    fn sentence(self, event_name: &str) -> String {
        let server = self.server.map(|server| format!("server `{server}`"));
        if self.audit_kind.as_deref() == Some(PIN_AUDIT_KIND) {
            let parts: Vec<String> = server.into_iter().chain([PIN_SENTENCE.to_owned()]).collect();
            return escape_inline(&parts.join(" ")).into_owned();
        }
        let message = self.message.unwrap_or_else(|| event_name.to_owned());
        let causes = self.causes.into_iter().flatten();
        let parts: Vec<String> = server.into_iter().chain([message]).chain(causes).collect();
        let mut sentence = parts.join(": ");
        if !self.others.is_empty() {
            sentence.push_str(&format!(" ({})", self.others.join(", ")));
        }
        escape_inline(&sentence).into_owned()
    }
}

/// Returns `name value`, with the unit of the value.
fn other_text(name: &str, value: &str) -> String {
    let name = name.strip_prefix("r#").unwrap_or(name);
    let mut units = UNIT_ENDINGS.iter();
    match units.find_map(|(ending, unit)| Some((name.strip_suffix(ending)?, unit))) {
        Some((name, unit)) => format!("{name} {value} {unit}"),
        None => format!("{name} {value}"),
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
