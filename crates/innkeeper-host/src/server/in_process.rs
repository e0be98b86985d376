//! The host's end of a connection to an in-process server.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::SetOnce;

use super::connector::ServerStream;

/// The part of an in-process server that must be ended. Dropping it drops the host's end of the
/// stream, also while a reader or a writer exists.
pub(crate) struct InProcessConnection(Arc<SharedStream>);

/// Reads from the server. Also completes the flush and the close of the server's input, because a
/// session polls its reader all the time.
pub(crate) struct InProcessReader(Arc<SharedStream>);

/// Writes to the server. Dropping it closes the server's input.
pub(crate) struct InProcessWriter(Arc<SharedStream>);

struct SharedStream {
    state: Mutex<StreamState>,
    /// Set when the stream is dropped.
    ended: SetOnce<()>,
}

struct StreamState {
    /// `None` after the end of the connection.
    stream: Option<ServerStream>,
    input: InputState,
    reader: Option<Waker>,
    /// `Some` while a write is pending; the stream then stores the waker of the writer.
    writer: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum InputState {
    Flushed,
    Unflushed,
    Closing,
    Closed,
}

impl InProcessConnection {
    /// Creates the host's end of a connection.
    pub(crate) fn new(stream: ServerStream) -> (Self, InProcessReader, InProcessWriter) {
        let state = StreamState {
            stream: Some(stream),
            input: InputState::Flushed,
            reader: None,
            writer: None,
        };
        let shared = Arc::new(SharedStream { state: Mutex::new(state), ended: SetOnce::new() });
        (Self(shared.clone()), InProcessReader(shared.clone()), InProcessWriter(shared))
    }

    /// Drops the host's end of the stream; never waits.
    pub(crate) fn disconnect(&self) {
        self.0.disconnect();
    }

    /// Waits until the server closes the connection or the host drops its end.
    pub(crate) async fn ended(&self) {
        self.0.ended.wait().await;
    }
}

impl Drop for InProcessConnection {
    fn drop(&mut self) {
        self.disconnect();
    }
}

impl fmt::Debug for InProcessConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessConnection").finish_non_exhaustive()
    }
}

impl SharedStream {
    fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the stream outside of the lock, and wakes the reader and the writer.
    fn disconnect(&self) {
        let mut state = self.lock();
        let stream = state.stream.take();
        let reader = state.reader.take();
        let writer = state.writer.take();
        drop(state);
        // A second disconnect finds the cell set.
        let _ = self.ended.set(());
        reader.into_iter().chain(writer).for_each(Waker::wake);
        drop_stream(stream);
    }
}

/// Drops a stream of the application; ignores a panic.
fn drop_stream(stream: Option<ServerStream>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(stream)));
}

impl StreamState {
    /// Runs an operation of the application's stream. A panic becomes an error and the end of the
    /// connection.
    fn poll_stream<T>(
        &mut self,
        poll: impl FnOnce(Pin<&mut ServerStream>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        catch_unwind(AssertUnwindSafe(|| poll(Pin::new(stream)))).unwrap_or_else(|_| {
            drop_stream(self.stream.take());
            self.reader.take().into_iter().for_each(Waker::wake);
            Poll::Ready(Err(io::Error::other("the stream of the application panicked")))
        })
    }

    /// Continues the flush or the close of the server's input. An error ends the output too, so
    /// the reader reports it. A pending write continues first, because a stream stores one waker
    /// for all operations on the server's input.
    fn poll_input(&mut self, cx: &mut Context<'_>) {
        if self.writer.is_some() {
            return;
        }
        let (poll, next) = match self.input {
            InputState::Flushed | InputState::Closed => return,
            InputState::Unflushed => {
                (self.poll_stream(|stream| stream.poll_flush(cx)), InputState::Flushed)
            }
            InputState::Closing => {
                (self.poll_stream(|stream| stream.poll_shutdown(cx)), InputState::Closed)
            }
        };
        if poll.is_ready() {
            self.input = next;
        }
    }
}

impl AsyncRead for InProcessReader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        state.poll_input(cx);
        let before = buffer.filled().len();
        let poll = state.poll_stream(|stream| stream.poll_read(cx, buffer));
        if poll.is_pending() {
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        drop(state);
        let is_end = buffer.filled().len() == before && buffer.remaining() > 0;
        if is_end || matches!(poll, Poll::Ready(Err(_))) {
            self.0.disconnect();
        }
        poll
    }
}

