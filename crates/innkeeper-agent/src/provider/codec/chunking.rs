//! Decodes bodies in many chunk sizes, for tests and the fuzzer.

#[cfg(test)]
mod assertions;

use std::sync::Arc;

use super::{ApiError, ResponseDecoder, response_decoder};
use crate::provider::tool_encoding::EncodedTools;
use crate::provider::{ProviderApi, Response, StreamChunk};

#[cfg(test)]
pub(crate) use assertions::{assert_chunks_match, calls, decode_stream, sse_events};

/// The model name in tests.
pub(crate) const MODEL: &str = "a-model";

/// The model name in tests of Gemini's APIs, where the name determines the capabilities.
pub(crate) const TEST_GEMINI_MODEL: &str = "gemini-3.8-flash";

/// Chunk sizes in bytes; each list repeats until the end of the stream.
const CHUNK_SIZES: [&[usize]; 7] = [&[1], &[2], &[3], &[7, 1, 40], &[64, 5], &[1000, 1], &[61]];

pub(crate) fn test_model(api: ProviderApi) -> &'static str {
    match api {
        ProviderApi::GeminiGenerate | ProviderApi::GeminiInteractions => TEST_GEMINI_MODEL,
        ProviderApi::OpenAiChat
        | ProviderApi::OpenAiResponses
        | ProviderApi::Anthropic
        | ProviderApi::Ollama => MODEL,
    }
}

/// Returns a decoder of the response to a request without tools.
pub(crate) fn test_decoder(
    api: ProviderApi,
    model: &str,
    streaming: bool,
) -> Box<dyn ResponseDecoder> {
    let tools = Arc::new(EncodedTools::new(Arc::default(), api, false));
    response_decoder(api, model, &tools, streaming)
}

/// Decodes a body in chunks of the given sizes, which repeat.
pub(crate) fn decode_chunked(
    api: ProviderApi,
    streaming: bool,
    mut bytes: &[u8],
    sizes: &[usize],
) -> (Result<Response, ApiError>, Vec<StreamChunk>) {
    let mut reader = test_decoder(api, test_model(api), streaming);
    let mut chunks = Vec::new();
    for size in sizes.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (chunk, rest) = bytes.split_at((*size).clamp(1, bytes.len()));
        bytes = rest;
        if let Err(error) = reader.push(chunk, &mut chunks) {
            return (Err(error), chunks);
        }
    }
    (reader.finish(), chunks)
}

/// Decodes an unstreamed response.
pub(crate) fn decode_body(
    api: ProviderApi,
    body: &(impl AsRef<[u8]> + ?Sized),
) -> Result<Response, ApiError> {
    let (response, chunks) = decode_chunked(api, false, body.as_ref(), &[13]);
    assert_eq!(chunks, [], "an unstreamed response emits no chunks");
    response
}

/// Decodes a stream in many chunk sizes; every size must give the same result and the same chunks.
pub(crate) fn decode_in_all_chunkings(
    api: ProviderApi,
    body: &[u8],
) -> (Result<Response, ApiError>, Vec<StreamChunk>) {
    let first = decode_chunked(api, true, body, &[usize::MAX]);
    for sizes in CHUNK_SIZES {
        let other = decode_chunked(api, true, body, sizes);
        assert_eq!(first, other, "in chunks of {sizes:?}: {}", String::from_utf8_lossy(body));
    }
    first
}
