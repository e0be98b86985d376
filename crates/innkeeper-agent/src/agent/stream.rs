//! The events of a run as a stream.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;

use super::{Agent, AgentEventRef, RunResult, ToolCallRecord};

/// An owned [`AgentEventRef`], or the result of the run.
#[derive(Debug)]
pub enum AgentEvent {
    /// Text for the user.
    Text(String),
    /// Reasoning text, as far as the provider exposes it.
    Reasoning(String),
    /// The model has started to write a call of this tool. The call may still turn out to be
    /// invalid.
    ToolCallDetected {
        /// The name of the tool.
        tool: String,
    },
    /// A tool call starts to run.
    ToolCallStarted {
        /// The name of the tool.
        tool: String,
        /// The arguments as JSON text.
        arguments: String,
    },
    /// A tool call has ended, or was refused.
    ToolCallFinished(Box<ToolCallRecord>),
    /// The agent sends another request. The text that the model wrote since its last call is not
    /// part of its response.
    Retrying {
        /// The delay before the request.
        delay: Duration,
    },
    /// The run has ended. This event occurs exactly once.
    Finished(Box<RunResult>),
}

impl From<AgentEventRef<'_>> for AgentEvent {
    fn from(event: AgentEventRef<'_>) -> Self {
        match event {
            AgentEventRef::Text(text) => Self::Text(text.to_owned()),
            AgentEventRef::Reasoning(text) => Self::Reasoning(text.to_owned()),
            AgentEventRef::ToolCallDetected { tool } => {
                Self::ToolCallDetected { tool: tool.to_owned() }
            }
            AgentEventRef::ToolCallStarted { tool, arguments } => {
                Self::ToolCallStarted { tool: tool.to_owned(), arguments: arguments.to_owned() }
            }
            AgentEventRef::ToolCallFinished(record) => {
                Self::ToolCallFinished(Box::new(record.clone()))
            }
            AgentEventRef::Retrying { delay } => Self::Retrying { delay },
        }
    }
}

type EventQueue = Arc<Mutex<VecDeque<AgentEvent>>>;

/// The stream that [`Agent::stream`] returns. The run advances only while the stream is polled, so
/// that the stream buffers at most the events of one response chunk. Dropping the stream cancels
/// the run.
pub struct AgentStream<'a> {
    /// `None` after the run has ended.
    run_future: Option<Pin<Box<dyn Future<Output = RunResult> + Send + 'a>>>,
    queue: EventQueue,
}

impl std::fmt::Debug for AgentStream<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentStream")
            .field("ended", &self.run_future.is_none())
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// Returns the events of [`Agent::run_streaming`] as a stream. The run starts with the first
    /// poll. Dropping the stream cancels the run.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use futures_util::StreamExt as _;
    /// use innkeeper_agent::agent::{Agent, AgentEvent};
    ///
    /// # async fn example(agent: &mut Agent) {
    /// let mut events = agent.stream("Summarize a.txt.");
    /// while let Some(event) = events.next().await {
    ///     if let AgentEvent::Text(text) = event {
    ///         print!("{text}");
    ///     }
    /// }
    /// # }
    /// ```
    pub fn stream<'a>(&'a mut self, message: &'a str) -> AgentStream<'a> {
        let waiting = EventQueue::default();
        let queue = waiting.clone();
        let running = self.run_streaming(message, move |event| {
            queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(event.into());
        });
        AgentStream { run_future: Some(Box::pin(running)), queue: waiting }
    }
}

impl AgentStream<'_> {
    fn pop_event(&self) -> Option<AgentEvent> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Stream for AgentStream<'_> {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        if let Some(happened) = self.pop_event() {
            return Poll::Ready(Some(happened));
        }
        let Some(running) = &mut self.run_future else { return Poll::Ready(None) };
        if let Poll::Ready(report) = running.as_mut().poll(context) {
            self.run_future = None;
            let ended = AgentEvent::Finished(Box::new(report));
            self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(ended);
        }
        match self.pop_event() {
            Some(happened) => Poll::Ready(Some(happened)),
            None => Poll::Pending,
        }
    }
}
