//! The task that reads a response and runs its calls.

use std::future::poll_fn;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};
use innkeeper_toolcall::{ParserState, ResolvedCall, TextEnd, ToolCallParser};
use serde_json::json;

use super::call_scheduler::CallScheduler;
use super::event_log::{LogEventKind, LogWriter, StartTime};
use super::queue::{CloseOnDrop, ResponseQueue, StreamEnd};
use super::segment::{ClassifiedItem, SegmentClassifier, TextSegment};
use crate::executor::MAX_CALLS_PER_RESPONSE;

#[derive(Debug)]
pub(super) struct ResponseTask {
    /// `None` if text passes through unchanged.
    parser: Option<ToolCallParser>,
    classifier: SegmentClassifier,
    scheduler: CallScheduler,
    runs_calls: bool,
    log_writer: LogWriter,
    /// Bytes read from the stream, and bytes emitted as segments.
    bytes_in: usize,
    bytes_out: usize,
    classified: Vec<ClassifiedItem>,
}

impl ResponseTask {
    pub(super) fn new(
        parser: Option<ToolCallParser>,
        classifier: SegmentClassifier,
        scheduler: CallScheduler,
        runs_calls: bool,
    ) -> Self {
        let log_writer = scheduler.log_writer().clone();
        Self {
            parser,
            classifier,
            scheduler,
            runs_calls,
            log_writer,
            bytes_in: 0,
            bytes_out: 0,
            classified: Vec::new(),
        }
    }

    /// Reads the stream to its end and waits for every call.
    pub(super) async fn run<S>(mut self, mut stream: S, queue: Arc<ResponseQueue>)
    where
        S: Stream<Item = String> + Send + Unpin + 'static,
    {
        let _ending = CloseOnDrop(queue.clone());
        let start_time = self.log_writer.log_start(LogEventKind::ContinuationRequest);
        let mut reading = true;
        loop {
            while let Some(rejected) = self.scheduler.start_next(queue.unread_execution_bytes()) {
                queue.push_execution(rejected);
            }
            if !reading && self.scheduler.is_empty() {
                break;
            }
            // Yields to other tasks when the stream is always ready.
            tokio::task::consume_budget().await;
            tokio::select! {
                executed = self.scheduler.next(), if !self.scheduler.is_empty() => {
                    executed.into_iter().for_each(|executed| queue.push_execution(executed));
                }
                piece = next_chunk(&mut stream, &queue), if reading => match piece {
                    Ok(Some(piece)) => self.feed(&piece, &queue),
                    Ok(None) => {
                        reading = false;
                        self.finish(StreamEnd::Complete, &queue, start_time);
                    }
                    Err(ended) => {
                        reading = false;
                        self.finish(ended, &queue, start_time);
                    }
                },
            }
        }
        // The log must be complete before the application sees the end of the executions.
        self.log_writer.flush().await;
        queue.finish_executions();
    }

    fn feed(&mut self, chunk: &str, queue: &ResponseQueue) {
        if chunk.is_empty() {
            return;
        }
        let Some(parser) = &mut self.parser else {
            return self.emit_segment(TextSegment::Narrative(chunk.to_owned()), queue);
        };
        self.bytes_in += chunk.len();
        let sorter = &mut self.classifier;
        let items = &mut self.classified;
        parser.push(chunk, &mut |event| sorter.feed(&event, items));
        self.dispatch_items(queue);
        let undecided =
            (self.bytes_in - self.bytes_out).saturating_sub(self.classifier.held_bytes());
        if undecided > 0 {
            let new = chunk.len() - undecided.min(chunk.len());
            // The undecided text is at the end, and the parser splits text at character boundaries
            // only.
            let new = chunk.get(new..).unwrap_or(chunk);
            self.emit_segment(TextSegment::Buffered(new.to_owned()), queue);
        }
    }

    fn finish(&mut self, ended: StreamEnd, queue: &ResponseQueue, start_time: StartTime) {
        if let Some(parser) = &mut self.parser {
            let sorter = &mut self.classifier;
            let items = &mut self.classified;
            let text_end = match ended {
                StreamEnd::Complete => TextEnd::Unknown,
                StreamEnd::BufferFull | StreamEnd::Panicked => TextEnd::Interrupted,
            };
            parser.finish(text_end, &mut |event| sorter.feed(&event, items));
            sorter.flush_markup(false, items);
            self.dispatch_items(queue);
        }
        let came = self.bytes_in;
        let state = self.parser.as_ref().map(ToolCallParser::state);
        self.log_writer.log_complete(
            LogEventKind::ContinuationResponse,
            start_time,
            || json!({"bytes": came, "ended": stream_end_name(ended), "state": state.map(state_name)}),
        );
        self.log_writer.log_metric("answer", start_time);
        queue.finish_text(ended);
    }

    fn dispatch_items(&mut self, queue: &ResponseQueue) {
        for item in std::mem::take(&mut self.classified) {
            match item {
                ClassifiedItem::Segment(token) => self.emit_segment(token, queue),
                ClassifiedItem::CallStarted { index, tool } => {
                    self.log_writer.log(
                        LogEventKind::ToolDetectionStart,
                        || json!({"tool": tool, "call": index}),
                    );
                }
                ClassifiedItem::CallCompleted { index, call } => {
                    self.handle_call(index, call, queue);
                }
            }
        }
    }

    fn handle_call(&mut self, index: usize, call: ResolvedCall, queue: &ResponseQueue) {
        let repairs = call.repairs.len();
        self.log_writer.log(
            LogEventKind::ToolDetectionComplete,
            || json!({"tool": call.name, "call": index, "repairs": repairs}),
        );
        if !self.runs_calls {
            queue.skip_call();
        } else if !self.scheduler.has_capacity() {
            let reason = format!("at most {MAX_CALLS_PER_RESPONSE} calls per response are run");
            self.emit_segment(TextSegment::RejectedCall { text: String::new(), reason }, queue);
        } else if let Some(rejected) = self.scheduler.enqueue(index, call) {
            queue.push_execution(rejected);
        }
    }

    fn emit_segment(&mut self, token: TextSegment, queue: &ResponseQueue) {
        self.bytes_out += token.text().len();
        self.log_writer.log_classification(token.class(), token.content());
        queue.push_segment(token);
    }
}

/// Returns the next chunk when the queue has capacity. Cancel-safe, like `StreamExt::next`.
async fn next_chunk<S>(stream: &mut S, queue: &ResponseQueue) -> Result<Option<String>, StreamEnd>
where
    S: Stream<Item = String> + Unpin,
{
    poll_fn(|context| queue.poll_capacity(context)).await?;
    Ok(stream.next().await)
}

fn stream_end_name(ended: StreamEnd) -> &'static str {
    match ended {
        StreamEnd::Complete => "whole",
        StreamEnd::BufferFull => "overrun",
        StreamEnd::Panicked => "broken",
    }
}

fn state_name(state: ParserState) -> &'static str {
    match state {
        ParserState::Narrative => "Narrative",
        ParserState::MaybeToolStart => "MaybeToolStart",
        ParserState::InToolCall => "InToolCall",
        ParserState::AfterToolCall => "AfterToolCall",
        ParserState::Reasoning => "Reasoning",
    }
}
