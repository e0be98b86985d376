//! Decodes a response in chunks.

use std::sync::Arc;

use super::response::{ResponseAccumulator, decode_body};
use crate::provider::codec::{ApiError, ObjectView};
use crate::provider::openai::{EventAccumulator, decode_error_object};
use crate::provider::tool_encoding::EncodedTools;
use crate::provider::{Response, StreamChunk};

pub(super) struct ChunkAccumulator {
    model: String,
    tools: Arc<EncodedTools>,
    response: ResponseAccumulator,
    /// Whether the stream reported its end.
    is_done: bool,
}

impl ChunkAccumulator {
    pub(super) fn new(model: String, tools: Arc<EncodedTools>) -> Self {
        let response = ResponseAccumulator::new(model.clone(), tools.clone());
        Self { model, tools, response, is_done: false }
    }
}

impl EventAccumulator for ChunkAccumulator {
    fn feed_event(
        &mut self,
        name: &str,
        data: &str,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        if self.is_done {
            return Ok(());
        }
        if data == "[DONE]" {
            self.is_done = true;
            if self.response.is_finished(true) {
                self.response.flush(chunks);
            }
            return Ok(());
        }
        let Some(fields) = ObjectView::parse(data) else {
            let message = if name == "error" { data } else { "a chunk is not a JSON object" };
            return Err(self.response.with_partial_output(ApiError::invalid_response(message)));
        };
        if name == "error" {
            return Err(self.response.with_partial_output(decode_error_object(&fields)));
        }
        let result = self.response.feed(&fields, false, chunks);
        result.map_err(|error| self.response.with_partial_output(error))
    }

    fn decode_body(
        &mut self,
        body: &str,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<Response, ApiError> {
        decode_body(std::mem::take(&mut self.model), self.tools.clone(), body, chunks)
    }

    fn is_finished(&self) -> bool {
        self.is_done && self.response.is_finished(true)
    }

    /// Returns the response. Some servers end the stream without `[DONE]`, others send no finish
    /// reason.
    fn finish(self) -> Result<Response, ApiError> {
        if self.response.is_finished(self.is_done) {
            Ok(self.response.into_response())
        } else {
            Err(self.response.into_incomplete_stream())
        }
    }
}
