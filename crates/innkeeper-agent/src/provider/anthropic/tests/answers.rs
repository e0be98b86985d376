//! Answers, whole and as events.

use super::events;
use crate::conversation::{Part, Said};
use crate::provider::codec::cuts;
use crate::provider::{Finish, Response, Usage, Wire};

/// As Claude streams an answer with a thought, text, two calls and text between them.
const LONG: &[&str] = &[
    r#"{"type":"message_start","message":{"model":"claude-opus-4-8","id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":300,"output_tokens":1,"service_tier":"standard"}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me "}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"see."}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgB"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Grüße, "}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"ich sehe 🦀"}}"#,
    r#"{"type":"content_block_stop","index":2}"#,
    r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"look","input":{}}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"n\": 1234567890"}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"1234567890.10, \"s\":"}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":" \"}\"}"}}"#,
    r#"{"type":"content_block_stop","index":3}"#,
    r#"{"type":"content_block_start","index":4,"content_block":{"type":"text","text":"and"}}"#,
    r#"{"type":"content_block_delta","index":4,"delta":{"type":"text_delta","text":" more"}}"#,
    r#"{"type":"content_block_stop","index":4}"#,
    r#"{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"toolu_2","name":"list","input":{},"caller":{"type":"direct"}}}"#,
    r#"{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    r#"{"type":"content_block_stop","index":5}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89,"output_tokens_details":{"thinking_tokens":40}}}"#,
    r#"{"type":"something_new","value":[1]}"#,
    r#"{"type":"message_stop"}"#,
];

/// The same when it is not streamed.
const LONG_WHOLE: &str = r#"{"model":"claude-opus-4-8","id":"msg_1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"Let me see.","signature":"EqQBCgIYAhIM"},{"type":"redacted_thinking","data":"EmwKAhgB"},{"type":"text","text":"Grüße, ich sehe 🦀"},{"type":"tool_use","id":"toolu_1","name":"look","input":{"n": 12345678901234567890.10, "s": "}"}},{"type":"text","text":"and more"},{"type":"tool_use","id":"toolu_2","name":"list","input":{},"caller":{"type":"direct"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":300,"output_tokens":89,"output_tokens_details":{"thinking_tokens":40}}}"#;

fn whole(text: &str) -> Response {
    cuts::whole(Wire::Anthropic, text).unwrap()
}

fn said(response: &Response) -> Vec<Said> {
    response.answer.parts.iter().map(|part| part.said.clone()).collect()
}

fn block(part: &Part) -> &str {
    part.native.as_ref().unwrap().block.get()
}

/// Proves: G76
#[test]
fn text_between_calls_stays_in_its_order_and_streamed_or_not_the_answer_is_the_same() {
    let streamed = cuts::streamed(Wire::Anthropic, &events(LONG)).unwrap();
    assert_eq!(streamed, whole(LONG_WHOLE));
    let look = r#"{"n": 12345678901234567890.10, "s": "}"}"#;
    let expected = [
        Said::Reasoning("Let me see.".to_owned()),
        Said::Reasoning(String::new()),
        Said::Text("Grüße, ich sehe 🦀".to_owned()),
        super::call("toolu_1", "look", look),
        Said::Text("and more".to_owned()),
        super::call("toolu_2", "list", "{}"),
    ];
    assert_eq!(said(&streamed), expected);
    assert_eq!(streamed.finish, Finish::ToolCalls);
    assert_eq!(streamed.model.as_deref(), Some("claude-opus-4-8"));
    let expected = Usage {
        prompt_tokens: 330,
        completion_tokens: 89,
        cached_tokens: 300,
        reasoning_tokens: 40,
    };
    assert_eq!(streamed.usage, Some(expected));
}

