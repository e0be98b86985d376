//! The codec of Gemini's Interactions API.
//!
//! The provider stores nothing; each request contains the complete conversation.

mod request;
mod response;
mod response_step;

use super::codec::{
    ApiError, BufferedDecoder, EncodeRequest, EventSplitter, HttpRequest, ResponseDecoder,
};
use super::{Response, StreamChunk};
use response::ResponseAccumulator;

pub(super) use super::gemini::decode_error;

/// The API revision of this codec.
const REVISION: &str = "2026-05-20";

pub(super) fn encode(encode_request: EncodeRequest<'_>) -> Result<HttpRequest, ApiError> {
    let body = request::request_body(encode_request);
    let headers = vec![("api-revision", REVISION.to_owned())];
    Ok(HttpRequest { headers, ..HttpRequest::new("/v1beta/interactions", &body)? })
}

pub(super) fn response_decoder(model: &str, streaming: bool) -> Box<dyn ResponseDecoder> {
    let accumulator = ResponseAccumulator::new(model);
    if streaming {
        Box::new(StreamDecoder { events: EventSplitter::new(), accumulator })
    } else {
        Box::new(BufferedDecoder::new(move |body: &str| accumulator.decode_body(body)))
    }
}

struct StreamDecoder {
    events: EventSplitter,
    accumulator: ResponseAccumulator,
}

impl ResponseDecoder for StreamDecoder {
    fn push(&mut self, bytes: &[u8], chunks: &mut Vec<StreamChunk>) -> Result<(), ApiError> {
        let Self { events, accumulator } = self;
        events.push(bytes, |name, data| accumulator.feed_event(name, data, chunks))
    }

    fn finish(self: Box<Self>) -> Result<Response, ApiError> {
        self.accumulator.finish()
    }
}

#[cfg(test)]
mod tests;
