//! Property tests of the parser with texts made of format fragments.

use std::sync::Arc;

use innkeeper_toolcall::{
    Format, ParseEvent, ParserLimits, ParserOptions, TextEnd, Tool, ToolCallParser, Tools,
};
use proptest::prelude::*;
use serde_json::json;

/// Fragments of every format, and similar prose.
const FRAGMENTS: &[&str] = &[
    "Hello, I'll look. ",
    "\n",
    "\n\n",
    " ",
    "é日🌸",
    "\"",
    "'",
    "`",
    "```",
    "```json\n",
    "A",
    "<",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ":",
    ";",
    "\\",
    "\\\"",
    "{}",
    "{1, 2}",
    "{ x",
    "[\n",
    "[4]",
    "[ -1, 2]",
    "[the notes](n.md)",
    "[null, ",
    "[é]",
    "```python\n",
    "{\"days\": [",
    "{'days'",
    "<T>",
    "null",
    "True",
    "1e400",
    "-0.5",
    "{\"tool\": \"add\", \"params\": {\"a\": 1, \"b\": 2}}",
    "{\"name\": \"add\", \"arguments\": ",
    "{\"a\": \"}<\\\"\"}",
    "{\"name\":",
    "\"add\"",
    "\"arguments\":",
    "{\"parameters\": {\"x\": 1}, ",
    "\"unknown\"",
    "<tool_call>",
    "</tool_call>",
    "<function=add>",
    "<function=",
    "<parameter=a>",
    "</parameter>",
    "</function>",
    "<arg_key>",
    "a",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "add",
    "write",
    "[TOOL_CALLS]",
    "[THIN",
    "<tool_",
    "<|tool_call",
    "[ARGS]",
    "[CALL_ID]",
    "[THINK]",
    "[/THINK]",
    "<think>",
    "</think>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "function",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
    "<｜DSML｜tool_calls>",
    "<｜DSML｜invoke name=\"add\">",
    "<｜DSML｜parameter name=\"a\" string=\"false\">",
    "</｜DSML｜parameter>",
    "</｜DSML｜invoke>",
    "</｜DSML｜tool_calls>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "functions.add:0",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<|tool_calls_section_end|>",
    "<|open|>call tool=\"add\" index=\"1\"<|sep|>",
    "<|open|>argument key=\"a\" type=\"number\"<|sep|>",
    "<|close|>argument<|sep|>",
    "<|close|>call<|sep|>",
    "<|open|>think<|sep|>",
    "<|open|>response<|sep|>",
    "<|tool_call>",
    "call:add{",
    "a:<|\"|>",
    "<|\"|>",
    "<tool_call|>",
    "<|channel>thought\n",
    "<channel|>",
    "<|channel|>",
    "analysis",
    "final",
    "commentary to=functions.add ",
    "<|constrain|>json",
    "<|message|>",
    "<|end|>",
    "<|start|>",
    "assistant",
    "<|call|>",
    "<|python_tag|>",
    "[add(a=1, b='x')]",
    "[add(",
    "Action: add\n",
    "Action Input: {\"a\": 1}",
    "<|tool_call|>",
    "<TOOLCALL>",
    "</TOOLCALL>",
    "<invoke name=\"add\">",
    "<parameter name=\"a\">",
];

fn tools() -> Arc<Tools> {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}});
    Arc::new(
        ["add", "write", "a.b"]
            .into_iter()
            .map(|name| Tool::new(name, "", schema.clone()))
            .collect(),
    )
}

fn format() -> impl Strategy<Value = Format> {
    prop::sample::select(Format::names().filter_map(Format::from_name).collect::<Vec<_>>())
}

fn text() -> impl Strategy<Value = String> {
    let chunk = prop_oneof![
        9 => prop::sample::select(FRAGMENTS).prop_map(str::to_owned),
        1 => "[ -~é\\n]{0,8}",
        1 => (250..262_usize).prop_map(|blanks| " ".repeat(blanks)),
    ];
    prop::collection::vec(chunk, 0..24).prop_map(|chunks| chunks.concat())
}

