//! A writer thread for a stream, so that a signal can interrupt a blocked write.

use std::fmt;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use tokio::time::Instant;

use super::BLOCK_BYTES;

/// Timeout of all writes after a signal, as the sum of their times: an active reader takes far less,
/// and a blocked or slow reader must not delay the exit.
const CANCELLED_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Capacity of the event channel: the result of the current write, and one cancellation.
const EVENT_CAPACITY: usize = 2;

enum WriterCommand {
    Write(Vec<u8>),
    Flush,
}

enum WriterEvent {
    Written(io::Result<()>),
    Cancelled,
}

pub(super) struct WriterThread {
    commands: SyncSender<WriterCommand>,
    events: Receiver<WriterEvent>,
    /// Whether a signal has arrived.
    cancelled: bool,
    /// The rest of the timeout after a signal.
    remaining: Duration,
    /// Whether a write was abandoned; its rest may still be written, but no later write starts.
    abandoned: bool,
}

/// Cancels the current write after a timeout, and limits the current and all later writes by the same
/// timeout.
#[derive(Clone, Debug)]
pub(crate) struct WriteCanceller(SyncSender<WriterEvent>);

impl WriteCanceller {
    pub(crate) fn cancel(&self) {
        // A full channel already has a cancellation; a closed channel has no waiting writer.
        let _ = self.0.try_send(WriterEvent::Cancelled);
    }
}

impl WriterThread {
    /// Starts the thread, which runs until the process ends or the handle is dropped between two
    /// writes.
    pub(super) fn start(mut to: impl Write + Send + 'static) -> io::Result<(Self, WriteCanceller)> {
        let (command_sender, command_receiver) = sync_channel(1);
        let (event_sender, event_receiver) = sync_channel(EVENT_CAPACITY);
        let canceller = WriteCanceller(event_sender.clone());
        let thread = std::thread::Builder::new().name("innkeeper-output".to_owned());
        thread.spawn(move || {
            for command in command_receiver {
                let result = match command {
                    WriterCommand::Write(bytes) => to.write_all(&bytes),
                    WriterCommand::Flush => to.flush(),
                };
                if event_sender.send(WriterEvent::Written(result)).is_err() {
                    return;
                }
            }
        })?;
        Ok((
            Self {
                commands: command_sender,
                events: event_receiver,
                cancelled: false,
                remaining: CANCELLED_WRITE_TIMEOUT,
                abandoned: false,
            },
            canceller,
        ))
    }

    fn submit(&mut self, command: WriterCommand) -> io::Result<()> {
        self.poll_cancellation();
        if self.abandoned {
            return Err(timed_out_error());
        }
        self.commands.send(command).map_err(|_| disconnected_error())?;
        let event = if self.cancelled {
            self.receive_within_timeout()
        } else {
            self.events.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        let event = match event {
            // A slow reader can still take the current chunk.
            Ok(WriterEvent::Cancelled) => {
                self.cancelled = true;
                self.receive_within_timeout()
            }
            event => event,
        };
        match event {
            Ok(WriterEvent::Written(outcome)) => outcome,
            Ok(WriterEvent::Cancelled) | Err(RecvTimeoutError::Timeout) => {
                (self.cancelled, self.abandoned) = (true, true);
                Err(timed_out_error())
            }
            Err(RecvTimeoutError::Disconnected) => Err(disconnected_error()),
        }
    }

    /// Waits for an event of a write after a signal.
    fn receive_within_timeout(&mut self) -> Result<WriterEvent, RecvTimeoutError> {
        let started = Instant::now();
        let event = self.events.recv_timeout(self.remaining);
        self.remaining = self.remaining.saturating_sub(started.elapsed());
        event
    }

    /// Checks for a signal that arrived between two writes.
    fn poll_cancellation(&mut self) {
        match self.events.try_recv() {
            Ok(WriterEvent::Cancelled) => self.cancelled = true,
            // Only an abandoned write sends a result while no caller waits.
            Ok(WriterEvent::Written(_)) | Err(TryRecvError::Empty | TryRecvError::Disconnected) => {
            }
        }
    }
}

fn timed_out_error() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "interrupted by a signal while writing")
}

fn disconnected_error() -> io::Error {
    io::Error::other("the writer thread has exited")
}

/// Sends formatted text with one write, so that no other text appears inside it. Sends other bytes
/// in blocks, since the thread needs a copy of them.
impl Write for WriterThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let block = &bytes[..bytes.len().min(BLOCK_BYTES)];
        self.submit(WriterCommand::Write(block.to_vec())).map(|()| block.len())
    }

    fn write_fmt(&mut self, args: fmt::Arguments<'_>) -> io::Result<()> {
        self.submit(WriterCommand::Write(args.to_string().into_bytes()))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.submit(WriterCommand::Flush)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A writer that blocks until a message arrives.
    struct BlockedWriter(Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for BlockedWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)?;
            self.1.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_signal_ends_the_wait_of_a_write_and_nothing_is_written_after_it() {
        let (let_go, receiver) = sync_channel(1);
        let output = Arc::default();
        let (mut aside, canceller) =
            WriterThread::start(BlockedWriter(receiver, Arc::clone(&output))).unwrap();
        let_go.send(()).unwrap();
        aside.write_all(b"taken").unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| aside.write_all(b"stuck"));
            canceller.cancel();
            assert_eq!(waiting.join().unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
        });
        assert!(aside.write_all(b"after").is_err());
        assert_eq!(*output.lock().unwrap(), b"taken");
    }

    #[test]
    fn a_stream_that_is_still_read_accepts_writes_after_a_signal() {
        let (let_go, receiver) = sync_channel(2);
        let output = Arc::default();
        let (mut aside, canceller) =
            WriterThread::start(BlockedWriter(receiver, Arc::clone(&output))).unwrap();
        canceller.cancel();
        let_go.send(()).unwrap();
        let_go.send(()).unwrap();
        write!(aside, "{}-{}", 1, 2).unwrap();
        aside.write_all(b";").unwrap();
        assert_eq!(*output.lock().unwrap(), b"1-2;");
    }
}
