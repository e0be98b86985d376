//! Answers of generateContent, whole and in pieces.

mod asked;
mod cut;

use super::*;
use crate::conversation::{Part, Said, ToolCall};
use crate::provider::codec::cuts::{self, GEMINI as MODEL, read};
use crate::provider::{Class, Finish, Usage, Wire};

/// An answer that came whole.
fn whole(body: &str) -> Result<Response, Fault> {
    cuts::whole(Wire::GeminiGenerate, body)
}

fn streamed(events: &[&str]) -> Response {
    cuts::streamed(Wire::GeminiGenerate, &stream(events)).unwrap()
}

fn stream(events: &[&str]) -> String {
    cuts::events(events).replace('\n', "\r\n")
}

/// One candidate with these parts and this end.
fn candidate(parts: &str, finish: &str) -> String {
    let finish =
        if finish.is_empty() { String::new() } else { format!(r#","finishReason":"{finish}""#) };
    let content = format!(r#"{{"parts":[{parts}],"role":"model"}}"#);
    format!(
        r#"{{"candidates":[{{"content":{content}{finish},"index":0}}],"modelVersion":"{MODEL}"}}"#
    )
}

fn native(part: &Part) -> &str {
    part.native.as_ref().unwrap().block.get()
}

fn calls(response: &Response) -> Vec<&ToolCall> {
    response.answer.calls().collect()
}

/// Proves: G53
#[test]
fn text_in_pieces_is_the_text_that_comes_whole() {
    let text = r#"{"text":"One, two, \u00fcber."}"#;
    let usage = r#""usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"thoughtsTokenCount":30,
        "cachedContentTokenCount":5,"toolUsePromptTokenCount":2,"totalTokenCount":45}"#;
    let body = candidate(text, "STOP");
    let body = format!("{},{usage}}}", &body[..body.len() - 1]);
    let one = whole(&body).unwrap();
    let last = candidate(r#"{"text":""}"#, "STOP");
    let last = format!("{},{}}}", &last[..last.len() - 1], usage.replace("\n", ""));
    let many = streamed(&[
        &candidate(r#"{"text":"One, "}"#, ""),
        &candidate(r#"{"text":"two, "},{"text":"\u00fc"}"#, ""),
        &candidate(r#"{"text":"ber."}"#, ""),
        &last,
    ]);
    assert_eq!(one, many);
    assert_eq!(one.answer, crate::conversation::Answer::text("One, two, über."));
    assert_eq!((one.finish, one.model.as_deref()), (Finish::Stop, Some(MODEL)));
    let usage =
        Usage { prompt_tokens: 11, completion_tokens: 34, cached_tokens: 5, reasoning_tokens: 30 };
    assert_eq!(one.usage, Some(usage));
}

/// Proves: G53, G76
#[test]
fn calls_without_ids_come_with_their_arguments_as_written() {
    let first = r#"{"functionCall":{"name":"add","args":{"a": 12345678901234567890123, "b":1.10}},"thoughtSignature":"c2ln"}"#;
    let second = r#"{"functionCall":{"id":"fc2","name":"now"}}"#;
    let one = whole(&candidate(&format!("{first},{second}"), "STOP")).unwrap();
    let many = streamed(&[&candidate(first, ""), &candidate(second, ""), &candidate("", "STOP")]);
    assert_eq!(one, many);
    assert_eq!(one.finish, Finish::ToolCalls);
    let told: Vec<_> = calls(&one).iter().map(|it| (&*it.id, &*it.name, &*it.arguments)).collect();
    let written = r#"{"a": 12345678901234567890123, "b":1.10}"#;
    assert_eq!(told, [("", "add", written), ("fc2", "now", "{}")]);
    assert_eq!(one.answer.parts.iter().map(native).collect::<Vec<_>>(), [first, second]);
}

#[test]
fn thoughts_signatures_and_what_is_not_known_are_kept_apart_from_text() {
    let parts = [
        r#"{"text":"Let me ","thought":true}"#,
        r#"{"text":"see.","thought":true}"#,
        r#"{"text":"Well"}"#,
        r#"{"text":", yes.","thoughtSignature":"QUJD"}"#,
        r#"{"text":"","thoughtSignature":"REVG"}"#,
        r#"{"executableCode":{"code":"1","language":"PYTHON"}}"#,
        r#"{"text":7}"#,
        r#"{"thoughtSignature":"R0hJ"}"#,
        "null",
    ];
    let one = whole(&candidate(&parts.join(","), "STOP")).unwrap();
    let events: Vec<_> = parts.iter().map(|part| candidate(part, "")).collect();
    let mut events: Vec<_> = events.iter().map(String::as_str).collect();
    let last = candidate("", "STOP");
    events.push(&last);
    assert_eq!(one, streamed(&events));
    let said: Vec<_> = one.answer.parts.iter().map(|part| part.said.clone()).collect();
    let text = |text: &str| Said::Text(text.to_owned());
    let mut told = vec![Said::Reasoning("Let me see.".to_owned())];
    told.extend([text("Well"), text(", yes."), text("")]);
    told.extend([Said::Other, Said::Other, Said::Other, Said::Other]);
    assert_eq!(said, told);
    assert_eq!(one.answer.parts[0].native, None);
    assert_eq!(one.answer.parts[1].native, None);
    let natives: Vec<_> = one.answer.parts[2..].iter().map(native).collect();
    assert_eq!(natives, parts[3..]);
}

/// Proves: G53, G77
#[test]
fn every_reason_to_end_is_told_apart() {
    let call = r#"{"functionCall":{"name":"now","args":{}}}"#;
    let text = r#"{"text":"so"}"#;
    let table = [
        ("STOP", text, Finish::Stop),
        ("STOP", call, Finish::ToolCalls),
        ("FINISH_REASON_UNSPECIFIED", call, Finish::ToolCalls),
        ("MAX_TOKENS", text, Finish::Length),
        ("MAX_TOKENS", call, Finish::Length),
        ("CONTINUATION", text, Finish::Length),
        ("SAFETY", "", Finish::Refused),
        ("RECITATION", text, Finish::Refused),
        ("LANGUAGE", "", Finish::Refused),
        ("BLOCKLIST", "", Finish::Refused),
        ("PROHIBITED_CONTENT", "", Finish::Refused),
        ("SPII", "", Finish::Refused),
        ("MODEL_ARMOR", "", Finish::Refused),
        ("IMAGE_SAFETY", "", Finish::Refused),
        ("MALFORMED_FUNCTION_CALL", "", Finish::Malformed),
        ("UNEXPECTED_TOOL_CALL", call, Finish::Malformed),
        ("MISSING_THOUGHT_SIGNATURE", "", Finish::Malformed),
        ("TOO_MANY_TOOL_CALLS", call, Finish::Malformed),
        ("MALFORMED_RESPONSE", "", Finish::Malformed),
        ("OTHER", text, Finish::Other("OTHER".to_owned())),
        ("NEXT_YEARS", text, Finish::Other("NEXT_YEARS".to_owned())),
    ];
    for (word, part, finish) in table {
        let one = whole(&candidate(part, word)).unwrap();
        assert_eq!(one.finish, finish, "{word}");
        assert_eq!(one, streamed(&[&candidate(part, word)]), "{word}");
    }
}

#[test]
fn a_prompt_that_is_blocked_is_refused() {
    let body =
        r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}"#;
    let one = whole(body).unwrap();
    assert_eq!(one.finish, Finish::Refused);
    assert!(one.answer.parts.is_empty());
    assert_eq!(one.usage.map(|usage| usage.prompt_tokens), Some(4));
    assert_eq!(one, streamed(&[body]));
}

#[test]
fn an_answer_without_a_candidate_is_none() {
    for body in ["{}", r#"{"candidates":[]}"#, r#"{"candidates":[{}]}"#, r#"{"candidates":7}"#] {
        assert_eq!(whole(body).unwrap_err().class, Class::Unreadable, "{body}");
        let (response, _) = read(Wire::GeminiGenerate, true, stream(&[body]).as_bytes(), &[9]);
        assert_eq!(response.unwrap_err().class, Class::Connection, "{body}");
    }
    for body in ["", "[]", "7", "<html>", "{\"candidates\":[", "\u{0}"] {
        assert_eq!(whole(body).unwrap_err().class, Class::Unreadable, "{body}");
    }
    let (response, _) = read(Wire::GeminiGenerate, false, b"\xff{}", &[9]);
    assert_eq!(response.unwrap_err().class, Class::Unreadable);
}

#[test]
fn what_is_missing_in_a_whole_answer_loses_nothing_of_it() {
    let body = r#"{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]}},
        {"content":{"parts":[{"text":"yes"},{"functionCall":{"args":"{\"a\":1}"}},
        {"functionCall":7}]}}],"next":{"year":[]}}"#;
    let one = whole(body).unwrap();
    assert_eq!((one.answer.shown().as_str(), &one.finish), ("yes", &Finish::ToolCalls));
    let told: Vec<_> = calls(&one).iter().map(|it| (&*it.name, &*it.arguments)).collect();
    assert_eq!(told, [("", r#"{"a":1}"#), ("", "{}")]);
    assert_eq!((one.usage, one.model), (None, None));
}

#[test]
fn an_answer_of_more_parts_than_the_limit_is_refused() {
    use crate::provider::codec::{LIST, PARTS};
    let of = |part, count: usize| candidate(&vec![part; count].join(","), "STOP");
    let part = r#"{"thoughtSignature":"QQ=="}"#;
    // Texts become one part, but none of them is lost.
    for (part, most, parts) in [(part, PARTS, PARTS), (r#"{"text":"x"}"#, LIST, 1)] {
        assert_eq!(whole(&of(part, most)).unwrap().answer.parts.len(), parts);
        assert_eq!(whole(&of(part, most + 1)).unwrap_err().class, Class::Unreadable);
    }
    let (half, rest) = (of(part, PARTS), of(part, 1));
    let (response, _) =
        read(Wire::GeminiGenerate, true, stream(&[&half, &rest]).as_bytes(), &[1 << 16]);
    assert_eq!(response.unwrap_err().class, Class::Unreadable);
}

#[test]
fn a_call_that_comes_value_by_value_is_put_together() {
    let pieces = [
        r#"{"functionCall":{"id":"p1","name":"look","willContinue":true},"thoughtSignature":"QQ=="}"#,
        r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"the ","willContinue":true}],"willContinue":true}}"#,
        r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"sea"},{"jsonPath":"$.n","numberValue":2}],"willContinue":true}}"#,
        r#"{"functionCall":{}}"#,
        r#"{"functionCall":{"name":"now"}}"#,
    ];
    let events: Vec<_> = pieces.iter().map(|part| candidate(part, "")).collect();
    let mut events: Vec<_> = events.iter().map(String::as_str).collect();
    let last = candidate("", "STOP");
    events.push(&last);
    let whole = [
        r#"{"functionCall":{"name":"look","args":{"at":"the sea","n":2},"id":"p1"},"thoughtSignature":"QQ=="}"#,
        pieces[4],
    ];
    let one = self::whole(&candidate(&whole.join(","), "STOP")).unwrap();
    assert_eq!(streamed(&events), one);
    assert_eq!(one.finish, Finish::ToolCalls);

    // Without its last piece it is no call to run, whatever is said of the end.
    for (word, finish) in [("STOP", Finish::Malformed), ("MAX_TOKENS", Finish::Length)] {
        let last = candidate("", word);
        assert_eq!(streamed(&[events[0], events[1], &last]).finish, finish);
    }
    let open = candidate(pieces[0], "");
    assert_eq!(self::whole(&open).unwrap().finish, Finish::Malformed);
    // Another call ends it, too, and so no better.
    assert_eq!(streamed(&[events[0], events[4], &last]).finish, Finish::Malformed);
}
