//! Output to the terminal: results to stdout, diagnostics to stderr.

mod json_text;
mod table;
mod writer_thread;

pub(crate) use json_text::IndentedJson;
pub(crate) use table::Table;
pub(crate) use textwrap::core::display_width;
pub(crate) use writer_thread::WriteCanceller;

pub(crate) use crate::text::{escape_block, escape_inline, shorten, wrap};

use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Write};

use anstyle::AnsiColor;
use serde::Serialize;
use terminal_size::{Height, Width, terminal_size_of};

use crate::log::LogSink;
use crate::progress_lines::ProgressLines;
use crate::secret_mask::SecretMask;
use crate::text::wrap_message;
use writer_thread::WriterThread;

/// Size of a block of output in bytes.
const BLOCK_BYTES: usize = 64 << 10;

/// The meaning of a text, which determines its colour.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    Error,
    Note,
    Hint,
    Strong,
    Good,
    Dim,
}

impl Style {
    fn ansi_style(self) -> anstyle::Style {
        match self {
            Self::Error => AnsiColor::Red.on_default().bold(),
            Self::Note => AnsiColor::Yellow.on_default(),
            Self::Hint => AnsiColor::Cyan.on_default(),
            Self::Strong => anstyle::Style::new().bold(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Dim => anstyle::Style::new().dimmed(),
        }
    }
}

/// A stream, and what it supports.
struct OutputStream {
    writer: Box<dyn Write + Send>,
    colour: bool,
    /// The columns of its terminal; `None` if the stream is no terminal.
    columns: Option<usize>,
}

impl OutputStream {
    fn is_terminal(&self) -> bool {
        self.columns.is_some()
    }

    /// Uses colours on a terminal, unless the output is plain.
    fn new(writer: impl Write + Send + 'static, columns: Option<usize>, plain: bool) -> Self {
        Self { writer: Box::new(writer), colour: columns.is_some() && !plain, columns }
    }

    fn start_writer_thread(&mut self) -> io::Result<WriteCanceller> {
        let writer = std::mem::replace(&mut self.writer, Box::new(io::sink()));
        let (writer, canceller) = WriterThread::start(writer)?;
        self.writer = Box::new(writer);
        Ok(canceller)
    }

    fn paint(&self, tone: Style, text: &str) -> String {
        if self.colour {
            let style = tone.ansi_style();
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

/// Both streams of the program, and the output format.
pub(crate) struct Output {
    out: OutputStream,
    err: OutputStream,
    json: bool,
    /// Whether a JSON value was printed completely or partly.
    json_written: bool,
    progress_lines: ProgressLines,
    secret_mask: SecretMask,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("json", &self.json).finish_non_exhaustive()
    }
}

impl Output {
    /// Uses the streams of the process; `plain` disables colours on a terminal too.
    pub(crate) fn standard(json: bool, plain: bool) -> Self {
        let out = io::stdout();
        let err = io::stderr();
        let out_columns = out.is_terminal().then(|| columns(terminal_size_of(io::stdout())));
        let err_columns = err.is_terminal().then(|| columns(terminal_size_of(io::stderr())));
        Self {
            out: OutputStream::new(out, out_columns, plain),
            err: OutputStream::new(err, err_columns, plain),
            json,
            json_written: false,
            progress_lines: ProgressLines::default(),
            secret_mask: SecretMask::default(),
        }
    }

    pub(crate) fn progress_lines(&self) -> &ProgressLines {
        &self.progress_lines
    }

    /// The values that no message on stderr shows.
    pub(crate) fn secret_mask(&self) -> &SecretMask {
        &self.secret_mask
    }

    /// Moves both streams to writer threads, so that a blocked reader does not delay a signal.
    /// Returns a [`WriteCanceller`] for each stream.
    pub(crate) fn start_writer_threads(&mut self) -> io::Result<[WriteCanceller; 2]> {
        Ok([self.out.start_writer_thread()?, self.err.start_writer_thread()?])
    }

    /// Makes each write to stderr wait for earlier log lines.
    pub(crate) fn write_after_log(&mut self, log: &LogSink) {
        self.err.writer = Box::new(log.write_barrier(self.progress_lines.stderr()));
    }

    pub(crate) fn colours_stderr(&self) -> bool {
        self.err.colour
    }

    /// Whether stdout must be one JSON value.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether the JSON value was printed completely or partly.
    pub(crate) fn has_written_json(&self) -> bool {
        self.json_written
    }

    /// Prints one JSON value to stdout, indented on a terminal.
    pub(crate) fn print_json(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.json_written = true;
        if self.out.is_terminal() {
            let text = serde_json::to_string(value)?;
            return self.print_indented(&text);
        }
        self.stream(|out| {
            serde_json::to_writer(&mut *out, value)?;
            out.write_all(b"\n")
        })
    }

    /// Prints one JSON value to stdout on one line, as one of several values.
    pub(crate) fn print_json_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.json_written = true;
        let text = serde_json::to_string(value)?;
        self.print_data(&text)
    }

    /// Prints JSON text to stdout, indented and with escapes of deceptive characters.
    pub(crate) fn print_indented(&mut self, json: &str) -> io::Result<()> {
        self.stream(|out| writeln!(out, "{}", IndentedJson(json)))
    }

    /// Prints one JSON value to stdout, always indented: the text of a configuration file.
    pub(crate) fn print_indented_json(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string_pretty(value)?;
        if self.out.is_terminal() { self.print_indented(&text) } else { self.print_data(&text) }
    }

    /// Prints text to stdout, and a newline if the text does not end with one.
    pub(crate) fn print_data(&mut self, text: &str) -> io::Result<()> {
        self.stream(|out| {
            out.write_all(text.as_bytes())?;
            out.write_all(if text.ends_with('\n') { b"" } else { b"\n" })
        })
    }

    /// Writes to stdout in blocks, so that long output is never in memory as a whole. Output of at
    /// most one block is one write.
    fn stream(
        &mut self,
        write: impl FnOnce(&mut BufWriter<&mut dyn Write>) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.out.is_terminal() {
            // Log lines appear before later output if both go to the same terminal.
            self.err.writer.flush()?;
        }
        let mut out =
            BufWriter::with_capacity(BLOCK_BYTES, &mut *self.out.writer as &mut dyn Write);
        let written = write(&mut out).and_then(|()| out.flush());
        if written.is_err() {
            // The drop of a buffer with a rest writes again.
            let _ = out.into_parts();
        }
        written
    }

    /// Prints text from a server to stdout, escaped on a terminal.
    pub(crate) fn print_untrusted(&mut self, text: &str) -> io::Result<()> {
        if self.out.is_terminal() {
            self.print_data(&escape_block(text))
        } else {
            self.print_data(text)
        }
    }

    /// Prints bytes to stdout exactly.
    pub(crate) fn print_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.writer.write_all(bytes)?;
        self.out.writer.flush()
    }

