//! Calls in every syntax with JSON, over grids of white space, arguments and ends of the text.

use std::sync::Arc;

use innkeeper_toolcall::{ParseEvent, ParserOptions, TextEnd, Tool, ToolCallParser};
use serde_json::{Value, json};

use crate::call_forms::{ParsedOutput, expected_output, parse, parse_at_every_cut};

/// A syntax with JSON between two texts.
struct Syntax {
    before: &'static str,
    /// The JSON; `ARGUMENTS` represents the arguments, and a space a position between two tokens.
    json: &'static str,
    after: &'static str,
}

/// Every syntax whose JSON contains the name and the arguments.
const OBJECTS: &[Syntax] = &[
    Syntax { before: "", json: r#"{ "tool" : "echo" , "params" : ARGUMENTS }"#, after: "" },
    Syntax {
        before: "<tool_call>",
        json: r#"{ "name" : "echo" , "arguments" : ARGUMENTS }"#,
        after: "</tool_call>",
    },
    Syntax {
        before: "<|python_tag|>",
        json: r#"{ "name" : "echo" , "parameters" : ARGUMENTS }"#,
        after: "",
    },
    Syntax {
        before: "```json\n",
        json: r#"{ "tool" : "echo" , "params" : ARGUMENTS }"#,
        after: "\n```",
    },
];

/// Every syntax with a JSON list of calls.
const LISTS: &[Syntax] = &[
    Syntax { before: "", json: r#"[ { "name" : "echo" , "arguments" : ARGUMENTS } ]"#, after: "" },
    Syntax {
        before: "[TOOL_CALLS]",
        json: r#"[ { "name" : "echo" , "arguments" : ARGUMENTS } ]"#,
        after: "",
    },
    Syntax {
        before: "<tool_calls>",
        json: r#"[ { "name" : "echo" , "arguments" : ARGUMENTS } ]"#,
        after: "</tool_calls>",
    },
];

/// Every syntax in which the JSON contains the arguments only.
const ARGUMENTS_ONLY: &[Syntax] = &[
    Syntax { before: "[TOOL_CALLS]echo[ARGS]", json: "ARGUMENTS", after: "" },
    Syntax { before: "[TOOL_CALLS]echo", json: "ARGUMENTS", after: "" },
    Syntax {
        before: "<｜tool▁call▁begin｜>echo<｜tool▁sep｜>",
        json: "ARGUMENTS",
        after: "<｜tool▁call▁end｜>",
    },
    Syntax {
        before: "<|channel|>commentary to=functions.echo<|message|>",
        json: "ARGUMENTS",
        after: "<|call|>",
    },
    Syntax { before: "Action: echo\nAction Input: ", json: "ARGUMENTS", after: "\n" },
];

fn all() -> impl Iterator<Item = &'static Syntax> {
    [OBJECTS, LISTS, ARGUMENTS_ONLY].into_iter().flatten()
}

impl Syntax {
    fn json(&self, arguments: &str) -> String {
        self.json.replace("ARGUMENTS", arguments)
    }

    fn text(&self, arguments: &str) -> String {
        format!("{}{}{}", self.before, self.json(arguments), self.after)
    }
}

/// The only call without its name.
fn only_arguments(output: &ParsedOutput) -> Option<Value> {
    let [call] = output.calls.as_slice() else { return None };
    Some(serde_json::from_str(call.strip_prefix("echo").expect("the tool")).expect("JSON"))
}

#[test]
fn white_space_may_stand_between_all_tokens() {
    let arguments =
        r#"{ "a" : [ 1 , -2.5e3 , true , null , "x" , { } , [ ] ] , "b" : { "c" : 0 } }"#;
    let expected = serde_json::from_str(arguments).ok();
    for space in ["", " ", "\t", "\n", "\r\n", " \n\t "] {
        for syntax in all() {
            let json = syntax.json(arguments).replace(' ', space);
            let text = format!("{}{json}{}", syntax.before, syntax.after);
            let output = parse_at_every_cut(&text);
            assert_eq!(only_arguments(&output), expected, "{text:?}: {output:?}");
            assert_eq!(output.visible_text.trim(), "", "{text:?}");
        }
    }
}

#[test]
fn brackets_quotes_and_escapes_in_strings_are_part_of_the_strings() {
    for arguments in [
        r#"{"m":"}"}"#,
        r#"{"m":"{[{"}"#,
        r#"{"m":"say \"}\" now"}"#,
        r#"{"m":"a\\"}"#,
        r#"{"m":"\\\"}]"}"#,
        r#"{"m":"é}日\n"}"#,
        r#"{"}":"'","'":"it's"}"#,
        r#"{"m":{"n":[{"}":"]"},[[]],{}]}}"#,
    ] {
        for syntax in all() {
            let text = syntax.text(arguments);
            let output = parse_at_every_cut(&text);
            let expected: Option<Value> = serde_json::from_str(arguments).ok();
            assert_eq!(only_arguments(&output), expected, "{text}: {output:?}");
        }
    }
}

#[test]
fn other_members_of_a_call_may_have_any_value() {
    for value in ["5", "-1.5", "null", "true", r#""function""#, r#"[1, "x"]"#, r#"{"a": {}}"#] {
        for key in ["type", "id", "call_id", "tool_call_id", "index"] {
            for member in [
                format!(r#"{{"{key}": {value}, "name": "echo", "arguments": {{"a": 1}}}}"#),
                format!(r#"{{"name": "echo", "{key}": {value}, "arguments": {{"a": 1}}}}"#),
                format!(r#"{{"name": "echo", "arguments": {{"a": 1}}, "{key}": {value}}}"#),
            ] {
                for text in [
                    member.clone(),
                    format!("[{member}]"),
                    format!("<tool_call>{member}</tool_call>"),
                    format!("<tool_calls>[{member}]</tool_calls>"),
                ] {
                    let output = parse(&[&text], TextEnd::Stop);
                    assert_eq!(output, expected_output("", &[r#"echo{"a":1}"#], &[]), "{text}");
                }
            }
        }
    }
}

#[test]
fn every_name_of_a_member_is_known_and_an_inner_function_is_the_call() {
    for name in ["name", "tool", "tool_name", "function", "function_name"] {
        for members in ["arguments", "params", "parameters", "args", "input", "tool_input"] {
            for text in [
                format!(r#"{{"{name}": "echo", "{members}": {{"a": 1}}}}"#),
                format!(r#"{{"{members}": {{"a": 1}}, "{name}": "echo"}}"#),
                format!(r#"<tool_call>{{"{name}": "echo", "{members}": {{"a": 1}}}}</tool_call>"#),
            ] {
                let output = parse(&[&text], TextEnd::Stop);
                assert_eq!(output, expected_output("", &[r#"echo{"a":1}"#], &[]), "{text}");
            }
        }
    }
    let inner = r#"{"type": "function", "function": {"name": "echo", "arguments": {"a": 1}}}"#;
    let text = format!("<tool_call>{inner}</tool_call>");
    assert_eq!(parse_at_every_cut(&text), expected_output("", &[r#"echo{"a":1}"#], &[]));
}

/// Completes JSON by closing brackets only, if its last value has an end of its own. Judged by
/// another parser.
fn completed(json: &str) -> Option<Value> {
    let mut closers = String::new();
    let (mut in_string, mut escaped) = (false, false);
    for letter in json.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            '{' if !in_string => closers.insert(0, '}'),
            '[' if !in_string => closers.insert(0, ']'),
            '}' | ']' if !in_string => drop(closers.remove(0)),
            _ => {}
        }
    }
    let is_closed = json.trim_end().ends_with(['"', '}', ']', 'e', 'l']);
    serde_json::from_str(&(json.to_owned() + &closers)).ok().filter(|_| is_closed)
}

/// The arguments of an incomplete call, in which only brackets may be missing. A list without its
/// bracket is no call.
fn arguments_of_incomplete_call(syntax: &Syntax, json: &str) -> Option<Value> {
    let value = completed(json)?;
    if syntax.json == "ARGUMENTS" {
        return Some(value);
    }
    if value.is_array() {
        return None;
    }
    let arguments = ["arguments", "params", "parameters"].iter().find_map(|key| value.get(*key));
    // A call that ends after its name may have lost its arguments.
    value.get("name").or(value.get("tool"))?;
    arguments.cloned()
}

/// Attack: model | the text of a call ends at any byte, in each syntax with JSON | the call runs
/// only if the model stopped and only closing brackets are missing | No guessed call
#[test]
fn an_incomplete_call_runs_only_if_the_model_stopped_and_only_brackets_are_missing() {
    let arguments = r#"{"a": [1, true, "x}", null], "b": {"c": "d"}, "e": 7}"#;
    let mut wrong = Vec::new();
    for syntax in all() {
        let json = syntax.json(arguments);
        for at in 1..json.len() {
            let (cut, text) = (&json[..at], format!("{}{}", syntax.before, &json[..at]));
            let is_fence = syntax.before.starts_with("```");
            let expected = arguments_of_incomplete_call(syntax, cut).filter(|_| !is_fence);
            let letters: Vec<&str> = text.split_inclusive(|_| true).collect();
            for (text_end, expected) in
                [(TextEnd::Stop, expected), (TextEnd::Length, None), (TextEnd::Interrupted, None)]
            {
                let whole = parse(&[&text], text_end);
                if only_arguments(&whole) != expected || parse(&letters, text_end) != whole {
                    wrong.push(format!("{text_end:?} {text}: {whole:?}, not {expected:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Proves: S29
#[test]
fn separated_calls_may_have_white_space_around_the_separator_up_to_the_limit() {
    let call = |at: usize| format!(r#"{{"name": "echo", "parameters": {{"a": {at}}}}}"#);
    let joined = |count: usize, separator: &str| {
        let calls: Vec<String> = (0..count).map(call).collect();
        format!("<|python_tag|>{}", calls.join(separator))
    };
    let expected = |count| (0..count).map(|at| format!(r#"echo{{"a":{at}}}"#)).collect::<Vec<_>>();
    for separator in [";", "; ", " ;", "\n;\n\t"] {
        let output = parse_at_every_cut(&joined(3, separator));
        assert_eq!(
            (output.calls, output.visible_text.as_str()),
            (expected(3), ""),
            "{separator:?}"
        );
    }
    // Behind the limit, the separator is text and the next call is bare.
    for (count, text) in [(64, ""), (65, "; ")] {
        let output = parse(&[&joined(count, "; ")], TextEnd::Stop);
        assert_eq!((output.calls, output.visible_text.as_str()), (expected(count), text));
    }
    for rest in [";", " ; x", "; [1]", ";;"] {
        let output = parse_at_every_cut(&format!("{}{rest}", joined(2, ";")));
        assert_eq!((output.calls, output.visible_text.as_str()), (expected(2), rest), "{rest}");
    }
}

/// Attack: model | a string of the arguments has a line end and then the closing marker | the call
/// is rejected, and the text behind the marker is text | No guessed call
#[test]
fn a_closing_marker_on_its_own_line_ends_a_call_inside_a_string() {
    let head = "<tool_call>{\"name\": \"echo\", \"arguments\": {\"a\": \"x\n";
    let text = format!("{head}</tool_call> then");
    let output = parse_at_every_cut(&text);
    assert_eq!((output.visible_text, output.rejections), (text, vec!["malformed".to_owned()]));
    for inside in ["</tool_calls>", "x</tool_call>", "\\n</tool_call>"] {
        let text = format!("{head}{inside}\"}}}}</tool_call>");
        let calls = parse_at_every_cut(&text).calls;
        let value = json!({"a": format!("x\n{inside}").replace("\\n", "\n")});
        assert_eq!(calls.len(), 1, "{text}");
        assert_eq!(serde_json::from_str::<Value>(&calls[0]["echo".len()..]).ok(), Some(value));
    }
}

/// The first line of a fence has at most 15 characters. Behind a longer line, the JSON is a bare call,
/// and the marker stays text.
#[test]
fn tagged_json_may_have_a_fence_and_bare_json_in_a_tick_is_no_call() {
    let json = r#"{"name": "echo", "arguments": {"a": 1}}"#;
    for (before, after) in [
        ("<tool_call>```json\n", "\n```</tool_call>"),
        ("<tool_call>\n```\n", "```\n</tool_call>"),
        ("<tool_call>```json\n", "</tool_call>"),
        ("<tool_call>`\n", "</tool_call>"),
        ("<tool_call>```ab4567890123\n", "\n```</tool_call>"),
    ] {
        let output = parse_at_every_cut(&format!("{before}{json}{after}"));
        assert_eq!(output, expected_output("", &[r#"echo{"a":1}"#], &[]), "{before}");
    }
    for (before, visible) in
        [("<tool_call>```ab45678901234\n", "<tool_call>```ab45678901234\n"), ("`", "`{")]
    {
        let text = format!("{before}{json}`");
        let output = parse_at_every_cut(&text);
        assert!(output.visible_text.starts_with(visible), "{text}: {output:?}");
    }
}

#[test]
fn a_call_object_without_arguments_is_a_call_only_behind_a_marker() {
    for (text, calls) in [
        (r#"{"tool": "echo"}"#, 0),
        (r#"[{"name": "echo"}]"#, 0),
        ("```json\n{\"tool\": \"echo\"}\n```", 0),
        (r#"<tool_call>{"name": "echo"}</tool_call>"#, 1),
        (r#"[TOOL_CALLS][{"name": "echo"}]"#, 1),
        (r#"<|python_tag|>{"name": "echo"}"#, 1),
    ] {
        let output = parse_at_every_cut(text);
        assert_eq!(output.calls, vec!["echo{}"; calls], "{text}");
        assert_eq!(output.visible_text, if calls == 0 { text } else { "" });
    }
}

/// Attack: model | a list mixes calls with other values, or repeats a name or the arguments | no
/// call of the list runs | No guessed call
#[test]
fn a_list_with_another_value_runs_no_call() {
    let call = r#"{"name": "echo", "arguments": {"a": 1}}"#;
    for other in [
        "1",
        "null",
        r#""x""#,
        "{}",
        r#"{"name": 1, "arguments": {}}"#,
        r#"{"arguments": {}}"#,
        r#"{"name": "echo", "tool": "echo", "arguments": {}}"#,
        r#"{"name": "echo", "arguments": {}, "params": {}}"#,
    ] {
        for list in [format!("[{call}, {other}]"), format!("[{other}, {call}]")] {
            for text in [
                list.clone(),
                format!("[TOOL_CALLS]{list}"),
                format!("<tool_calls>{list}</tool_calls>"),
            ] {
                // Behind a scalar, the rest of a marked list is text.
                let is_scalar = !other.starts_with('{');
                if is_scalar && text != list {
                    continue;
                }
                let output = parse_at_every_cut(&text);
                assert_eq!((output.calls.len(), output.visible_text.as_str()), (0, text.as_str()));
            }
        }
    }
}

#[test]
fn an_unknown_or_unquoted_member_makes_bare_json_data_and_stays_in_marked_json() {
    for members in [
        r#""name": "echo", "arguments": {"a": 1}, "x": 1"#,
        r#""x": "y", "name": "echo", "arguments": {"a": 1}"#,
        r#"name: "echo", arguments: {"a": 1}"#,
    ] {
        let marked = format!("<tool_call>{{{members}}}</tool_call>");
        let output = parse_at_every_cut(&marked);
        assert_eq!(output, expected_output("", &[r#"echo{"a":1}"#], &[]), "{marked}");
        for text in [format!("{{{members}}}"), format!("[{{{members}}}]")] {
            let output = parse_at_every_cut(&text);
            assert_eq!((output.calls.len(), output.visible_text), (0, text.clone()), "{text}");
        }
    }
}

/// The streamed text of the arguments, and the number of started calls.
fn streamed_arguments(chunks: &[&str]) -> (String, usize) {
    let tools = [Tool::new("echo", "", json!({}))].into_iter().collect();
    let mut parser = ToolCallParser::new(Arc::new(tools), &ParserOptions::default());
    let (mut arguments, mut started) = (String::new(), 0);
    for chunk in chunks {
        parser.push(chunk, &mut |event| match event {
            ParseEvent::Arguments { fragment, .. } => arguments.push_str(fragment),
            ParseEvent::CallStart { .. } => started += 1,
            ParseEvent::Text(_)
            | ParseEvent::Reasoning(_)
            | ParseEvent::Markup(_)
            | ParseEvent::Call { .. }
            | ParseEvent::Rejected { .. }
            | ParseEvent::Incomplete { .. } => {}
        });
    }
    (arguments, started)
}

#[test]
fn the_fragments_of_the_arguments_are_the_arguments_wherever_the_text_is_cut() {
    let arguments = r#"{"a": [1, "x}"], "b": {"c": {}}}"#;
    for syntax in all() {
        let text = syntax.text(arguments);
        // The calls of a list and of a fence are reported together at the end.
        let is_list = syntax.json.starts_with('[') || syntax.before.starts_with("```");
        let expected = if is_list { (String::new(), 0) } else { (arguments.to_owned(), 1) };
        for (at, _) in text.char_indices() {
            let (first, second) = text.split_at(at);
            assert_eq!(streamed_arguments(&[first, second]), expected, "{text} cut at {at}");
        }
        let letters: Vec<&str> = text.split_inclusive(|_| true).collect();
        assert_eq!(streamed_arguments(&letters), expected, "{text}");
    }
}

#[test]
fn a_text_below_the_level_of_the_call_is_no_name() {
    for name in [r#"["echo"]"#, r#"{"a": "echo"}"#, "5", "null"] {
        let text = format!(r#"<tool_call>{{"name": {name}, "arguments": {{}}}}</tool_call>"#);
        assert_eq!(streamed_arguments(&[&text]), (String::new(), 0), "{text}");
        assert_eq!(parse_at_every_cut(&text), expected_output(&text, &[], &["malformed"]));
    }
}
