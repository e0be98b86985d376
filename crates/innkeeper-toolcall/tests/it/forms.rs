//! The forms of a call that document 001 describes, each cut at every place.

use std::sync::Arc;

use innkeeper_toolcall::{Event, Finish, Incomplete, Interceptor, Options, Reason, Tool, Tools};
use serde_json::json;

/// What a text was taken for; it may not depend on where it was cut.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// Text for the reader, and what was meant as a call and is none.
    shown: String,
    /// The arguments of each call of `echo`.
    calls: Vec<String>,
    /// What became of the calls that are none.
    refused: Vec<String>,
}

fn tools() -> Arc<Tools> {
    Arc::new(
        ["echo", "write_file"].map(|name| Tool::new(name, "", json!({}))).into_iter().collect(),
    )
}

fn read(pieces: &[&str], finish: Finish) -> Seen {
    let mut seen = Seen::default();
    let mut sink = |event: Event<'_>| match event {
        Event::Text(text) => seen.shown.push_str(text),
        Event::Call { call, .. } => seen.calls.push(format!("{}{}", call.name, call.arguments)),
        Event::Rejected { rejected, text, .. } => {
            seen.shown.push_str(text);
            let unknown = rejected.reason == Reason::UnknownTool;
            seen.refused.push(if unknown { "unknown" } else { "malformed" }.to_owned());
        }
        Event::Incomplete { reason, text, .. } => {
            seen.shown.push_str(text);
            seen.refused.push(format!("{reason:?}"));
        }
        Event::Reasoning(_)
        | Event::Frame(_)
        | Event::CallStart { .. }
        | Event::Arguments { .. } => {}
    };
    let mut interceptor = Interceptor::new(tools(), &Options::default());
    for piece in pieces {
        interceptor.push(piece, &mut sink);
    }
    interceptor.finish(finish, &mut sink);
    seen
}

/// What the text was taken for, whole, cut in two at every place, and letter by letter.
fn everywhere_ending(text: &str, finish: Finish) -> Seen {
    let whole = read(&[text], finish);
    for (at, _) in text.char_indices() {
        let (one, other) = text.split_at(at);
        assert_eq!(read(&[one, other], finish), whole, "cut at {at} of {text}");
    }
    let letters: Vec<&str> = text.split_inclusive(|_| true).collect();
    assert_eq!(read(&letters, finish), whole, "letter by letter: {text}");
    whole
}

fn everywhere(text: &str) -> Seen {
    everywhere_ending(text, Finish::Interrupted)
}

fn seen(shown: &str, calls: &[&str], refused: &[&str]) -> Seen {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Seen { shown: shown.to_owned(), calls: owned(calls), refused: owned(refused) }
}

/// Proves: S26
#[test]
fn braces_and_quotes_in_strings_do_not_count_and_nested_objects_do() {
    let arguments = [
        r#"{"message":"}"}"#,
        r#"{"message":"{{{"}"#,
        r#"{"message":"say \"}\" now"}"#,
        r#"{"message":"a\\"}"#,
        r#"{"message":"\\\"}]"}"#,
        r#"{"message":"é}日\n"}"#,
        r#"{"message":{"deep":{"deeper":[{"}":"]"},{}]}}}"#,
    ];
    for arguments in arguments {
        let text = format!("A {{\"tool\":\"echo\",\"params\":{arguments}}} B");
        let seen_now = everywhere(&text);
        assert_eq!(seen_now, seen("A  B", &[&format!("echo{arguments}")], &[]), "{text}");
    }
}

/// Proves: S27
#[test]
fn what_stands_behind_a_call_in_the_same_chunk_survives() {
    let call = r#"{"tool": "echo", "params": {"message": "x"}}"#;
    let told = r#"echo{"message":"x"}"#;
    for (before, behind) in [
        ("I'll use ", " to help."),
        ("", "."),
        ("", "\n\nDone."),
        ("So: ", " }"),
        ("", " \"quoted\""),
    ] {
        let text = format!("{before}{call}{behind}");
        assert_eq!(everywhere(&text), seen(&format!("{before}{behind}"), &[told], &[]), "{text}");
    }
}

/// Proves: S28
#[test]
fn what_is_no_call_is_text_again() {
    for text in [
        "In Rust: { key: value } and on.",
        "{ key: value }",
        "{\n  key: value\n}\n",
        "fn main() { println!(\"{}\", 1); }",
        "{\"data\": {\"tool\": 1}}",
        "{\"tool\": 5, \"params\": {}}",
        "{}",
        "a { b",
        "}} {{ ][",
        "{\"name\": \"Ada\", \"age\": 36}",
    ] {
        let read = everywhere(text);
        assert_eq!((read.shown.as_str(), read.calls.len()), (text, 0));
    }
}

/// Proves: S29
#[test]
fn a_call_may_follow_another_at_once() {
    let call =
        |message: &str| format!(r#"{{"tool": "echo", "params": {{"message": "{message}"}}}}"#);
    let told = [r#"echo{"message":"1"}"#, r#"echo{"message":"2"}"#];
    for (between, shown) in [("\n", "\n"), ("", ""), (" ", " "), (" and ", " and ")] {
        let text = format!("{}{between}{}", call("1"), call("2"));
        assert_eq!(everywhere(&text), seen(shown, &told, &[]), "{text}");
    }
}

/// Proves: S46
#[test]
fn a_malformed_call_is_shown_and_not_run() {
    for text in [
        r#"{"tool": "echo", "params": {"message": ]}"#,
        r#"{"tool": "echo", "params": "not an object"}"#,
        r#"<tool_call>{"name": "echo", "arguments": [1]}</tool_call>"#,
    ] {
        assert_eq!(everywhere(text), seen(text, &[], &["malformed"]), "{text}");
    }
}

/// Proves: S46
#[test]
fn an_incomplete_call_is_shown_and_not_run_even_where_its_model_stopped() {
    let text = r#"{"tool": "echo", "params": {"message": "hel"#;
    assert_eq!(everywhere_ending(text, Finish::Length), seen(text, &[], &["Length"]));
    let name = r#"So {"tool": "ec"#;
    assert_eq!(everywhere_ending(name, Finish::Stop), seen(name, &[], &[]));
}

/// Proves: S46
#[test]
fn a_call_is_not_run_where_the_stream_breaks_off_in_it_wherever_that_is() {
    let whole = r#"{"tool": "echo", "params": {"message": "a}b"}}"#;
    for (end, _) in whole.char_indices().skip(1) {
        let text = format!("Look: {}", &whole[..end]);
        let read = everywhere(&text);
        assert_eq!((read.shown.as_str(), read.calls.len()), (text.as_str(), 0));
        let told =
            read.refused.iter().all(|refused| *refused == format!("{:?}", Incomplete::Interrupted));
        assert!(told, "{read:?}");
    }
    assert_eq!(everywhere(whole).calls.len(), 1);
}

/// Proves: S46
#[test]
fn a_call_of_an_unknown_tool_is_shown_and_not_run() {
    let bare = r#"{"tool": "nobody", "params": {}}"#;
    assert_eq!(everywhere(bare), seen(bare, &[], &["unknown"]));
    let tagged = r#"<tool_call>{"name": "nobody", "arguments": {}}</tool_call>"#;
    assert_eq!(everywhere(tagged), seen(tagged, &[], &["unknown"]));
}
