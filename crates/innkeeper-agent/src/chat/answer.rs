//! One answer of the model as the application takes it: tokens, results, or both in one stream.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_util::Stream;

use super::ChatError;
use super::calls::Executed;
use super::queue::{Ended, Queue};
use super::reading::Reader;
use super::token::Token;
use crate::tasks::Task;

/// An answer that is being read. Its parts may be taken apart; when the last of them is dropped, the
/// reading ends and calls under way are cancelled.
#[derive(Debug)]
pub struct Answer {
    /// The text, piece by piece.
    pub token_stream: TokenStream,
    /// The results, as they come.
    pub tool_stream: ToolStream,
    /// What becomes of both.
    pub results: Results,
}

/// The text of an answer. Dropping it lets the reading go on without it.
#[derive(Debug)]
pub struct TokenStream(Reading);

/// The results of an answer's calls. Dropping it lets the calls go on.
#[derive(Debug)]
pub struct ToolStream(Reading);

/// What comes of an answer as a whole.
#[derive(Debug)]
pub struct Results {
    reading: Reading,
    rounds: Arc<AtomicUsize>,
    counted: AtomicBool,
}

/// A share of the reading.
#[derive(Clone, Debug)]
struct Reading {
    queue: Arc<Queue>,
    _task: Arc<Task>,
}

/// One piece of the merged stream.
#[derive(Clone, Debug)]
pub enum Part {
    /// A piece of the text.
    Token(Token),
    /// The result of a call whose text came before.
    Executed(Executed),
}

impl Answer {
    pub(super) fn begin<S>(
        stream: S,
        reader: Reader,
        rounds: Arc<AtomicUsize>,
    ) -> Result<Self, ChatError>
    where
        S: Stream<Item = String> + Send + Unpin + 'static,
    {
        let queue = Arc::<Queue>::default();
        let task = Arc::new(Task::begin(reader.read(stream, queue.clone()))?);
        let reading = Reading { queue, _task: task };
        Ok(Self {
            token_stream: TokenStream(reading.clone()),
            tool_stream: ToolStream(reading.clone()),
            results: Results { reading, rounds, counted: AtomicBool::new(false) },
        })
    }

    /// The next piece of text or result, in the order they came; nothing at the end of both. A result
    /// never comes before the text of its call. Cancel-safe.
    pub async fn next_part(&mut self) -> Option<Part> {
        poll_fn(|context| self.poll_part(context)).await
    }

    fn poll_part(&mut self, context: &Context<'_>) -> Poll<Option<Part>> {
        let queue = &self.results.reading.queue;
        queue.poll_either(context).map(|part| {
            part.map(|part| match part {
                Ok(token) => Part::Token(token),
                Err(executed) => Part::Executed(executed),
            })
        })
    }

    /// See [`Results::as_message`].
    pub async fn results_as_message(&self) -> Option<String> {
        self.results.as_message().await
    }
}

/// Text and results merged.
impl Stream for Answer {
    type Item = Part;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Part>> {
        self.poll_part(context)
    }
}

impl TokenStream {
    /// The next piece of text; nothing at the end. Cancel-safe.
    pub async fn recv(&mut self) -> Option<Token> {
        poll_fn(|context| self.0.queue.poll_token(context)).await
    }
}

impl Stream for TokenStream {
    type Item = Token;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Token>> {
        self.0.queue.poll_token(context)
    }
}

impl Drop for TokenStream {
    fn drop(&mut self) {
        self.0.queue.leave_tokens();
    }
}

impl ToolStream {
    /// The next result, as calls end; nothing when all of them have. Cancel-safe.
    pub async fn recv(&mut self) -> Option<Executed> {
        poll_fn(|context| self.0.queue.poll_executed(context)).await
    }
}

impl Stream for ToolStream {
    type Item = Executed;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Executed>> {
        self.0.queue.poll_executed(context)
    }
}

impl Drop for ToolStream {
    fn drop(&mut self) {
        self.0.queue.leave_tools();
    }
}

impl Results {
    /// The results of all calls, in the order of the calls, as the text of a message for the model;
    /// its role is `user` where there is none for tools. Waits until every call has ended, whether or
    /// not anybody takes the streams.
    ///
    /// `None` if no call was run: the turn is over. Otherwise it is a round of the turn, once.
    pub async fn as_message(&self) -> Option<String> {
        poll_fn(|context| self.reading.queue.poll_end(context)).await;
        let message = self.reading.queue.message();
        if !self.counted.swap(true, Ordering::Relaxed) {
            match message {
                Some(_) => self.rounds.fetch_add(1, Ordering::Relaxed),
                None => self.rounds.swap(0, Ordering::Relaxed),
            };
        }
        message
    }

    /// How many calls were found and not run, because there had been too many rounds.
    pub fn withheld(&self) -> usize {
        self.reading.queue.withheld()
    }

    /// How the reading of the text ended; `None` while it goes on.
    pub fn ended(&self) -> Option<Ended> {
        self.reading.queue.ended()
    }
}
