//! The lines of progress at the end of stderr; other text on stderr appears above the lines.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Interval between two frames of a spinner.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// The lines of progress of this process; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgressLines(MultiProgress);

impl ProgressLines {
    /// Adds a line with a spinner, or returns `None` if stderr is no terminal.
    pub(crate) fn add_spinner(&self, template: &str) -> Option<SpinnerLine> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let bar = self.0.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Some(SpinnerLine { lines: self.0.clone(), bar })
    }

    /// Returns a writer to stderr that removes the lines during each write.
    pub(crate) fn stderr(&self) -> StderrAboveProgress {
        StderrAboveProgress(self.0.clone())
    }
}

/// A line with a spinner; the line disappears with this value.
#[derive(Debug)]
pub(crate) struct SpinnerLine {
    lines: MultiProgress,
    bar: ProgressBar,
}

impl SpinnerLine {
    /// Starts the spinner.
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
pub(crate) struct StderrAboveProgress(MultiProgress);

impl Write for StderrAboveProgress {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.suspend(|| io::stderr().write(bytes))
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.suspend(|| io::stderr().write_all(bytes))
    }

    /// Writes with one lock of stderr, so that no other text appears inside the text.
    fn write_fmt(&mut self, args: fmt::Arguments<'_>) -> io::Result<()> {
        self.0.suspend(|| io::stderr().write_fmt(args))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
