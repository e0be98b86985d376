//! Streams that break off, fail on the way, or are none.

use proptest::prelude::*;

use super::*;

const STREAM: [&str; 4] = [
    r#"{"candidates":[{"content":{"parts":[{"text":"Hmm","thought":true}],"role":"model"}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"I look \u00fc\ud83d\ude00. "}],"role":"model"}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"look","args":{"at":"it","n":9}},"thoughtSignature":"QUJD"}],"role":"model"}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3}}"#,
];

#[test]
fn a_stream_that_breaks_off_tells_what_was_written() {
    let cut = stream(&STREAM[..3]);
    let (response, pieces) = read(Wire::GeminiGenerate, true, cut.as_bytes(), &[10]);
    let fault = response.unwrap_err();
    assert_eq!(fault.class, Class::Connection);
    assert_eq!(fault.written.as_deref(), Some("I look ü😀. "));
    assert_eq!(pieces.len(), 4);
}

/// Proves: G79
#[test]
fn a_failure_in_the_middle_of_a_stream_is_one() {
    let failure = r#"{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}"#;
    let (response, _) =
        read(Wire::GeminiGenerate, true, stream(&[STREAM[1], failure]).as_bytes(), &[10]);
    let fault = response.unwrap_err();
    assert_eq!((fault.class, &*fault.message), (Class::Later { after: None }, "overloaded"));
    assert_eq!(fault.written.as_deref(), Some("I look ü😀. "));
    let (response, _) = read(Wire::GeminiGenerate, true, stream(&[failure]).as_bytes(), &[10]);
    assert_eq!(response.unwrap_err().written, None);
}

#[test]
fn an_event_that_is_no_response_makes_the_answer_unreadable() {
    for event in ["{", "[]", "7", "\"text\""] {
        let (response, _) =
            read(Wire::GeminiGenerate, true, stream(&[STREAM[1], event]).as_bytes(), &[4]);
        assert_eq!(response.unwrap_err().class, Class::Unreadable, "{event}");
    }
    let mut ended = STREAM.to_vec();
    ended.push("[DONE]");
    assert_eq!(streamed(&ended), streamed(&STREAM));
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        size in 1_usize..50,
    ) {
        for streaming in [false, true] {
            prop_assert!(read(Wire::GeminiGenerate, streaming, &bytes, &[size]).0.is_err());
        }
        let mut event = b"data: ".to_vec();
        event.extend(&bytes);
        event.extend(b"\n\n");
        drop(read(Wire::GeminiGenerate, true, &event, &[size]));
        drop(fault(400, &bytes));
    }

    #[test]
    fn a_cut_stream_is_no_answer(at in 0_usize..2000, size in 1_usize..50) {
        let full = stream(&STREAM);
        let at = at % full.len();
        let (response, _) = read(Wire::GeminiGenerate, true, &full.as_bytes()[..at], &[size]);
        match response {
            Err(fault) => prop_assert_eq!(fault.class, Class::Connection),
            // The last event ends with the first of its two line ends.
            Ok(response) => prop_assert_eq!(response, streamed(&STREAM)),
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
        drop(read(Wire::GeminiGenerate, true, &full, &[size]));
        let body = &full[6..];
        drop(read(Wire::GeminiGenerate, false, body, &[size]));
    }
}