#[test]
fn blocks_keep_the_words_in_which_they_have_to_go_back() {
    let parts = cuts::streamed(Wire::Anthropic, &events(LONG)).unwrap().answer.parts;
    let thought = r#"{"type":"thinking","thinking":"Let me see.","signature":"EqQBCgIYAhIM"}"#;
    assert_eq!(block(&parts[0]), thought);
    assert_eq!(block(&parts[1]), r#"{"type":"redacted_thinking","data":"EmwKAhgB"}"#);
    assert_eq!(parts[2].native, None);
    let look = r#"{"type":"tool_use","id":"toolu_1","name":"look","input":{"n": 12345678901234567890.10, "s": "}"}}"#;
    assert_eq!(block(&parts[3]), look);
    assert!(block(&parts[5]).ends_with(r#""input":{},"caller":{"type":"direct"}}"#));
}

/// Proves: G53
#[test]
fn answers_of_every_kind_are_read() {
    let text = r#"{"type":"text","text":"Hi"}"#;
    let first = r#"{"type":"tool_use","id":"a","name":"f","input":{"x":1}}"#;
    let second = r#"{"type":"tool_use","id":"b","name":"f","input":{}}"#;
    let (hi, f) = (|| Said::Text("Hi".to_owned()), |id, arguments| super::call(id, "f", arguments));
    let both = format!("{first},{second}");
    let mixed = format!("{text},{first}");
    for (content, reason, parts, finish) in [
        (text, "end_turn", vec![hi()], Finish::Stop),
        (text, "stop_sequence", vec![hi()], Finish::Stop),
        (&mixed, "tool_use", vec![hi(), f("a", r#"{"x":1}"#)], Finish::ToolCalls),
        (&both, "tool_use", vec![f("a", r#"{"x":1}"#), f("b", "{}")], Finish::ToolCalls),
        // As some servers end an answer with calls.
        (first, "end_turn", vec![f("a", r#"{"x":1}"#)], Finish::ToolCalls),
        ("", "end_turn", vec![], Finish::Stop),
        ("", "refusal", vec![], Finish::Refused),
        (text, "refusal", vec![hi()], Finish::Refused),
        (text, "max_tokens", vec![hi()], Finish::Length),
        (&mixed, "max_tokens", vec![hi(), f("a", r#"{"x":1}"#)], Finish::Length),
        (text, "pause_turn", vec![hi()], Finish::Paused),
        (text, "model_context_window_exceeded", vec![hi()], Finish::ContextFull),
        (text, "brand_new", vec![hi()], Finish::Other("brand_new".to_owned())),
    ] {
        let answer = format!(r#"{{"content":[{content}],"stop_reason":"{reason}"}}"#);
        let response = whole(&answer);
        assert_eq!((said(&response), response.finish), (parts, finish), "{answer}");
        assert_eq!(response.usage, None);
    }
}

#[test]
fn what_is_not_known_is_kept_and_loses_nothing_else() {
    let answer = r#"{"content":[{"type":"web_search_tool_result","tool_use_id":"s","content":[{"n":1.0}]},{"type":"tool_use","name":"f","input":{}},{"type":"tool_use","id":"i","name":"g","input":"{\"a\":1}"},7,{"type":"text","text":"Hi","citations":[{"url":"u"}],"later":0},{"type":"text","text":null}],"stop_reason":null,"usage":"?"}"#;
    let response = whole(answer);
    let parts = &response.answer.parts;
    assert_eq!(
        said(&response),
        [
            Said::Other,
            super::call("", "f", "{}"),
            super::call("i", "g", r#"{"a":1}"#),
            Said::Other,
            Said::Text("Hi".to_owned()),
            Said::Text(String::new()),
        ]
    );
    let other = r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[{"n":1.0}]}"#;
    assert_eq!(block(&parts[0]), other);
    // Without an id, or with a text as its input, a call could not go back so.
    assert_eq!((&parts[1].native, &parts[2].native), (&None, &None));
    assert!(block(&parts[4]).contains("citations"));
    assert_eq!(response.finish, Finish::ToolCalls);
}

/// As llama.cpp's server streams: no `input` at the start of a call, all ends at the end, no
/// signature, and not always a `message_start`.
#[test]
fn the_stream_of_llama_cpp_is_read() {
    let parts = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"Zx1","name":"look"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"n\""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":":1}"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":""}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":12}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let response = cuts::streamed(Wire::Anthropic, &events(&parts)).unwrap();
    let expected = [Said::Reasoning("hm".to_owned()), super::call("Zx1", "look", r#"{"n":1}"#)];
    assert_eq!(said(&response), expected);
    let own = r#"{"type":"tool_use","id":"Zx1","name":"look","input":{"n":1}}"#;
    assert_eq!(block(&response.answer.parts[1]), own);
    assert_eq!(response.finish, Finish::ToolCalls);
    assert_eq!(response.usage.unwrap().completion_tokens, 12);
}

#[test]
fn tools_of_the_provider_and_citations_are_put_together_from_their_deltas() {
    let parts = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"url":"u","n":1.0}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"so"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"brand_new"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"brand_new_delta","x":"y"}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{}}"#,
    ];
    let response = cuts::streamed(Wire::Anthropic, &events(&parts)).unwrap();
    let own = r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"x"}}"#;
    assert_eq!(block(&response.answer.parts[0]), own);
    let cited = r#"{"type":"text","text":"so","citations":[{"url":"u","n":1.0}]}"#;
    assert_eq!(block(&response.answer.parts[1]), cited);
    // Of this one we do not know what the delta made of it.
    assert_eq!(
        (&response.answer.parts[2].said, &response.answer.parts[2].native),
        (&Said::Other, &None)
    );
    assert_eq!(response.finish, Finish::Paused);
}

#[test]
fn an_index_or_a_beginning_that_is_missing_costs_no_text() {
    let text = concat!(
        "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\r\n\r\n",
        "event: content_block_delta\ndata: {\"delta\":{\"type\":\"text_delta\",\"text\":\"b\"}}\n\n",
        "data: {\"type\":\"message_stop\"}\n\ndata: [DONE]\n\n",
    );
    let response = cuts::streamed(Wire::Anthropic, text).unwrap();
    assert_eq!(
        (said(&response), response.finish),
        (vec![Said::Text("ab".to_owned())], Finish::Stop)
    );
}
