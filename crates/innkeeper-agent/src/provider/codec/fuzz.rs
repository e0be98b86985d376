//! Fuzz target of the codecs.
//!
//! Any input decodes to a response or an error, the result does not depend on the chunk sizes, and
//! the next request can encode the decoded message. The first byte of the input selects the API,
//! the second whether the rest is a stream, an unstreamed response or an HTTP error response.

use super::chunking::{decode_body, decode_in_all_chunkings};
use super::request_encoding::encode_request;
use super::{ApiError, decode_error};
use crate::conversation::{AssistantMessage, Conversation, ToolResult};
use crate::provider::{Capabilities, ProviderApi, Request, Response};

/// Decodes the input as a response.
///
/// # Panics
///
/// If the result depends on the chunk sizes, or if the next request cannot be encoded.
pub fn codecs(input: &[u8]) {
    let [api, kind, body @ ..] = input else { return };
    let api = ProviderApi::ALL[usize::from(*api) % ProviderApi::ALL.len()];
    if let Ok(response) = decode(api, *kind, body) {
        assert_conversation_continues(api, response.message);
    }
}

/// Decodes the body as a stream, an unstreamed response or an HTTP error response.
fn decode(api: ProviderApi, kind: u8, body: &[u8]) -> Result<Response, ApiError> {
    match kind % 3 {
        0 => decode_in_all_chunkings(api, body).0,
        1 => decode_body(api, body),
        _ => Err(decode_error(api, error_status(kind), body)),
    }
}

/// Returns the HTTP status of an error response: each client and server error, and unknown ones.
fn error_status(kind: u8) -> u16 {
    400 + u16::from(kind)
}

fn assert_conversation_continues(api: ProviderApi, message: AssistantMessage) {
    let mut conversation = Conversation::new();
    conversation.push_user("?").expect("no call is pending");
    conversation.push_assistant(message).expect("no call is pending");
    let results = conversation.pending_calls().map(|call| ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        content: "ok".into(),
        is_error: false,
    });
    let results = results.collect();
    conversation.push_tool_results(results).expect("each call has one result");
    let request = Request { messages: conversation.messages().to_vec(), ..Request::default() };
    // For the same model, and for another model, which gets no provider blocks of the first.
    for model in [super::chunking::test_model(api), "another"] {
        let capabilities = Capabilities::for_model(api, model);
        let outgoing = encode_request(api, &request, model, &capabilities, true);
        let body: Result<&serde_json::value::RawValue, _> = serde_json::from_slice(&outgoing.body);
        assert!(body.is_ok(), "{}", String::from_utf8_lossy(&outgoing.body));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_third_kind_of_input_is_an_error_response_and_the_others_are_responses() {
        let body = br#"{"message":{"role":"assistant","content":"hi"},"done":true}"#;
        for kind in 0..=u8::MAX {
            let decoded = decode(ProviderApi::Ollama, kind, body);
            assert_eq!(decoded.is_ok(), kind % 3 < 2, "{kind}: {decoded:?}");
        }
    }

    #[test]
    fn the_status_of_an_error_response_is_that_of_a_client_or_a_server_error() {
        let statuses = (0..=u8::MAX).map(error_status);
        assert!(statuses.eq(400..=655));
    }

    #[test]
    fn every_kept_answer_is_the_same_however_it_is_cut_and_can_be_sent_again() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/codecs");
        let inputs: Vec<_> = std::fs::read_dir(dir).unwrap().flatten().collect();
        assert!(!inputs.is_empty());
        for input in inputs {
            println!("{}", input.path().display());
            codecs(&std::fs::read(input.path()).unwrap());
        }
    }
}
