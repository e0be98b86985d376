//! Fuzz target for what clients of the connection service send.

#![expect(clippy::expect_used, reason = "a fuzz target reports a defect with a panic")]

use crate::connections::{
    CapabilityRegistry, ConnectionMessage, ErrorCode, InitializeRequest, MAX_INITIALIZE_BYTES,
};

/// Maximum length of an error message in bytes: an error repeats only the start of what it rejects.
const MAX_MESSAGE_BYTES: usize = 4_096;

/// Parses the input as the parameters of `initialize` and as a message with metadata.
///
/// # Panics
///
/// Panics if what was parsed changes when it is stored, if a client without the required features is
/// accepted, or if an error is longer than [`MAX_MESSAGE_BYTES`].
pub fn connection_request(input: &[u8]) {
    if input.len() > MAX_INITIALIZE_BYTES {
        return;
    }
    match super::parse::<InitializeRequest>(input) {
        Ok(request) => check_request(&request),
        Err(error) => assert!(error.message.len() <= MAX_MESSAGE_BYTES, "{}", error.message.len()),
    }
    match ConnectionMessage::from_json(input) {
        Ok(message) => {
            let text = serde_json::to_vec(&message).expect("JSON");
            let again = ConnectionMessage::from_json(&text).expect("the same message");
            assert_eq!(again, message);
        }
        Err(error) => {
            assert!([ErrorCode::ParseError, ErrorCode::ValidationError].contains(&error.code));
            assert!(error.message.len() <= MAX_MESSAGE_BYTES, "{}", error.message.len());
        }
    }
}

fn check_request(request: &InitializeRequest) {
    let text = serde_json::to_vec(request).expect("JSON");
    let stored: InitializeRequest = serde_json::from_slice(&text).expect("the stored request");
    assert_eq!(stored, *request);
    let registry = CapabilityRegistry::with_core_features();
    let reasons = registry.incompatibilities(&request.capabilities);
    let has = |name| registry.is_feature_enabled(name, &request.capabilities);
    let has_required = has("core.jsonrpc") && has("core.transport.http");
    assert!(has_required || !reasons.is_empty(), "a required feature is missing");
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn every_corpus_input_passes() {
        let corpus =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/connection_request");
        let inputs: Vec<_> = std::fs::read_dir(corpus).unwrap().collect();
        assert!(!inputs.is_empty());
        for input in inputs {
            super::connection_request(&std::fs::read(input.unwrap().path()).unwrap());
        }
    }
}
