//! Calls, damaged tags and end tokens of the models that write them, cut at every byte.

use std::sync::Arc;

use innkeeper_toolcall::{
    Format, IncompleteReason, ParseEvent, ParserOptions, TextEnd, Tool, ToolCallParser, Tools,
};
use serde_json::json;

fn tools() -> Arc<Tools> {
    let tool = |name: &str, properties: serde_json::Value, required: &[&str]| {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Tool::new(name, "", schema)
    };
    let text = json!({"type": "string"});
    Arc::new(
        [
            tool("get_time", json!({}), &[]),
            tool("get_weather", json!({"city": text, "unit": text}), &["city"]),
            tool("run", json!({"command": text, "timeout": {"type": "integer"}}), &["command"]),
            tool("write", json!({"path": text, "content": text}), &["path", "content"]),
        ]
        .into_iter()
        .collect(),
    )
}

#[derive(Debug, Default, PartialEq)]
struct ParsedOutput {
    text: String,
    calls: Vec<String>,
    /// Rejected and incomplete calls, with the index of a call that had ended too early.
    refusals: Vec<String>,
}

fn parse(model: &str, chunks: &[&[u8]], text_end: TextEnd) -> ParsedOutput {
    let format = Format::for_model(model);
    let mut output = ParsedOutput::default();
    let mut texts = String::new();
    let mut sink = |event: ParseEvent<'_>| {
        texts.push_str(event.text());
        match event {
            ParseEvent::Text(text) => output.text.push_str(text),
            ParseEvent::Call { call, .. } => {
                output.calls.push(format!("{}{}", call.name, call.arguments));
            }
            ParseEvent::Rejected { .. } => output.refusals.push("rejected".to_owned()),
            ParseEvent::Incomplete { index, reason: IncompleteReason::EndedEarly, .. } => {
                output.refusals.push(format!("ended early: {index:?}"));
            }
            ParseEvent::Incomplete { .. } => output.refusals.push("incomplete".to_owned()),
            ParseEvent::Reasoning(_)
            | ParseEvent::Markup(_)
            | ParseEvent::CallStart { .. }
            | ParseEvent::Arguments { .. } => {}
        }
    };
    let options = ParserOptions { format, ..ParserOptions::default() };
    let mut parser = ToolCallParser::new(tools(), &options);
    for chunk in chunks {
        parser.push_bytes(chunk, &mut sink);
    }
    parser.finish(text_end, &mut sink);
    assert_eq!(texts.as_bytes(), chunks.concat(), "{model}");
    output
}

/// Parses the text of a model that stopped by itself, whole and cut at every byte.
fn parse_at_every_cut(model: &str, text: &str) -> ParsedOutput {
    let whole = parse(model, &[text.as_bytes()], TextEnd::Stop);
    for at in 0..=text.len() {
        let (first, second) = text.as_bytes().split_at(at);
        assert_eq!(parse(model, &[first, second], TextEnd::Stop), whole, "{text} cut at {at}");
    }
    let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
    assert_eq!(parse(model, &bytes, TextEnd::Stop), whole, "{text} byte by byte");
    whole
}

const WEATHER: &str = r#"get_weather{"city":"Oslo"}"#;

