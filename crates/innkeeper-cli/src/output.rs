//! Where words go: data to stdout, talk to stderr, colours only on a terminal.

mod aside;
mod safe;
mod table;

pub(crate) use aside::Cut;
pub(crate) use safe::{deceives, inline};
pub(crate) use table::Table;

use std::fmt;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::log::Sink;
use aside::Aside;

/// What a word means, which decides its colour.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tone {
    Error,
    Note,
    Hint,
    Strong,
    Good,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Self::Error => "1;31",
            Self::Note => "33",
            Self::Hint => "36",
            Self::Strong => "1",
            Self::Good => "32",
        }
    }
}

/// One stream and whether it takes colours.
struct Stream {
    to: Box<dyn Write + Send>,
    colour: bool,
}

impl Stream {
    fn paint(&self, tone: Tone, word: &str) -> String {
        if self.colour { format!("\x1b[{}m{word}\x1b[0m", tone.code()) } else { word.to_owned() }
    }
}

/// Both streams of the program and the form of its data.
pub(crate) struct Output {
    out: Stream,
    err: Stream,
    json: bool,
    /// Whether a person reads the data.
    terminal: bool,
    /// Whether a JSON value was printed, or begun.
    told: bool,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("json", &self.json).finish_non_exhaustive()
    }
}

impl Output {
    /// The streams of the process; `plain` forbids colours even on a terminal.
    pub(crate) fn standard(json: bool, plain: bool) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let (out_terminal, err_terminal) = (out.is_terminal(), err.is_terminal());
        Self {
            out: Stream { to: Box::new(out), colour: out_terminal && !plain },
            err: Stream { to: Box::new(err), colour: err_terminal && !plain },
            json,
            terminal: out_terminal,
            told: false,
        }
    }

    /// Lets threads of their own write both streams from now on, so that a reader who does not read
    /// holds up no signal: each gets its [`Cut`].
    pub(crate) fn aside(&mut self) -> io::Result<[Cut; 2]> {
        let aside = |stream: &mut Stream| {
            let to = std::mem::replace(&mut stream.to, Box::new(io::sink()));
            let (to, cut) = Aside::start(to)?;
            stream.to = Box::new(to);
            Ok::<_, io::Error>(cut)
        };
        Ok([aside(&mut self.out)?, aside(&mut self.err)?])
    }

    /// Lets talk wait for the lines that were logged before it.
    pub(crate) fn talk_behind(&mut self, log: &Sink) {
        self.err.to = Box::new(log.before(io::stderr()));
    }

    /// Whether talk may be coloured.
    pub(crate) fn colours_talk(&self) -> bool {
        self.err.colour
    }

    /// Whether the data must be one JSON value.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether the one JSON value was printed, or begun.
    pub(crate) fn has_told(&self) -> bool {
        self.told
    }

    /// Prints one JSON value as data, indented when a person reads it.
    pub(crate) fn value(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.told = true;
        let text = if self.terminal {
            serde_json::to_string_pretty(value)?
        } else {
            serde_json::to_string(value)?
        };
        self.data(&text)
    }

    /// Prints text as data, as it is, and ends it with a newline if it has none.
    pub(crate) fn data(&mut self, text: &str) -> io::Result<()> {
        if self.terminal {
            // What was logged before it stands before it, where both meet.
            self.err.to.flush()?;
        }
        if text.ends_with('\n') {
            self.out.to.write_all(text.as_bytes())?;
        } else {
            self.out.to.write_all(format!("{text}\n").as_bytes())?;
        }
        self.out.to.flush()
    }

    /// Prints text that came from a server: exactly for a program, harmless for a person.
    pub(crate) fn foreign(&mut self, text: &str) -> io::Result<()> {
        if self.terminal { self.data(&safe::block(text)) } else { self.data(text) }
    }

    /// Whether a person reads the data.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Prints a piece of a text that a person watches while it is written.
    pub(crate) fn piece(&mut self, text: &str) -> io::Result<()> {
        self.out.to.write_all(safe::block(text).as_bytes())?;
        self.out.to.flush()
    }

    /// Colours a word of data where a person reads it.
    pub(crate) fn paint(&self, tone: Tone, word: &str) -> String {
        self.out.paint(tone, word)
    }

    /// Prints a table as data.
    pub(crate) fn table(&mut self, table: &Table) -> io::Result<()> {
        let text = table.render(|heading| self.out.paint(Tone::Strong, heading));
        self.data(&text)
    }

    /// Says one line on stderr.
    pub(crate) fn say(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.err.to, "{}", inline(text))
    }

    /// Says a question on stderr, whose answer is typed behind it.
    pub(crate) fn ask(&mut self, question: &str) -> io::Result<()> {
        write!(self.err.to, "{}", inline(question))?;
        self.err.to.flush()
    }

    /// Says one line on stderr that opens with a coloured label: `note: …`.
    pub(crate) fn label(&mut self, tone: Tone, label: &str, text: &str) -> io::Result<()> {
        let label = self.err.paint(tone, label);
        writeln!(self.err.to, "{label}: {}", inline(text))
    }
}

