//! One call in every way of writing it, cut at every byte; and what must not be taken for one.

use std::sync::Arc;

use innkeeper_toolcall::{Event, Finish, Format, Interceptor, Limits, Options, State, Tool, Tools};
use serde_json::json;

fn tools() -> Arc<Tools> {
    let schema = json!({"type": "object", "properties": {
        "path": {"type": "string"}, "count": {"type": "integer"}, "deep": {"type": "object"},
    }});
    Arc::new(
        ["files.write", "now"]
            .into_iter()
            .map(|name| Tool::new(name, "", schema.clone()))
            .collect(),
    )
}

/// What a text comes to: what the reader sees, the thoughts, the calls.
#[derive(Debug, Default, PartialEq)]
struct Answer {
    text: String,
    reasoning: String,
    calls: Vec<String>,
    rejected: Vec<String>,
    incomplete: Vec<String>,
}

fn read(options: &Options, pieces: &[&[u8]], finish: Finish) -> Answer {
    let mut answer = Answer::default();
    let mut sink = |event: Event<'_>| match event {
        Event::Text(text) => answer.text.push_str(text),
        Event::Reasoning(text) => answer.reasoning.push_str(text),
        Event::Call { call, .. } => answer.calls.push(format!("{} {}", call.name, call.arguments)),
        Event::Rejected { rejected, .. } => answer.rejected.push(rejected.to_string()),
        Event::Incomplete { text, .. } => answer.incomplete.push(text.to_owned()),
        Event::Frame(_) | Event::CallStart { .. } | Event::Arguments { .. } => {}
    };
    let mut interceptor = Interceptor::new(tools(), options);
    for piece in pieces {
        interceptor.push_bytes(piece, &mut sink);
    }
    interceptor.finish(finish, &mut sink);
    answer
}

fn detect(text: &str) -> Answer {
    read(&Options::default(), &[text.as_bytes()], Finish::Stop)
}

const WRITE: &str = r#"files.write {"path":"a/é.txt","count":2,"deep":{"k":[1,"}"]}}"#;

