//! The states of the interceptor: one test for each arrow of the documented diagram.

use std::sync::Arc;

use innkeeper_toolcall::{Interceptor, Options, State, Tool};
use serde_json::json;

/// The states behind each piece.
fn behind<const N: usize>(pieces: [&str; N]) -> [State; N] {
    let tools = [Tool::new("echo", "", json!({}))].into_iter().collect();
    let mut interceptor = Interceptor::new(Arc::new(tools), &Options::default());
    assert_eq!(interceptor.state(), State::Narrative);
    pieces.map(|piece| {
        interceptor.push(piece, &mut |_| {});
        interceptor.state()
    })
}

const NAMED: &str = "{\"tool\": \"echo\", ";
const CALL: &str = "{\"tool\": \"echo\", \"params\": {}}";

/// Proves: S25
#[test]
fn it_begins_in_narrative_and_stays_there_on_regular_text() {
    assert_eq!(behind(["Hello ", "there.\n"]), [State::Narrative, State::Narrative]);
}

/// Proves: S25
#[test]
fn from_narrative_a_tool_pattern_leads_to_maybe_tool_start() {
    assert_eq!(behind(["Hello\n", "{"]), [State::Narrative, State::MaybeToolStart]);
    assert_eq!(behind(["Hello\n", "<tool_c"]), [State::Narrative, State::MaybeToolStart]);
}

/// Proves: S25
#[test]
fn from_maybe_tool_start_a_valid_beginning_leads_to_in_tool_call() {
    assert_eq!(behind(["{\"to", "ol\": \"echo\", "]), [State::MaybeToolStart, State::InToolCall]);
}

/// Proves: S25
#[test]
fn from_maybe_tool_start_a_false_alarm_leads_to_narrative() {
    assert_eq!(behind(["{", " key: value }"]), [State::MaybeToolStart, State::Narrative]);
    assert_eq!(behind(["<tool", "box> is"]), [State::MaybeToolStart, State::Narrative]);
}

/// Proves: S25
#[test]
fn in_tool_call_braces_are_tracked() {
    let pieces = [NAMED, "\"params\": {\"a\": {", "\"b\": \"}}}\"}", "}"];
    assert_eq!(behind(pieces), [State::InToolCall; 4]);
}

/// Proves: S25
#[test]
fn in_tool_call_complete_json_leads_to_after_tool_call() {
    assert_eq!(behind([NAMED, "\"params\": {}}"]), [State::InToolCall, State::AfterToolCall]);
}

/// Proves: S25
#[test]
fn in_tool_call_invalid_json_leads_to_narrative() {
    assert_eq!(behind([NAMED, "\"params\": ]} no"]), [State::InToolCall, State::Narrative]);
}

/// Proves: S25
#[test]
fn after_a_tool_call_another_pattern_leads_to_maybe_tool_start() {
    let wanted = [State::AfterToolCall, State::AfterToolCall, State::MaybeToolStart];
    assert_eq!(behind([CALL, "\n", "{\"to"]), wanted);
}

/// Proves: S25
#[test]
fn after_a_tool_call_text_leads_to_narrative() {
    assert_eq!(behind([CALL, "\n\nDone"]), [State::AfterToolCall, State::Narrative]);
}
