//! Tests of error kinds.

use super::super::error::decode_error;
use crate::provider::codec::chunking;
use crate::provider::{LlmErrorKind, ProviderApi};

const RETRY_LATER: LlmErrorKind = LlmErrorKind::RetryLater { after: None };

fn error_json(message: &str) -> String {
    serde_json::json!({ "error": message }).to_string()
}

#[test]
fn an_error_is_classified_by_its_message_and_its_status() {
    for (status, message, kind) in [
        (
            400,
            "registry.ollama.ai/library/gemma:latest does not support tools",
            LlmErrorKind::ToolsUnsupported,
        ),
        (404, "model \"llama9\" not found, try pulling it first", LlmErrorKind::NotFound),
        (400, "invalid options: num_ctx", LlmErrorKind::InvalidRequest),
        (400, "the input length exceeds the context length", LlmErrorKind::ContextLength),
        (401, "unauthorized", LlmErrorKind::Authentication),
        (429, "you've reached your hourly usage limit", RETRY_LATER),
        (
            500,
            "model requires more system memory (9.1 GiB) than is available (4 GiB)",
            LlmErrorKind::InvalidRequest,
        ),
        (500, "llama runner process has terminated: exit status 2", RETRY_LATER),
        (
            500,
            "XML syntax error on line 35: element <parameter> closed by </function>",
            LlmErrorKind::MalformedToolCall,
        ),
        (503, "server busy, please try again", RETRY_LATER),
    ] {
        let fault = decode_error(status, error_json(message).as_bytes());
        assert_eq!((fault.kind, fault.message.as_str()), (kind, message));
        assert_eq!(fault.partial_output, None);
    }
    assert_eq!(decode_error(404, b"404 page not found").kind, LlmErrorKind::NotFound);
    assert_eq!(decode_error(404, b"404 page not found").message, "404 page not found");
    assert_eq!(decode_error(502, b"").message, "no error message");
    assert_eq!(decode_error(400, br#"{"error":{"message":"as OpenAI"}}"#).message, "as OpenAI");
}

#[test]
fn a_call_that_ollama_could_not_parse_comes_with_the_raw_call() {
    let raw = "{\"path\":\"a\\n.rs\",\"content\":\"it's ', err= \\\"x\\\"\"}]";
    for (message, partial_output) in [
        (format!("error parsing tool call: raw='{raw}', err=invalid character ']'"), Some(raw)),
        (format!("error parsing tool call: raw='{raw}', err="), Some(raw)),
        ("error parsing tool call: raw='ls -R\n'".to_owned(), Some("ls -R\n")),
        ("error parsing tool call: invalid character ']'".to_owned(), None),
    ] {
        let fault = decode_error(500, error_json(&message).as_bytes());
        assert_eq!(
            (fault.kind, fault.partial_output.as_deref()),
            (LlmErrorKind::MalformedToolCall, partial_output)
        );
    }
    let odd = br#"{"error parsing tool call":"invalid character 'c'"}"#;
    assert_eq!(decode_error(500, odd).kind, LlmErrorKind::MalformedToolCall);
    // The message is truncated, the partial output is complete.
    let long = "x".repeat(9000);
    let fault = decode_error(
        500,
        error_json(&format!("error parsing tool call: raw='{long}', err=e")).as_bytes(),
    );
    assert_eq!((fault.message.len(), fault.partial_output), (2000, Some(long)));
}

#[test]
fn an_error_in_the_middle_of_a_stream_has_the_partial_output() {
    let start = "{\"message\":{\"content\":\"so far\"},\"done\":false}\n";
    for (message, kind, partial_output) in [
        ("an unknown error was encountered", RETRY_LATER, "so far"),
        ("error parsing tool call: raw='{', err=e", LlmErrorKind::MalformedToolCall, "{"),
    ] {
        let error = error_json(message);
        for end in [format!("{error}\n"), error] {
            let api_error =
                chunking::decode_stream(ProviderApi::Ollama, &format!("{start}{end}")).unwrap_err();
            assert_eq!((api_error.kind, api_error.message.as_str()), (kind, message));
            assert_eq!(api_error.partial_output.as_deref(), Some(partial_output));
        }
    }
    let status = format!("{start}{{\"error\":\"gone\",\"status_code\":404}}\n");
    assert_eq!(
        chunking::decode_stream(ProviderApi::Ollama, &status).unwrap_err().kind,
        LlmErrorKind::NotFound
    );
    let unstreamed =
        chunking::decode_body(ProviderApi::Ollama, &error_json("model \"x\" not found"))
            .unwrap_err();
    assert_eq!(unstreamed.kind, LlmErrorKind::NotFound);
}
