//! A background thread that writes log lines, so that no caller waits for the reader.

use std::fmt;
use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{LineStyle, LogLevel, LogOutput};

/// Maximum number of buffered bytes. Lines beyond the limit are dropped and counted.
const MAX_BUFFERED_BYTES: usize = 4 << 20;

/// Time to collect lines after a write, which reduces writes and wake-ups under load. The first
/// line after an idle period is written at once.
const BATCH_DELAY: Duration = Duration::from_millis(2);

/// Maximum time without progress before a flush at exit gives up.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of bytes per write, so that progress is visible.
const MAX_WRITE_BYTES: usize = 64 << 10;

/// Delay before the next write to a full non-blocking stderr.
const WOULD_BLOCK_RETRY_DELAY: Duration = Duration::from_millis(5);

/// A handle to the writer thread; cheap to clone. If the system cannot start a thread, callers
/// write their lines themselves.
#[derive(Clone, Debug)]
pub(crate) struct LogSink(Option<Arc<SharedSink>>);

#[derive(Debug, Default)]
struct SharedSink {
    state: Mutex<SinkState>,
    lines_added: Condvar,
    lines_written: Condvar,
}

#[derive(Debug, Default)]
struct SinkState {
    lines: String,
    dropped_lines: u64,
    /// Whether the thread waits for a line.
    writer_idle: bool,
    /// Whether the thread has lines that are not yet written.
    writer_busy: bool,
    /// Whether a caller waits for a flush.
    flush_requested: bool,
    /// Number of completed writes.
    progress: u64,
}

impl SinkState {
    fn has_pending_lines(&self) -> bool {
        self.writer_busy || !self.lines.is_empty()
    }
}

impl LogSink {
    /// Starts the thread, which runs until the process ends.
    pub(crate) fn start(to: impl Write + Send + 'static) -> Self {
        let shared = Arc::new(SharedSink::default());
        let writer_shared = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("innkeeper-log".to_owned());
        let started = thread.spawn(move || writer_shared.run_writer(to));
        Self(started.is_ok().then_some(shared))
    }

    /// Returns a log output that adds its lines to this sink.
    pub(crate) fn output(&self, min_level: LogLevel, style: LineStyle) -> LogOutput {
        let lines = self.clone();
        LogOutput::new(min_level, style, move |line| lines.push_line(line))
    }

    /// Adds a line, or drops the line if the buffer is full; never blocks on the reader of the log.
    pub(super) fn push_line(&self, line: &str) {
        let Some(shared) = &self.0 else {
            // An unreadable log must not stop the program.
            return drop(io::stderr().write_all(line.as_bytes()));
        };
        let mut state = shared.lock_state();
        if !state.lines.is_empty() && state.lines.len() + line.len() > MAX_BUFFERED_BYTES {
            state.dropped_lines += 1;
            return;
        }
        state.lines.push_str(line);
        if mem::take(&mut state.writer_idle) {
            drop(state);
            shared.lines_added.notify_one();
        }
    }

    /// Waits until every line is written, or until there is no progress for [`FLUSH_TIMEOUT`].
    pub(crate) fn flush(&self) {
        let Some(shared) = &self.0 else { return };
        let mut state = shared.lock_state();
        let mut last_progress = state.progress;
        while state.has_pending_lines() {
            state.flush_requested = true;
            shared.lines_added.notify_one();
            let wait_result = shared.lines_written.wait_timeout(state, FLUSH_TIMEOUT);
            let (now, timeout_result) = wait_result.unwrap_or_else(PoisonError::into_inner);
            if timeout_result.timed_out() && now.progress == last_progress {
                return;
            }
            last_progress = now.progress;
            state = now;
        }
    }

    /// Returns a guard that flushes on drop, also when `main` panics.
    pub(crate) fn flush_guard(&self) -> FlushGuard {
        FlushGuard(self.clone())
    }

    /// Returns a writer that first waits for all earlier log lines.
    pub(crate) fn write_barrier<W: Write>(&self, inner: W) -> WriteBarrier<W> {
        WriteBarrier { sink: self.clone(), inner }
    }
}

impl SharedSink {
    fn lock_state(&self) -> MutexGuard<'_, SinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_writer(&self, mut to: impl Write) {
        let mut lines = String::new();
        loop {
            let left_out = self.next_batch(&mut lines);
            if left_out > 0 {
                // The buffer has space again.
                tracing::error!(left_out, "log lines dropped");
            }
            self.write_batch(&mut to, lines.as_bytes());
        }
    }

    /// Waits for lines and swaps them with the written lines.
    fn next_batch(&self, buffer: &mut String) -> u64 {
        buffer.clear();
        buffer.shrink_to(MAX_WRITE_BYTES);
        let mut state = self.lock_state();
        state.writer_busy = false;
        self.lines_written.notify_all();
        let gathered =
            self.lines_added.wait_timeout_while(state, BATCH_DELAY, |state| !state.flush_requested);
        (state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        state.writer_idle = true;
        let wait_result = self.lines_added.wait_while(state, |state| state.lines.is_empty());
        state = wait_result.unwrap_or_else(PoisonError::into_inner);
        (state.writer_idle, state.writer_busy, state.flush_requested) = (false, true, false);
        mem::swap(&mut state.lines, buffer);
        mem::take(&mut state.dropped_lines)
    }

    /// Writes bytes until all are written or the stream fails.
    fn write_batch(&self, to: &mut impl Write, mut rest: &[u8]) {
        while !rest.is_empty() {
            match to.write(&rest[..rest.len().min(MAX_WRITE_BYTES)]) {
                Ok(written) if written > 0 => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(WOULD_BLOCK_RETRY_DELAY);
                    continue;
                }
                // An unreadable log must not stop the program.
                Ok(_) | Err(_) => return,
            }
            self.lock_state().progress += 1;
            self.lines_written.notify_all();
        }
        let _ = to.flush();
    }
}

/// The guard of [`LogSink::flush_guard`].
#[derive(Debug)]
pub(crate) struct FlushGuard(LogSink);

impl Drop for FlushGuard {
    fn drop(&mut self) {
        self.0.flush();
    }
}

/// The writer of [`LogSink::write_barrier`].
#[derive(Debug)]
pub(crate) struct WriteBarrier<W> {
    sink: LogSink,
    inner: W,
}

/// Forwards formatted text with one write, so that no log line appears inside the text.
impl<W: Write> Write for WriteBarrier<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.flush();
        self.inner.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.flush();
        self.inner.write_all(bytes)
    }

    fn write_fmt(&mut self, args: fmt::Arguments<'_>) -> io::Result<()> {
        self.sink.flush();
        self.inner.write_fmt(args)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush();
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests;
