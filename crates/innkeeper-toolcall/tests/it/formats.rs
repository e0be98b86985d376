//! One call in every format, split at every byte, and texts that are not calls.

use std::sync::Arc;

use innkeeper_toolcall::{
    Format, ParseEvent, ParserLimits, ParserOptions, ParserState, TextEnd, Tool, ToolCallParser,
    Tools,
};
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

/// The parsed output: visible text, reasoning and calls.
#[derive(Debug, Default, PartialEq)]
struct ParsedOutput {
    text: String,
    reasoning: String,
    calls: Vec<String>,
    rejected: Vec<String>,
    incomplete: Vec<String>,
}

fn parse(options: &ParserOptions, chunks: &[&[u8]], text_end: TextEnd) -> ParsedOutput {
    parse_with_tools(tools(), options, chunks, text_end)
}

fn parse_with_tools(
    tools: Arc<Tools>,
    options: &ParserOptions,
    chunks: &[&[u8]],
    text_end: TextEnd,
) -> ParsedOutput {
    let mut output = ParsedOutput::default();
    let mut sink = |event: ParseEvent<'_>| match event {
        ParseEvent::Text(text) => output.text.push_str(text),
        ParseEvent::Reasoning(text) => output.reasoning.push_str(text),
        ParseEvent::Call { call, .. } => {
            output.calls.push(format!("{} {}", call.name, call.arguments));
        }
        ParseEvent::Rejected { rejected, .. } => output.rejected.push(rejected.to_string()),
        ParseEvent::Incomplete { text, .. } => output.incomplete.push(text.to_owned()),
        ParseEvent::Markup(_) | ParseEvent::CallStart { .. } | ParseEvent::Arguments { .. } => {}
    };
    let mut parser = ToolCallParser::new(tools, options);
    for chunk in chunks {
        parser.push_bytes(chunk, &mut sink);
    }
    parser.finish(text_end, &mut sink);
    output
}

fn parse_detected(text: &str) -> ParsedOutput {
    parse(&ParserOptions::default(), &[text.as_bytes()], TextEnd::Stop)
}

const WRITE_CALL: &str = r#"files.write {"path":"a/é.txt","count":2,"deep":{"k":[1,"}"]}}"#;

/// The same call in every format.
const WRITTEN_CALLS: &[(Format, &str)] = &[
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
    for (format, call) in WRITTEN_CALLS {
        for format in [*format, Format::Detect] {
            let options = ParserOptions { format, ..ParserOptions::default() };
            let text = call.as_bytes();
            let whole = parse(&options, &[text], TextEnd::Stop);
            assert_eq!(whole.calls, [WRITE_CALL], "{format:?}: {call}");
            assert_eq!((whole.text.trim(), whole.rejected.len()), ("", 0), "{format:?}: {call}");
            for at in 0..=text.len() {
                let (first, two) = text.split_at(at);
                assert_eq!(
                    parse(&options, &[first, two], TextEnd::Stop),
                    whole,
                    "{call} cut at {at}"
                );
            }
        }
    }
}

#[test]
fn a_call_without_arguments_is_one_in_every_format_that_can_write_it() {
    for call in [
        r#"{"tool": "now", "params": {}}"#,
        "<tool_call>\n{\"name\": \"now\"}\n</tool_call>",
        "<tool_call>\n<function=now>\n</function>\n</tool_call>",
        "<tool_call>now</tool_call>",
        "[now()]",
        "[TOOL_CALLS]now[ARGS]{}",
        "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"now\"/>\n</｜DSML｜tool_calls>",
        "<|tool_call>call:now{}<tool_call|>",
    ] {
        assert_eq!(parse_detected(call).calls, ["now {}"], "{call}");
    }
}

#[test]
fn several_calls_keep_their_order_and_what_is_said_between_them() {
    let text = "First {\"tool\": \"now\", \"params\": {}} then <tool_call>{\"name\": \"files.write\", \"arguments\": {}}</tool_call> done";
    let output = parse_detected(text);
    assert_eq!(output.calls, ["now {}", "files.write {}"]);
    assert_eq!(output.text, "First  then  done");
}