#[test]
fn every_model_calls_in_its_own_syntax() {
    for (model, text) in [
        (
            "MiniMax-M3",
            "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"get_weather\">\n]<]minimax[>[<city>Oslo]<]minimax[>[</city>\n]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
        ),
        (
            "functiongemma:270m",
            "<start_function_call>call:get_weather{city:<escape>Oslo<escape>}<end_function_call>",
        ),
        ("gemma3:12b", "```tool_code\nget_weather(city=\"Oslo\")\n```"),
        ("gemma3:12b", "```tool_code\nprint(default_api.get_weather(city='Oslo'))\n```"),
        ("gemma-4-31b", "<|tool_call>call:get_weather(city: \"Oslo\")<tool_call|>"),
        ("gemma-4-31b", "<|tool_call>get_weather{city:<|\"|>Oslo<|\"|>}<tool_call|>"),
        ("gemma-4-31b", "<|tool_call>call:get_weather{\"city\": \"Oslo\"}<tool_call|>"),
        ("Apertus-8B", "<|tools_prefix|>[{\"get_weather\": {\"city\": \"Oslo\"}}]<|tools_suffix|>"),
        (
            "MiniCPM5-1B",
            "<function name=\"get_weather\"><param name=\"city\">Oslo</param></function>",
        ),
        (
            "step-deepresearch",
            "<steptml:toolcall>\n<steptml:invoke name=\"get_weather\">\n<steptml:parameter name=\"city\">Oslo</steptml:parameter>\n</steptml:invoke>\n</steptml:toolcall>",
        ),
        (
            "step3",
            "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"get_weather\"><steptml:parameter name=\"city\">Oslo</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
        ),
        (
            "deepseek-v4-flash",
            "<｜｜DSML｜｜tool_calls>\n<｜｜DSML｜｜invoke name=\"get_weather\">\n<｜｜DSML｜｜parameter name=\"city\" string=\"true\">Oslo</｜｜DSML｜｜parameter>\n</｜｜DSML｜｜invoke>\n</｜｜DSML｜｜tool_calls>",
        ),
        (
            "Seed-OSS-36B",
            "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n</function>\n</seed:tool_call>",
        ),
        (
            "LongCat-Flash",
            "<longcat_tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</longcat_tool_call>",
        ),
        (
            "MiniMax-M2",
            "<tool_calls>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_calls>",
        ),
        (
            "phi-4-mini",
            "functools[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}]",
        ),
        (
            "nobody-knows-1",
            "functools[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}]",
        ),
        ("llama3.1", "<function=get_weather>{\"city\": \"Oslo\"}</function>"),
        ("llama3.1", "<function=get_weather> {\"city\": \"Oslo\"}\n"),
        ("llama3.1", "<function=get_weather{\"city\": \"Oslo\"}</function>"),
        (
            "GigaChat3-10B",
            "function call<|role_sep|>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}</s>",
        ),
        (
            "GigaChat3-10B",
            "<|function_call|>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}",
        ),
        (
            "GigaChat3.5",
            "<｜GCML｜tool_calls>\n<｜GCML｜invoke name=\"get_weather\">\n<｜GCML｜parameter name=\"city\" string=\"true\">Oslo</｜GCML｜parameter>\n</｜GCML｜invoke>\n</｜GCML｜tool_calls>",
        ),
        (
            "Hunyuan-A13B",
            "<tool_calls>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}]</tool_calls>",
        ),
        (
            "Hy3-preview",
            "<tool_calls>\n<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>\n</tool_calls>",
        ),
        (
            "Hy3",
            "<tool_calls:opensource>\n<tool_call:opensource>get_weather<tool_sep:opensource>\n<arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Oslo</arg_value:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
        ),
        (
            "ERNIE-4.5-21B-A3B",
            "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>",
        ),
        ("lfm2.5-8b", "<|tool_call_start|>[get_weather(city=\"Oslo\")]<|tool_call_end|>"),
    ] {
        let output = parse_at_every_cut(model, text);
        let expected = ParsedOutput { calls: vec![WEATHER.to_owned()], ..ParsedOutput::default() };
        assert_eq!(output, expected, "{model}: {text}");
    }
}