/// The same call in every way of writing it, with the format that has it.
const WAYS: &[(Format, &str)] = &[
    (
        Format::Generic,
        r#"{"tool": "files.write", "params": {"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}}"#,
    ),
    (
        Format::Generic,
        r#"{"name": "files.write", "arguments": {"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}}"#,
    ),
    (
        Format::Generic,
        r#"{"function": "files.write", "parameters": {"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}}"#,
    ),
    (
        Format::Generic,
        r#"{"params": {"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}, "tool": "files.write"}"#,
    ),
    (
        Format::Generic,
        r#"[{"name": "files.write", "arguments": {"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}}]"#,
    ),
    (
        Format::Generic,
        "```json\n{\"tool\": \"files.write\", \"params\": {\"path\": \"a/é.txt\", \"count\": 2, \"deep\": {\"k\": [1, \"}\"]}}}\n```",
    ),
    (
        Format::Generic,
        "Action: files.write\nAction Input: {\"path\": \"a/é.txt\", \"count\": 2, \"deep\": {\"k\": [1, \"}\"]}}",
    ),
    (
        Format::Generic,
        r#"[TOOL_CALL]{"tool": "files.write", "params": {"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}}[/TOOL_CALL]"#,
    ),
    (
        Format::Generic,
        r#"<tool>{"tool": "files.write", "params": {"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}}</tool>"#,
    ),
    (
        Format::Hermes,
        "<tool_call>\n{\"name\": \"files.write\", \"arguments\": {\"path\": \"a/é.txt\", \"count\": 2, \"deep\": {\"k\": [1, \"}\"]}}}\n</tool_call>",
    ),
    (
        Format::Hermes,
        "<tool_call>\n```json\n{\"name\": \"files.write\", \"arguments\": {\"path\": \"a/é.txt\", \"count\": 2, \"deep\": {\"k\": [1, \"}\"]}}}\n```\n</tool_call>",
    ),
    (
        Format::QwenXml,
        "<tool_call>\n<function=files.write>\n<parameter=path>\na/é.txt\n</parameter>\n<parameter=count>\n2\n</parameter>\n<parameter=deep>\n{\"k\": [1, \"}\"]}\n</parameter>\n</function>\n</tool_call>",
    ),
    (
        Format::Glm,
        "<tool_call>files.write\n<arg_key>path</arg_key>\n<arg_value>a/é.txt</arg_value>\n<arg_key>count</arg_key>\n<arg_value>2</arg_value>\n<arg_key>deep</arg_key>\n<arg_value>{\"k\": [1, \"}\"]}</arg_value>\n</tool_call>",
    ),
    (
        Format::Llama,
        r#"<|python_tag|>{"name": "files.write", "parameters": {"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}}"#,
    ),
    (Format::Llama, "[files.write(path='a/é.txt', count=2, deep={'k': [1, '}']})]"),
    (
        Format::Mistral,
        r#"[TOOL_CALLS] [{"name": "files.write", "arguments": {"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}}]"#,
    ),
    (
        Format::Mistral,
        r#"[TOOL_CALLS]files.write[CALL_ID]000000001[ARGS]{"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}"#,
    ),
    (
        Format::Mistral,
        r#"[TOOL_CALLS]files.write{"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}"#,
    ),
    (
        Format::DeepSeek,
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>files.write\n```json\n{\"path\": \"a/é.txt\", \"count\": 2, \"deep\": {\"k\": [1, \"}\"]}}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    (
        Format::DeepSeek,
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>files.write<｜tool▁sep｜>{\"path\": \"a/é.txt\", \"count\": 2, \"deep\": {\"k\": [1, \"}\"]}}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    (
        Format::DeepSeek,
        "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"files.write\">\n<｜DSML｜parameter name=\"path\" string=\"true\">a/é.txt</｜DSML｜parameter>\n<｜DSML｜parameter name=\"count\" string=\"false\">2</｜DSML｜parameter>\n<｜DSML｜parameter name=\"deep\" string=\"false\">{\"k\": [1, \"}\"]}</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
    ),
    (
        Format::Kimi,
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.files.write:0<|tool_call_argument_begin|>{\"path\": \"a/é.txt\", \"count\": 2, \"deep\": {\"k\": [1, \"}\"]}}<|tool_call_end|><|tool_calls_section_end|>",
    ),
    (
        Format::Kimi,
        "<|open|>tools<|sep|><|open|>call tool=\"files.write\" index=\"1\"<|sep|><|open|>argument key=\"path\" type=\"string\"<|sep|>a/é.txt<|close|>argument<|sep|><|open|>argument key=\"count\" type=\"number\"<|sep|>2<|close|>argument<|sep|><|open|>argument key=\"deep\" type=\"object\"<|sep|>{\"k\": [1, \"}\"]}<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
    ),
    (
        Format::Gemma,
        "<|tool_call>call:files.write{path:<|\"|>a/é.txt<|\"|>,count:2,deep:{k:[1,<|\"|>}<|\"|>]}}<tool_call|>",
    ),
    (
        Format::Harmony,
        "<|channel|>commentary to=functions.files.write <|constrain|>json<|message|>{\"path\": \"a/é.txt\", \"count\": 2, \"deep\": {\"k\": [1, \"}\"]}}<|call|>",
    ),
    (
        Format::Invoke,
        "<function_calls>\n<invoke name=\"files.write\">\n<parameter name=\"path\">a/é.txt</parameter>\n<parameter name=\"count\">2</parameter>\n<parameter name=\"deep\">{\"k\": [1, \"}\"]}</parameter>\n</invoke>\n</function_calls>",
    ),
    (
        Format::Invoke,
        "<minimax:tool_call>\n<invoke name=\"files.write\">\n<parameter name=\"path\">a/é.txt</parameter>\n<parameter name=\"count\">2</parameter>\n<parameter name=\"deep\">{\"k\": [1, \"}\"]}</parameter>\n</invoke>\n</minimax:tool_call>",
    ),
    (
        Format::Tagged,
        r#"<|tool_call|>[{"name": "files.write", "arguments": {"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}}]"#,
    ),
    (
        Format::Tagged,
        r#"<|START_ACTION|>[{"tool_name": "files.write", "parameters": {"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}}]<|END_ACTION|>"#,
    ),
    (
        Format::Tagged,
        r#"<|action_start|><|plugin|>{"name": "files.write", "parameters": {"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}}<|action_end|>"#,
    ),
    (
        Format::Tagged,
        r#"<TOOLCALL>[{"name": "files.write", "arguments": {"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}}]</TOOLCALL>"#,
    ),
    (
        Format::Tagged,
        r#"<tool_calls>[{"name": "files.write", "arguments": {"path": "a/é.txt", "count": 2, "deep": {"k": [1, "}"]}}}]</tool_calls>"#,
    ),
];

/// Proves: S6
#[test]
fn a_call_is_found_in_every_way_of_writing_it_wherever_it_is_cut() {
    for (format, way) in WAYS {
        for format in [*format, Format::Detect] {
            let options = Options { format, ..Options::default() };
            let text = way.as_bytes();
            let whole = read(&options, &[text], Finish::Stop);
            assert_eq!(whole.calls, [WRITE], "{format:?}: {way}");
            assert_eq!((whole.text.trim(), whole.rejected.len()), ("", 0), "{format:?}: {way}");
            for at in 0..=text.len() {
                let (one, two) = text.split_at(at);
                assert_eq!(read(&options, &[one, two], Finish::Stop), whole, "{way} cut at {at}");
            }
        }
    }
}

#[test]
fn a_call_without_arguments_is_one_in_every_format_that_can_write_it() {
    for way in [
        r#"{"tool": "now", "params": {}}"#,
        "<tool_call>\n{\"name\": \"now\"}\n</tool_call>",
        "<tool_call>\n<function=now>\n</function>\n</tool_call>",
        "<tool_call>now</tool_call>",
        "[now()]",
        "[TOOL_CALLS]now[ARGS]{}",
        "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"now\"/>\n</｜DSML｜tool_calls>",
        "<|tool_call>call:now{}<tool_call|>",
    ] {
        assert_eq!(detect(way).calls, ["now {}"], "{way}");
    }
}

#[test]
fn several_calls_keep_their_order_and_what_is_said_between_them() {
    let text = "First {\"tool\": \"now\", \"params\": {}} then <tool_call>{\"name\": \"files.write\", \"arguments\": {}}</tool_call> done";
    let answer = detect(text);
    assert_eq!(answer.calls, ["now {}", "files.write {}"]);
    assert_eq!(answer.text, "First  then  done");
}

#[test]
fn what_is_quoted_or_stands_in_code_is_no_call() {
    let call = r#"{"tool": "now", "params": {}}"#;
    for text in [
        format!("Write `{call}` to call it."),
        format!("He wrote \"{call}\" there."),
        format!("He wrote '{call}' there."),
        format!("He wrote “{call}” there."),
        format!("> {call}\n"),
        format!("``{call}``"),
        format!("1. ```json\n   {call}\n   and so on\n   ```\n"),
        "`[TOOL_CALLS]now[ARGS]{}`".to_owned(),
        "```\n<|tool_call>call:now{}<tool_call|>\n```".to_owned(),
        format!("For example:\n```json\n{call}\nand so on\n```\n"),
        format!("```\nnot this: {call}\n```"),
        "Put it in `<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>`.".to_owned(),
        "```xml\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n```".to_owned(),
    ] {
        let answer = detect(&text);
        assert_eq!(answer.calls, [""; 0], "{text}");
        assert_eq!(answer.text, text);
    }
    let quoted = "\"<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\"";
    assert_eq!(detect(quoted).calls, [""; 0]);
    // Behind a block that was none, a call is one again.
    let answer = detect(&format!("```\nx\n```\n{call}"));
    assert_eq!(answer.calls, ["now {}"]);
}

#[test]
fn json_that_names_no_offered_tool_is_text_as_it_was() {
    for text in [
        r#"{"name": "John", "age": 3}"#,
        r#"{"a": {"tool": "now", "params": {}}}"#,
        r#"[1, {"tool": "now", "params": {}}]"#,
        r#"["a", {"tool": "now", "params": {}}]"#,
        "{\"a\": 1,\n\n \"b\": {\"tool\": \"now\", \"params\": {}}}",
        r#"{} and {"tool"} and { "x": 1"#,
        r#"[1, 2, {"tool": 3}]"#,
        "if (x) { return [now]; }",
    ] {
        let answer = detect(text);
        assert_eq!(answer.calls, [""; 0], "{text}");
        assert_eq!((answer.text.as_str(), answer.rejected.len()), (text, 0));
    }
}

#[test]
fn without_tools_nothing_is_a_call_and_plain_markers_are_text() {
    let text = "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call> {\"tool\": \"now\", \"params\": {}}";
    let mut seen = String::new();
    let mut interceptor = Interceptor::new(Arc::new(Tools::default()), &Options::default());
    let mut sink = |event: Event<'_>| {
        assert!(!matches!(event, Event::Call { .. } | Event::CallStart { .. }), "{event:?}");
        seen.push_str(event.text());
    };
    interceptor.push(text, &mut sink);
    interceptor.finish(Finish::Stop, &mut sink);
    assert_eq!(seen, text);
}

#[test]
fn closers_are_added_at_a_real_end_and_never_where_the_text_was_cut() {
    let text = r#"<tool_call>{"name": "now", "arguments": {"path": "a"}"#;
    let options = Options::default();
    let stopped = read(&options, &[text.as_bytes()], Finish::Stop);
    assert_eq!(stopped.calls, [r#"now {"path":"a"}"#]);
    for finish in [Finish::Length, Finish::Interrupted] {
        let cut = read(&options, &[text.as_bytes()], finish);
        assert_eq!((cut.calls.len(), cut.incomplete.as_slice()), (0, &[text.to_owned()][..]));
    }
    let inside = read(
        &options,
        &[br#"<tool_call>{"name": "now", "arguments": {"path": "rm -rf /"#],
        Finish::Stop,
    );
    assert_eq!((inside.calls.len(), inside.incomplete.len()), (0, 1));
}

#[test]
fn duplicate_keys_and_numbers_that_are_none_are_refused() {
    for arguments in
        [r#"{"path": "a", "path": "b"}"#, r#"{"count": NaN}"#, r#"{"count": Infinity}"#]
    {
        let answer = detect(&format!(
            "<tool_call>{{\"name\": \"now\", \"arguments\": {arguments}}}</tool_call>"
        ));
        assert_eq!((answer.calls.len(), answer.rejected.len()), (0, 1), "{arguments}");
    }
    let twice = "<tool_call>\n<function=now>\n<parameter=path>\na\n</parameter>\n<parameter=path>\nb\n</parameter>\n</function>\n</tool_call>";
    assert_eq!(detect(twice).rejected.len(), 1);
}

#[test]
fn a_call_in_a_thought_counts_only_where_the_thought_ends_with_it() {
    let options = Options { prompt: Some("<think>\n".to_owned()), ..Options::default() };
    let call = "<tool_call>\n<function=now>\n</function>\n</tool_call>";
    let ends = read(&options, &[format!("hm\n{call}\n").as_bytes()], Finish::Stop);
    assert_eq!(
        (ends.calls.as_slice(), ends.reasoning.as_str()),
        (&["now {}".to_owned()][..], "hm\n")
    );
    let text = format!("I could write {call} or not.</think>no");
    let goes_on = read(&options, &[text.as_bytes()], Finish::Stop);
    assert_eq!((goes_on.calls.len(), goes_on.text.as_str()), (0, "no"));
    assert_eq!(goes_on.reasoning, format!("I could write {call} or not."));
}

/// Proves: S21
#[test]
fn text_leaves_with_the_piece_it_came_in() {
    let mut interceptor = Interceptor::new(tools(), &Options::default());
    for piece in ["Hello", ", it's ", "5 > 3\n", "and 2 < 4, A", " \"quoted\" ", "x * y [1] "] {
        let mut seen = String::new();
        interceptor.push(piece, &mut |event| {
            assert!(matches!(event, Event::Text(_)), "{event:?}");
            seen.push_str(event.text());
        });
        assert_eq!(seen, piece);
        assert_eq!(interceptor.state(), State::Narrative);
    }
}

#[test]
fn only_the_end_that_may_begin_a_marker_is_kept() {
    let mut interceptor = Interceptor::new(tools(), &Options::default());
    let mut seen = String::new();
    interceptor.push("so <tool_", &mut |event| seen.push_str(event.text()));
    assert_eq!((seen.as_str(), interceptor.state()), ("so ", State::MaybeToolStart));
    interceptor.push("box>", &mut |event| seen.push_str(event.text()));
    assert_eq!((seen.as_str(), interceptor.state()), ("so <tool_box>", State::Narrative));
}

#[test]
fn what_may_be_a_call_in_mid_text_is_kept_up_to_its_limit() {
    let limits = Limits { undecided: 40, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    // The name ends with the fortieth character, or one later.
    for (blanks, calls) in [(40 - r#"{"tool":"now""#.len(), 1), (41 - r#"{"tool":"now""#.len(), 0)]
    {
        let text = format!("{{{}\"tool\":\"now\",\"params\":{{}}}}", " ".repeat(blanks));
        let answer = read(&options, &[text.as_bytes()], Finish::Stop);
        assert_eq!(answer.calls.len(), calls, "{blanks}");
        assert_eq!(answer.text.is_empty(), calls == 1);
    }
}

#[test]
fn a_call_may_be_as_long_as_its_limit_and_not_longer() {
    let options = Options { limits: Limits { undecided: 25, call: 100 }, ..Options::default() };
    let call = |length: usize| {
        let frame = "<tool_call>{\"name\":\"now\",\"arguments\":{\"path\":\"\"}}</tool_call>";
        frame.replace("\"\"", &format!("\"{}\"", "x".repeat(length - frame.len())))
    };
    let fits = read(&options, &[call(100).as_bytes()], Finish::Stop);
    assert_eq!((fits.calls.len(), fits.rejected.len()), (1, 0));
    // What follows the limit is text to the end of the call, and the next call is one again.
    let text = call(101) + " {\"tool\": \"now\", \"params\": {}}";
    let longer = read(&options, &[text.as_bytes()], Finish::Stop);
    assert_eq!(longer.rejected, ["the call is longer than 100 bytes"]);
    assert_eq!((longer.calls.as_slice(), longer.text.as_str()), (&["now {}".to_owned()][..], "> "));
}

/// Proves: S44
#[test]
fn an_endless_call_keeps_no_more_than_its_limit() {
    let limits = Limits { undecided: 200, call: 1 << 16 };
    let mut interceptor = Interceptor::new(tools(), &Options { limits, ..Options::default() });
    let (mut given, mut told) = (0, 0);
    let mut push = |interceptor: &mut Interceptor, piece: &str| {
        given += piece.len();
        interceptor.push(piece, &mut |event| told += event.text().len());
        assert!(given - told <= (1 << 16) + piece.len(), "{} bytes are kept", given - told);
    };
    push(&mut interceptor, "{\"tool\": \"now\", \"params\": {\"path\": \"");
    let piece = "{[<tool_call> ".repeat(100);
    for _ in 0..1_000 {
        push(&mut interceptor, &piece);
    }
}

#[test]
fn a_tool_nobody_offers_hides_no_call_in_its_arguments() {
    let long = "x".repeat(210);
    let inside = "<function=now>\n</function>";
    let text = format!(
        "{{\"name\": \"save\", \"arguments\": {{\"text\": \"{long} {inside}\", \"calls\": [{{\"tool\": \"now\", \"params\": {{}}}}]}}}} end"
    );
    let answer = detect(&text);
    assert_eq!((answer.calls.len(), answer.text.as_str()), (0, text.as_str()));
}

#[test]
fn what_is_nested_too_deep_is_refused_in_every_notation() {
    for levels in [127, 128, 5_000] {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        for text in [
            format!("[now(k={open}1{close})]"),
            format!("<|tool_call>call:now{{a:{open}1{close}}}<tool_call|>"),
            // Quotes that only the lexer takes for some.
            format!("[now(k\"={open}\")]"),
            format!("<|tool_call>call:now{{a:x<|\"|>,b:{open}<|\"|>}}<tool_call|>"),
        ] {
            let answer = detect(&text);
            assert!(answer.calls.len() <= usize::from(levels < 128), "{levels}");
        }
    }
}

#[test]
fn a_list_of_calls_and_of_arguments_has_an_end() {
    let fence = format!("```\n{}```", "{\"tool\": \"now\", \"params\": {}}\n".repeat(64));
    assert_eq!(detect(&fence).calls.len(), 64);
    let fence = fence.replacen("```\n", "```\n{\"tool\": \"now\", \"params\": {}}\n", 1);
    assert_eq!(detect(&fence).calls.len(), 0);
    let call = |count: usize| {
        let one = |at| format!("<parameter=p{at}>\n1\n</parameter>\n");
        let arguments: String = (0..count).map(one).collect();
        format!("<function=now>\n{arguments}</function>")
    };
    assert_eq!((detect(&call(1024)).calls.len(), detect(&call(1025)).calls.len()), (1, 0));
}

#[test]
fn arguments_that_are_told_twice_or_half_make_no_call() {
    for text in [
        "{\"tool\": \"now\", \"name\": \"files.write\", \"params\": {}}",
        "{\"tool\": \"now\", \"params\": {}, \"arguments\": {}}",
        "<invoke name=\"now\"><parameter name=\"a\" string=\"true\">x</parameter><parameter name=\"b\">y</parameter></invoke>",
        "<|tool_call>call:now{count:NaN}<tool_call|>",
    ] {
        let answer = detect(text);
        assert_eq!((answer.calls.len(), answer.rejected.len()), (0, 1), "{text}");
    }
}

#[test]
fn a_closing_tag_in_a_value_ends_nothing_and_line_ends_may_be_two_letters() {
    let invoke = "<invoke name=\"now\"><parameter name=\"path\">doc: </invoke> <b>x</b></parameter></invoke>";
    assert_eq!(detect(invoke).calls, [r#"now {"path":"doc: </invoke> <b>x</b>"}"#]);
    let xml = "<tool_call>\r\n<function=now>\r\n<parameter=path>\r\na.txt\r\n</parameter>\r\n</function>\r\n</tool_call>";
    assert_eq!(detect(xml).calls, [r#"now {"path":"a.txt"}"#]);
}

#[test]
fn a_call_in_a_thought_that_was_cut_is_incomplete() {
    let text = "<think>maybe <tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";
    let answer = |finish| read(&Options::default(), &[text.as_bytes()], finish);
    assert_eq!(answer(Finish::Stop).calls.len(), 1);
    for finish in [Finish::Length, Finish::Interrupted] {
        let cut = answer(finish);
        assert_eq!((cut.calls.len(), cut.incomplete.len()), (0, 1));
    }
}

#[test]
fn whatever_begins_is_told_to_end() {
    for text in ["{\"name\": \"now\", \"age\": 3}", "Action: now\nI did it.", "<tool_call>now x"] {
        let mut open = 0_i32;
        let mut interceptor = Interceptor::new(tools(), &Options::default());
        let mut sink = |event: Event<'_>| match event {
            Event::CallStart { .. } => open += 1,
            Event::Call { .. }
            | Event::Rejected { index: Some(_), .. }
            | Event::Incomplete { index: Some(_), .. } => open -= 1,
            Event::Text(_)
            | Event::Reasoning(_)
            | Event::Frame(_)
            | Event::Arguments { .. }
            | Event::Rejected { .. }
            | Event::Incomplete { .. } => {}
        };
        interceptor.push(text, &mut sink);
        interceptor.finish(Finish::Stop, &mut sink);
        assert_eq!(open, 0, "{text}");
    }
}
