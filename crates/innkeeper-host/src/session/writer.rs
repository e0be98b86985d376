//! Writes messages to a server's pipe, directly or in batches.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use innkeeper_protocol::{JsonText, RequestId, envelope, method};
use serde::Serialize;
use serde_json::json;
use tokio::io::AsyncWrite;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Notify;
use tokio::task::yield_now;

use super::RequestError;
use crate::error::{ProtocolError, UnavailableReason};

/// Maximum capacity in bytes that an empty queue retains: a buffer that is freed for each long
/// message costs a page fault for each 4 KiB of the next one.
const RETAINED_CAPACITY: usize = 4 << 20;

/// Capacity that an empty queue retains after [`SHRINK_AFTER_BATCHES`] batches of at most this size.
const SMALL_CAPACITY: usize = 64 << 10;

/// Number of consecutive small batches after which the buffers of a long message are freed.
const SHRINK_AFTER_BATCHES: u32 = 16;

struct WriterState {
    queue: Vec<u8>,
    closing: bool,
    unavailable_reason: Option<UnavailableReason>,
}

struct WriterPipe {
    io: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// Messages taken from the queue for writing.
    batch: Vec<u8>,
    written: usize,
    /// Number of consecutive batches of at most [`SMALL_CAPACITY`].
    small_batches: u32,
}

impl WriterPipe {
    fn unwritten_len(&self) -> usize {
        self.batch.len() - self.written
    }

    /// Empties the written batch for the next one.
    fn clear_batch(&mut self) {
        let is_small = self.batch.len() <= SMALL_CAPACITY;
        self.small_batches = if is_small { self.small_batches.saturating_add(1) } else { 0 };
        let is_idle = self.small_batches > SHRINK_AFTER_BATCHES;
        self.batch.clear();
        self.batch.shrink_to(if is_idle { SMALL_CAPACITY } else { RETAINED_CAPACITY });
        self.written = 0;
    }
}

/// The writing half of a session.
///
/// Messages are queued under one lock and written under another, so that no caller waits while the
/// system copies the messages of other callers. The holder of the pipe lock may take the state
/// lock, never the reverse.
pub(super) struct SessionWriter {
    state: Mutex<WriterState>,
    pipe: Mutex<WriterPipe>,
    limit: usize,
    /// Number of unwritten bytes in the queue and the batch.
    queued_bytes: AtomicUsize,
    work: Notify,
    capacity_freed: Notify,
}

impl std::fmt::Debug for SessionWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("queued", &self.queued_bytes).finish_non_exhaustive()
    }
}

impl SessionWriter {
    pub(super) fn new(io: Box<dyn AsyncWrite + Send + Unpin>, limit: usize) -> Self {
        Self {
            state: Mutex::new(WriterState {
                queue: Vec::new(),
                closing: false,
                unavailable_reason: None,
            }),
            pipe: Mutex::new(WriterPipe {
                io: Some(io),
                batch: Vec::new(),
                written: 0,
                small_batches: 0,
            }),
            limit,
            queued_bytes: AtomicUsize::new(0),
            work: Notify::new(),
            capacity_freed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pipe(&self) -> MutexGuard<'_, WriterPipe> {
        self.pipe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether another message can be queued.
    pub(super) fn has_capacity(&self) -> bool {
        self.queued_bytes.load(Ordering::Relaxed) < self.limit
    }

    #[cfg(test)]
    pub(super) fn queued_bytes(&self) -> usize {
        self.queued_bytes.load(Ordering::Relaxed)
    }

    /// Waits until another message can be queued; the caller limits the wait.
    pub(super) async fn wait_for_capacity(&self) {
        loop {
            let freed = self.capacity_freed.notified();
            if self.has_capacity() {
                return;
            }
            freed.await;
        }
    }

    /// Queues a request; writes at once if it is the only pending request.
    pub(super) fn send_request(
        &self,
        id: u64,
        method: &str,
        params: &impl JsonText,
        is_only_call: bool,
    ) -> Result<(), RequestError> {
        let was_empty = self.queue(|queue| envelope::write_request(queue, id, method, params))?;
        self.try_flush(was_empty && is_only_call);
        Ok(())
    }

    /// Queues a notification unless the server has stopped reading.
    pub(super) fn send_notification(
        &self,
        method: &str,
        params: Option<&impl Serialize>,
    ) -> Result<(), RequestError> {
        self.send_best_effort(|queue| envelope::write_notification(queue, method, params))
    }

    pub(super) fn queue_cancellation(&self, request_id: u64) {
        let params = json!({ "requestId": request_id });
        self.queue_for_task(|queue| {
            envelope::write_notification(queue, method::CANCELLED, Some(&params))
        });
    }

    /// Queues a response to a request of the server unless the server has stopped reading.
    pub(super) fn respond(
        &self,
        id: &RequestId,
        result: &impl Serialize,
    ) -> Result<(), RequestError> {
        self.send_best_effort(|queue| envelope::write_response(queue, id, result))
    }

    /// Queues an error response to a request of the server unless the server has stopped reading.
    pub(super) fn respond_error(&self, id: &RequestId, code: i64, message: &str) {
        self.queue_for_task(|queue| envelope::write_error(queue, id, code, message));
    }

    /// Queues a message that the flush task writes, for destructors too. A closed session needs none.
    fn queue_for_task(&self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>) {
        if self.has_capacity() && self.queue(write).is_ok() {
            self.work.notify_one();
        }
    }

    fn send_best_effort(
        &self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
    ) -> Result<(), RequestError> {
        if self.has_capacity() {
            let was_empty = self.queue(write)?;
            self.try_flush(was_empty);
        }
        Ok(())
    }

    /// Queues the message that `write` produces; returns whether the queue was empty.
    fn queue(
        &self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
    ) -> Result<bool, RequestError> {
        let mut state = self.state();
        if let Some(reason) = &state.unavailable_reason {
            return Err(RequestError::Unavailable { reason: reason.clone(), sent: false });
        }
        let before = state.queue.len();
        if let Err(error) = write(&mut state.queue) {
            let failure = ProtocolError::Serialization(error.to_string().into());
            return Err(RequestError::Protocol(failure));
        }
        let bytes = state.queue.len() - before;
        if bytes > self.limit {
            state.queue.truncate(before);
            return Err(RequestError::TooLarge { bytes, limit: self.limit });
        }
        self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(before == 0)
    }

    /// Writes at once if requested and nothing is ahead in the queue; else wakes the flush task.
    fn try_flush(&self, at_once: bool) {
        if at_once
            && let Ok(mut pipe) = self.pipe.try_lock()
            // The flush task is not waiting for the pipe in this state, so no waker is lost.
            && pipe.unwritten_len() == 0
            && matches!(
                self.poll_flush(&mut pipe, &mut Context::from_waker(Waker::noop())),
                Poll::Ready(Ok(()))
            )
        {
            return;
        }
        self.work.notify_one();
    }

    /// Writes until the queue is empty or the pipe is full.
    fn poll_flush(&self, pipe: &mut WriterPipe, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if pipe.unwritten_len() == 0 {
                pipe.clear_batch();
                let mut state = self.state();
                if state.queue.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                std::mem::swap(&mut state.queue, &mut pipe.batch);
            }
            let count = match &mut pipe.io {
                None => pipe.unwritten_len(),
                Some(io) => match Pin::new(io).poll_write(cx, &pipe.batch[pipe.written..]) {
                    Poll::Ready(Ok(0)) => {
                        return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                    }
                    Poll::Ready(Ok(count)) => count,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                },
            };
            pipe.written += count;
            let before = self.queued_bytes.fetch_sub(count, Ordering::Relaxed);
            if before >= self.limit && before - count < self.limit {
                self.capacity_freed.notify_waiters();
            }
        }
    }

    /// Writes queued messages until the connection ends; returns the reason.
    pub(super) async fn write_loop(&self) -> Option<UnavailableReason> {
        let has_worker_threads = Handle::current().runtime_flavor() != RuntimeFlavor::CurrentThread;
        loop {
            self.work.notified().await;
            if has_worker_threads {
                // A worker thread runs the task that was notified last before all others. The other
                // callers queue their messages first, so that one write has them all.
                yield_now().await;
            }
            if poll_fn(|cx| self.poll_flush(&mut self.pipe(), cx)).await.is_err() {
                return Some(UnavailableReason::ClosedInput);
            }
            let closing = self.state().closing;
            let mut pipe = self.pipe();
            if closing {
                pipe.io = None;
            }
            pipe.io.as_ref()?;
        }
    }

    /// Closes the server's input; drops unwritten messages.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closing = true;
        state.unavailable_reason.get_or_insert(UnavailableReason::Shutdown);
        drop(state);
        self.pipe().io = None;
        self.work.notify_one();
    }

