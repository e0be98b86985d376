//! The lines of progress at the end of stderr; other text on stderr appears above the lines.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Interval between two frames of a spinner.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// The lines of progress of this process; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgressLines {
    lines: MultiProgress,
    /// The receiver of text for stderr while another part of the program has the screen.
    screen: Arc<Mutex<Option<Sender<String>>>>,
}

/// Number of texts for stderr that wait for the screen; further texts are lost.
const MAX_WAITING_TEXTS: usize = 256;

impl ProgressLines {
    /// Adds a line with a spinner, or returns `None` if stderr is no terminal.
    pub(crate) fn add_spinner(&self, template: &str) -> Option<SpinnerLine> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let bar = self.lines.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Some(SpinnerLine { lines: self.lines.clone(), bar })
    }

    /// Returns a writer to stderr that removes the lines during each write.
    pub(crate) fn stderr(&self) -> StderrAboveProgress {
        StderrAboveProgress(self.clone())
    }

    /// Sends the text for stderr to a receiver from now on, until the guard is dropped.
    pub(crate) fn redirect_stderr(&self) -> (StderrRedirection, Receiver<String>) {
        let (sender, receiver) = channel(MAX_WAITING_TEXTS);
        *self.screen.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        (StderrRedirection(self.clone()), receiver)
    }

    /// Sends a text to the screen. Returns whether the screen takes the text.
    fn send_to_screen(&self, bytes: &[u8]) -> bool {
        let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = &*screen else { return false };
        sender.try_send(String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
        true
    }
}

/// The redirection of stderr to a screen. The text goes to stderr again when the guard is dropped.
#[derive(Debug)]
pub(crate) struct StderrRedirection(ProgressLines);

impl Drop for StderrRedirection {
    fn drop(&mut self) {
        *self.0.screen.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A line with a spinner; the line disappears with this value.
#[derive(Debug)]
pub(crate) struct SpinnerLine {
    lines: MultiProgress,
    bar: ProgressBar,
}

impl SpinnerLine {
    pub(crate) fn start(&self) {
        self.bar.enable_steady_tick(SPINNER_INTERVAL);
    }

    pub(crate) fn set_prefix(&self, text: String) {
        self.bar.set_prefix(text);
    }

    pub(crate) fn set_message(&self, text: String) {
        self.bar.set_message(text);
    }

    /// Stops the spinner; the line stays with this message.
    pub(crate) fn finish_with_message(&self, text: String) {
        self.bar.finish_with_message(text);
    }
}

impl Drop for SpinnerLine {
    fn drop(&mut self) {
        // A spinner that is not finished first would draw its line again.
        self.bar.finish_and_clear();
        self.lines.remove(&self.bar);
    }
}

/// The writer of [`ProgressLines::stderr`].
#[derive(Debug)]
pub(crate) struct StderrAboveProgress(ProgressLines);

impl Write for StderrAboveProgress {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.send_to_screen(bytes) {
            return Ok(bytes.len());
        }
        self.0.lines.suspend(|| io::stderr().write(bytes))
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.0.send_to_screen(bytes) {
            return Ok(());
        }
        self.0.lines.suspend(|| io::stderr().write_all(bytes))
    }

    /// Writes with one lock of stderr, so that no other text appears inside the text.
    fn write_fmt(&mut self, args: fmt::Arguments<'_>) -> io::Result<()> {
        if self.0.send_to_screen(args.to_string().as_bytes()) {
            return Ok(());
        }
        self.0.lines.suspend(|| io::stderr().write_fmt(args))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