#[cfg(test)]
pub(crate) mod capture {
    //! An `Output` whose two streams a test can read.

    use std::sync::{Arc, Mutex};

    use super::{Output, Stream, Write, io};

    #[derive(Clone, Debug, Default)]
    pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Captured {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An output with the given form, and what is written to stdout and stderr.
    pub(crate) fn output(json: bool, colour: bool) -> (Output, Captured, Captured) {
        let (out, err) = (Captured::default(), Captured::default());
        let stream = |to: &Captured| Stream { to: Box::new(to.clone()), colour };
        (
            Output { out: stream(&out), err: stream(&err), json, terminal: colour, told: false },
            out,
            err,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_goes_to_stdout_and_talk_to_stderr() {
        let (mut output, out, err) = capture::output(false, false);
        output.data("data").unwrap();
        output.say("talk").unwrap();
        output.label(Tone::Note, "note", "more talk").unwrap();
        assert_eq!(out.text(), "data\n");
        assert_eq!(err.text(), "talk\nnote: more talk\n");
    }

    #[test]
    fn colours_appear_only_where_the_stream_takes_them() {
        let (mut output, _, err) = capture::output(false, true);
        output.label(Tone::Error, "error", "broken").unwrap();
        assert_eq!(err.text(), "\u{1b}[1;31merror\u{1b}[0m: broken\n");
    }

    #[test]
    fn escape_codes_in_talk_are_shown_and_not_obeyed() {
        let (mut output, _, err) = capture::output(false, true);
        output.say("\u{1b}[2Jgone\nforged line").unwrap();
        assert_eq!(err.text(), "\\u{1b}[2Jgone\\nforged line\n");
    }

    #[test]
    fn text_of_a_server_is_exact_for_a_program_and_harmless_on_a_terminal() {
        let text = "a\n\u{1b}[2Jb";
        let (mut output, out, _) = capture::output(false, false);
        output.foreign(text).unwrap();
        assert_eq!(out.text(), "a\n\u{1b}[2Jb\n");
        let (mut output, out, _) = capture::output(false, true);
        output.foreign(text).unwrap();
        assert_eq!(out.text(), "a\n\\u{1b}[2Jb\n");
    }

    #[test]
    fn a_table_goes_to_stdout_with_its_headings_set_off() {
        let mut table = Table::new(["NAME", "STATE"]);
        table.row(["files", "ready"]);
        let (mut output, out, _) = capture::output(false, true);
        output.table(&table).unwrap();
        assert_eq!(out.text(), "\u{1b}[1mNAME   STATE\u{1b}[0m\nfiles  ready\n");
    }

    #[test]
    fn a_value_for_a_program_is_one_line_of_json() {
        let (mut output, out, _) = capture::output(true, false);
        output.value(&serde_json::json!({"a": [1, 2]})).unwrap();
        assert_eq!(out.text(), "{\"a\":[1,2]}\n");
    }
}
