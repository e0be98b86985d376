//! Answers of Interactions, whole and in pieces.

mod asked;
mod cut;

use super::*;
use crate::conversation::{Part, Said, ToolCall};
use crate::provider::codec::cuts::{self, GEMINI as MODEL, read};
use crate::provider::{Finish, Usage, Wire};

fn whole(body: &str) -> Result<Response, Fault> {
    cuts::whole(Wire::GeminiInteractions, body)
}

fn streamed(events: &[&str]) -> Response {
    cuts::streamed(Wire::GeminiInteractions, &stream(events)).unwrap()
}

fn stream(events: &[&str]) -> String {
    cuts::events(events).replace('\n', "\r\n")
}

/// A whole interaction of these steps.
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

/// The end of a stream: no steps in it.
fn completed(status: &str) -> String {
    let body = interaction("", status).replace("\"steps\":[],", "").replace('\n', "");
    format!(r#"{{"interaction":{body},"event_type":"interaction.completed"}}"#)
}

fn of(events: &[String]) -> Response {
    let created = r#"{"interaction":{"id":"v1_x","status":"in_progress"},"event_type":"interaction.created"}"#;
    let update = r#"{"interaction_id":"v1_x","status":"in_progress","event_type":"interaction.status_update"}"#;
    let mut all = vec![created, update];
    all.extend(events.iter().map(String::as_str));
    all.push("[DONE]");
    streamed(&all)
}

fn native(part: &Part) -> Option<&str> {
    part.native.as_ref().map(|native| native.block.get())
}

fn natives(response: &Response) -> Vec<Option<&str>> {
    response.answer.parts.iter().map(native).collect()
}

fn calls(response: &Response) -> Vec<(&str, &str, &str)> {
    let calls = response.answer.calls();
    calls.map(|it: &ToolCall| (&*it.id, &*it.name, &*it.arguments)).collect()
}

fn text(text: &str) -> Said {
    Said::Text(text.to_owned())
}

/// Proves: G53
#[test]
fn text_and_thoughts_in_pieces_are_those_that_come_whole() {
    let summary = r#"[{"type":"text","text":"**Clues**"},{"type":"text","text":" I see."}]"#;
    let thought = format!(r#"{{"type":"thought","signature":"EpoG/+=","summary":{summary}}}"#);
    let output = r#"{"type":"model_output","content":[{"type":"text","text":"Based on \u00fc, "},{"type":"text","text":"yes."}]}"#;
    let one = whole(&interaction(&format!("{thought},{output}"), "completed")).unwrap();
    let many = of(&[
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
    assert_eq!(one, many);
    let said: Vec<_> = one.answer.parts.iter().map(|part| part.said.clone()).collect();
    assert_eq!(said, [Said::Reasoning("**Clues** I see.".to_owned()), text("Based on ü, yes.")]);
    assert_eq!(natives(&one), [Some(thought.as_str()), None]);
    assert_eq!((&one.finish, one.model.as_deref()), (&Finish::Stop, Some(MODEL)));
    let usage = Usage {
        prompt_tokens: 65,
        completion_tokens: 468,
        cached_tokens: 5,
        reasoning_tokens: 297,
    };
    assert_eq!(one.usage, Some(usage));
}

/// Proves: G53, G76
#[test]
fn parallel_calls_in_pieces_are_those_that_come_whole() {
    let thought = r#"{"type":"thought","signature":"QUJD"}"#;
    let add = r#"{"type":"function_call","id":"c1","name":"add","arguments":{"a": 12345678901234567890123,"b":"}\""},"signature":"QQ=="}"#;
    let now = r#"{"type":"function_call","name":"now","arguments":{}}"#;
    let one = whole(&interaction(&[thought, add, now].join(","), "requires_action")).unwrap();
    let many = of(&[
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
    assert_eq!(one, many);
    assert_eq!(one.finish, Finish::ToolCalls);
    let arguments = r#"{"a": 12345678901234567890123,"b":"}\""}"#;
    assert_eq!(calls(&one), [("c1", "add", arguments), ("", "now", "{}")]);
    // A call without an id gets one of ours, which its result can name.
    assert_eq!(natives(&one), [Some(thought), Some(add), None]);
}

#[test]
fn arguments_find_their_call_however_they_are_told() {
    let call = r#"{"type":"function_call","id":"c","name":"look","arguments":{}}"#;
    let told = r#"{"type":"arguments_delta","arguments":"{\"at\":1}"}"#;
    let expected = [("c", "look", r#"{"at":1}"#)];
    // The index is that of the thought before, or there is none at all.
    let thought = start(0, r#"{"type":"thought","signature":"QQ=="}"#);
    let end = completed("requires_action");
    let strayed = of(&[thought.clone(), start(1, call), delta(0, told), stop(0), end.clone()]);
    assert_eq!(calls(&strayed), expected);
    let unindexed = of(&[
        format!(r#"{{"step":{call},"event_type":"step.start"}}"#),
        format!(r#"{{"delta":{told},"event_type":"step.delta"}}"#),
        r#"{"event_type":"step.stop"}"#.to_owned(),
        end.clone(),
    ]);
    assert_eq!(calls(&unindexed), expected);
    // The words of an earlier revision.
    let earlier = r#"{"type":"arguments","partial_arguments":"{\"at\":1}"}"#;
    assert_eq!(calls(&of(&[start(0, call), delta(0, earlier), end.clone()])), expected);
    // All at once, in an object, in a string, or none.
    let table = [
        (r#","arguments":{"at": 1.0}"#, r#"{"at": 1.0}"#),
        (r#","arguments":"{\"at\":1}""#, r#"{"at":1}"#),
        (r#","arguments":null"#, "{}"),
        ("", "{}"),
    ];
    for (arguments, expected) in table {
        let call = format!(r#"{{"type":"function_call","id":"c","name":"look"{arguments}}}"#);
        let many = of(&[start(0, &call), stop(0), end.clone()]);
        assert_eq!(calls(&many), [("c", "look", expected)]);
        assert_eq!(many, whole(&interaction(&call, "requires_action")).unwrap());
    }
    // Arguments of no call are nobody's.
    assert!(calls(&of(&[thought, delta(0, told), completed("completed")])).is_empty());
}

#[test]
fn names_of_events_may_be_told_beside_the_data() {
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
    let one = cuts::streamed(Wire::GeminiInteractions, &events).unwrap();
    assert_eq!((one.answer, one.finish), (crate::conversation::Answer::text("yes"), Finish::Stop));
}

#[test]
fn an_index_that_comes_again_is_another_step() {
    let many = of(&[
        start(1, r#"{"type":"function_call","id":"c","name":"look","arguments":{}}"#),
        delta(1, r#"{"type":"arguments_delta","arguments":"{\"a\":1}"}"#),
        start(1, r#"{"type":"model_output"}"#),
        delta(1, r#"{"type":"text","text":"I look."}"#),
        delta(7, r#"{"type":"text","text":" So."}"#),
        delta(8, r#"{"type":"thought_summary","content":{"type":"text","text":"hm"}}"#),
        completed("requires_action"),
    ]);
    assert_eq!(calls(&many), [("c", "look", r#"{"a":1}"#)]);
    assert_eq!((many.answer.shown().as_str(), &*many.answer.reasoning()), ("I look. So.", "hm"));
}

#[test]
fn what_is_more_than_text_goes_back_as_it_came() {
    let cited = r#"{"type":"model_output","content":[{"type":"text","text":"so","annotations":[{"type":"url_citation","url":"u"}]},{"type":"image","data":"QQ==","mime_type":"image/png"},{"type":"text","text":"!"}]}"#;
    let search = r#"{"type":"google_search_call","id":"s","arguments":{"queries":["q"]},"signature":"QQ=="}"#;
    let unknown = r#"{"type":"dream","of":[1e400]}"#;
    let asked = r#"{"type":"user_input","content":[{"type":"text","text":"asked"}]}"#;
    let steps = [asked, cited, search, unknown].join(",");
    let one = whole(&interaction(&steps, "completed")).unwrap();
    let many = of(&[
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
    assert_eq!(one, many);
    let said: Vec<_> = one.answer.parts.iter().map(|part| part.said.clone()).collect();
    assert_eq!(said, [text("so!"), Said::Other, Said::Other]);
    assert_eq!(natives(&one), [Some(cited), Some(search), Some(unknown)]);
}

/// Proves: G53, G77
#[test]
fn every_status_is_told_apart() {
    let call = r#"{"type":"function_call","id":"c","name":"now","arguments":{}}"#;
    let output = r#"{"type":"model_output","content":[{"type":"text","text":"so"}]}"#;
    let other = |word: &str| Finish::Other(word.to_owned());
    let table = [
        ("completed", output, Finish::Stop),
        ("completed", "", Finish::Stop),
        ("completed", call, Finish::ToolCalls),
        ("requires_action", call, Finish::ToolCalls),
        ("requires_action", output, other("requires_action")),
        ("incomplete", output, Finish::Length),
        ("incomplete", call, Finish::Length),
        ("requires_continuation", output, Finish::Length),
        ("budget_exceeded", output, other("budget_exceeded")),
        ("cancelled", output, other("cancelled")),
        ("in_progress", "", other("in_progress")),
        ("next_years", output, other("next_years")),
    ];
    for (status, step, finish) in table {
        let one = whole(&interaction(step, status)).unwrap();
        assert_eq!(one.finish, finish, "{status}");
        let many = if step.is_empty() {
            of(&[completed(status)])
        } else {
            of(&[start(0, step), completed(status)])
        };
        assert_eq!(one, many, "{status}");
        // All steps may come with the end.
        let end = interaction(step, status).replace('\n', "");
        let end = format!(r#"{{"interaction":{end},"event_type":"interaction.completed"}}"#);
        assert_eq!(one, of(std::slice::from_ref(&end)), "{status}");
        // Or come once more.
        if !step.is_empty() {
            assert_eq!(one, of(&[start(0, step), end]), "{status}");
        }
    }
}

#[test]
fn an_answer_of_more_steps_than_the_limit_is_refused() {
    use crate::provider::codec::PARTS;
    let steps = |count: usize| vec![r#"{"type":"dream"}"#; count].join(",");
    let one = whole(&interaction(&steps(PARTS), "completed")).unwrap();
    assert_eq!(one.answer.parts.len(), PARTS);
    let more = whole(&interaction(&steps(PARTS + 1), "completed"));
    assert_eq!(more.unwrap_err().class, Class::Unreadable);
    let items = |count: usize| {
        let items = vec![r#"{"type":"image"}"#; count].join(",");
        interaction(&format!(r#"{{"type":"model_output","content":[{items}]}}"#), "completed")
    };
    assert!(whole(&items(PARTS)).is_ok());
    assert_eq!(whole(&items(PARTS + 1)).unwrap_err().class, Class::Unreadable);
}
