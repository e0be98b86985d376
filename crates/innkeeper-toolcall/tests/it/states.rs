//! Tests of the parser's states: one test per transition of the documented diagram.

use std::sync::Arc;

use innkeeper_toolcall::{ParserOptions, ParserState, Tool, ToolCallParser};
use serde_json::json;

/// Returns the state after each chunk.
fn states_after<const N: usize>(chunks: [&str; N]) -> [ParserState; N] {
    let tools = [Tool::new("echo", "", json!({}))].into_iter().collect();
    let mut parser = ToolCallParser::new(Arc::new(tools), &ParserOptions::default());
    assert_eq!(parser.state(), ParserState::Narrative);
    chunks.map(|chunk| {
        parser.push(chunk, &mut |_| {});
        parser.state()
    })
}

const CALL_HEAD: &str = "{\"tool\": \"echo\", ";
const CALL: &str = "{\"tool\": \"echo\", \"params\": {}}";

/// Proves: S25
#[test]
fn it_begins_in_narrative_and_stays_there_on_regular_text() {
    assert_eq!(
        states_after(["Hello ", "there.\n"]),
        [ParserState::Narrative, ParserState::Narrative]
    );
}

/// Proves: S25
#[test]
fn from_narrative_a_tool_pattern_leads_to_maybe_tool_start() {
    assert_eq!(
        states_after(["Hello\n", "{"]),
        [ParserState::Narrative, ParserState::MaybeToolStart]
    );
    assert_eq!(
        states_after(["Hello\n", "<tool_c"]),
        [ParserState::Narrative, ParserState::MaybeToolStart]
    );
}

/// Proves: S25
#[test]
fn from_maybe_tool_start_a_valid_beginning_leads_to_in_tool_call() {
    assert_eq!(
        states_after(["{\"to", "ol\": \"echo\", "]),
        [ParserState::MaybeToolStart, ParserState::InToolCall]
    );
}

/// Proves: S25
#[test]
fn from_maybe_tool_start_a_false_alarm_leads_to_narrative() {
    assert_eq!(
        states_after(["{", " key: value }"]),
        [ParserState::MaybeToolStart, ParserState::Narrative]
    );
    assert_eq!(
        states_after(["<tool", "box> is"]),
        [ParserState::MaybeToolStart, ParserState::Narrative]
    );
}

/// Proves: S25
#[test]
fn in_tool_call_braces_are_tracked() {
    let chunks = [CALL_HEAD, "\"params\": {\"a\": {", "\"b\": \"}}}\"}", "}"];
    assert_eq!(states_after(chunks), [ParserState::InToolCall; 4]);
}

/// Proves: S25
#[test]
fn in_tool_call_complete_json_leads_to_after_tool_call() {
    assert_eq!(
        states_after([CALL_HEAD, "\"params\": {}}"]),
        [ParserState::InToolCall, ParserState::AfterToolCall]
    );
}

/// Proves: S25
#[test]
fn in_tool_call_invalid_json_leads_to_narrative() {
    assert_eq!(
        states_after([CALL_HEAD, "\"params\": ]} no"]),
        [ParserState::InToolCall, ParserState::Narrative]
    );
}

/// Proves: S25
#[test]
fn after_a_tool_call_another_pattern_leads_to_maybe_tool_start() {
    let expected =
        [ParserState::AfterToolCall, ParserState::AfterToolCall, ParserState::MaybeToolStart];
    assert_eq!(states_after([CALL, "\n", "{\"to"]), expected);
}

/// Proves: S25
#[test]
fn after_a_tool_call_text_leads_to_narrative() {
    assert_eq!(
        states_after([CALL, "\n\nDone"]),
        [ParserState::AfterToolCall, ParserState::Narrative]
    );
}

/// Returns the depth after each chunk.
fn depths_after<const N: usize>(chunks: [&str; N]) -> [usize; N] {
    let tools = [Tool::new("echo", "", json!({}))].into_iter().collect();
    let mut parser = ToolCallParser::new(Arc::new(tools), &ParserOptions::default());
    assert_eq!(parser.call_depth(), 0);
    chunks.map(|chunk| {
        parser.push(chunk, &mut |_| {});
        parser.call_depth()
    })
}

/// Proves: S26
#[test]
fn the_depth_of_a_call_counts_its_open_brackets_and_ignores_strings() {
    let json = [CALL_HEAD, "\"params\": {\"a\": [", "\"}{\"", "]", "}", "}", " text"];
    assert_eq!(depths_after(json), [1, 3, 3, 2, 1, 0, 0]);
}

