//! A decoder that buffers the complete body.

use super::{ApiError, MAX_RESPONSE_BYTES, ResponseDecoder, response_text};
use crate::provider::{Response, StreamChunk};

/// Collects the body and passes its text to a function at the end.
pub(crate) struct BufferedDecoder<R> {
    body: Vec<u8>,
    decode: R,
}

impl<R: FnOnce(&str) -> Result<Response, ApiError>> BufferedDecoder<R> {
    pub(crate) fn new(decode: R) -> Self {
        Self { body: Vec::new(), decode }
    }
}

impl<R: FnOnce(&str) -> Result<Response, ApiError> + Send> ResponseDecoder for BufferedDecoder<R> {
    fn push(&mut self, bytes: &[u8], _: &mut Vec<StreamChunk>) -> Result<(), ApiError> {
        if self.body.len() + bytes.len() > MAX_RESPONSE_BYTES {
            return Err(ApiError::too_long(MAX_RESPONSE_BYTES));
        }
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Response, ApiError> {
        let Self { body, decode } = *self;
        decode(response_text(&body)?)
    }
}
