//! Tests of responses at a limit and beyond.

use crate::provider::codec::chunking::{MODEL, decode_body, test_decoder};
use crate::provider::codec::{MAX_CONTENT_PARTS, MAX_LIST_ITEMS, MAX_RESPONSE_BYTES};
use crate::provider::{LlmErrorKind, ProviderApi};

fn repeated(member: &str, element: &str, count: usize) -> String {
    let elements = vec![element; count].join(",");
    format!(r#"{{"choices":[{{"message":{{"{member}":[{elements}]}},"finish_reason":"stop"}}]}}"#)
}

#[test]
fn the_numbers_of_calls_parts_and_thoughts_are_limited() {
    for (member, element, max, parts) in [
        ("tool_calls", r#"{"function":{"name":"f"}}"#, MAX_CONTENT_PARTS, MAX_CONTENT_PARTS),
        ("content", r#"{"type":"odd"}"#, MAX_CONTENT_PARTS, MAX_CONTENT_PARTS),
        // Consecutive texts become one part.
        ("content", r#"{"type":"text","text":"x"}"#, MAX_LIST_ITEMS, 1),
        ("reasoning_details", r#"{"type":"t"}"#, MAX_CONTENT_PARTS, 1),
    ] {
        let response =
            decode_body(ProviderApi::OpenAiChat, &repeated(member, element, max)).unwrap();
        assert_eq!(response.message.parts.len(), parts, "{member}");
        let error =
            decode_body(ProviderApi::OpenAiChat, &repeated(member, element, max + 1)).unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::InvalidResponse, "{member}");
    }
}

#[test]
fn the_size_of_an_unstreamed_response_is_limited() {
    let mut reader = test_decoder(ProviderApi::OpenAiChat, MODEL, true);
    let mut chunks = Vec::new();
    let mut body = vec![b' '; MAX_RESPONSE_BYTES];
    body[0] = b'{';
    reader.push(&body, &mut chunks).unwrap();
    assert_eq!(reader.push(b" ", &mut chunks).unwrap_err().kind, LlmErrorKind::InvalidResponse);
}
