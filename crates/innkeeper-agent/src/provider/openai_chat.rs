//! The codec of the Chat Completions API, for OpenAI and compatible servers.
//!
//! The decoder is lenient and treats streamed and unstreamed messages alike: `response.rs` decodes
//! a choice, `message_content.rs`, `reasoning.rs` and `tool_call_accumulator.rs` collect its parts, `call_name.rs` the names of calls, `reasoning_details.rs`
//! reasoning that goes back verbatim. The parts of a response have a fixed order: reasoning, text,
//! tool calls.

mod call_name;
mod message_content;
mod reasoning;
mod reasoning_details;
mod request;
mod response;
mod stream;
mod tool_call_accumulator;

use std::sync::Arc;

use super::codec::{BufferedDecoder, ResponseDecoder};
use super::openai::StreamDecoder;
use super::tool_encoding::EncodedTools;
use stream::ChunkAccumulator;

pub(super) use super::openai::decode_error;
pub(super) use request::encode;

pub(super) fn response_decoder(
    model: &str,
    encoded_tools: &Arc<EncodedTools>,
    streaming: bool,
) -> Box<dyn ResponseDecoder> {
    let model = model.to_owned();
    let tools = encoded_tools.clone();
    if streaming {
        return Box::new(StreamDecoder::new(ChunkAccumulator::new(model, tools)));
    }
    Box::new(BufferedDecoder::new(move |body: &str| {
        response::decode_body(model, tools, body, &mut Vec::new())
    }))
}

#[cfg(test)]
mod tests;
