//! Lines on their way to stderr: a thread of their own writes them, so that no call ever waits for
//! whoever reads the log.

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

/// How long the end of the program waits for a log that nobody reads.
const PATIENCE: Duration = Duration::from_secs(1);

/// The way to the writing thread; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Sink(Arc<Shared>);

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
}

impl Sink {
    /// Starts the thread; it ends with the process.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub(super) fn start(to: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("innkeeper-log".to_owned());
        thread.spawn(move || own.write_all(to))?;
        Ok(Self(shared))
    }

    /// Adds a line, or leaves it out; never waits for the reader of the log.
    pub(super) fn put(&self, line: &str) {
        let mut state = self.0.state();
        if state.lines.len() + line.len() > ROOM {
            state.left_out += 1;
            return;
        }
        state.lines.push_str(line);
        if mem::take(&mut state.asleep) {
            drop(state);
            self.0.more.notify_one();
        }
    }

    /// Waits until every line is written, but not for long.
    pub(crate) fn flush(&self) {
        let mut state = self.0.state();
        let waits = |state: &mut State| state.busy || !state.lines.is_empty();
        if waits(&mut state) {
            state.hurry = true;
            self.0.more.notify_one();
            drop(self.0.written.wait_timeout_while(state, PATIENCE, waits));
        }
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
            // A log that nobody takes ends nothing.
            drop(to.write_all(lines.as_bytes()).and_then(|()| to.flush()));
            if left_out > 0 {
                tracing::warn!(left_out, "log lines were left out: they are not read fast enough");
            }
        }
    }

    /// Waits for lines and exchanges them for those that were written.
    fn take(&self, written: &mut String) -> u64 {
        written.clear();
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
}

/// See [`Sink::before`].
#[derive(Debug)]
pub(crate) struct Behind<W> {
    sink: Sink,
    to: W,
}

impl<W: Write> Write for Behind<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.flush();
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Takes one write for each permit, and never ends.
    struct Slow {
        permits: mpsc::Receiver<()>,
        taken: Arc<Mutex<Vec<String>>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.permits.recv().map_err(io::Error::other)?;
            self.taken.lock().unwrap().push(String::from_utf8(bytes.to_vec()).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow() -> (Sink, mpsc::Sender<()>, Arc<Mutex<Vec<String>>>) {
        let (permit, permits) = mpsc::channel();
        let taken = Arc::default();
        let sink = Sink::start(Slow { permits, taken: Arc::clone(&taken) }).unwrap();
        (sink, permit, taken)
    }

    #[test]
    fn what_is_flushed_was_written_whole_and_in_order() {
        let (sink, permit, taken) = slow();
        let lines: Vec<String> = (0..1000).map(|number| format!("line {number}\n")).collect();
        for line in &lines {
            sink.put(line);
            permit.send(()).unwrap();
        }
        sink.flush();
        assert_eq!(taken.lock().unwrap().concat(), lines.concat());
    }

    #[test]
    fn a_log_that_nobody_reads_stops_nobody_and_loses_the_newest_lines_only() {
        let (sink, permit, taken) = slow();
        let line = "x".repeat(1 << 10);
        // What waits, what the thread has in its hands, and more.
        for _ in 0..(3 * ROOM / line.len()) {
            sink.put(&line);
        }
        assert!(sink.0.state().left_out > 0);
        drop(permit);
        sink.flush();
        assert!(taken.lock().unwrap().is_empty(), "it was never taken");
    }

    #[test]
    fn words_come_behind_the_lines_logged_before_them() {
        let (sink, permit, taken) = slow();
        for _ in 0..2 {
            permit.send(()).unwrap();
        }
        sink.put("logged\n");
        let kept = Arc::clone(&taken);
        let (said, words) = mpsc::channel();
        said.send(()).unwrap();
        sink.before(Slow { permits: words, taken: kept }).write_all(b"said\n").unwrap();
        assert_eq!(taken.lock().unwrap().concat(), "logged\nsaid\n");
    }
}