#[test]
fn damaged_tags_make_a_call_only_if_one_reading_is_left() {
    for (model, text, call) in [
        (
            "glm-4.7",
            "<tool_call>get_weather<arg_key>city</arg_key>Oslo</arg_value></tool_call>",
            Some(WEATHER),
        ),
        (
            "glm-4.7",
            "<tool_call>get_weather city</arg_key><arg_value>Oslo</arg_value></tool_call>",
            Some(WEATHER),
        ),
        ("glm-5.2", "<tool_call>get_time</arg_value></tool_call>", Some("get_time{}")),
        (
            "qwen3.6-27b",
            "<parameter=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>",
            Some(WEATHER),
        ),
        (
            "qwen3.6-27b",
            "<tool_call>\n<parameter=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
            Some(WEATHER),
        ),
        // The value of `city` may be lost.
        ("glm-5.2", "<tool_call>get_weather</arg_value></tool_call>", None),
        (
            "glm-4.7",
            "<tool_call>get_weather town</arg_key><arg_value>Oslo</arg_value></tool_call>",
            None,
        ),
        ("glm-4.7", "<tool_call>get_weather<arg_key>city</arg_key>Oslo</tool_call>", None),
        (
            "glm-4.6",
            "<tool_call>run\n<arg_key>command</arg_key>\n<arg_value>ls\n<arg_key>timeout</arg_key>\n<arg_value>5</arg_value>\n</tool_call>",
            None,
        ),
        (
            "minimax-m2",
            "<invoke name=\"run\">\n<parameter name=\"command\">ls</command>\n<parameter name=\"timeout\">5</parameter>\n</invoke>",
            None,
        ),
        (
            "minimax-m2",
            "<invoke name=\"run\">\n<parameter name=\"command\">ls</command>\n</invoke>",
            None,
        ),
        (
            "qwen3-coder",
            "<tool_call>\n<function=run>\n<parameter=command>\nls\n</command>\n</function>\n</tool_call>",
            None,
        ),
        (
            "qwen3-coder",
            "<tool_call>\n<function=run>\n<parameter=command>\nls\n</parameter>\n<parameter=timeout\n</parameter>\n</function>\n</tool_call>",
            None,
        ),
        (
            "qwen3-coder",
            "<tool_call>\n<function=run>\n<parameter=command>\nls\n<parameter=timeout>\n5\n</parameter>\n</function>\n</tool_call>",
            None,
        ),
        (
            "gemma-4-31b",
            "<|tool_call>call:run{command:<|\"|>ls<|\"|>,other:<|\"|>5<|\"|>}<tool_call|>",
            None,
        ),
        ("gemma-4-31b", "<|tool_call>call:run{command:<|\"|>ls<|\"|> timeout:5}<tool_call|>", None),
    ] {
        let output = parse_at_every_cut(model, text);
        assert_eq!(output.calls, Vec::from_iter(call.map(str::to_owned)), "{text}");
        assert_eq!(output.refusals.is_empty(), call.is_some(), "{text}: {output:?}");
    }
}

#[test]
fn tokens_in_ascii_and_names_in_other_quotes_make_a_call() {
    for (model, text, call) in [
        (
            "deepseek-v3.2",
            "<|DSML|function_calls>\n<|DSML|invoke name=\"get_weather\">\n<|DSML|parameter name=\"city\" string=\"true\">Oslo</|DSML|parameter>\n</|DSML|invoke>\n</|DSML|function_calls>",
            Some(WEATHER),
        ),
        (
            "deepseek-v3.1",
            "<|tool▁calls▁begin|><|tool▁call▁begin|>get_weather<|tool▁sep|>{\"city\": \"Oslo\"}<|tool▁call▁end|><|tool▁calls▁end|>",
            Some(WEATHER),
        ),
        (
            "deepseek-v3.1",
            "<｜tool_calls_begin｜><｜tool_call_begin｜>get_weather<｜tool_sep｜>{\"city\": \"Oslo\"}<｜tool_call_end｜><｜tool_calls_end｜>",
            Some(WEATHER),
        ),
        (
            "nobody-knows-1",
            "<|tool_calls_begin|><|tool_call_begin|>get_weather<|tool_sep|>{\"city\": \"Oslo\"}<|tool_call_end|><|tool_calls_end|>",
            Some(WEATHER),
        ),
        (
            "minimax-m2",
            "<invoke name='get_weather'>\n<parameter name='city'>Oslo</parameter>\n</invoke>",
            Some(WEATHER),
        ),
        (
            "claude",
            "<invoke name=get_weather>\n<parameter name=\"city\">Oslo</parameter>\n</invoke>",
            Some(WEATHER),
        ),
        (
            "deepseek-v3.2",
            "<｜DSML｜invoke name='get_weather'>\n<｜DSML｜parameter name='city' string='true'>Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>",
            Some(WEATHER),
        ),
        (
            "MiniCPM5-1B",
            "<function name='get_weather'><param name='city'>Oslo</param></function>",
            Some(WEATHER),
        ),
        // The arguments stand behind a separator that nobody knows.
        (
            "nobody-knows-1",
            "<|tool_call_begin|>get_time<|tool_arguments|>{\"zone\": \"Oslo\"}<|tool_call_end|>",
            None,
        ),
        ("llama3.1", "<function=get_weather>[\"Oslo\"]</function>", None),
    ] {
        let output = parse_at_every_cut(model, text);
        assert_eq!(output.calls, Vec::from_iter(call.map(str::to_owned)), "{text}");
        assert_eq!(output.refusals.is_empty(), call.is_some(), "{text}: {output:?}");
    }
}

