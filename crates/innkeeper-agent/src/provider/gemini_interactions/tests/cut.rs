//! Streams that break off, fail on the way, or are none.

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

fn text_of(events: &[String]) -> String {
    stream(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_stream_that_breaks_off_tells_what_was_written() {
    let events = events();
    for count in [0, 5, 8, 9, 10] {
        let (response, _) =
            read(Wire::GeminiInteractions, true, text_of(&events[..count]).as_bytes(), &[10]);
        let fault = response.unwrap_err();
        assert_eq!(fault.class, Class::Connection, "{count}");
        let written = if count < 5 { "" } else { "I look ü😀. " };
        assert_eq!(fault.written.as_deref(), Some(written), "{count}");
    }
}

#[test]
fn half_a_surrogate_pair_is_joined_with_the_other_in_the_next_piece() {
    let mut events = events();
    events[7] = delta(2, r#"{"type":"arguments_delta","arguments":"{\"at\":\"\ud83d"}"#);
    events[8] = delta(2, r#"{"type":"arguments_delta","arguments":"\ude00\"}"}"#);
    assert_eq!(calls(&of(&events)), [("c", "look", "{\"at\":\"\u{1f600}\"}")]);
}

#[test]
fn an_end_that_only_a_status_tells_is_one_if_no_call_is_open() {
    let mut events = events();
    let update = r#"{"status":"requires_action","event_type":"interaction.status_update"}"#;
    events[10] = update.to_owned();
    let one = of(&events);
    assert_eq!(
        (calls(&one), &one.finish),
        (vec![("c", "look", r#"{"at":"it"}"#)], &Finish::ToolCalls)
    );
    // The status comes before the arguments do.
    let mut early = events.clone();
    early.insert(7, early[10].clone());
    assert_eq!(of(&early), one);
    // The arguments were in its start.
    events[6] = start(2, r#"{"type":"function_call","id":"c","name":"look","arguments":{"a":1}}"#);
    events.drain(7..9);
    assert_eq!(calls(&of(&events)), [("c", "look", r#"{"a":1}"#)]);
    events.swap(7, 8);
    assert_eq!(calls(&of(&events)), [("c", "look", r#"{"a":1}"#)]);
    events.pop();
    let (response, _) = read(Wire::GeminiInteractions, true, text_of(&events).as_bytes(), &[10]);
    assert_eq!(response.unwrap_err().class, Class::Connection);
}

#[test]
fn a_call_that_is_cut_at_the_greatest_length_is_not_told_to_be_complete() {
    let mut events = events();
    events.drain(8..);
    events.push(completed("incomplete"));
    let one = of(&events);
    assert_eq!(one.finish, Finish::Length);
    assert_eq!(calls(&one), [("c", "look", r#"{"at":"#)]);
}

/// Proves: G79
#[test]
fn failures_in_the_middle_are_failures() {
    let later = Class::Later { after: None };
    let table = [
        (
            r#"{"error":{"code":"service_unavailable","message":"busy"},"event_type":"error"}"#,
            later,
            "busy",
        ),
        (
            r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"quota"}}"#,
            later,
            "quota",
        ),
        (r#"{"event_type":"error"}"#, later, "status 500, and not a word"),
        (
            r#"{"event_type":"interaction.completed","interaction":{"status":"failed","errors":[{"code":"https://e/invalid_request","message":"no"}]}}"#,
            Class::Request,
            "no",
        ),
        (
            r#"{"event_type":"interaction.completed","interaction":{"status":"failed"}}"#,
            later,
            "the interaction failed",
        ),
    ];
    for (event, class, message) in table {
        let mut events = events();
        events.truncate(8);
        events.push(event.to_owned());
        let (response, _) =
            read(Wire::GeminiInteractions, true, text_of(&events).as_bytes(), &[10]);
        let fault = response.unwrap_err();
        assert_eq!((fault.class, fault.message.as_str()), (class, message), "{event}");
        assert_eq!(fault.written.as_deref(), Some("I look ü😀. "), "{event}");
    }
    let step =
        r#"{"type":"model_output","error":{"code":7,"status":"PERMISSION_DENIED","message":"no"}}"#;
    let fault = whole(&interaction(step, "failed")).unwrap_err();
    assert_eq!((fault.class, fault.message.as_str()), (Class::Key, "no"));
    let step = r#"{"type":"model_output","error":{"code":13,"message":"no"}}"#;
    assert_eq!(whole(&interaction(step, "failed")).unwrap_err().class, later);
    let fault = whole(r#"{"error":{"code":503,"message":"busy"}}"#).unwrap_err();
    assert_eq!((fault.class, fault.message.as_str()), (later, "busy"));
    for body in ["", "{}", "[]", "7", "<html>", r#"{"steps":["#] {
        assert_eq!(whole(body).unwrap_err().class, Class::Unreadable, "{body}");
    }
}

#[test]
fn an_event_that_is_no_json_makes_the_answer_unreadable() {
    for event in ["{", "[]", "text"] {
        let events = [start(0, r#"{"type":"model_output"}"#), event.to_owned()];
        let (response, _) = read(Wire::GeminiInteractions, true, text_of(&events).as_bytes(), &[4]);
        assert_eq!(response.unwrap_err().class, Class::Unreadable, "{event}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        size in 1_usize..50,
    ) {
        for streaming in [false, true] {
            prop_assert!(read(Wire::GeminiInteractions, streaming, &bytes, &[size]).0.is_err());
        }
        let mut event = b"data: ".to_vec();
        event.extend(&bytes);
        event.extend(b"\n\n");
        drop(read(Wire::GeminiInteractions, true, &event, &[size]));
    }

    #[test]
    fn a_cut_stream_is_no_answer(at in 0_usize..4000, size in 1_usize..50) {
        let full = text_of(&events());
        let at = at % full.len();
        let (response, _) = read(Wire::GeminiInteractions, true, &full.as_bytes()[..at], &[size]);
        match response {
            Err(fault) => prop_assert_eq!(fault.class, Class::Connection),
            // The last event ends with the first of its two line ends.
            Ok(response) => prop_assert_eq!(response, of(&events())),
        }
    }

    /// Events that are lost, come twice or in another order make no reader panic, and what was told
    /// in pieces is what the answer says.
    #[test]
    fn events_in_any_order_tell_one_answer(
        order in prop::collection::vec(0_usize..11, 0..30),
        byte: u8,
        at in 0_usize..4000,
    ) {
        let events = events();
        let shuffled: Vec<_> = order.iter().map(|at| events[*at].clone()).collect();
        let mut text = text_of(&shuffled);
        let (response, _) = read(Wire::GeminiInteractions, true, text.as_bytes(), &[64]);
        if response.is_ok() {
            cuts::streamed(Wire::GeminiInteractions, &text).unwrap();
        }
        text.push_str(&text_of(&events));
        let mut bytes = text.into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        drop(read(Wire::GeminiInteractions, true, &bytes, &[64]));
    }
}
