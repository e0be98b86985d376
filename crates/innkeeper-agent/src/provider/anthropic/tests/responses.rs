//! Tests of responses, unstreamed and streamed.

use super::events;
use crate::conversation::{ContentPart, PartContent};
use crate::provider::codec::chunking;
use crate::provider::{FinishReason, ProviderApi, Response, Usage};

/// A stream of Claude with reasoning, text, two tool calls and text between the calls.
const STREAM_EVENTS: &[&str] = &[
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

/// The same response, unstreamed.
const BODY: &str = r#"{"model":"claude-opus-4-8","id":"msg_1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"Let me see.","signature":"EqQBCgIYAhIM"},{"type":"redacted_thinking","data":"EmwKAhgB"},{"type":"text","text":"Grüße, ich sehe 🦀"},{"type":"tool_use","id":"toolu_1","name":"look","input":{"n": 12345678901234567890.10, "s": "}"}},{"type":"text","text":"and more"},{"type":"tool_use","id":"toolu_2","name":"list","input":{},"caller":{"type":"direct"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":300,"output_tokens":89,"output_tokens_details":{"thinking_tokens":40}}}"#;

fn decode_body(text: &str) -> Response {
    chunking::decode_body(ProviderApi::Anthropic, text).unwrap()
}

fn contents(response: &Response) -> Vec<PartContent> {
    response.message.parts.iter().map(|part| part.content.clone()).collect()
}

fn block(part: &ContentPart) -> &str {
    part.provider_block.as_ref().unwrap().json.get()
}

/// Proves: G76
#[test]
fn text_between_calls_stays_in_its_order_and_streamed_or_not_the_answer_is_the_same() {
    let streamed = chunking::decode_stream(ProviderApi::Anthropic, &events(STREAM_EVENTS)).unwrap();
    assert_eq!(streamed, decode_body(BODY));
    let arguments = r#"{"n": 12345678901234567890.10, "s": "}"}"#;
    let expected = [
        PartContent::Reasoning("Let me see.".to_owned()),
        PartContent::Reasoning(String::new()),
        PartContent::Text("Grüße, ich sehe 🦀".to_owned()),
        super::call("toolu_1", "look", arguments),
        PartContent::Text("and more".to_owned()),
        super::call("toolu_2", "list", "{}"),
    ];
    assert_eq!(contents(&streamed), expected);
    assert_eq!(streamed.finish_reason, FinishReason::ToolCalls);
    assert_eq!(streamed.model.as_deref(), Some("claude-opus-4-8"));
    let expected = Usage {
        prompt_tokens: 330,
        completion_tokens: 89,
        cached_tokens: 300,
        reasoning_tokens: 40,
        cost: None,
    };
    assert_eq!(streamed.usage, Some(expected));
}

#[test]
fn blocks_keep_the_json_in_which_they_are_sent_back() {
    let parts = chunking::decode_stream(ProviderApi::Anthropic, &events(STREAM_EVENTS))
        .unwrap()
        .message
        .parts;
    let thought = r#"{"type":"thinking","thinking":"Let me see.","signature":"EqQBCgIYAhIM"}"#;
    assert_eq!(block(&parts[0]), thought);
    assert_eq!(block(&parts[1]), r#"{"type":"redacted_thinking","data":"EmwKAhgB"}"#);
    assert_eq!(parts[2].provider_block, None);
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
    let (hi, f) =
        (|| PartContent::Text("Hi".to_owned()), |id, arguments| super::call(id, "f", arguments));
    let both = format!("{first},{second}");
    let mixed = format!("{text},{first}");
    for (content, reason, parts, finish_reason) in [
        (text, "end_turn", vec![hi()], FinishReason::Stop),
        (text, "stop_sequence", vec![hi()], FinishReason::Stop),
        (&mixed, "tool_use", vec![hi(), f("a", r#"{"x":1}"#)], FinishReason::ToolCalls),
        (&both, "tool_use", vec![f("a", r#"{"x":1}"#), f("b", "{}")], FinishReason::ToolCalls),
        // Some servers end a response with tool calls like this.
        (first, "end_turn", vec![f("a", r#"{"x":1}"#)], FinishReason::ToolCalls),
        ("", "end_turn", vec![], FinishReason::Stop),
        ("", "refusal", vec![], FinishReason::Refusal),
        (text, "refusal", vec![hi()], FinishReason::Refusal),
        (text, "max_tokens", vec![hi()], FinishReason::Length),
        (&mixed, "max_tokens", vec![hi(), f("a", r#"{"x":1}"#)], FinishReason::Length),
        // The model announces a call that the server lost.
        (text, "tool_use", vec![hi()], FinishReason::ToolCalls),
        (text, "pause_turn", vec![hi()], FinishReason::Paused),
        (text, "model_context_window_exceeded", vec![hi()], FinishReason::ContextFull),
        (text, "brand_new", vec![hi()], FinishReason::Other("brand_new".to_owned())),
    ] {
        let body = format!(r#"{{"content":[{content}],"stop_reason":"{reason}"}}"#);
        let response = decode_body(&body);
        assert_eq!((contents(&response), response.finish_reason), (parts, finish_reason), "{body}");
        assert_eq!(response.usage, None);
    }
}

#[test]
fn unknown_blocks_are_kept_and_lose_nothing_else() {
    let body = r#"{"content":[{"type":"web_search_tool_result","tool_use_id":"s","content":[{"n":1.0}]},{"type":"tool_use","name":"f","input":{}},{"type":"tool_use","id":"i","name":"g","input":"{\"a\":1}"},7,{"type":"text","text":"Hi","citations":[{"url":"u"}],"later":0},{"type":"text","text":null}],"stop_reason":null,"usage":"?"}"#;
    let response = decode_body(body);
    let parts = &response.message.parts;
    assert_eq!(
        contents(&response),
        [
            PartContent::Other,
            super::call("", "f", "{}"),
            super::call("i", "g", r#"{"a":1}"#),
            PartContent::Other,
            PartContent::Text("Hi".to_owned()),
            PartContent::Text(String::new()),
        ]
    );
    let other = r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[{"n":1.0}]}"#;
    assert_eq!(block(&parts[0]), other);
    // The API accepts a call only with an id and an object as input.
    assert_eq!((&parts[1].provider_block, &parts[2].provider_block), (&None, &None));
    assert!(block(&parts[4]).contains("citations"));
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
}

/// A stream of llama.cpp's server: no `input` at the start of a call, all blocks end at the end of
/// the stream, no signature, and not always a `message_start`.
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
    let response = chunking::decode_stream(ProviderApi::Anthropic, &events(&parts)).unwrap();
    let expected =
        [PartContent::Reasoning("hm".to_owned()), super::call("Zx1", "look", r#"{"n":1}"#)];
    assert_eq!(contents(&response), expected);
    let native_block = r#"{"type":"tool_use","id":"Zx1","name":"look","input":{"n":1}}"#;
    assert_eq!(block(&response.message.parts[1]), native_block);
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
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
    let response = chunking::decode_stream(ProviderApi::Anthropic, &events(&parts)).unwrap();
    let native_block =
        r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"x"}}"#;
    assert_eq!(block(&response.message.parts[0]), native_block);
    let cited = r#"{"type":"text","text":"so","citations":[{"url":"u","n":1.0}]}"#;
    assert_eq!(block(&response.message.parts[1]), cited);
    // The decoder does not know how the delta changes this block.
    assert_eq!(
        (&response.message.parts[2].content, &response.message.parts[2].provider_block),
        (&PartContent::Other, &None)
    );
    assert_eq!(response.finish_reason, FinishReason::Paused);
}

#[test]
fn an_index_or_a_beginning_that_is_missing_costs_no_text() {
    let text = concat!(
        "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\r\n\r\n",
        "event: content_block_delta\ndata: {\"delta\":{\"type\":\"text_delta\",\"text\":\"b\"}}\n\n",
        "data: {\"type\":\"message_delta\",\"delta\":{}}\n\n",
        "data: {\"type\":\"message_stop\"}\n\ndata: [DONE]\n\n",
    );
    let response = chunking::decode_stream(ProviderApi::Anthropic, text).unwrap();
    assert_eq!(
        (contents(&response), response.finish_reason),
        (vec![PartContent::Text("ab".to_owned())], FinishReason::Stop)
    );
}
