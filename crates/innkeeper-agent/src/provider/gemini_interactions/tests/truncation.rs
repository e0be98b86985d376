//! Tests of incomplete, failed and invalid streams.

use proptest::prelude::*;

use super::*;

fn events() -> Vec<String> {
    vec![
        start(0, r#"{"type":"thought","signature":""}"#),
        delta(0, r#"{"type":"thought_signature","signature":"QUJD"}"#),
        stop(0),
        start(1, r#"{"type":"model_output"}"#),
        delta(1, r#"{"type":"text","text":"I look \u00fc\ud83d\ude00. "}"#),
        stop(1),
        start(2, r#"{"type":"function_call","id":"c","name":"look","arguments":{}}"#),
        delta(2, r#"{"type":"arguments_delta","arguments":"{\"at\":"}"#),
        delta(2, r#"{"type":"arguments_delta","arguments":"\"it\"}"}"#),
        stop(2),
        completed("requires_action"),
    ]
}

fn stream_text(events: &[String]) -> String {
    stream(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn an_incomplete_stream_returns_the_partial_output() {
    let events = events();
    for count in [0, 5, 8, 9, 10] {
        let (response, _) = decode_chunked(
            ProviderApi::GeminiInteractions,
            true,
            stream_text(&events[..count]).as_bytes(),
            &[10],
        );
        let error = response.unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::Connection, "{count}");
        let partial_output = if count < 5 { "" } else { "I look ü😀. " };
        assert_eq!(error.partial_output.as_deref(), Some(partial_output), "{count}");
    }
}

#[test]
fn half_a_surrogate_pair_is_joined_with_the_other_in_the_next_chunk() {
    let mut events = events();
    events[7] = delta(2, r#"{"type":"arguments_delta","arguments":"{\"at\":\"\ud83d"}"#);
    events[8] = delta(2, r#"{"type":"arguments_delta","arguments":"\ude00\"}"}"#);
    assert_eq!(calls(&decode_steps(&events)), [("c", "look", "{\"at\":\"\u{1f600}\"}")]);
}

#[test]
fn an_end_that_only_a_status_tells_is_one_if_no_call_is_open() {
    let mut events = events();
    let update = r#"{"status":"requires_action","event_type":"interaction.status_update"}"#;
    events[10] = update.to_owned();
    let complete = decode_steps(&events);
    assert_eq!(
        (calls(&complete), &complete.finish_reason),
        (vec![("c", "look", r#"{"at":"it"}"#)], &FinishReason::ToolCalls)
    );
    // The status comes before the arguments.
    let mut early = events.clone();
    early.insert(7, early[10].clone());
    assert_eq!(decode_steps(&early), complete);
    // The start event contains the arguments.
    events[6] = start(2, r#"{"type":"function_call","id":"c","name":"look","arguments":{"a":1}}"#);
    events.drain(7..9);
    assert_eq!(calls(&decode_steps(&events)), [("c", "look", r#"{"a":1}"#)]);
    events.swap(7, 8);
    assert_eq!(calls(&decode_steps(&events)), [("c", "look", r#"{"a":1}"#)]);
    events.pop();
    let (response, _) = decode_chunked(
        ProviderApi::GeminiInteractions,
        true,
        stream_text(&events).as_bytes(),
        &[10],
    );
    assert_eq!(response.unwrap_err().kind, LlmErrorKind::Connection);
}

#[test]
fn a_call_truncated_at_max_tokens_is_not_reported_as_complete() {
    let mut events = events();
    events.drain(8..);
    events.push(completed("incomplete"));
    let response = decode_steps(&events);
    assert_eq!(response.finish_reason, FinishReason::Length);
    assert_eq!(calls(&response), [("c", "look", r#"{"at":"#)]);
}

#[test]
fn a_call_whose_step_does_not_end_is_cut() {
    let mut events = events();
    events.remove(9);
    let response = decode_steps(&events);
    assert_eq!(response.finish_reason, FinishReason::ToolCalls, "its arguments are complete");
    // Only the start of the step came, or half of the arguments.
    for first in [7, 8] {
        let mut cut = events.clone();
        cut.drain(first..9);
        let response = decode_steps(&cut);
        assert!(response.message.calls().all(|call| call.is_cut), "{response:?}");
        assert_eq!(response.finish_reason, FinishReason::Length);
    }
}

/// Proves: G79
#[test]
fn failures_in_the_middle_are_failures() {
    let retry_later = LlmErrorKind::RetryLater { after: None };
    let table = [
        (
            r#"{"error":{"code":"service_unavailable","message":"busy"},"event_type":"error"}"#,
            retry_later,
            "busy",
        ),
        (
            r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"quota"}}"#,
            retry_later,
            "quota",
        ),
        (r#"{"event_type":"error"}"#, retry_later, "status 500 without an error message"),
        (
            r#"{"event_type":"interaction.completed","interaction":{"status":"failed","errors":[{"code":"https://e/invalid_request","message":"no"}]}}"#,
            LlmErrorKind::InvalidRequest,
            "no",
        ),
        (
            r#"{"event_type":"interaction.completed","interaction":{"status":"failed"}}"#,
            retry_later,
            "the interaction failed",
        ),
    ];
    for (event, kind, message) in table {
        let mut events = events();
        events.truncate(8);
        events.push(event.to_owned());
        let (response, _) = decode_chunked(
            ProviderApi::GeminiInteractions,
            true,
            stream_text(&events).as_bytes(),
            &[10],
        );
        let fault = response.unwrap_err();
        assert_eq!((fault.kind, fault.message.as_str()), (kind, message), "{event}");
        assert_eq!(fault.partial_output.as_deref(), Some("I look ü😀. "), "{event}");
    }
    let step =
        r#"{"type":"model_output","error":{"code":7,"status":"PERMISSION_DENIED","message":"no"}}"#;
    let fault = decode_body(&interaction(step, "failed")).unwrap_err();
    assert_eq!((fault.kind, fault.message.as_str()), (LlmErrorKind::Authentication, "no"));
    let step = r#"{"type":"model_output","error":{"code":13,"message":"no"}}"#;
    assert_eq!(decode_body(&interaction(step, "failed")).unwrap_err().kind, retry_later);
    let fault = decode_body(r#"{"error":{"code":503,"message":"busy"}}"#).unwrap_err();
    assert_eq!((fault.kind, fault.message.as_str()), (retry_later, "busy"));
    for body in ["", "{}", "[]", "7", "<html>", r#"{"steps":["#] {
        assert_eq!(decode_body(body).unwrap_err().kind, LlmErrorKind::InvalidResponse, "{body}");
    }
}

#[test]
fn an_event_that_is_no_json_is_an_invalid_response() {
    for event in ["{", "[]", "text"] {
        let events = [start(0, r#"{"type":"model_output"}"#), event.to_owned()];
        let (response, _) = decode_chunked(
            ProviderApi::GeminiInteractions,
            true,
            stream_text(&events).as_bytes(),
            &[4],
        );
        assert_eq!(response.unwrap_err().kind, LlmErrorKind::InvalidResponse, "{event}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        size in 1_usize..50,
    ) {
        for streaming in [false, true] {
            prop_assert!(decode_chunked(ProviderApi::GeminiInteractions, streaming, &bytes, &[size]).0.is_err());
        }
        let mut event = b"data: ".to_vec();
        event.extend(&bytes);
        event.extend(b"\n\n");
        drop(decode_chunked(ProviderApi::GeminiInteractions, true, &event, &[size]));
    }

    #[test]
    fn a_cut_stream_is_no_answer(at in 0_usize..4000, size in 1_usize..50) {
        let full = stream_text(&events());
        let at = at % full.len();
        let (response, _) = decode_chunked(ProviderApi::GeminiInteractions, true, &full.as_bytes()[..at], &[size]);
        match response {
            Err(fault) => prop_assert_eq!(fault.kind, LlmErrorKind::Connection),
            // The last event already ends with the first of its two line breaks.
            Ok(response) => prop_assert_eq!(response, decode_steps(&events())),
        }
    }

    /// Lost, repeated or reordered events cause no panic, and the concatenated chunks equal the
    /// response.
    #[test]
    fn events_in_any_order_tell_one_answer(
        order in prop::collection::vec(0_usize..11, 0..30),
        byte: u8,
        at in 0_usize..4000,
    ) {
        let events = events();
        let shuffled: Vec<_> = order.iter().map(|at| events[*at].clone()).collect();
        let mut text = stream_text(&shuffled);
        let (response, _) = decode_chunked(ProviderApi::GeminiInteractions, true, text.as_bytes(), &[64]);
        if response.is_ok() {
            chunking::decode_stream(ProviderApi::GeminiInteractions, &text).unwrap();
        }
        text.push_str(&stream_text(&events));
        let mut bytes = text.into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        drop(decode_chunked(ProviderApi::GeminiInteractions, true, &bytes, &[64]));
    }
}