    /// Rejects all further messages. At the end of the host, a last attempt to write the queue
    /// comes before: it may have the cancellations of dropped calls.
    pub(super) fn fail(&self, reason: UnavailableReason) {
        if reason == UnavailableReason::Shutdown {
            self.try_flush(true);
        }
        let mut state = self.state();
        state.unavailable_reason.get_or_insert(reason);
        let queued = std::mem::take(&mut state.queue).len();
        drop(state);
        let mut pipe = self.pipe();
        let rest = pipe.unwritten_len();
        (pipe.batch, pipe.written) = (Vec::new(), 0);
        drop(pipe);
        self.queued_bytes.fetch_sub(queued + rest, Ordering::Relaxed);
        self.capacity_freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A pipe that counts the writes and accepts all bytes.
    struct CountingPipe(Arc<AtomicUsize>);

    impl AsyncWrite for CountingPipe {
        fn poll_write(
            self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    #[expect(clippy::disallowed_methods, reason = "the test owns and awaits the tasks")]
    async fn the_callers_of_one_worker_thread_share_one_write() {
        let writes = Arc::new(AtomicUsize::new(0));
        let writer = Arc::new(SessionWriter::new(Box::new(CountingPipe(writes.clone())), 1 << 20));
        // The body of a test does not run on the worker thread.
        let calling = tokio::spawn(async move {
            let loop_writer = writer.clone();
            let write_loop = tokio::spawn(async move { loop_writer.write_loop().await });
            yield_now().await;
            let callers: Vec<_> = (0..10)
                .map(|id| {
                    let writer = writer.clone();
                    tokio::spawn(
                        async move { writer.send_request(id, method::TOOLS_CALL, &(), false) },
                    )
                })
                .collect();
            for caller in callers {
                caller.await.unwrap().unwrap();
            }
            while writer.queued_bytes() > 0 {
                yield_now().await;
            }
            writer.close();
            write_loop.await.unwrap()
        });
        assert!(calling.await.unwrap().is_none());
        assert_eq!(writes.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_cancellation_is_only_queued_and_is_written_before_the_end_of_the_host() {
        let writes = Arc::new(AtomicUsize::new(0));
        let writer = SessionWriter::new(Box::new(CountingPipe(writes.clone())), 1 << 20);
        writer.queue_cancellation(1);
        assert!(writer.queued_bytes() > 0);
        assert_eq!(writes.load(Ordering::Relaxed), 0);
        writer.fail(UnavailableReason::Shutdown);
        assert_eq!((writer.queued_bytes(), writes.load(Ordering::Relaxed)), (0, 1));
    }
}