    /// Returns the columns of the terminal, or `None` if stdout is no terminal.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.out.columns
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.out.is_terminal()
    }

    /// Prints a chunk of streamed text to stdout.
    pub(crate) fn print_chunk(&mut self, text: &str) -> io::Result<()> {
        self.out.writer.write_all(escape_block(text).as_bytes())?;
        self.out.writer.flush()
    }

    /// Colours a text for stdout if stdout supports colours.
    pub(crate) fn paint(&self, tone: Style, text: &str) -> String {
        self.out.paint(tone, text)
    }

    pub(crate) fn print_table(&mut self, table: &Table) -> io::Result<()> {
        let text = table.render(self.out.columns, self.out.colour);
        self.print_data(&text)
    }

    /// Prints one message to stdout, wrapped at the width of a terminal. The text is escaped.
    pub(crate) fn print_message(&mut self, text: &str) -> io::Result<()> {
        let text = wrap_message(text, self.out.columns);
        self.print_data(&text)
    }

    /// Returns the columns of the terminal of stderr, or `None` if stderr is no terminal.
    pub(crate) fn err_columns(&self) -> Option<usize> {
        self.err.columns
    }

    /// Prints one message to stderr, wrapped at the width of a terminal.
    pub(crate) fn status(&mut self, text: &str) -> io::Result<()> {
        let text = self.secret_mask.apply(text);
        let text = wrap_message(&escape_inline(&text), self.err.columns);
        writeln!(self.err.writer, "{text}")
    }

    /// Prints a prompt to stderr, without a newline.
    pub(crate) fn prompt(&mut self, question: &str) -> io::Result<()> {
        write!(self.err.writer, "{}", escape_inline(question))?;
        self.err.writer.flush()
    }

    /// Prints one message with a coloured label to stderr: `note: …`.
    pub(crate) fn labelled_status(
        &mut self,
        tone: Style,
        label: &str,
        text: &str,
    ) -> io::Result<()> {
        // The style starts after the indentation.
        let name = label.trim_start_matches(' ');
        let indent = &label[..label.len() - name.len()];
        let text = self.secret_mask.apply(text);
        let text = format!("{indent}{}: {}", self.err.paint(tone, name), escape_inline(&text));
        let text = wrap_message(&text, self.err.columns);
        writeln!(self.err.writer, "{text}")
    }
}

/// Returns the columns of a terminal; some terminals do not report their size.
fn columns(size: Option<(Width, Height)>) -> usize {
    const DEFAULT_COLUMNS: usize = 80;
    match size {
        Some((Width(columns), _)) if columns > 0 => columns.into(),
        Some(_) | None => DEFAULT_COLUMNS,
    }
}

#[cfg(test)]
pub(crate) mod capture {
    //! An `Output` with captured streams for tests.

    use std::sync::{Arc, Mutex};

    use super::{Output, OutputStream, Write, io};

    #[derive(Clone, Debug, Default)]
    pub(crate) struct CapturedStream(Arc<Mutex<Vec<u8>>>);

    impl CapturedStream {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for CapturedStream {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns an output of the given format with its captured stdout and stderr.
    pub(crate) fn captured_output(
        json: bool,
        colour: bool,
    ) -> (Output, CapturedStream, CapturedStream) {
        let out = CapturedStream::default();
        let err = CapturedStream::default();
        let columns = colour.then_some(80);
        (
            Output {
                out: OutputStream::new(out.clone(), columns, false),
                err: OutputStream::new(err.clone(), columns, false),
                json,
                json_written: false,
                progress_lines: crate::progress_lines::ProgressLines::default(),
                secret_mask: crate::secret_mask::SecretMask::default(),
            },
            out,
            err,
        )
    }
}

#[cfg(test)]
mod tests;
