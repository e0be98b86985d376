//! A streaming response: text segments and executions, separate or merged.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_util::Stream;

use super::ChatError;
use super::queue::{ResponseQueue, StreamEnd};
use super::response_task::ResponseTask;
use super::segment::TextSegment;
use crate::executor::ToolExecution;
use crate::tasks::OwnedTask;

/// A response that is being read. Its parts can be moved out; when the last part is dropped, the
/// reading stops and running calls are cancelled.
#[derive(Debug)]
pub struct StreamingResponse {
    /// The text segments.
    pub segment_stream: SegmentStream,
    /// The executions, in the order in which they end.
    pub execution_stream: ExecutionStream,
    /// The results of the response.
    pub results: ResponseResults,
}

/// The text segments of a response. After a drop, the reading continues without them.
#[derive(Debug)]
pub struct SegmentStream(TaskHandle);

/// The executions of a response. After a drop, the calls continue.
#[derive(Debug)]
pub struct ExecutionStream(TaskHandle);

/// The results of a response as a whole.
#[derive(Debug)]
pub struct ResponseResults {
    task: TaskHandle,
    iterations: Arc<AtomicUsize>,
    iteration_counted: AtomicBool,
}

/// A shared handle to the reading task, which ends with the last handle.
#[derive(Clone, Debug)]
struct TaskHandle {
    queue: Arc<ResponseQueue>,
    _task: Arc<OwnedTask>,
}

/// An item of the merged stream.
#[derive(Clone, Debug)]
pub enum ResponseItem {
    /// A segment of the text.
    Segment(TextSegment),
    /// The execution of a call whose text came earlier.
    Execution(ToolExecution),
}

impl StreamingResponse {
    pub(super) fn start<S>(
        stream: S,
        reader: ResponseTask,
        iterations: Arc<AtomicUsize>,
    ) -> Result<Self, ChatError>
    where
        S: Stream<Item = String> + Send + Unpin + 'static,
    {
        let queue = Arc::<ResponseQueue>::default();
        let task = Arc::new(OwnedTask::spawn(reader.run(stream, queue.clone()))?);
        let reading = TaskHandle { queue, _task: task };
        Ok(Self {
            segment_stream: SegmentStream(reading.clone()),
            execution_stream: ExecutionStream(reading.clone()),
            results: ResponseResults {
                task: reading,
                iterations,
                iteration_counted: AtomicBool::new(false),
            },
        })
    }

    /// Returns the next text segment or execution, in the order of arrival; `None` after both have
    /// ended. An execution never comes before the text of its call. Cancel-safe.
    pub async fn next_item(&mut self) -> Option<ResponseItem> {
        poll_fn(|context| self.poll_item(context)).await
    }

    fn poll_item(&mut self, context: &Context<'_>) -> Poll<Option<ResponseItem>> {
        let queue = &self.results.task.queue;
        queue.poll_item(context).map(|item| {
            item.map(|item| match item {
                Ok(token) => ResponseItem::Segment(token),
                Err(execution) => ResponseItem::Execution(execution),
            })
        })
    }

    /// See [`ResponseResults::as_message`].
    pub async fn results_as_message(&self) -> Option<String> {
        self.results.as_message().await
    }
}

/// Yields text segments and executions merged.
impl Stream for StreamingResponse {
    type Item = ResponseItem;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<ResponseItem>> {
        self.poll_item(context)
    }
}

impl SegmentStream {
    /// Returns the next text segment; `None` at the end. Cancel-safe.
    pub async fn recv(&mut self) -> Option<TextSegment> {
        poll_fn(|context| self.0.queue.poll_segment(context)).await
    }
}

impl Stream for SegmentStream {
    type Item = TextSegment;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<TextSegment>> {
        self.0.queue.poll_segment(context)
    }
}

impl Drop for SegmentStream {
    fn drop(&mut self) {
        self.0.queue.drop_segments();
    }
}

impl ExecutionStream {
    /// Returns the next execution as calls end; `None` after all have ended. Cancel-safe.
    pub async fn recv(&mut self) -> Option<ToolExecution> {
        poll_fn(|context| self.0.queue.poll_execution(context)).await
    }
}

impl Stream for ExecutionStream {
    type Item = ToolExecution;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ToolExecution>> {
        self.0.queue.poll_execution(context)
    }
}

impl Drop for ExecutionStream {
    fn drop(&mut self) {
        self.0.queue.drop_executions();
    }
}

impl ResponseResults {
    /// Returns the results of all calls, in the order of the calls, as the text of a message to the
    /// model. If the model has no role for tools, send the message with the role `user`. Waits
    /// until every call has ended, whether or not the application reads the streams.
    ///
    /// Returns `None` if no call was run: the run is over. Otherwise the response counts as one
    /// iteration of the run. Cancel-safe.
    pub async fn as_message(&self) -> Option<String> {
        poll_fn(|context| self.task.queue.poll_finished(context)).await;
        let message = self.task.queue.results_message();
        if !self.iteration_counted.swap(true, Ordering::Relaxed) {
            match message {
                Some(_) => self.iterations.fetch_add(1, Ordering::Relaxed),
                None => self.iterations.swap(0, Ordering::Relaxed),
            };
        }
        message
    }

    /// Returns the number of calls that were not run after too many iterations.
    pub fn skipped_calls(&self) -> usize {
        self.task.queue.skipped_calls()
    }

    /// Returns the reason why the reading ended; `None` while the text is being read.
    pub fn stream_end(&self) -> Option<StreamEnd> {
        self.task.queue.stream_end()
    }
}