/// Proves: S26
#[test]
fn the_depth_is_known_for_each_syntax_with_brackets() {
    for (syntax, chunks) in [
        ("tag", ["<tool_call>{\"name\": \"echo\", \"arguments\": {", "\"a\": 1}"]),
        ("fence", ["```json\n{\"tool\": \"echo\", \"params\": {", "\"a\": 1}"]),
        ("list", ["[{\"name\": \"echo\", \"arguments\": ", "1"]),
        ("Mistral", ["[TOOL_CALLS][{\"name\": \"echo\", \"arguments\": ", "1"]),
        ("name first", ["[TOOL_CALLS]echo[ARGS]{\"a\": {", "\"b\": 1}"]),
        (
            "Harmony",
            ["<|start|>assistant<|channel|>commentary to=functions.echo<|message|>{\"a\": [", "1]"],
        ),
        ("ReAct", ["Action: echo\nAction Input: {\"a\": {", "\"b\": 1}"]),
        ("Gemma", ["<|tool_call>call:echo{a:[", "1]"]),
        ("Python", ["[echo(a=", "1)"]),
    ] {
        let [inside, after] = depths_after(chunks);
        let expected = match syntax {
            "list" | "Mistral" => (2, 2),
            _ => (2, 1),
        };
        assert_eq!((inside, after), expected, "{syntax}");
    }
}

/// Proves: S26
#[test]
fn the_depth_counts_the_bracket_of_a_start_that_is_not_decided() {
    assert_eq!(depths_after(["{", "\n ", "\"tool", "\": "]), [1; 4]);
    assert_eq!(depths_after(["[", "ec", "ho", "(a=1"]), [1, 1, 1, 2]);
    assert_eq!(depths_after(["[", "4", "]"]), [1, 0, 0]);
    assert_eq!(depths_after(["```json\n", " {", "\"to", "ol\""]), [0, 1, 1, 1]);
    assert_eq!(depths_after(["```json\n{\"da", "ys\": ["]), [1, 0]);
}

/// Proves: S26
#[test]
fn a_call_without_brackets_has_the_depth_zero() {
    let chunks = ["<tool_call>\n<function=echo>\n<parameter=a>\n", "{\"b\": ["];
    assert_eq!(states_after(chunks), [ParserState::InToolCall; 2]);
    assert_eq!(depths_after(chunks), [0, 0]);
}

#[test]
fn the_state_says_that_text_is_held_also_in_reasoning() {
    for text in [
        "<think>I will <tool_call>{\"name\": \"echo\", \"arguments\": {}}</tool_call> no</think> x",
        "<think>a < b </thin> c</think>ok <tool_call>{\"name\": \"echo\"}</tool_call>\n end",
        "<|channel|>analysis<|message|>a <| b<|end|><|start|>assistant<|channel|>final<|message|>c",
        "[{\"tool\": \"none\", \"params\": {\"a\": \"\\\"é\"}}] {\"a\": [1]} ``` [TOOL_CALLS] x",
    ] {
        let tools = [Tool::new("echo", "", json!({}))].into_iter().collect();
        let mut parser = ToolCallParser::new(Arc::new(tools), &ParserOptions::default());
        let mut emitted = 0;
        for (at, character) in text.char_indices() {
            let chunk = character.encode_utf8(&mut [0; 4]).to_owned();
            parser.push(&chunk, &mut |event| emitted += event.text().len());
            let says_held =
                matches!(parser.state(), ParserState::MaybeToolStart | ParserState::InToolCall);
            let pushed = &text[..at + chunk.len()];
            assert!(says_held || emitted == pushed.len(), "{:?} behind {pushed}", parser.state());
        }
    }
}

#[test]
fn the_state_in_a_harmony_message_is_that_of_its_channel() {
    let header = |channel: &str| format!("<|channel|>{channel}<|message|>");
    for (channel, state) in
        [("analysis", ParserState::Reasoning), ("final", ParserState::Narrative)]
    {
        assert_eq!(states_after([&header(channel), "x y"]), [state, state], "{channel}");
    }
    assert_eq!(states_after(["<|channel|>final"]), [ParserState::MaybeToolStart]);
}

#[test]
fn bare_json_without_a_quoted_key_is_text_at_once() {
    for rest in [" key", "1", ": 2", ", "] {
        assert_eq!(
            states_after(["{", rest]),
            [ParserState::MaybeToolStart, ParserState::Narrative],
            "{rest}"
        );
    }
    let more = ["{", " \n", "\"tool", "\"", ": "];
    assert_eq!(states_after(more), [ParserState::MaybeToolStart; 5]);
}