#[test]
fn an_argument_that_the_tool_requires_may_follow_a_value_without_its_closing_tag() {
    let text = "<tool_call>\n<function=write>\n<parameter=path>\na\n<parameter=content>\nb\n</parameter>\n</function>\n</tool_call>";
    let output = parse_at_every_cut("qwen3-coder", text);
    assert_eq!(output.calls, [r#"write{"path":"a","content":"b"}"#]);
}

#[test]
fn a_raw_value_keeps_its_line_breaks_and_loses_those_of_its_tags() {
    let write = |content: &str| format!(r#"write{{"path":"a","content":{content:?}}}"#);
    let seed = |content: &str| {
        format!(
            "<seed:tool_call>\n<function=write>\n<parameter=path>a</parameter>\n<parameter=content>{content}</parameter>\n</function>\n</seed:tool_call>"
        )
    };
    for (content, expected) in [
        ("x", "x"),
        ("x\n", "x\n"),
        ("\nx", "\nx"),
        ("\nx\n", "x"),
        ("\n\nx\n\n", "\nx\n"),
        ("\n", "\n"),
        ("\n\n", ""),
        ("\r\nx\r\n", "x"),
        ("x\r\n", "x\r\n"),
    ] {
        let output = parse_at_every_cut("Seed-OSS-36B", &seed(content));
        assert_eq!(output.calls, [write(expected)], "{content:?}");
    }
    for (model, text, call) in [
        (
            "glm-4.7",
            "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo\n</tool_call>",
            Some(WEATHER),
        ),
        (
            "glm-4.7",
            "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</tool_call>",
            Some(WEATHER),
        ),
        (
            "minimax-m2",
            "<invoke name=\"get_weather\">\n<parameter name=\"city\">Oslo\n</invoke>",
            Some(WEATHER),
        ),
        (
            "qwen3-coder",
            "<function=get_weather>\n<parameter=city>\nOslo\n</function>\n</tool_call>",
            Some(WEATHER),
        ),
        // The line break may belong to the value or to the tag that is missing.
        (
            "glm-4.7",
            "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo\n</tool_call>",
            None,
        ),
        (
            "qwen3-coder",
            "<function=get_weather>\n<parameter=city>\nOslo</function>\n</tool_call>",
            None,
        ),
    ] {
        let output = parse_at_every_cut(model, text);
        assert_eq!(output.calls, Vec::from_iter(call.map(str::to_owned)), "{text}");
        assert_eq!(output.refusals.is_empty(), call.is_some(), "{text}: {output:?}");
    }
}

#[test]
fn a_value_may_contain_examples_and_elements_whose_tags_pair_up() {
    let m3 = "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"run\">]<]minimax[>[<command>ls]<]minimax[>[</command>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>";
    let xml = "<a><function name=\"f\"><parameter name=\"q\">1</parameter></function>\n</a>";
    let csharp = "/// <param name=\"path\">The path.</param>\n/// <param name=\"x\"/>\n";
    let syntaxes: [(&str, &str, [&str; 4], &str); 4] = [
        (
            "qwen3-coder",
            "<tool_call>\n<function=write>\n",
            ["<parameter=", ">\n", "\n</parameter>\n", ""],
            "</function>\n</tool_call>",
        ),
        (
            "Seed-OSS-36B",
            "<seed:tool_call>\n<function=write>\n",
            ["<parameter=", ">", "</parameter>\n", ""],
            "</function>\n</seed:tool_call>",
        ),
        (
            "MiniCPM5-1B",
            "<function name=\"write\">",
            ["<param name=\"", "\">", "</param>", ""],
            "</function>",
        ),
        (
            "MiniMax-M3",
            "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"write\">",
            ["]<]minimax[>[<", ">", "]<]minimax[>[</", ">"],
            "]<]minimax[>[</invoke>]<]minimax[>[</tool_call>",
        ),
    ];
    for (model, start, [open, open_end, close, close_end], end) in syntaxes {
        for value in [m3, xml, csharp] {
            for keys in [["path", "content"], ["content", "path"]] {
                let argument = |key: &str| {
                    let value = if key == "path" { "a" } else { value };
                    let close = if close_end.is_empty() {
                        close.to_owned()
                    } else {
                        format!("{close}{key}{close_end}")
                    };
                    format!("{open}{key}{open_end}{value}{close}")
                };
                let text = format!("{start}{}{end}", keys.map(argument).concat());
                let output = parse_at_every_cut(model, &text);
                let content = json!(value).to_string();
                let members = keys.map(|key| {
                    format!("\"{key}\":{}", if key == "path" { "\"a\"" } else { &content })
                });
                let expected = format!("write{{{}}}", members.join(","));
                assert_eq!((output.calls, output.refusals), (vec![expected], vec![]), "{text}");
            }
        }
    }
}

/// Attack: model | a value contains the end of its own call | the call is reported as ended too
/// early | No guessed call
#[test]
fn the_end_of_a_call_after_its_call_says_that_the_call_ended_too_early() {
    for (model, text) in [
        (
            "qwen3-coder",
            "<tool_call>\n<function=run>\n<parameter=command>\na\n</parameter>\n</function>\n</tool_call>\nok\n</parameter>\n</function>\n</tool_call>",
        ),
        (
            "glm-4.7",
            "<tool_call>run\n<arg_key>command</arg_key>\n<arg_value>a</arg_value>\n</tool_call>\nok</arg_value>\n</tool_call>",
        ),
        (
            "minimax-m2",
            "<minimax:tool_call>\n<invoke name=\"run\">\n<parameter name=\"command\">a</parameter>\n</invoke>\nok</parameter>\n</invoke>\n</minimax:tool_call>",
        ),
        (
            "minimax-m2",
            "<minimax:tool_call>\n<invoke name=\"run\">\n<parameter name=\"command\">a</parameter>\n</invoke>\n</minimax:tool_call>\n```\nok</parameter>\n</invoke>\n</minimax:tool_call>",
        ),
        (
            "kimi-k3",
            "<|open|>call tool=\"run\"<|sep|><|open|>argument key=\"command\" type=\"string\"<|sep|>a<|close|>argument<|sep|><|close|>call<|sep|>ok<|close|>argument<|sep|><|close|>call<|sep|>",
        ),
        (
            "gemma-4",
            "<|tool_call>call:run{command:<|\"|>a<|\"|>}<tool_call|>\nok<|\"|>}<tool_call|>",
        ),
    ] {
        let output = parse_at_every_cut(model, text);
        assert_eq!(output.calls, [r#"run{"command":"a"}"#], "{text}");
        assert_eq!(output.refusals, ["ended early: Some(0)"], "{text}");
    }
    // Without a call before them, the same tags are text.
    let text = "Close it with </parameter> and </function>.";
    assert_eq!(parse_at_every_cut("qwen3-coder", text).text, text);
}

#[test]
fn doubled_brackets_a_last_comma_and_a_cut_closer_lose_no_call() {
    for (model, text) in [
        ("m", r#"{{"name": "run", "arguments": {"command": "a"}}}"#),
        ("m", r#"{{"name": "run", "arguments": {{"command": "a"}}}}"#),
        ("gemma-4", r#"<|tool_call>call:run{command:<|"|>a<|"|>,}<tool_call|>"#),
        ("gemma-4", r#"<|tool_call>call:run{command:<|"|>a<|"|>, }"#),
        ("gemma-4", r#"<|tool_call>call:run{command:<|"|>a<|"|>}<tool"#),
    ] {
        let output = parse_at_every_cut(model, text);
        assert_eq!(output.calls, [r#"run{"command":"a"}"#], "{text}");
        assert!(output.text.is_empty() && output.refusals.is_empty(), "{text} {output:?}");
    }
    for text in ["{{x}}", r#"{{"a": 1}}"#, r#"{{"name": "run"}}"#] {
        assert_eq!(parse_at_every_cut("m", text).calls, [""; 0], "{text}");
    }
}

/// Attack: model | a value contains the end of its own call and the start of another one that swallows
/// the rest | both calls are doubted | No guessed call
#[test]
fn of_several_calls_with_raw_values_all_have_to_be_regular() {
    let qwen = |value: &str| {
        format!(
            "<tool_call>\n<function=run>\n<parameter=command>\n{value}\n</parameter>\n</function>\n</tool_call>"
        )
    };
    let gemma = |value: &str| format!("<|tool_call>call:run{{command:<|\"|>{value}<|\"|>}}");
    let invoke = |value: &str| {
        format!(
            "<invoke name=\"run\">\n<parameter name=\"command\">{value}</parameter>\n</invoke>\n"
        )
    };
    let in_section = |call: &str| format!("<minimax:tool_call>\n{call}</minimax:tool_call>");
    for (model, text) in [
        ("qwen3-coder", qwen("a") + "\n" + &qwen("b\n</parameter>\nc")),
        ("gemma-4", gemma("a") + "<tool_call|>" + &gemma("b<|\"|> c<|\"|> d") + "<tool_call|>"),
        ("gemma-4", gemma("a") + &gemma("b") + "<tool_call|>"),
        ("minimax-m2", in_section(&(invoke("a") + "</function_calls>\n" + &invoke("b")))),
        (
            "glm-4.7",
            "<tool_call>run<arg_key>command</arg_key><arg_value>a</arg_value></tool_call>\n<tool_call>get_time\n</arg_value></tool_call>".to_owned(),
        ),
    ] {
        let output = parse_at_every_cut(model, &text);
        assert_eq!(output.calls.len(), 2, "{text} {output:?}");
        assert_eq!(output.refusals, ["ended early: Some(1)"], "{text}");
    }
    for (model, text) in [
        ("qwen3-coder", qwen("a") + "\n" + &qwen("b")),
        ("gemma-4", gemma("a") + "<tool_call|>" + &gemma("b") + "<tool_call|>"),
        ("minimax-m2", in_section(&(invoke("a") + &invoke("b")))),
        ("qwen3-coder", qwen("b\n</parameter>\nc")),
    ] {
        let output = parse_at_every_cut(model, &text);
        assert!(output.refusals.is_empty() && !output.calls.is_empty(), "{text} {output:?}");
    }
}

#[test]
fn a_call_that_ends_after_its_name_does_not_run() {
    for (model, text) in [
        ("qwen3:8b", "<tool_call>\n{\"name\": \"get_time\""),
        ("llama3.1", "<|python_tag|>{\"name\": \"get_time\", "),
        ("phi-4", "<|tool_call|>{\"name\": \"get_time\""),
        ("mistral", "[TOOL_CALLS]get_time"),
        ("kimi-k2", "<|tool_call_begin|>functions.get_time:0<|tool_call_argument_begin|>"),
        ("deepseek-v3", "<｜tool▁call▁begin｜>get_time<｜tool▁sep｜>"),
        ("gpt-oss", "<|channel|>commentary to=functions.get_time<|message|>"),
        ("glm-4.7", "<tool_call>get_time"),
        ("qwen3-coder", "<tool_call>\n<function=get_time>\n"),
        ("minimax-m2", "<invoke name=\"get_time\">\n"),
        ("gemma-4", "<|tool_call>call:get_time{"),
        ("llama4", "[get_time("),
        ("gemma3", "```tool_code\nget_time("),
        ("any", "Action: get_time\n"),
    ] {
        for text_end in [TextEnd::Stop, TextEnd::Length, TextEnd::Interrupted, TextEnd::Unknown] {
            let output = parse(model, &[text.as_bytes()], text_end);
            assert!(output.calls.is_empty(), "{model}: {text}");
        }
    }
}

#[test]
fn end_tokens_and_wrappers_of_a_model_are_not_shown() {
    for (model, text) in [
        ("mistral-small", "Fine.</s>"),
        ("gemma3", "Fine.<end_of_turn>"),
        ("phi-4", "Fine.<|end|>"),
        ("glm-4.6", "Fine.<|user|>"),
        ("minimax-m2", "Fine.[e~["),
        ("MiniMax-M3", "<mm:think>I know.</mm:think>Fine."),
        (
            "command-a",
            "<|START_THINKING|>I know.<|END_THINKING|><|START_RESPONSE|>Fine.<|END_RESPONSE|>",
        ),
        ("llama3.1", "Fine.<|eot_id|>"),
        ("granite4", "Fine.<|end_of_text|>"),
        ("Seed-OSS-36B", "<seed:think>I know.</seed:think>Fine.<seed:eos>"),
        ("LongCat-Flash", "<longcat_think>I know.</longcat_think>Fine."),
        ("LongCat-Flash", "Fine.</longcat_s>"),
        ("nemotron-nano-9b-v2", "Fine.<SPECIAL_12>"),
        ("deepseek-coder", "Fine.<|EOT|>"),
        ("jamba", "Fine.</s>"),
        ("mistral-small", "Fine.</s></s>"),
        ("gemma3", "Fine.<end_of_turn><eos>"),
        ("kimi-k2", "Fine.<|im_end|>[EOS]"),
        ("qwen3:8b", "Fine.<|im_end|><|im_start|>"),
        ("Hy3", "<think:opensource>I know.</think:opensource>Fine."),
        ("nobody-knows-1", "Fine.<|im_end|>"),
        ("nobody-knows-1", "Fine.<|im_end|><|endoftext|></s>"),
    ] {
        let output = parse_at_every_cut(model, text);
        assert_eq!(output.text, "Fine.", "{model}");
    }
}

#[test]
fn a_token_that_prose_mentions_stays() {
    for (model, text) in [
        ("mistral-small", "Use <s>old</s>, then go on."),
        ("mistral-small", "<s>old</s>"),
        ("mistral-small", "It ends with `</s>`"),
        ("qwen3:8b", "The token `<|im_end|>` ends a turn."),
        ("llama3.1", "The token \"<|eot_id|>\" ends a turn."),
        ("qwen3:8b", "Fine.</s>"),
        ("qwen3:8b", "A turn ends with <|im_end|> or <|endoftext|>, it depends."),
        ("llama3.1", "<|eot_id|> ends a turn and <|eom_id|> ends a message."),
        ("mistral-small", "Fine.</s> More."),
        ("GigaChat3-10B", "A function call is a message."),
        ("qwen3:8b", "Gemma writes <end_of_turn> there."),
        ("phi-4", "functools[0] and functools.reduce"),
        ("minimax-m3", "a[1] = b[2]"),
        ("qwen3:8b", "<function name='x' y='z'/>"),
        ("deepseek-v3.1", "The tokens <|tool_call_begin|> and <|tool_call_end|> surround a call."),
        ("minimax-m3", "]"),
    ] {
        assert_eq!(parse_at_every_cut(model, text).text, text, "{model}");
    }
}

#[test]
fn an_answer_that_starts_with_a_special_token_and_has_no_call_is_refused() {
    for (model, text) in [
        ("gemma-4", "<|tool_call>get the weather<tool_call|>"),
        ("mistral", "[TOOL_CALLS] get the weather"),
        ("Apertus-8B", "<|tools_prefix|>get_weather<|tools_suffix|>"),
        ("kimi-k2", "<|tool_calls_section_begin|>get_weather<|tool_calls_section_end|>"),
        ("deepseek-v3", "<｜tool▁calls▁begin｜>get_weather<｜tool▁calls▁end｜>"),
        ("MiniMax-M3", "]<]minimax[>[<tool_call>get_weather]<]minimax[>[</tool_call>"),
    ] {
        let output = parse_at_every_cut(model, text);
        assert_eq!((output.calls.len(), output.refusals.len()), (0, 1), "{model}: {output:?}");
    }
    for (model, text) in [
        ("nobody-knows-1", "<|tool_call>is a token<br>"),
        ("mistral", "The token [TOOL_CALLS] starts a call."),
    ] {
        assert_eq!(parse_at_every_cut(model, text).text, text);
    }
}
