//! What goes to the server: written at once when nothing waits, joined into large writes otherwise.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use innkeeper_protocol::{RequestId, envelope};
use serde::Serialize;
use tokio::io::AsyncWrite;
use tokio::sync::Notify;

use super::Fault;
use crate::error::{Lost, ProtocolFault};

/// A queue that grew past this is given back once it is empty.
const KEEP: usize = 1 << 20;

struct State {
    queue: Vec<u8>,
    closing: bool,
    lost: Option<Lost>,
}

struct Pipe {
    io: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// What was taken out of the queue to be written.
    batch: Vec<u8>,
    written: usize,
}

impl Pipe {
    fn rest(&self) -> usize {
        self.batch.len() - self.written
    }
}

/// The writing half of a session.
///
/// Messages are added under one lock and written under another, so that no caller waits while the
/// system copies those of others. Whoever holds the pipe may ask for the state, never the reverse.
pub(super) struct Writer {
    state: Mutex<State>,
    pipe: Mutex<Pipe>,
    limit: usize,
    /// Bytes in the queue and in the batch that are not written yet.
    queued: AtomicUsize,
    work: Notify,
    room: Notify,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("queued", &self.queued).finish_non_exhaustive()
    }
}

impl Writer {
    pub(super) fn new(io: Box<dyn AsyncWrite + Send + Unpin>, limit: usize) -> Self {
        Self {
            state: Mutex::new(State { queue: Vec::new(), closing: false, lost: None }),
            pipe: Mutex::new(Pipe { io: Some(io), batch: Vec::new(), written: 0 }),
            limit,
            queued: AtomicUsize::new(0),
            work: Notify::new(),
            room: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pipe(&self) -> MutexGuard<'_, Pipe> {
        self.pipe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another message may be queued.
    pub(super) fn has_room(&self) -> bool {
        self.queued.load(Ordering::Relaxed) < self.limit
    }

    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Resolves when another message may be queued; the caller bounds the wait.
    pub(super) async fn room(&self) {
        loop {
            let freed = self.room.notified();
            if self.has_room() {
                return;
            }
            freed.await;
        }
    }

    /// Queues a request and, if it is `alone`, writes what the pipe takes.
    pub(super) fn request(
        &self,
        id: u64,
        method: &str,
        params: &impl Serialize,
        alone: bool,
    ) -> Result<(), Fault> {
        let mut state = self.state();
        if let Some(reason) = &state.lost {
            return Err(Fault::Lost { reason: reason.clone(), sent: false });
        }
        let before = state.queue.len();
        if let Err(error) = envelope::write_request(&mut state.queue, id, method, params) {
            let fault = ProtocolFault::Unwritable(error.to_string().into());
            return Err(Fault::Protocol(fault));
        }
        if state.queue.len() - before > self.limit {
            state.queue.truncate(before);
            let fault =
                ProtocolFault::Unwritable(format!("it is longer than {} bytes", self.limit).into());
            return Err(Fault::Protocol(fault));
        }
        self.queued.fetch_add(state.queue.len() - before, Ordering::Relaxed);
        drop(state);
        self.offer(before == 0 && alone);
        Ok(())
    }

    /// Queues a notification unless the server has stopped reading.
    pub(super) fn notification(&self, method: &str, params: Option<&impl Serialize>) {
        self.small(|queue| envelope::write_notification(queue, method, params));
    }

    /// Queues an answer to a request of the server unless it has stopped reading; false if it is
    /// too long to be sent.
    pub(super) fn answer(&self, id: &RequestId, result: &impl Serialize) -> bool {
        self.small(|queue| envelope::write_response(queue, id, result))
    }

    /// Queues an error answer to a request of the server unless it has stopped reading.
    pub(super) fn refuse(&self, id: &RequestId, code: i64, message: &str) {
        self.small(|queue| envelope::write_error(queue, id, code, message));
    }

    fn small(&self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>) -> bool {
        if !self.has_room() {
            return true;
        }
        let mut state = self.state();
        let before = state.queue.len();
        if state.lost.is_none() && write(&mut state.queue).is_ok() {
            if state.queue.len() - before > self.limit {
                state.queue.truncate(before);
                return false;
            }
            self.queued.fetch_add(state.queue.len() - before, Ordering::Relaxed);
            drop(state);
            self.offer(before == 0);
        }
        true
    }

    /// Tries the pipe at once if asked to and nothing is ahead; else the flushing task does it.
    fn offer(&self, at_once: bool) {
        if at_once
            && let Ok(mut pipe) = self.pipe.try_lock()
            // The flushing task is not waiting on the pipe then, so no waker of its is lost.
            && pipe.rest() == 0
            && matches!(
                self.push(&mut pipe, &mut Context::from_waker(Waker::noop())),
                Poll::Ready(Ok(()))
            )
        {
            return;
        }
        self.work.notify_one();
    }

    /// Writes until the queue is empty or the pipe is full.
    fn push(&self, pipe: &mut Pipe, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if pipe.rest() == 0 {
                pipe.batch.clear();
                pipe.batch.shrink_to(KEEP);
                pipe.written = 0;
                let mut state = self.state();
                if state.queue.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                std::mem::swap(&mut state.queue, &mut pipe.batch);
            }
            let written = match &mut pipe.io {
                None => pipe.rest(),
                Some(io) => match Pin::new(io).poll_write(cx, &pipe.batch[pipe.written..]) {
                    Poll::Ready(Ok(0)) => {
                        return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                    }
                    Poll::Ready(Ok(written)) => written,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                },
            };
            pipe.written += written;
            let before = self.queued.fetch_sub(written, Ordering::Relaxed);
            if before >= self.limit && before - written < self.limit {
                self.room.notify_waiters();
            }
        }
    }

    /// Writes what is queued, for as long as the connection lives; returns why it ended.
    pub(super) async fn drain(&self) -> Option<Lost> {
        loop {
            self.work.notified().await;
            if poll_fn(|cx| self.push(&mut self.pipe(), cx)).await.is_err() {
                return Some(Lost::ClosedInput);
            }
            let closing = self.state().closing;
            let mut pipe = self.pipe();
            if closing {
                pipe.io = None;
            }
            pipe.io.as_ref()?;
        }
    }

    /// Closes the server's input now if all is written, else drops what is not.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closing = true;
        state.lost.get_or_insert(Lost::Shutdown);
        drop(state);
        self.pipe().io = None;
        self.work.notify_one();
    }

    /// Refuses everything from now on.
    pub(super) fn fail(&self, reason: Lost) {
        let mut state = self.state();
        state.lost.get_or_insert(reason);
        let queued = std::mem::take(&mut state.queue).len();
        drop(state);
        let mut pipe = self.pipe();
        let rest = pipe.rest();
        (pipe.batch, pipe.written) = (Vec::new(), 0);
        drop(pipe);
        self.queued.fetch_sub(queued + rest, Ordering::Relaxed);
        self.room.notify_waiters();
    }
}
