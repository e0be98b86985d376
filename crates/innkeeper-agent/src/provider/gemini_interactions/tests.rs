//! Tests of the Interactions codec.

mod requests;
mod truncation;

use super::*;
use crate::conversation::{ContentPart, PartContent, ToolCall};
use crate::provider::codec::chunking::{self, TEST_GEMINI_MODEL as MODEL, decode_chunked};
use crate::provider::{FinishReason, LlmErrorKind, ProviderApi, Usage};

fn decode_body(body: &str) -> Result<Response, ApiError> {
    chunking::decode_body(ProviderApi::GeminiInteractions, body)
}

fn decode_stream(events: &[&str]) -> Response {
    chunking::decode_stream(ProviderApi::GeminiInteractions, &stream(events)).unwrap()
}

fn stream(events: &[&str]) -> String {
    chunking::sse_events(events).replace('\n', "\r\n")
}

fn interaction(steps: &str, status: &str) -> String {
    format!(
        r#"{{"id":"v1_x","object":"interaction","status":"{status}","model":"{MODEL}","steps":[{steps}],
        "usage":{{"total_input_tokens":62,"total_output_tokens":171,"total_thought_tokens":297,
        "total_cached_tokens":5,"total_tool_use_tokens":3,"total_tokens":533}}}}"#
    )
}