impl Drop for InProcessReader {
    fn drop(&mut self) {
        self.0.disconnect();
    }
}

/// Returns the number of written bytes unless the stream of the application reports more bytes
/// than the host passed.
fn check_count(count: usize, bytes: &[u8]) -> io::Result<usize> {
    if count <= bytes.len() {
        return Ok(count);
    }
    Err(io::Error::other("the stream of the application reports more bytes than were written"))
}

impl AsyncWrite for InProcessWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock();
        let poll = state.poll_stream(|stream| stream.poll_write(cx, bytes));
        let poll = poll.map(|written| written.and_then(|count| check_count(count, bytes)));
        match poll {
            Poll::Pending => state.writer = Some(cx.waker().clone()),
            Poll::Ready(Ok(_)) => self.0.finish_input(state, InputState::Unflushed),
            Poll::Ready(Err(_)) => state.writer = None,
        }
        poll
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.finish_input(self.0.lock(), InputState::Closing);
        Poll::Ready(Ok(()))
    }
}

impl SharedStream {
    /// Flushes or closes the server's input now if possible, else through the reader. No write is
    /// pending.
    fn finish_input(&self, mut state: MutexGuard<'_, StreamState>, input: InputState) {
        state.writer = None;
        state.input = input;
        state.poll_input(&mut Context::from_waker(Waker::noop()));
        let waiting = (state.input == input).then(|| state.reader.take()).flatten();
        drop(state);
        if let Some(reader) = waiting {
            reader.wake();
        }
    }
}

impl Drop for InProcessWriter {
    fn drop(&mut self) {
        self.0.finish_input(self.0.lock(), InputState::Closing);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, empty, join, sink};

    use super::*;

    struct PanicsOnDrop;

    impl AsyncRead for PanicsOnDrop {
        fn poll_read(
            self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
            _buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[tokio::test]
    async fn a_stream_whose_drop_panics_is_dropped_and_the_connection_has_ended() {
        let stream = ServerStream::new(join(PanicsOnDrop, sink()));
        let (connection, _reader, mut writer) = InProcessConnection::new(stream);
        connection.disconnect();
        connection.ended().await;
        let error = writer.write_all(b"x").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        writer.flush().await.unwrap();
        assert_eq!(format!("{connection:?}"), "InProcessConnection { .. }");
        let stream = ServerStream::new(join(empty(), sink()));
        assert_eq!(format!("{stream:?}"), "ServerStream { .. }");
    }

    #[tokio::test]
    async fn the_server_reads_the_end_after_the_shutdown_of_its_input() {
        let (host_end, mut server_end) = tokio::io::duplex(64);
        let (_connection, _reader, mut writer) =
            InProcessConnection::new(ServerStream::new(host_end));
        writer.write_all(b"last").await.unwrap();
        writer.shutdown().await.unwrap();
        let mut input = String::new();
        server_end.read_to_string(&mut input).await.unwrap();
        assert_eq!(input, "last");
    }

    #[tokio::test]
    async fn a_connection_has_ended_once_the_end_of_the_output_is_read() {
        let (host_end, server_end) = tokio::io::duplex(64);
        let (connection, mut reader, _writer) =
            InProcessConnection::new(ServerStream::new(host_end));
        drop(server_end);
        assert_eq!(reader.read(&mut [0; 8]).await.unwrap(), 0);
        assert!(connection.0.ended.get().is_some());
    }

    #[test]
    fn a_stream_that_reports_more_bytes_than_were_written_has_failed() {
        assert_eq!(check_count(0, b"ab").unwrap(), 0);
        assert_eq!(check_count(2, b"ab").unwrap(), 2);
        assert_eq!(check_count(3, b"ab").unwrap_err().kind(), io::ErrorKind::Other);
    }
}
