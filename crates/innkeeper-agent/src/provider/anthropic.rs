//! The codec of Anthropic's Messages API, which other servers implement too.

mod block;
mod error;
mod request;
mod response;
mod stream;

use super::codec::{ApiError, BufferedDecoder, EncodeRequest, HttpRequest, ResponseDecoder};

pub(super) fn encode(encode_request: EncodeRequest<'_>) -> Result<HttpRequest, ApiError> {
    request::encode(encode_request)
}

pub(super) fn response_decoder(model: &str, streaming: bool) -> Box<dyn ResponseDecoder> {
    let model = model.to_owned();
    if streaming {
        Box::new(stream::StreamDecoder::new(model))
    } else {
        Box::new(BufferedDecoder::new(move |body: &str| response::decode_body(body, &model)))
    }
}

pub(super) fn decode_error(status: u16, body: &[u8]) -> ApiError {
    error::decode_error(status, body)
}

#[cfg(test)]
mod tests;