fn start(index: usize, step: &str) -> String {
    format!(r#"{{"index":{index},"step":{step},"event_type":"step.start"}}"#)
}

fn delta(index: usize, delta: &str) -> String {
    format!(r#"{{"index":{index},"delta":{delta},"event_type":"step.delta"}}"#)
}

fn stop(index: usize) -> String {
    format!(r#"{{"index":{index},"event_type":"step.stop"}}"#)
}

/// Returns the completion event, without steps.
fn completed(status: &str) -> String {
    let body = interaction("", status).replace("\"steps\":[],", "").replace('\n', "");
    format!(r#"{{"interaction":{body},"event_type":"interaction.completed"}}"#)
}

fn decode_steps(events: &[String]) -> Response {
    let created = r#"{"interaction":{"id":"v1_x","status":"in_progress"},"event_type":"interaction.created"}"#;
    let update = r#"{"interaction_id":"v1_x","status":"in_progress","event_type":"interaction.status_update"}"#;
    let mut all = vec![created, update];
    all.extend(events.iter().map(String::as_str));
    all.push("[DONE]");
    decode_stream(&all)
}

fn native(part: &ContentPart) -> Option<&str> {
    part.provider_block.as_ref().map(|native| native.json.get())
}

fn natives(response: &Response) -> Vec<Option<&str>> {
    response.message.parts.iter().map(native).collect()
}

fn calls(response: &Response) -> Vec<(&str, &str, &str)> {
    let calls = response.message.calls();
    calls.map(|call: &ToolCall| (&*call.id, &*call.name, &*call.arguments)).collect()
}

fn text(text: &str) -> PartContent {
    PartContent::Text(text.to_owned())
}

/// Proves: G53
#[test]
fn streamed_text_and_thoughts_equal_unstreamed_ones() {
    let summary = r#"[{"type":"text","text":"**Clues**"},{"type":"text","text":" I see."}]"#;
    let thought = format!(r#"{{"type":"thought","signature":"EpoG/+=","summary":{summary}}}"#);
    let output = r#"{"type":"model_output","content":[{"type":"text","text":"Based on \u00fc, "},{"type":"text","text":"yes."}]}"#;
    let response = decode_body(&interaction(&format!("{thought},{output}"), "completed")).unwrap();
    let streamed = decode_steps(&[
        start(
            0,
            r#"{"type":"thought","signature":"","summary":[{"type":"text","text":"**Clues**"}]}"#,
        ),
        delta(0, r#"{"type":"thought_summary","content":{"type":"text","text":" I see."}}"#),
        delta(0, r#"{"type":"thought_signature","signature":""}"#),
        delta(0, r#"{"signature":"EpoG/+=","type":"thought_signature"}"#),
        delta(0, r#"{"type":"thought_signature","signature":""}"#),
        stop(0),
        start(1, r#"{"content":[{"text":"Based","type":"text"}],"type":"model_output"}"#),
        delta(1, r#"{"text":" on \u00fc, ","type":"text"}"#),
        delta(1, r#"{"text":"","type":"text"}"#),
        delta(1, r#"{"text":"yes.","type":"text"}"#),
        stop(1),
        completed("completed"),
    ]);
    assert_eq!(response, streamed);
    let contents: Vec<_> = response.message.parts.iter().map(|part| part.content.clone()).collect();
    assert_eq!(
        contents,
        [PartContent::Reasoning("**Clues** I see.".to_owned()), text("Based on ü, yes.")]
    );
    assert_eq!(natives(&response), [Some(thought.as_str()), None]);
    assert_eq!(
        (&response.finish_reason, response.model.as_deref()),
        (&FinishReason::Stop, Some(MODEL))
    );
    let usage = Usage {
        prompt_tokens: 65,
        completion_tokens: 468,
        cached_tokens: 5,
        reasoning_tokens: 297,
        cost: None,
    };
    assert_eq!(response.usage, Some(usage));
}

/// Proves: G53, G76
#[test]
fn streamed_parallel_calls_equal_unstreamed_ones() {
    let thought = r#"{"type":"thought","signature":"QUJD"}"#;
    let add = r#"{"type":"function_call","id":"c1","name":"add","arguments":{"a": 12345678901234567890123,"b":"}\""},"signature":"QQ=="}"#;
    let now = r#"{"type":"function_call","name":"now","arguments":{}}"#;
    let response =
        decode_body(&interaction(&[thought, add, now].join(","), "requires_action")).unwrap();
    let streamed = decode_steps(&[
        start(0, r#"{"type":"thought"}"#),
        delta(0, r#"{"type":"thought_signature","signature":"QUJD"}"#),
        start(
            1,
            r#"{"type":"function_call","id":"c1","name":"add","arguments":{},"signature":"QQ=="}"#,
        ),
        start(2, now),
        delta(1, r#"{"type":"arguments_delta","arguments":"{\"a\": 123456789012"}"#),
        delta(1, r#"{"type":"arguments_delta","arguments":"34567890123,\"b\":"}"#),
        delta(1, r#"{"type":"arguments_delta","arguments":"\"}\\\"\"}"}"#),
        stop(1),
        stop(2),
        completed("requires_action"),
    ]);
    assert_eq!(response, streamed);
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    let arguments = r#"{"a": 12345678901234567890123,"b":"}\""}"#;
    assert_eq!(calls(&response), [("c1", "add", arguments), ("", "now", "{}")]);
    // A call without an id gets a generated id, which its result names.
    assert_eq!(natives(&response), [Some(thought), Some(add), None]);
}

#[test]
fn arguments_find_their_call_in_every_form() {
    let call = r#"{"type":"function_call","id":"c","name":"look","arguments":{}}"#;
    let told = r#"{"type":"arguments_delta","arguments":"{\"at\":1}"}"#;
    let expected = [("c", "look", r#"{"at":1}"#)];
    // The delta has the index of the thought before, or no index.
    let thought = start(0, r#"{"type":"thought","signature":"QQ=="}"#);
    let end = completed("requires_action");
    let strayed =
        decode_steps(&[thought.clone(), start(1, call), delta(0, told), stop(0), end.clone()]);
    assert_eq!(calls(&strayed), expected);
    let unindexed = decode_steps(&[
        format!(r#"{{"step":{call},"event_type":"step.start"}}"#),
        format!(r#"{{"delta":{told},"event_type":"step.delta"}}"#),
        r#"{"event_type":"step.stop"}"#.to_owned(),
        end.clone(),
    ]);
    assert_eq!(calls(&unindexed), expected);
    // The field names of an earlier revision.
    let earlier = r#"{"type":"arguments","partial_arguments":"{\"at\":1}"}"#;
    assert_eq!(calls(&decode_steps(&[start(0, call), delta(0, earlier), end.clone()])), expected);
    // Complete arguments in the start event: an object, a string, `null` or missing.
    let table = [
        (r#","arguments":{"at": 1.0}"#, r#"{"at": 1.0}"#),
        (r#","arguments":"{\"at\":1}""#, r#"{"at":1}"#),
        (r#","arguments":null"#, "{}"),
        ("", "{}"),
    ];
    for (arguments, expected) in table {
        let call = format!(r#"{{"type":"function_call","id":"c","name":"look"{arguments}}}"#);
        let streamed = decode_steps(&[start(0, &call), stop(0), end.clone()]);
        assert_eq!(calls(&streamed), [("c", "look", expected)]);
        assert_eq!(streamed, decode_body(&interaction(&call, "requires_action")).unwrap());
    }
    // Arguments without a call are ignored.
    assert!(calls(&decode_steps(&[thought, delta(0, told), completed("completed")])).is_empty());
}

#[test]
fn event_names_may_stand_outside_the_data() {
    let events = [
        ("interaction.created", r#"{"interaction":{"status":"in_progress"}}"#),
        ("step.start", r#"{"index":0,"step":{"type":"model_output"}}"#),
        ("step.delta", r#"{"index":0,"delta":{"type":"text","text":"yes"}}"#),
        ("future.event", r#"{"payload":{"status":"failed"}}"#),
        ("interaction.completed", r#"{"interaction":{"status":"completed"}}"#),
        ("done", "[DONE]"),
    ];
    let events: String =
        events.iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect();
    let response = chunking::decode_stream(ProviderApi::GeminiInteractions, &events).unwrap();
    assert_eq!(
        (response.message, response.finish_reason),
        (crate::conversation::AssistantMessage::from_text("yes"), FinishReason::Stop)
    );
}

#[test]
fn an_index_that_comes_again_is_another_step() {
    let streamed = decode_steps(&[
        start(1, r#"{"type":"function_call","id":"c","name":"look","arguments":{}}"#),
        delta(1, r#"{"type":"arguments_delta","arguments":"{\"a\":1}"}"#),
        start(1, r#"{"type":"model_output"}"#),
        delta(1, r#"{"type":"text","text":"I look."}"#),
        delta(7, r#"{"type":"text","text":" So."}"#),
        delta(8, r#"{"type":"thought_summary","content":{"type":"text","text":"hm"}}"#),
        completed("requires_action"),
    ]);
    assert_eq!(calls(&streamed), [("c", "look", r#"{"a":1}"#)]);
    assert_eq!(
        (streamed.message.visible_text().as_str(), &*streamed.message.reasoning()),
        ("I look. So.", "hm")
    );
}

#[test]
fn steps_with_more_than_text_go_back_verbatim() {
    let cited = r#"{"type":"model_output","content":[{"type":"text","text":"so","annotations":[{"type":"url_citation","url":"u"}]},{"type":"image","data":"QQ==","mime_type":"image/png"},{"type":"text","text":"!"}]}"#;
    let search = r#"{"type":"google_search_call","id":"s","arguments":{"queries":["q"]},"signature":"QQ=="}"#;
    let unknown = r#"{"type":"dream","of":[1e400]}"#;
    let asked = r#"{"type":"user_input","content":[{"type":"text","text":"asked"}]}"#;
    let steps = [asked, cited, search, unknown].join(",");
    let response = decode_body(&interaction(&steps, "completed")).unwrap();
    let streamed = decode_steps(&[
        start(0, r#"{"type":"model_output"}"#),
        delta(0, r#"{"type":"text","text":"s"}"#),
        delta(0, r#"{"type":"text","text":"o"}"#),
        delta(
            0,
            r#"{"type":"text_annotation_delta","annotations":[{"type":"url_citation","url":"u"}]}"#,
        ),
        delta(0, r#"{"type":"image","data":"QQ==","mime_type":"image/png"}"#),
        delta(0, r#"{"type":"text","text":"!"}"#),
        start(1, r#"{"type":"google_search_call","id":"s","arguments":{}}"#),
        delta(1, r#"{"type":"google_search_call","arguments":{"queries":["q"]}}"#),
        delta(1, r#"{"type":"thought_signature","signature":"QQ=="}"#),
        start(2, unknown),
        completed("completed"),
    ]);
    assert_eq!(response, streamed);
    let contents: Vec<_> = response.message.parts.iter().map(|part| part.content.clone()).collect();
    assert_eq!(contents, [text("so!"), PartContent::Other, PartContent::Other]);
    assert_eq!(natives(&response), [Some(cited), Some(search), Some(unknown)]);
}

/// Proves: G53, G77
#[test]
fn every_status_is_distinguished() {
    let call = r#"{"type":"function_call","id":"c","name":"now","arguments":{}}"#;
    let output = r#"{"type":"model_output","content":[{"type":"text","text":"so"}]}"#;
    let other = |reason: &str| FinishReason::Other(reason.to_owned());
    let table = [
        ("completed", output, FinishReason::Stop),
        ("completed", "", FinishReason::Stop),
        ("completed", call, FinishReason::ToolCalls),
        ("requires_action", call, FinishReason::ToolCalls),
        ("requires_action", output, FinishReason::ToolCalls),
        ("incomplete", output, FinishReason::Length),
        ("incomplete", call, FinishReason::Length),
        ("requires_continuation", output, FinishReason::Length),
        ("budget_exceeded", output, other("budget_exceeded")),
        ("cancelled", output, other("cancelled")),
        ("in_progress", "", other("in_progress")),
        ("next_years", output, other("next_years")),
    ];
    for (status, step, finish_reason) in table {
        let response = decode_body(&interaction(step, status)).unwrap();
        assert_eq!(response.finish_reason, finish_reason, "{status}");
        let streamed = if step.is_empty() {
            decode_steps(&[completed(status)])
        } else {
            decode_steps(&[start(0, step), stop(0), completed(status)])
        };
        assert_eq!(response, streamed, "{status}");
        // The completion event may contain all steps.
        let end = interaction(step, status).replace('\n', "");
        let end = format!(r#"{{"interaction":{end},"event_type":"interaction.completed"}}"#);
        assert_eq!(response, decode_steps(std::slice::from_ref(&end)), "{status}");
        // The completion event may repeat the steps.
        if !step.is_empty() {
            assert_eq!(response, decode_steps(&[start(0, step), stop(0), end]), "{status}");
        }
    }
}

#[test]
fn a_stream_that_is_cut_behind_the_status_idle_is_incomplete() {
    let call = r#"{"type":"function_call","id":"c","name":"now","arguments":{}}"#;
    let status = |status: &str| {
        format!(
            r#"{{"interaction_id":"v1_x","status":"{status}","event_type":"interaction.status_update"}}"#
        )
    };
    let decode = |update: &str| {
        let events = [start(0, call), stop(0), status(update)];
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        crate::provider::codec::chunking::decode_stream(
            ProviderApi::GeminiInteractions,
            &crate::provider::codec::chunking::sse_events(&events),
        )
    };
    assert_eq!(decode("idle").unwrap_err().kind, LlmErrorKind::Connection);
    assert_eq!(decode("requires_action").unwrap().finish_reason, FinishReason::ToolCalls);
}

#[test]
fn an_answer_of_more_steps_than_the_limit_is_refused() {
    use crate::provider::codec::MAX_CONTENT_PARTS;
    let steps = |count: usize| vec![r#"{"type":"dream"}"#; count].join(",");
    let response = decode_body(&interaction(&steps(MAX_CONTENT_PARTS), "completed")).unwrap();
    assert_eq!(response.message.parts.len(), MAX_CONTENT_PARTS);
    let more = decode_body(&interaction(&steps(MAX_CONTENT_PARTS + 1), "completed"));
    assert_eq!(more.unwrap_err().kind, LlmErrorKind::InvalidResponse);
    let items = |count: usize| {
        let items = vec![r#"{"type":"image"}"#; count].join(",");
        interaction(&format!(r#"{{"type":"model_output","content":[{items}]}}"#), "completed")
    };
    assert!(decode_body(&items(MAX_CONTENT_PARTS)).is_ok());
    assert_eq!(
        decode_body(&items(MAX_CONTENT_PARTS + 1)).unwrap_err().kind,
        LlmErrorKind::InvalidResponse
    );
}
