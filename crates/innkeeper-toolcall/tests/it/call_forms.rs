//! Call forms of document 001, split at every position.

use std::sync::Arc;

use innkeeper_toolcall::{
    IncompleteReason, ParseEvent, ParserOptions, RejectReason, TextEnd, Tool, ToolCallParser, Tools,
};
use serde_json::json;

/// The parsed output, which must not depend on the chunks.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ParsedOutput {
    /// Visible text, including rejected calls.
    pub(crate) visible_text: String,
    /// Arguments of each call of `echo`.
    pub(crate) calls: Vec<String>,
    /// Reasons of the rejected calls.
    pub(crate) rejections: Vec<String>,
}

fn tools() -> Arc<Tools> {
    Arc::new(
        ["echo", "write_file"].map(|name| Tool::new(name, "", json!({}))).into_iter().collect(),
    )
}

pub(crate) fn parse(chunks: &[&str], text_end: TextEnd) -> ParsedOutput {
    let mut output = ParsedOutput::default();
    let mut sink = |event: ParseEvent<'_>| match event {
        ParseEvent::Text(text) => output.visible_text.push_str(text),
        ParseEvent::Call { call, .. } => {
            output.calls.push(format!("{}{}", call.name, call.arguments));
        }
        ParseEvent::Rejected { rejected, text, .. } => {
            output.visible_text.push_str(text);
            let unknown = rejected.reason == RejectReason::UnknownTool;
            output.rejections.push(if unknown { "unknown" } else { "malformed" }.to_owned());
        }
        ParseEvent::Incomplete { reason, text, .. } => {
            output.visible_text.push_str(text);
            output.rejections.push(format!("{reason:?}"));
        }
        ParseEvent::Reasoning(_)
        | ParseEvent::Markup(_)
        | ParseEvent::CallStart { .. }
        | ParseEvent::Arguments { .. } => {}
    };
    let mut parser = ToolCallParser::new(tools(), &ParserOptions::default());
    for chunk in chunks {
        parser.push(chunk, &mut sink);
    }
    parser.finish(text_end, &mut sink);
    output
}

/// Parses the text whole, in two chunks split at every position, and character by character.
pub(crate) fn parse_at_every_cut_with_finish(text: &str, text_end: TextEnd) -> ParsedOutput {
    let whole = parse(&[text], text_end);
    for (at, _) in text.char_indices() {
        let (first, other) = text.split_at(at);
        assert_eq!(parse(&[first, other], text_end), whole, "cut at {at} of {text}");
    }
    let letters: Vec<&str> = text.split_inclusive(|_| true).collect();
    assert_eq!(parse(&letters, text_end), whole, "letter by letter: {text}");
    whole
}

pub(crate) fn parse_at_every_cut(text: &str) -> ParsedOutput {
    parse_at_every_cut_with_finish(text, TextEnd::Interrupted)
}

pub(crate) fn expected_output(
    expected_text: &str,
    calls: &[&str],
    rejected: &[&str],
) -> ParsedOutput {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    ParsedOutput {
        visible_text: expected_text.to_owned(),
        calls: owned(calls),
        rejections: owned(rejected),
    }
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
        let seen_now = parse_at_every_cut(&text);
        assert_eq!(
            seen_now,
            expected_output("A  B", &[&format!("echo{arguments}")], &[]),
            "{text}"
        );
    }
}

/// Proves: S27
#[test]
fn what_stands_behind_a_call_in_the_same_chunk_survives() {
    let call = r#"{"tool": "echo", "params": {"message": "x"}}"#;
    let expected = r#"echo{"message":"x"}"#;
    for (before, after) in [
        ("I'll use ", " to help."),
        ("", "."),
        ("", "\n\nDone."),
        ("So: ", " }"),
        ("", " \"quoted\""),
    ] {
        let text = format!("{before}{call}{after}");
        assert_eq!(
            parse_at_every_cut(&text),
            expected_output(&format!("{before}{after}"), &[expected], &[]),
            "{text}"
        );
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
        let read = parse_at_every_cut(text);
        assert_eq!((read.visible_text.as_str(), read.calls.len()), (text, 0));
    }
}

