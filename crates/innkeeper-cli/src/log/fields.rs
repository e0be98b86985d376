//! Writes the fields of an event into its log line without intermediate values.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::{self, Write as _};
use std::io;

use serde::Serializer as _;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use tracing::field::{Field, Visit};

use super::{CAUSE_FIELDS, LogFormat, LogLevel};
use crate::error_chain::error_chain;
use crate::secret_mask::SecretMask;
use crate::text::{escape_inline, is_deceptive};

/// Keys that every line has; an event field with such a name gets an underscore.
const RESERVED_KEYS: [&str; 3] = ["ts", "severity", "event"];

const MESSAGE_FIELD: &str = "message";

/// Detects whether an error is critical.
#[derive(Debug, Default)]
pub(super) struct CriticalVisitor(bool);

impl CriticalVisitor {
    pub(super) fn is_critical(&self) -> bool {
        self.0
    }
}

impl Visit for CriticalVisitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0 |= field.name() == "severity" && value == "critical";
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

/// Writes the message of an event, followed by all other fields in their order.
#[derive(Debug)]
pub(super) struct FieldWriter<'a> {
    line: &'a mut String,
    format: LogFormat,
    severity: LogLevel,
    mask: &'a SecretMask,
    /// Position of the message in the line.
    message_offset: usize,
    has_message: bool,
}

impl<'a> FieldWriter<'a> {
    pub(super) fn new(
        line: &'a mut String,
        format: LogFormat,
        severity: LogLevel,
        mask: &'a SecretMask,
    ) -> Self {
        Self { message_offset: line.len(), line, format, severity, mask, has_message: false }
    }

    /// Writes a default message if the event has none.
    pub(super) fn finish(self, write_message: impl FnOnce(&mut String)) {
        if !self.has_message {
            insert_at(self.line, self.message_offset, write_message);
        }
    }

    /// Writes a value whose JSON form equals its text, such as a number.
    fn write_display(&mut self, field: &Field, value: impl fmt::Display) {
        self.write_field(field, |line, _| append_display(line, format_args!("{value}")));
    }

    fn write_number(
        &mut self,
        field: &Field,
        write: impl FnOnce(&mut StringWriter<'_>) -> io::Result<()>,
    ) {
        self.write_field(field, |line, _| {
            let result = write(&mut StringWriter(line));
            debug_assert!(result.is_ok(), "writing to a String cannot fail");
        });
    }

    fn write_text(&mut self, field: &Field, value: &str) {
        if field.name() == "severity" && self.severity == LogLevel::Critical {
            // The line starts with the severity.
            return;
        }
        let value = if is_cause(field) { self.mask.apply(value) } else { Cow::Borrowed(value) };
        self.write_field(field, |line, form| match form {
            ValueFormat::Json => write_json(line, &value),
            ValueFormat::Message => line.push_str(&escape_inline(&value)),
            ValueFormat::Field => write_value(line, &value),
        });
    }

    fn write_field(&mut self, field: &Field, write: impl FnOnce(&mut String, ValueFormat)) {
        let name = field.name();
        let form = match self.format {
            LogFormat::Json => ValueFormat::Json,
            LogFormat::Text if name == MESSAGE_FIELD => ValueFormat::Message,
            LogFormat::Text => ValueFormat::Field,
        };
        if name == MESSAGE_FIELD {
            self.has_message = true;
            return insert_at(self.line, self.message_offset, |line| write(line, form));
        }
        let name = name.strip_prefix("r#").unwrap_or(name);
        let (open, close) = if form == ValueFormat::Json { (",\"", "\":") } else { (" ", "=") };
        self.line.push_str(open);
        self.line.push_str(name);
        self.line.push_str(if RESERVED_KEYS.contains(&name) { "_" } else { "" });
        self.line.push_str(close);
        write(self.line, form);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueFormat {
    Json,
    /// The message of a text line.
    Message,
    /// A field of a text line.
    Field,
}

impl Visit for FieldWriter<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.write_number(field, |line| CompactFormatter.write_f64(line, value));
        } else {
            self.write_text(field, &value.to_string());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.write_display(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        // Call numbers are frequent, so this path avoids `Display`.
        self.write_number(field, |line| CompactFormatter.write_u64(line, value));
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.write_display(field, value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.write_display(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.write_display(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.write_text(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let chain: Vec<_> = error_chain(value).map(ToString::to_string).collect();
        self.write_text(field, &chain.join(": "));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if is_cause(field) {
            return self.write_text(field, &format!("{value:?}"));
        }
        // Fast path: most values need no escaping and are already in their place.
        self.write_field(field, |line, form| {
            let quote = if form == ValueFormat::Json { "\"" } else { "" };
            line.push_str(quote);
            let start = line.len();
            append_display(line, format_args!("{value:?}"));
            let is_safe = match form {
                ValueFormat::Json | ValueFormat::Message => is_plain,
                ValueFormat::Field => is_bare_value,
            };
            if is_safe(&line[start..]) {
                return line.push_str(quote);
            }
            let text = line.split_off(start);
            line.truncate(start - quote.len());
            match form {
                ValueFormat::Message => line.push_str(&escape_inline(&text)),
                ValueFormat::Json | ValueFormat::Field => write_json(line, &text),
            }
        });
    }
}

/// Whether the value can contain text of a server, and therefore a secret.
fn is_cause(field: &Field) -> bool {
    CAUSE_FIELDS.contains(&field.name())
}

/// Inserts text at a byte index of a line.
fn insert_at(line: &mut String, at: usize, write: impl FnOnce(&mut String)) {
    let tail = line.split_off(at);
    write(line);
    line.push_str(&tail);
}

/// Appends a value; if formatting fails, the text ends there.
fn append_display(line: &mut String, value: fmt::Arguments<'_>) {
    let _ = line.write_fmt(value);
}

/// Writes a string as JSON that is safe to show on a terminal.
pub(super) fn write_json(line: &mut String, text: &str) {
    if is_plain(text) {
        line.push('"');
        line.push_str(text);
        line.push('"');
        return;
    }
    let mut serializer = Serializer::with_formatter(StringWriter(line), TerminalSafeFormatter);
    let result = serializer.serialize_str(text);
    debug_assert!(result.is_ok(), "writing to a String cannot fail");
}

/// Whether the text needs no escaping in JSON and on a terminal.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\')
}

/// Whether a value of a text line needs no quotes.
fn is_bare_value(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '"' | '=' | '\\'))
}

/// Writes a simple word without quotes, and any other text with quotes.
fn write_value(line: &mut String, text: &str) {
    if is_bare_value(text) { line.push_str(text) } else { write_json(line, text) }
}

/// A JSON formatter that also escapes characters that deceive a terminal.
struct TerminalSafeFormatter;

impl Formatter for TerminalSafeFormatter {
    fn write_string_fragment<W>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + io::Write,
    {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_deceptive) {
            let (before, after) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            let mut characters = after.chars();
            for unit in characters.next().into_iter().flat_map(utf16_units) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = characters.as_str();
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

fn utf16_units(c: char) -> Vec<u16> {
    c.encode_utf16(&mut [0; 2]).to_vec()
}

/// An [`io::Write`] adapter for a string, for serializers that write bytes.
struct StringWriter<'a>(&'a mut String);

impl io::Write for StringWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push_str(std::str::from_utf8(bytes).map_err(io::Error::other)?);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
