//! The events of a run as a stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, Stream};

use crate::content::Content;

use super::{Agent, AgentEvent, RunResult};

type EventQueue = Arc<Mutex<VecDeque<AgentEvent>>>;

/// The stream that [`Agent::stream`] returns. The stream borrows nothing. The run advances only
/// while the stream is polled, so that the stream buffers at most the events of one response chunk
/// and the waiting progress of the running calls. Dropping the stream cancels the run.
pub struct AgentStream {
    /// `None` after the run has ended.
    run_future: Option<BoxFuture<'static, RunResult>>,
    queue: EventQueue,
}

impl std::fmt::Debug for AgentStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentStream")
            .field("ended", &self.run_future.is_none())
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// Returns the events of a run as a stream, whose last event is [`AgentEvent::Finished`]. The
    /// run starts with the first poll. Dropping the stream cancels the run, as for [`Agent::run`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use futures_util::StreamExt as _;
    /// use innkeeper_agent::agent::{Agent, AgentEvent};
    ///
    /// # async fn example(agent: &Agent) {
    /// let mut events = agent.stream("Summarize a.txt.");
    /// while let Some(event) = events.next().await {
    ///     if let AgentEvent::Text(text) = event {
    ///         print!("{text}");
    ///     }
    /// }
    /// # }
    /// ```
    pub fn stream(&self, message: impl Into<Content>) -> AgentStream {
        let agent = self.clone();
        let message = message.into();
        let queue = EventQueue::default();
        let sender = queue.clone();
        let run_future = async move {
            agent
                .run_streaming(message, |event| {
                    sender.lock().unwrap_or_else(PoisonError::into_inner).push_back(event);
                })
                .await
        };
        AgentStream { run_future: Some(run_future.boxed()), queue }
    }
}

impl AgentStream {
    fn pop_event(&self) -> Option<AgentEvent> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Stream for AgentStream {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        if let Some(event) = self.pop_event() {
            return Poll::Ready(Some(event));
        }
        let Some(run_future) = &mut self.run_future else { return Poll::Ready(None) };
        if let Poll::Ready(result) = run_future.poll_unpin(context) {
            self.run_future = None;
            let finished = AgentEvent::Finished(Box::new(result));
            self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(finished);
        }
        match self.pop_event() {
            Some(event) => Poll::Ready(Some(event)),
            None => Poll::Pending,
        }
    }
}
