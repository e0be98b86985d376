//! Tests of incomplete, failed and invalid streams.

use proptest::prelude::*;

use super::*;

const STREAM: [&str; 4] = [
    r#"{"candidates":[{"content":{"parts":[{"text":"Hmm","thought":true}],"role":"model"}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"I look \u00fc\ud83d\ude00. "}],"role":"model"}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"look","args":{"at":"it","n":9}},"thoughtSignature":"QUJD"}],"role":"model"}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3}}"#,
];

#[test]
fn an_incomplete_stream_returns_the_partial_output() {
    let truncated = stream(&STREAM[..3]);
    let (response, chunks) =
        decode_chunked(ProviderApi::GeminiGenerate, true, truncated.as_bytes(), &[10]);
    let error = response.unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::Connection);
    assert_eq!(error.partial_output.as_deref(), Some("I look ü😀. "));
    assert_eq!(chunks.len(), 4);
}

/// Proves: G79
#[test]
fn a_failure_in_the_middle_of_a_stream_is_one() {
    let failure = r#"{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}"#;
    let (response, _) = decode_chunked(
        ProviderApi::GeminiGenerate,
        true,
        stream(&[STREAM[1], failure]).as_bytes(),
        &[10],
    );
    let fault = response.unwrap_err();
    assert_eq!(
        (fault.kind, &*fault.message),
        (LlmErrorKind::RetryLater { after: None }, "overloaded")
    );
    assert_eq!(fault.partial_output.as_deref(), Some("I look ü😀. "));
    let (response, _) =
        decode_chunked(ProviderApi::GeminiGenerate, true, stream(&[failure]).as_bytes(), &[10]);
    assert_eq!(response.unwrap_err().partial_output, None);
}

#[test]
fn an_event_that_is_no_response_is_an_invalid_response() {
    for event in ["{", "[]", "7", "\"text\""] {
        let (response, _) = decode_chunked(
            ProviderApi::GeminiGenerate,
            true,
            stream(&[STREAM[1], event]).as_bytes(),
            &[4],
        );
        assert_eq!(response.unwrap_err().kind, LlmErrorKind::InvalidResponse, "{event}");
    }
    let mut ended = STREAM.to_vec();
    ended.push("[DONE]");
    assert_eq!(decode_stream(&ended), decode_stream(&STREAM));
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        size in 1_usize..50,
    ) {
        for streaming in [false, true] {
            prop_assert!(decode_chunked(ProviderApi::GeminiGenerate, streaming, &bytes, &[size]).0.is_err());
        }
        let mut event = b"data: ".to_vec();
        event.extend(&bytes);
        event.extend(b"\n\n");
        drop(decode_chunked(ProviderApi::GeminiGenerate, true, &event, &[size]));
        drop(decode_error(400, &bytes));
    }

    #[test]
    fn a_cut_stream_is_no_answer(at in 0_usize..2000, size in 1_usize..50) {
        let full = stream(&STREAM);
        let at = at % full.len();
        let (response, _) = decode_chunked(ProviderApi::GeminiGenerate, true, &full.as_bytes()[..at], &[size]);
        match response {
            Err(fault) => prop_assert_eq!(fault.kind, LlmErrorKind::Connection),
            // The last event already ends with the first of its two line breaks.
            Ok(response) => prop_assert_eq!(response, decode_stream(&STREAM)),
        }
    }

    #[test]
    fn a_byte_that_is_another_makes_no_reader_panic(
        at in 0_usize..2000,
        byte: u8,
        size in 1_usize..50,
    ) {
        let mut full = stream(&STREAM).into_bytes();
        let at = at % full.len();
        full[at] = byte;
        drop(decode_chunked(ProviderApi::GeminiGenerate, true, &full, &[size]));
        let body = &full[6..];
        drop(decode_chunked(ProviderApi::GeminiGenerate, false, body, &[size]));
    }
}
