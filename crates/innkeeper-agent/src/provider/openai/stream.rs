//! Decodes the response to a streaming request, streamed by the server or not.

use super::BraceTracker;
use crate::provider::codec::{
    ApiError, EventSplitter, MAX_RESPONSE_BYTES, ResponseDecoder, response_text,
};
use crate::provider::{Response, StreamChunk};

/// An accumulator that builds a response from events.
pub(in crate::provider) trait EventAccumulator: Send {
    /// Feeds an event: its name, and its data, which is not empty.
    fn feed_event(
        &mut self,
        name: &str,
        data: &str,
        pieces: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError>;

    /// Decodes an unstreamed response.
    fn decode_body(
        &mut self,
        body: &str,
        pieces: &mut Vec<StreamChunk>,
    ) -> Result<Response, ApiError>;

    /// Whether the response has reported its end.
    fn is_finished(&self) -> bool;

    /// Returns the response at the end of the body.
    fn finish(self) -> Result<Response, ApiError>;
}

/// A decoder of an event stream or of one JSON object.
pub(in crate::provider) struct StreamDecoder<G> {
    state: BodyState,
    accumulator: G,
}

enum BodyState {
    Unknown,
    Events(EventSplitter),
    /// One JSON object: the response of a server that does not stream, or an error.
    Object {
        body: Vec<u8>,
        brace_tracker: BraceTracker,
    },
    Decoded(Response),
}

impl<G> StreamDecoder<G> {
    pub(in crate::provider) fn new(accumulator: G) -> Self {
        Self { state: BodyState::Unknown, accumulator }
    }
}

impl<G: EventAccumulator> ResponseDecoder for StreamDecoder<G> {
    fn push(&mut self, mut bytes: &[u8], chunks: &mut Vec<StreamChunk>) -> Result<(), ApiError> {
        if let BodyState::Unknown = self.state {
            bytes = bytes.trim_ascii_start();
            self.state = match bytes.first() {
                None => return Ok(()),
                Some(b'{') => {
                    BodyState::Object { body: Vec::new(), brace_tracker: BraceTracker::default() }
                }
                Some(_) => BodyState::Events(EventSplitter::new()),
            };
        }
        let gather = &mut self.accumulator;
        match &mut self.state {
            BodyState::Unknown | BodyState::Decoded(_) => Ok(()),
            BodyState::Events(events) => events.push(bytes, |name, data| match data.trim() {
                "" => Ok(()),
                data => gather.feed_event(name, data, chunks),
            }),
            BodyState::Object { body, brace_tracker } => {
                if body.len() + bytes.len() > MAX_RESPONSE_BYTES {
                    return Err(ApiError::too_long(MAX_RESPONSE_BYTES));
                }
                let object_end = brace_tracker.push(bytes);
                body.extend_from_slice(&bytes[..object_end.unwrap_or(bytes.len())]);
                if object_end.is_some() {
                    let text = response_text(body)?;
                    self.state = BodyState::Decoded(gather.decode_body(text, chunks)?);
                }
                Ok(())
            }
        }
    }

    fn is_finished(&self) -> bool {
        match self.state {
            BodyState::Decoded(_) => true,
            BodyState::Unknown | BodyState::Events(_) | BodyState::Object { .. } => {
                self.accumulator.is_finished()
            }
        }
    }

    fn finish(self: Box<Self>) -> Result<Response, ApiError> {
        match self.state {
            BodyState::Decoded(response) => Ok(response),
            BodyState::Unknown | BodyState::Events(_) | BodyState::Object { .. } => {
                self.accumulator.finish()
            }
        }
    }
}