#[test]
fn what_is_quoted_or_stands_in_code_is_no_call() {
    let call = r#"{"tool": "now", "params": {}}"#;
    for text in [
        format!("Write `{call}` to call it."),
        format!("He wrote \"{call}\" there."),
        format!("He wrote '{call}' there."),
        format!("He wrote “{call}” there."),
        format!("He wrote „{call}“ there."),
        format!("He wrote «{call}» there."),
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
        let output = parse_detected(&text);
        assert_eq!(output.calls, [""; 0], "{text}");
        assert_eq!(output.text, text);
    }
    let quoted = "\"<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\"";
    assert_eq!(parse_detected(quoted).calls, [""; 0]);
    // After a block that is not a call, the parser finds calls again.
    let output = parse_detected(&format!("```\nx\n```\n{call}"));
    assert_eq!(output.calls, ["now {}"]);
}

#[test]
fn json_that_names_no_offered_tool_is_text_as_it_was() {
    for text in [
        r#"{"name": "John", "age": 3}"#,
        r#"{"a": {"tool": "now", "params": {}}}"#,
        r#"[1, {"tool": "now", "params": {}}]"#,
        r#"["a", {"tool": "now", "params": {}}]"#,
        r#"[null, {"tool": "now", "params": {}}]"#,
        r#"[true,{"tool": "now", "params": {}}]"#,
        r#"[false , {"tool": "now", "params": {}}]"#,
        "{\"a\": 1,\n\n \"b\": {\"tool\": \"now\", \"params\": {}}}",
        r#"{} and {"tool"} and { "x": 1"#,
        r#"[1, 2, {"tool": 3}]"#,
        "if (x) { return [now]; }",
    ] {
        let output = parse_detected(text);
        assert_eq!(output.calls, [""; 0], "{text}");
        assert_eq!((output.text.as_str(), output.rejected.len()), (text, 0));
    }
}

#[test]
fn without_tools_nothing_is_a_call_and_plain_markers_are_text() {
    let text = "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call> {\"tool\": \"now\", \"params\": {}}";
    let mut events = String::new();
    let mut parser = ToolCallParser::new(Arc::new(Tools::default()), &ParserOptions::default());
    let mut sink = |event: ParseEvent<'_>| {
        assert!(
            !matches!(event, ParseEvent::Call { .. } | ParseEvent::CallStart { .. }),
            "{event:?}"
        );
        events.push_str(event.text());
    };
    parser.push(text, &mut sink);
    parser.finish(TextEnd::Stop, &mut sink);
    assert_eq!(events, text);
}