/// Proves: S29
#[test]
fn a_call_may_follow_another_at_once() {
    let call =
        |message: &str| format!(r#"{{"tool": "echo", "params": {{"message": "{message}"}}}}"#);
    let calls = [r#"echo{"message":"1"}"#, r#"echo{"message":"2"}"#];
    for (between, expected_text) in [("\n", "\n"), ("", ""), (" ", " "), (" and ", " and ")] {
        let text = format!("{}{between}{}", call("1"), call("2"));
        assert_eq!(
            parse_at_every_cut(&text),
            expected_output(expected_text, &calls, &[]),
            "{text}"
        );
    }
}

/// Attack: model | a call with invalid arguments, cut into any chunks | the call is shown as text |
/// No guessed call
/// Proves: S46
#[test]
fn a_malformed_call_is_shown_and_not_run() {
    for text in [
        r#"{"tool": "echo", "params": {"message": ]}"#,
        r#"{"tool": "echo", "params": "not an object"}"#,
        r#"<tool_call>{"name": "echo", "arguments": [1]}</tool_call>"#,
    ] {
        assert_eq!(parse_at_every_cut(text), expected_output(text, &[], &["malformed"]), "{text}");
    }
}

/// Proves: S46
#[test]
fn an_incomplete_call_is_shown_and_not_run_even_where_its_model_stopped() {
    let text = r#"{"tool": "echo", "params": {"message": "hel"#;
    assert_eq!(
        parse_at_every_cut_with_finish(text, TextEnd::Length),
        expected_output(text, &[], &["Length"])
    );
    let name = r#"So {"tool": "ec"#;
    assert_eq!(
        parse_at_every_cut_with_finish(name, TextEnd::Stop),
        expected_output(name, &[], &[])
    );
}

/// Attack: model | the stream of a model breaks off at any byte of a call | the call does not run |
/// No guessed call
/// Proves: S46
#[test]
fn a_call_is_not_run_where_the_stream_breaks_off_in_it_wherever_that_is() {
    let full_text = r#"{"tool": "echo", "params": {"message": "a}b"}}"#;
    for (at, _) in full_text.char_indices().skip(1) {
        let text = format!("Look: {}", &full_text[..at]);
        let read = parse_at_every_cut(&text);
        assert_eq!((read.visible_text.as_str(), read.calls.len()), (text.as_str(), 0));
        // The text is a call from the name of the tool on.
        let is_call = at >= r#"{"tool": "echo""#.len();
        let reason = is_call.then(|| format!("{:?}", IncompleteReason::Interrupted));
        assert_eq!(read.rejections, Vec::from_iter(reason), "{text}");
    }
    assert_eq!(parse_at_every_cut(full_text).calls.len(), 1);
}

/// Proves: S46
#[test]
fn a_call_of_an_unknown_tool_is_shown_and_not_run() {
    let bare = r#"{"tool": "nobody", "params": {}}"#;
    assert_eq!(parse_at_every_cut(bare), expected_output(bare, &[], &["unknown"]));
    let tagged = r#"<tool_call>{"name": "nobody", "arguments": {}}</tool_call>"#;
    assert_eq!(parse_at_every_cut(tagged), expected_output(tagged, &[], &["unknown"]));
}

/// Proves: S46
#[test]
fn a_bracket_of_the_other_kind_makes_a_call_malformed() {
    for text in [
        r#"{"tool": "echo", "params": {"a": 1]}"#,
        r#"{"tool": "echo", "params": {"a": [1}}"#,
        r#"[{"name": "echo", "arguments": {"a": 1]}]"#,
        r#"<tool_call>{"name": "echo", "arguments": {"a": 1]}"#,
        r#"[TOOL_CALLS][{"name": "echo", "arguments": {"a": 1]}]"#,
        r#"[TOOL_CALLS]echo{"a": 1]"#,
    ] {
        assert_eq!(parse_at_every_cut(text), expected_output(text, &[], &["malformed"]), "{text}");
    }
}

/// Proves: S46
#[test]
fn a_call_behind_a_marker_is_shown_and_not_run_where_it_breaks_before_its_name() {
    for text in [
        r#"<tool_call>{"arguments": {"a": ]}}"#,
        r#"<tool_call>{"a": 1]"#,
        r#"<tool_call>{"name": 5]"#,
        r#"[TOOL_CALLS][{"name": ]"#,
    ] {
        assert_eq!(parse_at_every_cut(text), expected_output(text, &[], &["malformed"]), "{text}");
    }
    for text in [
        "<tool_call>",
        "<tool_call>\n",
        r#"<tool_call>{"argum"#,
        r#"<tool_call>{"name": "ec"#,
        "<tool_call>ec",
        "<function=ec",
        "[TOOL_CALLS]ec",
        r#"[TOOL_CALLS][{"na"#,
    ] {
        for (text_end, reason) in [(TextEnd::Stop, "Stopped"), (TextEnd::Length, "Length")] {
            let output = parse_at_every_cut_with_finish(text, text_end);
            assert_eq!(output, expected_output(text, &[], &[reason]), "{text}");
        }
    }
}

/// Proves: S46
#[test]
fn a_call_behind_a_marker_is_malformed_where_another_syntax_follows_its_name() {
    let long_head = format!("<｜tool▁call▁begin｜>function<｜tool▁sep｜>echo\n{}", "x".repeat(400));
    let texts = [
        "<tool_call>echo<b>1</b>",
        "<tool_call>\necho<arg>",
        "<function=echo<b>",
        "<tool_call><function=echo<parameter=a>1",
        "<|tool_call>call:echo<b>",
        "[TOOL_CALLS]echo<b>",
        "[TOOL_CALLS]echo(\"a\")",
        "[TOOL_CALLS]echo[ARGS]\"a\"",
        &long_head,
    ];
    let is_malformed =
        |text: &&str| parse_at_every_cut(text) == expected_output(text, &[], &["malformed"]);
    let others: Vec<&str> = texts.into_iter().filter(|text| !is_malformed(text)).collect();
    assert!(others.is_empty(), "{others:#?}");
}

/// Proves: S46
#[test]
fn a_marker_that_prose_mentions_makes_no_call_malformed() {
    for text in [
        "The tag <tool_call> starts a call, and <b> is another tag.",
        "Write <function=the name of the tool<br> here.",
        "[TOOL_CALLS] is a token.",
        "[TOOL_CALLS]s, of which there are two.",
        "<|tool_call>is a token<br>",
    ] {
        assert_eq!(parse_at_every_cut(text), expected_output(text, &[], &[]), "{text}");
    }
}

/// Proves: S46
#[test]
fn an_argument_whose_value_has_no_tag_makes_a_call_malformed() {
    let call = |between: &str| format!("<tool_call>echo<arg_key>a</arg_key>{between}");
    for between in ["x", " x", "  \n  x", "  \n\t<", "<arg_values>", " é", " <arg_value"] {
        let text = call(&format!("{between}!"));
        assert_eq!(
            parse_at_every_cut(&text),
            expected_output(&text, &[], &["malformed"]),
            "{text}"
        );
    }
    for between in ["", " ", "  \n  ", "\n<arg_va"] {
        let text = call(between);
        let output = parse_at_every_cut_with_finish(&text, TextEnd::Stop);
        assert_eq!(output, expected_output(&text, &[], &["Stopped"]), "{text}");
    }
    let complete = call("  \n  <arg_value> x </arg_value></tool_call>");
    let output = parse_at_every_cut(&complete);
    assert_eq!(output, expected_output("", &[r#"echo{"a":" x "}"#], &[]));
}
