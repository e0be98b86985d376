//! The way of a message as a stream.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;

use super::{Agent, Event, Report, Step};

/// An [`Event`] to keep, and the end.
#[derive(Debug)]
pub enum Happened {
    /// Text for the reader.
    Text(String),
    /// What the model thinks, as far as it is shown.
    Reasoning(String),
    /// The model has begun a call of this tool; it may still turn out to be none.
    CallStart {
        /// The tool.
        tool: String,
    },
    /// A call is run.
    Running {
        /// The tool.
        tool: String,
        /// The arguments as JSON text.
        arguments: String,
    },
    /// A call has run, or was refused.
    Ran(Box<Step>),
    /// The model is asked again. What it wrote since the last call is not part of its answer.
    Again {
        /// After this pause.
        after: Duration,
    },
    /// The end: what came of the message. There is exactly one.
    Ended(Box<Report>),
}

impl From<Event<'_>> for Happened {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Text(text) => Self::Text(text.to_owned()),
            Event::Reasoning(text) => Self::Reasoning(text.to_owned()),
            Event::CallStart { tool } => Self::CallStart { tool: tool.to_owned() },
            Event::Running { tool, arguments } => {
                Self::Running { tool: tool.to_owned(), arguments: arguments.to_owned() }
            }
            Event::Ran(step) => Self::Ran(Box::new(step.clone())),
            Event::Again { after } => Self::Again { after },
        }
    }
}

type Queue = Arc<Mutex<VecDeque<Happened>>>;

/// What [`Agent::stream`] gives. It goes on only while it is polled, so that no more waits in it than
/// one piece of an answer has; dropping it cancels the message.
pub struct Happenings<'a> {
    /// `None` when it has ended.
    running: Option<Pin<Box<dyn Future<Output = Report> + Send + 'a>>>,
    waiting: Queue,
}

impl std::fmt::Debug for Happenings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Happenings").field("ended", &self.running.is_none()).finish_non_exhaustive()
    }
}

impl Agent {
    /// [`Agent::run_streaming`] as a stream.
    pub fn stream<'a>(&'a mut self, message: &'a str) -> Happenings<'a> {
        let waiting = Queue::default();
        let queue = waiting.clone();
        let running = self.run_streaming(message, move |event| {
            queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(event.into());
        });
        Happenings { running: Some(Box::pin(running)), waiting }
    }
}

impl Happenings<'_> {
    fn next_waiting(&self) -> Option<Happened> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Stream for Happenings<'_> {
    type Item = Happened;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Happened>> {
        if let Some(happened) = self.next_waiting() {
            return Poll::Ready(Some(happened));
        }
        let Some(running) = &mut self.running else { return Poll::Ready(None) };
        if let Poll::Ready(report) = running.as_mut().poll(context) {
            self.running = None;
            let ended = Happened::Ended(Box::new(report));
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(ended);
        }
        match self.next_waiting() {
            Some(happened) => Poll::Ready(Some(happened)),
            None => Poll::Pending,
        }
    }
}