#[test]
fn closers_are_added_at_a_real_end_and_never_where_the_text_was_cut() {
    let text = r#"<tool_call>{"name": "now", "arguments": {"path": "a"}"#;
    let options = ParserOptions::default();
    let stopped = parse(&options, &[text.as_bytes()], TextEnd::Stop);
    assert_eq!(stopped.calls, [r#"now {"path":"a"}"#]);
    for text_end in [TextEnd::Length, TextEnd::Interrupted] {
        let truncated = parse(&options, &[text.as_bytes()], text_end);
        assert_eq!(
            (truncated.calls.len(), truncated.incomplete.as_slice()),
            (0, &[text.to_owned()][..])
        );
    }
    let inside = parse(
        &options,
        &[br#"<tool_call>{"name": "now", "arguments": {"path": "rm -rf /"#],
        TextEnd::Stop,
    );
    assert_eq!((inside.calls.len(), inside.incomplete.len()), (0, 1));
}

/// Attack: model | a call has duplicate or non-finite arguments | the call is rejected | No guessed
/// call
#[test]
fn duplicate_keys_and_numbers_that_are_none_are_refused() {
    for arguments in
        [r#"{"path": "a", "path": "b"}"#, r#"{"count": NaN}"#, r#"{"count": Infinity}"#]
    {
        let output = parse_detected(&format!(
            "<tool_call>{{\"name\": \"now\", \"arguments\": {arguments}}}</tool_call>"
        ));
        assert_eq!((output.calls.len(), output.rejected.len()), (0, 1), "{arguments}");
    }
    let duplicated = "<tool_call>\n<function=now>\n<parameter=path>\na\n</parameter>\n<parameter=path>\nb\n</parameter>\n</function>\n</tool_call>";
    assert_eq!(parse_detected(duplicated).rejected.len(), 1);
}

/// Attack: model | a call stands in the middle of reasoning | the call does not run | No guessed
/// call
#[test]
fn a_call_in_reasoning_counts_only_where_the_reasoning_ends_with_it() {
    let options =
        ParserOptions { prompt: Some("<think>\n".to_owned()), ..ParserOptions::default() };
    let call = "<tool_call>\n<function=now>\n</function>\n</tool_call>";
    let at_end = parse(&options, &[format!("hm\n{call}\n").as_bytes()], TextEnd::Stop);
    assert_eq!(
        (at_end.calls.as_slice(), at_end.reasoning.as_str()),
        (&["now {}".to_owned()][..], "hm\n")
    );
    let text = format!("I could write {call} or not.</think>no");
    let goes_on = parse(&options, &[text.as_bytes()], TextEnd::Stop);
    assert_eq!((goes_on.calls.len(), goes_on.text.as_str()), (0, "no"));
    assert_eq!(goes_on.reasoning, format!("I could write {call} or not."));
}

/// Proves: S21
#[test]
fn text_is_emitted_with_the_chunk_it_came_in() {
    let mut parser = ToolCallParser::new(tools(), &ParserOptions::default());
    for chunk in ["Hello", ", it's ", "5 > 3\n", "and 2 < 4, A", " \"quoted\" ", "x * y [1] "] {
        let mut passed = String::new();
        parser.push(chunk, &mut |event| {
            assert!(matches!(event, ParseEvent::Text(_)), "{event:?}");
            passed.push_str(event.text());
        });
        assert_eq!(passed, chunk);
        assert_eq!(parser.state(), ParserState::Narrative);
    }
}

#[test]
fn only_the_end_that_may_begin_a_marker_is_kept() {
    let mut parser = ToolCallParser::new(tools(), &ParserOptions::default());
    let mut passed = String::new();
    parser.push("so <tool_", &mut |event| passed.push_str(event.text()));
    assert_eq!((passed.as_str(), parser.state()), ("so ", ParserState::MaybeToolStart));
    parser.push("box>", &mut |event| passed.push_str(event.text()));
    assert_eq!((passed.as_str(), parser.state()), ("so <tool_box>", ParserState::Narrative));
}

#[test]
fn what_may_be_a_call_in_mid_text_is_kept_up_to_its_limit() {
    let limits = ParserLimits { max_undecided_chars: 40, ..ParserLimits::default() };
    let options = ParserOptions { limits, ..ParserOptions::default() };
    // The name ends with the 40th character, or one character later.
    for (blanks, calls) in [(40 - r#"{"tool":"now""#.len(), 1), (41 - r#"{"tool":"now""#.len(), 0)]
    {
        let text = format!("{{{}\"tool\":\"now\",\"params\":{{}}}}", " ".repeat(blanks));
        let output = parse(&options, &[text.as_bytes()], TextEnd::Stop);
        assert_eq!(output.calls.len(), calls, "{blanks}");
        assert_eq!(output.text.is_empty(), calls == 1);
    }
}

#[test]
fn a_call_may_be_as_long_as_its_limit_and_not_longer() {
    let options = ParserOptions {
        limits: ParserLimits { max_undecided_chars: 25, max_call_bytes: 100 },
        ..ParserOptions::default()
    };
    let call = |length: usize| {
        let frame = "<tool_call>{\"name\":\"now\",\"arguments\":{\"path\":\"\"}}</tool_call>";
        frame.replace("\"\"", &format!("\"{}\"", "x".repeat(length - frame.len())))
    };
    let fits = parse(&options, &[call(100).as_bytes()], TextEnd::Stop);
    assert_eq!((fits.calls.len(), fits.rejected.len()), (1, 0));
    // Above the limit, the rest of the call is text, and the next call is parsed again.
    let text = call(101) + " {\"tool\": \"now\", \"params\": {}}";
    let longer = parse(&options, &[text.as_bytes()], TextEnd::Stop);
    assert_eq!(longer.rejected, ["the call is longer than 100 bytes"]);
    assert_eq!((longer.calls.as_slice(), longer.text.as_str()), (&["now {}".to_owned()][..], "> "));
}

/// Attack: model | the arguments of a call never end | the parser keeps at most the limit | No
/// unbounded memory
/// Proves: S44
#[test]
fn an_endless_call_keeps_no_more_than_its_limit() {
    let limits = ParserLimits { max_undecided_chars: 200, max_call_bytes: 1 << 16 };
    let mut parser =
        ToolCallParser::new(tools(), &ParserOptions { limits, ..ParserOptions::default() });
    let (mut pushed, mut emitted, mut max_kept) = (0, 0, 0);
    let mut push = |parser: &mut ToolCallParser, chunk: &str| {
        pushed += chunk.len();
        parser.push(chunk, &mut |event| emitted += event.text().len());
        max_kept = max_kept.max(pushed - emitted);
    };
    push(&mut parser, "{\"tool\": \"now\", \"params\": {\"path\": \"");
    let chunk = "{[<tool_call> ".repeat(100);
    for _ in 0..1_000 {
        push(&mut parser, &chunk);
    }
    let limit = 1 << 16;
    assert!(max_kept > limit - chunk.len(), "a call below the limit is not kept: {max_kept} bytes");
    assert!(max_kept <= limit + chunk.len(), "{max_kept} bytes are kept");
}

/// Attack: model | the arguments of an unknown tool contain a call of a known tool | no call runs;
/// the text stays as it is | No guessed call
#[test]
fn a_tool_nobody_offers_hides_no_call_in_its_arguments() {
    let long = "x".repeat(210);
    let inside = "<function=now>\n</function>";
    let text = format!(
        "{{\"name\": \"save\", \"arguments\": {{\"text\": \"{long} {inside}\", \"calls\": [{{\"tool\": \"now\", \"params\": {{}}}}]}}}} end"
    );
    let output = parse_detected(&text);
    assert_eq!((output.calls.len(), output.text.as_str()), (0, text.as_str()));
}

/// Attack: model | arguments nest 5,000 levels in four notations | the call is rejected | No
/// unbounded memory
#[test]
fn what_is_nested_too_deep_is_refused_in_every_notation() {
    for levels in [127, 128, 5_000] {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        for text in [
            format!("[now(k={open}1{close})]"),
            format!("<|tool_call>call:now{{a:{open}1{close}}}<tool_call|>"),
            // Quotes that only the lexer counts.
            format!("[now(k\"={open}\")]"),
            format!("<|tool_call>call:now{{a:x<|\"|>,b:{open}<|\"|>}}<tool_call|>"),
        ] {
            let output = parse_detected(&text);
            assert!(output.calls.len() <= usize::from(levels < 128), "{levels}");
        }
    }
}

/// Attack: model | a list of 65 calls, or a call with 1,025 arguments | no call runs | No unbounded
/// memory
#[test]
fn a_list_of_calls_and_of_arguments_has_an_end() {
    let fence = format!("```\n{}```", "{\"tool\": \"now\", \"params\": {}}\n".repeat(64));
    assert_eq!(parse_detected(&fence).calls.len(), 64);
    let fence = fence.replacen("```\n", "```\n{\"tool\": \"now\", \"params\": {}}\n", 1);
    assert_eq!(parse_detected(&fence).calls.len(), 0);
    let call = |count: usize| {
        let parameter = |at| format!("<parameter=p{at}>\n1\n</parameter>\n");
        let arguments: String = (0..count).map(parameter).collect();
        format!("<function=now>\n{arguments}</function>")
    };
    let tools: Arc<Tools> = Arc::new([Tool::new("now", "", json!({}))].into_iter().collect());
    for (count, calls) in [(1024, 1), (1025, 0)] {
        let text = call(count);
        let chunks = [text.as_bytes()];
        let options = ParserOptions::default();
        let output = parse_with_tools(Arc::clone(&tools), &options, &chunks, TextEnd::Stop);
        assert_eq!(output.calls.len(), calls, "{count}");
    }
}

/// Attack: model | a call has two names or two sets of arguments | the call is rejected | No
/// guessed call
#[test]
fn arguments_that_are_given_twice_or_half_make_no_call() {
    for text in [
        "{\"tool\": \"now\", \"name\": \"files.write\", \"params\": {}}",
        "{\"tool\": \"now\", \"params\": {}, \"arguments\": {}}",
        "<invoke name=\"now\"><parameter name=\"a\" string=\"true\">x</parameter><parameter name=\"b\">y</parameter></invoke>",
        "<|tool_call>call:now{count:NaN}<tool_call|>",
    ] {
        let output = parse_detected(text);
        assert_eq!((output.calls.len(), output.rejected.len()), (0, 1), "{text}");
    }
}

/// Attack: model | an argument contains the closing tag of the call | the tag is part of the value
/// | No guessed call
#[test]
fn a_closing_tag_in_a_value_ends_nothing_and_line_ends_may_be_two_letters() {
    let invoke = "<invoke name=\"now\"><parameter name=\"path\">doc: </invoke> <b>x</b></parameter></invoke>";
    assert_eq!(parse_detected(invoke).calls, [r#"now {"path":"doc: </invoke> <b>x</b>"}"#]);
    let xml = "<tool_call>\r\n<function=now>\r\n<parameter=path>\r\na.txt\r\n</parameter>\r\n</function>\r\n</tool_call>";
    assert_eq!(parse_detected(xml).calls, [r#"now {"path":"a.txt"}"#]);
}

#[test]
fn a_call_in_reasoning_that_was_cut_is_incomplete() {
    let text = "<think>maybe <tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";
    let parse_until = |text_end| parse(&ParserOptions::default(), &[text.as_bytes()], text_end);
    for text_end in [TextEnd::Stop, TextEnd::Unknown] {
        assert_eq!(parse_until(text_end).calls.len(), 1);
    }
    for text_end in [TextEnd::Length, TextEnd::Interrupted] {
        let truncated = parse_until(text_end);
        assert_eq!((truncated.calls.len(), truncated.incomplete.len()), (0, 1));
    }
}

#[test]
fn every_started_call_ends() {
    for text in ["{\"name\": \"now\", \"age\": 3}", "Action: now\nI did it.", "<tool_call>now x"] {
        let mut open = 0_i32;
        let mut parser = ToolCallParser::new(tools(), &ParserOptions::default());
        let mut sink = |event: ParseEvent<'_>| match event {
            ParseEvent::CallStart { .. } => open += 1,
            ParseEvent::Call { .. }
            | ParseEvent::Rejected { index: Some(_), .. }
            | ParseEvent::Incomplete { index: Some(_), .. } => open -= 1,
            ParseEvent::Text(_)
            | ParseEvent::Reasoning(_)
            | ParseEvent::Markup(_)
            | ParseEvent::Arguments { .. }
            | ParseEvent::Rejected { .. }
            | ParseEvent::Incomplete { .. } => {}
        };
        parser.push(text, &mut sink);
        parser.finish(TextEnd::Stop, &mut sink);
        assert_eq!(open, 0, "{text}");
    }
}
