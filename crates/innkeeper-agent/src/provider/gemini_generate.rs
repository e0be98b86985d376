//! The codec of Gemini's generateContent method.

mod partial_tool_call;
mod request;
mod response;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::codec::{
    ApiError, BufferedDecoder, EncodeRequest, EventSplitter, HttpRequest, ResponseDecoder,
};
use super::gemini::model_name;
use super::{Response, StreamChunk};
use response::ResponseAccumulator;

pub(super) use super::gemini::decode_error;

/// All characters but the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(super) fn encode(encode_request: EncodeRequest<'_>) -> Result<HttpRequest, ApiError> {
    let model = utf8_percent_encode(model_name(encode_request.model), RESERVED);
    let method =
        if encode_request.streaming { "streamGenerateContent?alt=sse" } else { "generateContent" };
    let path = format!("/v1beta/models/{model}:{method}");
    HttpRequest::new(path, &request::request_body(encode_request))
}

pub(super) fn response_decoder(model: &str, streaming: bool) -> Box<dyn ResponseDecoder> {
    let accumulator = ResponseAccumulator::new(model);
    if streaming {
        Box::new(StreamDecoder { events: EventSplitter::new(), accumulator })
    } else {
        Box::new(BufferedDecoder::new(move |body: &str| accumulator.decode_body(body)))
    }
}

/// A decoder of an event stream; each event is a response object with a chunk of the candidate.
struct StreamDecoder {
    events: EventSplitter,
    accumulator: ResponseAccumulator,
}

impl ResponseDecoder for StreamDecoder {
    fn push(&mut self, bytes: &[u8], chunks: &mut Vec<StreamChunk>) -> Result<(), ApiError> {
        let Self { events, accumulator } = self;
        events.push(bytes, |_, data| accumulator.feed_event(data, chunks))
    }

    fn finish(self: Box<Self>) -> Result<Response, ApiError> {
        self.accumulator.finish()
    }
}

#[cfg(test)]
mod tests;