fn options() -> impl Strategy<Value = ParserOptions> {
    let limits = prop_oneof![
        2 => Just(ParserLimits::default()),
        1 => (0..40_usize, 0..200_usize).prop_map(|(max_undecided_chars, max_call_bytes)| ParserLimits { max_undecided_chars, max_call_bytes }),
    ];
    let prompt = prop::sample::select(vec![
        None,
        Some("<think>\n".to_owned()),
        Some("<|start|>assistant".to_owned()),
    ]);
    (format(), limits, prompt).prop_map(|(format, limits, prompt)| ParserOptions {
        format,
        limits,
        prompt,
    })
}

fn finish() -> impl Strategy<Value = TextEnd> {
    prop::sample::select(vec![TextEnd::Stop, TextEnd::Length, TextEnd::Interrupted])
}

/// Collects the events and joins consecutive events of one kind; the result must not depend on the
/// chunks.
fn collect_events(
    options: &ParserOptions,
    chunks: &[&str],
    text_end: TextEnd,
) -> (Vec<String>, String) {
    let mut merged: Vec<(&'static str, String)> = Vec::new();
    let mut all_text = String::new();
    let mut sink = |event: ParseEvent<'_>| {
        all_text.push_str(event.text());
        let (kind, event_text) = match &event {
            ParseEvent::Text(text) => ("text", (*text).to_owned()),
            ParseEvent::Reasoning(text) => ("reasoning", (*text).to_owned()),
            ParseEvent::Markup(text) => ("frame", (*text).to_owned()),
            ParseEvent::Arguments { fragment, .. } => ("arguments", (*fragment).to_owned()),
            other => ("", format!("{other:?}")),
        };
        match merged.last_mut() {
            Some((last, joined)) if *last == kind && !kind.is_empty() => {
                joined.push_str(&event_text);
            }
            _ => merged.push((kind, event_text)),
        }
    };
    let mut parser = ToolCallParser::new(tools(), options);
    for chunk in chunks {
        parser.push(chunk, &mut sink);
    }
    parser.finish(text_end, &mut sink);
    (merged.into_iter().map(|(kind, content)| format!("{kind}: {content}")).collect(), all_text)
}

/// Splits the text at these indexes, moved to the next character boundary.
fn split_at_indexes<'t>(text: &'t str, indexes: &[prop::sample::Index]) -> Vec<&'t str> {
    let mut at: Vec<usize> = indexes.iter().map(|index| index.index(text.len() + 1)).collect();
    at.retain(|at| text.is_char_boundary(*at));
    at.extend([0, text.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

/// Collects the text of all events from byte chunks of `length`.
fn collect_text(options: &ParserOptions, text: &[u8], length: usize, text_end: TextEnd) -> String {
    let mut all_text = String::new();
    let mut sink = |event: ParseEvent<'_>| all_text.push_str(event.text());
    let mut parser = ToolCallParser::new(tools(), options);
    for chunk in text.chunks(length) {
        parser.push_bytes(chunk, &mut sink);
    }
    parser.finish(text_end, &mut sink);
    all_text
}

fn letters(text: &str) -> Vec<&str> {
    text.char_indices().map(|(at, letter)| &text[at..at + letter.len_utf8()]).collect()
}

/// 2,000 cases, or the value of `PROPTEST_CASES` if larger.
fn cases() -> u32 {
    ProptestConfig::default().cases.max(2_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// Proves: S17
    #[test]
    fn all_events_together_are_the_text(options in options(), text in text(), finish in finish()) {
        let (_, whole) = collect_events(&options, &[&text], finish);
        prop_assert_eq!(whole, text);
    }

    /// Proves: S47
    #[test]
    fn a_letter_may_be_cut_into_its_bytes(
        options in options(),
        text in prop_oneof![text().prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..64)],
        length in 1..5_usize,
        finish in finish(),
    ) {
        let whole = collect_text(&options, &text, length, finish);
        prop_assert_eq!(whole, String::from_utf8_lossy(&text));
    }

    /// Proves: S6, S47
    #[test]
    fn it_makes_no_difference_where_the_text_is_cut(
        options in options(),
        text in text(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        finish in finish(),
    ) {
        let (whole, _) = collect_events(&options, &[&text], finish);
        for chunks in [split_at_indexes(&text, &places), letters(&text)] {
            let (events, all_text) = collect_events(&options, &chunks, finish);
            prop_assert_eq!(&events, &whole);
            prop_assert_eq!(&all_text, &text);
        }
    }
}
