//! The interceptor over texts made up from the pieces that formats are made of.

use std::sync::Arc;

use innkeeper_toolcall::{Event, Finish, Format, Interceptor, Limits, Options, Tool, Tools};
use proptest::prelude::*;
use serde_json::json;

/// Everything a format is made of, and prose that looks like it.
const PIECES: &[&str] = &[
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
    prop::sample::select(Format::names().filter_map(Format::named).collect::<Vec<_>>())
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        9 => prop::sample::select(PIECES).prop_map(str::to_owned),
        1 => "[ -~é\\n]{0,8}",
        1 => (250..262_usize).prop_map(|blanks| " ".repeat(blanks)),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn options() -> impl Strategy<Value = Options> {
    let limits = prop_oneof![
        2 => Just(Limits::default()),
        1 => (0..40_usize, 0..200_usize).prop_map(|(undecided, call)| Limits { undecided, call }),
    ];
    let prompt = prop::sample::select(vec![
        None,
        Some("<think>\n".to_owned()),
        Some("<|start|>assistant".to_owned()),
    ]);
    (format(), limits, prompt).prop_map(|(format, limits, prompt)| Options {
        format,
        limits,
        prompt,
    })
}

fn finish() -> impl Strategy<Value = Finish> {
    prop::sample::select(vec![Finish::Stop, Finish::Length, Finish::Interrupted])
}

/// What came out, pieces of one kind joined: it may not depend on where the text was cut.
fn run(options: &Options, pieces: &[&str], finish: Finish) -> (Vec<String>, String) {
    let mut found: Vec<(&'static str, String)> = Vec::new();
    let mut whole = String::new();
    let mut sink = |event: Event<'_>| {
        whole.push_str(event.text());
        let (kind, said) = match &event {
            Event::Text(text) => ("text", (*text).to_owned()),
            Event::Reasoning(text) => ("reasoning", (*text).to_owned()),
            Event::Frame(text) => ("frame", (*text).to_owned()),
            Event::Arguments { fragment, .. } => ("arguments", (*fragment).to_owned()),
            other => ("", format!("{other:?}")),
        };
        match found.last_mut() {
            Some((last, joined)) if *last == kind && !kind.is_empty() => joined.push_str(&said),
            _ => found.push((kind, said)),
        }
    };
    let mut interceptor = Interceptor::new(tools(), options);
    for piece in pieces {
        interceptor.push(piece, &mut sink);
    }
    interceptor.finish(finish, &mut sink);
    (found.into_iter().map(|(kind, said)| format!("{kind}: {said}")).collect(), whole)
}

/// The text cut at these places, moved to the next letter.
fn cut<'t>(text: &'t str, places: &[prop::sample::Index]) -> Vec<&'t str> {
    let mut at: Vec<usize> = places.iter().map(|place| place.index(text.len() + 1)).collect();
    at.retain(|at| text.is_char_boundary(*at));
    at.extend([0, text.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

/// The same from bytes, cut after every so many of them.
fn run_bytes(options: &Options, text: &[u8], length: usize, finish: Finish) -> String {
    let mut whole = String::new();
    let mut sink = |event: Event<'_>| whole.push_str(event.text());
    let mut interceptor = Interceptor::new(tools(), options);
    for piece in text.chunks(length) {
        interceptor.push_bytes(piece, &mut sink);
    }
    interceptor.finish(finish, &mut sink);
    whole
}

fn letters(text: &str) -> Vec<&str> {
    text.char_indices().map(|(at, letter)| &text[at..at + letter.len_utf8()]).collect()
}

/// Two thousand, or what `PROPTEST_CASES` says if that is more.
fn cases() -> u32 {
    ProptestConfig::default().cases.max(2_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// Proves: S17, S47
    #[test]
    fn all_events_together_are_the_text(options in options(), text in text(), finish in finish()) {
        let (_, whole) = run(&options, &[&text], finish);
        prop_assert_eq!(whole, text);
    }

    #[test]
    fn a_letter_may_be_cut_into_its_bytes(
        options in options(),
        text in prop_oneof![text().prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..64)],
        length in 1..5_usize,
        finish in finish(),
    ) {
        let whole = run_bytes(&options, &text, length, finish);
        prop_assert_eq!(whole, String::from_utf8_lossy(&text));
    }

    /// Proves: S6
    #[test]
    fn it_makes_no_difference_where_the_text_is_cut(
        options in options(),
        text in text(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        finish in finish(),
    ) {
        let (whole, _) = run(&options, &[&text], finish);
        prop_assert_eq!(&run(&options, &cut(&text, &places), finish).0, &whole);
        prop_assert_eq!(&run(&options, &letters(&text), finish).0, &whole);
    }
}
