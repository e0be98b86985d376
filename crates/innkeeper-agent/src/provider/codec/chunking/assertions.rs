//! Assertions on stream chunks.

use super::decode_in_all_chunkings;
use crate::conversation::PartContent;
use crate::provider::codec::ApiError;
use crate::provider::{ProviderApi, Response, StreamChunk};

/// The concatenated chunks: text, reasoning, and the name and arguments of each call.
type ChunkContents = (String, String, Vec<(String, String)>);

/// Decodes a stream in many chunk sizes and asserts that the concatenated chunks equal the
/// response.
pub(crate) fn decode_stream(api: ProviderApi, body: &str) -> Result<Response, ApiError> {
    let (response, chunks) = decode_in_all_chunkings(api, body.as_bytes());
    if let Ok(response) = &response {
        assert_chunks_match(&chunks, response);
    }
    response
}

/// Returns a stream of events that have only data.
pub(crate) fn sse_events(data: &[&str]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}

/// Returns the id, name and arguments of each call.
pub(crate) fn calls(response: &Response) -> Vec<(&str, &str, &str)> {
    let calls = response.message.calls();
    calls.map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str())).collect()
}

pub(crate) fn assert_chunks_match(chunks: &[StreamChunk], response: &Response) {
    let message = &response.message;
    let calls = message.parts.iter().filter_map(|part| match &part.content {
        PartContent::ToolCall(call) => Some((call.name.clone(), call.arguments.clone())),
        PartContent::Text(_) | PartContent::Reasoning(_) | PartContent::Other => None,
    });
    let (text, reasoning, streamed) = collect_chunks(chunks);
    assert_eq!((text, reasoning), (message.visible_text(), message.reasoning()));
    // A call that is sent again has chunks, but is in the response once.
    let mut rest = streamed.iter();
    for call in calls {
        assert!(rest.any(|other| *other == call), "{call:?} is not in {streamed:?}");
    }
}

fn collect_chunks(chunks: &[StreamChunk]) -> ChunkContents {
    let mut text = String::new();
    let mut reasoning = String::new();
    let mut calls = Vec::new();
    for chunk in chunks {
        match chunk {
            StreamChunk::Text(more) => text.push_str(more),
            StreamChunk::Reasoning(more) => reasoning.push_str(more),
            StreamChunk::ToolCallStart { index, name } => {
                assert_eq!(*index, calls.len());
                calls.push((name.clone(), String::new()));
            }
            StreamChunk::ArgumentsDelta { index, fragment } => calls[*index].1.push_str(fragment),
            StreamChunk::Done(_) => panic!("a decoder emits no `Done` chunk"),
        }
    }
    (text, reasoning, calls)
}
