//! The fields of an event written straight into its line, with nothing built in between.

use std::error::Error;
use std::fmt;
use std::io;

use serde::Serializer as _;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use tracing::field::{Field, Visit};
use tracing_subscriber::fmt::format::Writer;

use crate::cause::chain;
use crate::output::{deceives, inline};

/// Names that a line has for itself; a field called so gets an underscore.
const RESERVED: [&str; 3] = ["ts", "severity", "event"];

/// The field that holds an event's words.
const MESSAGE: &str = "message";

/// Finds out whether an error is critical.
#[derive(Debug, Default)]
pub(super) struct Severity(bool);

impl Severity {
    pub(super) fn is_critical(&self) -> bool {
        self.0
    }
}

impl Visit for Severity {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0 |= field.name() == "severity" && value == "critical";
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

/// Which part of an event one visit writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The words, as a JSON string.
    Message,
    /// `,"name":value` for every other field.
    JsonFields,
    /// The words, as they are.
    TextMessage,
    /// ` name=value` for every other field.
    TextFields,
}

/// Writes fields as they are visited.
#[derive(Debug)]
pub(super) struct Values<'a, 'w> {
    writer: &'a mut Writer<'w>,
    which: Which,
    wrote: bool,
    result: fmt::Result,
}

impl<'a, 'w> Values<'a, 'w> {
    pub(super) fn new(writer: &'a mut Writer<'w>, which: Which) -> Self {
        Self { writer, which, wrote: false, result: Ok(()) }
    }

    /// Whether anything was written.
    pub(super) fn finish(self) -> Result<bool, fmt::Error> {
        self.result.map(|()| self.wrote)
    }

    /// Writes a value whose JSON form is that of its text.
    fn plain(&mut self, field: &Field, value: impl fmt::Display) {
        self.put(field, |values| write!(values.writer, "{value}"));
    }

    fn text(&mut self, field: &Field, value: &str) {
        self.put(field, |values| match values.which {
            Which::Message | Which::JsonFields => write_json(values.writer, value),
            Which::TextMessage => values.writer.write_str(&inline(value)),
            Which::TextFields => write_word(values.writer, value),
        });
    }

    fn put(&mut self, field: &Field, write: impl FnOnce(&mut Self) -> fmt::Result) {
        let name = field.name();
        let wants_message = matches!(self.which, Which::Message | Which::TextMessage);
        if (name == MESSAGE) != wants_message || self.result.is_err() {
            return;
        }
        self.wrote = true;
        self.result = self.name(name).and_then(|()| write(self));
    }

    fn name(&mut self, name: &str) -> fmt::Result {
        let name = name.strip_prefix("r#").unwrap_or(name);
        let mark = if RESERVED.contains(&name) { "_" } else { "" };
        match self.which {
            Which::Message | Which::TextMessage => Ok(()),
            Which::JsonFields => write!(self.writer, ",\"{name}{mark}\":"),
            Which::TextFields => write!(self.writer, " {name}{mark}="),
        }
    }
}

impl Visit for Values<'_, '_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.plain(field, value);
        } else {
            self.text(field, &value.to_string());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field, value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.plain(field, value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let chain: Vec<_> = chain(value).map(ToString::to_string).collect();
        self.text(field, &chain.join(": "));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, |values| match values.which {
            Which::Message | Which::JsonFields => {
                let mut serializer = Serializer::with_formatter(Bytes(values.writer), Safe);
                serializer.collect_str(&format_args!("{value:?}")).map_err(|_| fmt::Error)
            }
            Which::TextMessage => values.writer.write_str(&inline(&format!("{value:?}"))),
            Which::TextFields => write_word(values.writer, &format!("{value:?}")),
        });
    }
}

/// Writes a string as JSON that is also harmless on a terminal.
pub(super) fn write_json(writer: &mut Writer<'_>, text: &str) -> fmt::Result {
    let mut serializer = Serializer::with_formatter(Bytes(writer), Safe);
    serializer.serialize_str(text).map_err(|_| fmt::Error)
}

/// Writes a word as it is, and anything longer or stranger between quotes.
fn write_word(writer: &mut Writer<'_>, text: &str) -> fmt::Result {
    let simple = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '=' | '\\');
    if !text.is_empty() && text.chars().all(simple) {
        return writer.write_str(text);
    }
    write_json(writer, text)
}

/// JSON in which characters that deceive a terminal are escaped like control characters.
struct Safe;

impl Formatter for Safe {
    fn write_string_fragment<W>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + io::Write,
    {
        let mut rest = fragment;
        while let Some(at) = rest.find(deceives) {
            let (before, after) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            let mut characters = after.chars();
            for unit in characters.next().into_iter().flat_map(units) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = characters.as_str();
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

fn units(c: char) -> Vec<u16> {
    c.encode_utf16(&mut [0; 2]).to_vec()
}

/// Lets a JSON serializer, which writes bytes, write to what takes text.
struct Bytes<'a, 'w>(&'a mut Writer<'w>);

impl io::Write for Bytes<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        self.0.write_str(text).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
