//! The fields of an event written straight into its line, with nothing built in between.

use std::error::Error;
use std::fmt::{self, Write as _};
use std::io;

use serde::Serializer as _;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use tracing::field::{Field, Visit};

use super::{Level, LogFormat};
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

/// Writes the words of an event, and behind them every other field as it comes.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    line: &'a mut String,
    format: LogFormat,
    severity: Level,
    /// Where the words stand.
    words: usize,
    has_words: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn new(line: &'a mut String, format: LogFormat, severity: Level) -> Self {
        Self { words: line.len(), line, format, severity, has_words: false }
    }

    /// Writes words for an event that has none.
    pub(super) fn finish(self, words: impl FnOnce(&mut String)) {
        if !self.has_words {
            before(self.line, self.words, words);
        }
    }

    /// Writes a value whose JSON form is that of its text.
    fn plain(&mut self, field: &Field, value: impl fmt::Display) {
        self.put(field, |line, _| show(line, format_args!("{value}")));
    }

    fn number(&mut self, field: &Field, write: impl FnOnce(&mut Bytes<'_>) -> io::Result<()>) {
        self.put(field, |line, _| {
            let written = write(&mut Bytes(line));
            debug_assert!(written.is_ok(), "a String takes every write");
        });
    }

    fn text(&mut self, field: &Field, value: &str) {
        if field.name() == "severity" && self.severity == Level::Critical {
            // The line begins with it.
            return;
        }
        self.put(field, |line, form| match form {
            Form::Json => write_json(line, value),
            Form::Words => line.push_str(&inline(value)),
            Form::Word => write_word(line, value),
        });
    }

    fn put(&mut self, field: &Field, write: impl FnOnce(&mut String, Form)) {
        let name = field.name();
        let form = match self.format {
            LogFormat::Json => Form::Json,
            LogFormat::Text if name == MESSAGE => Form::Words,
            LogFormat::Text => Form::Word,
        };
        if name == MESSAGE {
            self.has_words = true;
            return before(self.line, self.words, |line| write(line, form));
        }
        let name = name.strip_prefix("r#").unwrap_or(name);
        let (open, close) = if form == Form::Json { (",\"", "\":") } else { (" ", "=") };
        self.line.push_str(open);
        self.line.push_str(name);
        self.line.push_str(if RESERVED.contains(&name) { "_" } else { "" });
        self.line.push_str(close);
        write(self.line, form);
    }
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    /// A sentence of a line for people.
    Words,
    /// A value in such a line.
    Word,
}

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.number(field, |line| CompactFormatter.write_f64(line, value));
        } else {
            self.text(field, &value.to_string());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        // The number of each call.
        self.number(field, |line| CompactFormatter.write_u64(line, value));
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
        // Nearly always it is harmless, and then it stands where it belongs already.
        self.put(field, |line, form| {
            let quote = if form == Form::Json { "\"" } else { "" };
            line.push_str(quote);
            let start = line.len();
            show(line, format_args!("{value:?}"));
            let harmless = match form {
                Form::Json | Form::Words => is_plain,
                Form::Word => is_word,
            };
            if harmless(&line[start..]) {
                return line.push_str(quote);
            }
            let shown = line.split_off(start);
            line.truncate(start - quote.len());
            match form {
                Form::Words => line.push_str(&inline(&shown)),
                Form::Json | Form::Word => write_json(line, &shown),
            }
        });
    }
}

/// Writes into a line what is to stand at a place before its end.
fn before(line: &mut String, at: usize, write: impl FnOnce(&mut String)) {
    let behind = line.split_off(at);
    write(line);
    line.push_str(&behind);
}

/// Appends a value; one that cannot be shown ends where it failed.
fn show(line: &mut String, value: fmt::Arguments<'_>) {
    let _ = line.write_fmt(value);
}

/// Writes a string as JSON that is also harmless on a terminal.
pub(super) fn write_json(line: &mut String, text: &str) {
    if is_plain(text) {
        line.push('"');
        line.push_str(text);
        line.push('"');
        return;
    }
    let mut serializer = Serializer::with_formatter(Bytes(line), Safe);
    let written = serializer.serialize_str(text);
    debug_assert!(written.is_ok(), "a String takes every write");
}

/// Whether JSON has nothing to escape in it and a terminal nothing to obey.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\')
}

/// Whether a value of a line for people needs no quotes.
fn is_word(text: &str) -> bool {
    let simple = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '=' | '\\');
    !text.is_empty() && text.chars().all(simple)
}

/// Writes a word as it is, and anything longer or stranger between quotes.
fn write_word(line: &mut String, text: &str) {
    if is_word(text) { line.push_str(text) } else { write_json(line, text) }
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
struct Bytes<'a>(&'a mut String);

impl io::Write for Bytes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push_str(std::str::from_utf8(bytes).map_err(io::Error::other)?);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
