//! The response in progress: decodes the body as it arrives.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Endpoint;
use super::client::HttpError;
use super::response_body::ResponseBody;
use crate::provider::codec::{ApiError, ResponseDecoder};
use crate::provider::tool_encoding::EncodedTools;
use crate::provider::{FinishReason, LlmError, Response, StreamChunk, ToolRejection};
use crate::timing::Timing;

/// Maximum wait for more bytes after the response reported its end.
const STREAM_END_GRACE: Duration = Duration::from_secs(2);

pub(super) struct ResponseStream {
    pub(super) timing: Timing,
    pub(super) deadline: Instant,
    pub(super) encoded_tools: Arc<EncodedTools>,
    /// `None` after the end of the response.
    pub(super) decoder: Option<Box<dyn ResponseDecoder>>,
    pub(super) body: ResponseBody,
    /// Whether the response has reported its end.
    pub(super) is_finished: bool,
    /// The token limit, for servers that do not report truncation at the limit.
    pub(super) unreported_token_limit: Option<u32>,
    /// Decoded chunks that are not emitted yet.
    pub(super) chunks: Vec<StreamChunk>,
}

impl ResponseStream {
    /// Reads until there is a chunk to emit, [`StreamChunk::Done`] last.
    pub(super) async fn read_more(&mut self, endpoint: &Endpoint) -> Result<(), LlmError> {
        while self.chunks.is_empty() {
            let Some(mut decoder) = self.decoder.take() else { return Ok(()) };
            let until = match self.is_finished {
                true => self.deadline.min(self.timing.now() + STREAM_END_GRACE),
                false => self.deadline,
            };
            let connection_error = match self.timing.timeout_at(until, self.body.next_chunk()).await
            {
                Some(Ok(Some(bytes))) => {
                    decoder
                        .push(&bytes, &mut self.chunks)
                        .map_err(|api_error| self.convert_error(endpoint, api_error))?;
                    self.chunks
                        .iter_mut()
                        .for_each(|chunk| self.encoded_tools.restore_chunk_name(chunk));
                    self.is_finished = decoder.is_finished();
                    self.decoder = Some(decoder);
                    continue;
                }
                Some(Ok(None)) => None,
                Some(Err(error @ HttpError::TooLarge { .. })) => {
                    return Err(endpoint.convert_http_error(error));
                }
                Some(Err(error)) => Some(endpoint.convert_http_error(error)),
                None => Some(endpoint.timeout_error()),
            };
            // A complete response counts, even if the connection was lost after it.
            let mut response = match (decoder.finish(), connection_error) {
                (Ok(response), _) => response,
                (Err(api_error), None) => return Err(self.convert_error(endpoint, api_error)),
                (Err(api_error), Some(source)) => {
                    let partial_output = endpoint.convert_api_error(api_error).partial_output;
                    return Err(LlmError { partial_output, ..source });
                }
            };
            self.encoded_tools.restore_names(&mut response);
            self.detect_truncation(&mut response);
            self.chunks.push(StreamChunk::Done(Box::new(response)));
        }
        Ok(())
    }

    /// Converts an error of the provider in a successful HTTP response, which may name tools.
    fn convert_error(&self, endpoint: &Endpoint, api_error: ApiError) -> LlmError {
        ToolRejection::add_to(endpoint.convert_api_error(api_error), "", &self.encoded_tools)
    }

    /// Sets the finish reason of a truncated response. Over the Responses API, llama.cpp reports a
    /// truncated response as complete, and a call in the response may be incomplete.
    fn detect_truncation(&self, response: &mut Response) {
        let completion_tokens = response.usage.map_or(0, |usage| usage.completion_tokens);
        let is_complete =
            matches!(response.finish_reason, FinishReason::Stop | FinishReason::ToolCalls);
        if is_complete
            && self
                .unreported_token_limit
                .is_some_and(|limit| completion_tokens >= u64::from(limit))
        {
            response.finish_reason = FinishReason::Length;
        }
    }
}
