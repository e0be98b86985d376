//! Lines on their way to stderr: a thread of their own writes them, so that no call ever waits for
//! whoever reads the log.

use std::fmt;
use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that may wait to be written. Lines that come when the log is further behind are left out,
/// and counted.
const ROOM: usize = 4 << 20;

/// How long lines are gathered after a write, so that a busy time costs few of them and few
/// wake-ups. The first line after a quiet time is written at once.
const GATHER: Duration = Duration::from_millis(2);

/// How long the end of the program waits for a log that is not read on.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes written at once, so that it is seen whether the log is read on.
const CHUNK: usize = 64 << 10;

/// How long a stderr that does not block and is full is left alone.
const FULL: Duration = Duration::from_millis(5);

/// The way to the writing thread; cheap to clone. Where the system has no room for a thread, lines
/// are written by whoever logs them.
#[derive(Clone, Debug)]
pub(crate) struct Sink(Option<Arc<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    more: Condvar,
    written: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: String,
    left_out: u64,
    /// The thread waits for a line.
    asleep: bool,
    /// The thread has lines that are not written yet.
    busy: bool,
    /// Somebody waits for what is there to be written.
    hurry: bool,
    /// Grows with everything that is written.
    progress: u64,
}

impl State {
    fn is_behind(&self) -> bool {
        self.busy || !self.lines.is_empty()
    }
}

impl Sink {
    /// Starts the thread; it ends with the process.
    pub(super) fn start(to: impl Write + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("innkeeper-log".to_owned());
        let started = thread.spawn(move || own.write_all(to));
        Self(started.is_ok().then_some(shared))
    }

    /// Adds a line, or leaves it out; never waits for the reader of the log.
    pub(super) fn put(&self, line: &str) {
        let Some(shared) = &self.0 else {
            // A log that nobody takes ends nothing.
            return drop(io::stderr().write_all(line.as_bytes()));
        };
        let mut state = shared.state();
        if !state.lines.is_empty() && state.lines.len() + line.len() > ROOM {
            state.left_out += 1;
            return;
        }
        state.lines.push_str(line);
        if mem::take(&mut state.asleep) {
            drop(state);
            shared.more.notify_one();
        }
    }

    /// Waits until every line is written, for as long as they are.
    pub(crate) fn flush(&self) {
        let Some(shared) = &self.0 else { return };
        let mut state = shared.state();
        let mut seen = state.progress;
        while state.is_behind() {
            state.hurry = true;
            shared.more.notify_one();
            let waited = shared.written.wait_timeout(state, PATIENCE);
            let (now, over) = waited.unwrap_or_else(PoisonError::into_inner);
            if over.timed_out() && now.progress == seen {
                return;
            }
            seen = now.progress;
            state = now;
        }
    }

    /// Flushes when it is dropped: however `main` ends, a panic included.
    pub(crate) fn at_end(&self) -> AtEnd {
        AtEnd(self.clone())
    }

    /// A writer whose words come behind the lines that were logged before them.
    pub(crate) fn before<W: Write>(&self, to: W) -> Behind<W> {
        Behind { sink: self.clone(), to }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self, mut to: impl Write) {
        let mut lines = String::new();
        loop {
            let left_out = self.take(&mut lines);
            if left_out > 0 {
                // Now there is room for it.
                tracing::error!(left_out, "log lines were left out: they are not read fast enough");
            }
            self.write(&mut to, lines.as_bytes());
        }
    }

    /// Waits for lines and exchanges them for those that were written.
    fn take(&self, written: &mut String) -> u64 {
        written.clear();
        written.shrink_to(CHUNK);
        let mut state = self.state();
        state.busy = false;
        self.written.notify_all();
        let gathered = self.more.wait_timeout_while(state, GATHER, |state| !state.hurry);
        (state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        state.asleep = true;
        let waited = self.more.wait_while(state, |state| state.lines.is_empty());
        state = waited.unwrap_or_else(PoisonError::into_inner);
        (state.asleep, state.busy, state.hurry) = (false, true, false);
        mem::swap(&mut state.lines, written);
        mem::take(&mut state.left_out)
    }

    /// Writes all that somebody takes.
    fn write(&self, to: &mut impl Write, mut rest: &[u8]) {
        while !rest.is_empty() {
            match to.write(&rest[..rest.len().min(CHUNK)]) {
                Ok(written) if written > 0 => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(FULL);
                    continue;
                }
                // A log that nobody takes ends nothing.
                Ok(_) | Err(_) => return,
            }
            self.state().progress += 1;
            self.written.notify_all();
        }
        drop(to.flush());
    }
}

/// See [`Sink::at_end`].
#[derive(Debug)]
pub(crate) struct AtEnd(Sink);

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0.flush();
    }
}

/// See [`Sink::before`].
#[derive(Debug)]
pub(crate) struct Behind<W> {
    sink: Sink,
    to: W,
}

/// Whole sentences are passed on as such: nobody writes between their parts.
impl<W: Write> Write for Behind<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.flush();
        self.to.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.flush();
        self.to.write_all(bytes)
    }

    fn write_fmt(&mut self, words: fmt::Arguments<'_>) -> io::Result<()> {
        self.sink.flush();
        self.to.write_fmt(words)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush();
        self.to.flush()
    }
}

#[cfg(test)]
mod tests;
