//! The codec of OpenAI's Responses API.
//!
//! A response is a list of items; each item becomes one content part with its raw block. The
//! provider stores nothing: the items go back with the next request, including encrypted reasoning.

mod output_item;
mod request;
mod response;
mod stream;

use super::codec::{BufferedDecoder, ResponseDecoder};
use super::openai::StreamDecoder;
use stream::ResponseAccumulator;

pub(super) use super::openai::decode_error;
pub(super) use request::encode;

pub(super) fn response_decoder(model: &str, streaming: bool) -> Box<dyn ResponseDecoder> {
    let model = model.to_owned();
    if streaming {
        return Box::new(StreamDecoder::new(ResponseAccumulator::new(model)));
    }
    Box::new(BufferedDecoder::new(move |body: &str| response::decode_body(&model, body)))
}

#[cfg(test)]
mod tests;
