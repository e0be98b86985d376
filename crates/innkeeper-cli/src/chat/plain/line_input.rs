//! The lines of stdin, read one at a time when the chat needs a line.

use std::io::{self, BufRead};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::exit::CliError;

/// Maximum number of bytes of one typed line.
pub(super) const MAX_LINE_BYTES: u64 = 4 << 20;

/// A typed line without its newline; `None` for a line above [`MAX_LINE_BYTES`].
pub(super) type InputLine = Option<String>;

/// The lines of stdin. Between two lines, nothing reads stdin: another program can have the terminal.
pub(super) struct LineInput {
    wanted: Sender<()>,
    lines: Receiver<InputLine>,
    is_reading: bool,
    is_closed: bool,
}

impl LineInput {
    /// Starts the thread that reads stdin. The thread ends with the process.
    pub(super) fn start() -> Result<Self, CliError> {
        let (wanted, mut wants) = channel(1);
        let (sender, lines) = channel(1);
        let thread = std::thread::Builder::new().name("innkeeper-input".to_owned());
        let started = thread.spawn(move || {
            let mut stdin = io::stdin().lock();
            while wants.blocking_recv().is_some() {
                let Some(line) = read_line(&mut stdin) else { return };
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        started.map_err(|error| CliError::failure("cannot read the input").with_source(error))?;
        Ok(Self { wanted, lines, is_reading: false, is_closed: false })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Reads the next line; `None` at the end of the input. A drop of the future loses no line.
    pub(super) async fn next(&mut self) -> Option<InputLine> {
        if self.is_closed {
            return None;
        }
        if !self.is_reading {
            // The thread takes one request after the other, so that there is room; without a thread,
            // the input is at its end.
            self.is_reading = self.wanted.try_send(()).is_ok();
        }
        let line = match self.is_reading {
            true => self.lines.recv().await,
            false => None,
        };
        self.is_reading = false;
        self.is_closed = line.is_none();
        line
    }
}

/// Reads a line; `None` at the end of the input or after an error.
fn read_line(input: &mut impl BufRead) -> Option<InputLine> {
    let mut line = Vec::new();
    let read = io::Read::take(&mut *input, MAX_LINE_BYTES).read_until(b'\n', &mut line).ok()?;
    if read == 0 {
        return None;
    }
    if line.len() as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n") {
        input.skip_until(b'\n').ok()?;
        return Some(None);
    }
    Some(Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()))
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    #[test]
    fn a_line_above_the_limit_is_no_line_and_the_next_line_is_read() {
        let limit = usize::try_from(MAX_LINE_BYTES).unwrap();
        let text = format!("one\r\n{}\ntwo\n\nlast", "x".repeat(limit + 7));
        let mut input = text.as_bytes();
        let lines: Vec<_> = iter::from_fn(|| read_line(&mut input)).collect();
        let line = |text: &str| Some(text.to_owned());
        assert_eq!(lines, [line("one"), None, line("two"), line(""), line("last")]);
    }
}
