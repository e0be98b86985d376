//! Headers and bodies of Harmony messages, and text inside of call sections.

use std::sync::Arc;

use innkeeper_toolcall::{
    Format, ParseEvent, ParserOptions, ParserState, TextEnd, Tool, ToolCallParser,
};
use serde_json::json;

/// Parses a text whole and letter by letter, and describes the events: adjacent texts of one kind
/// are joined.
fn events(format: Format, text: &str, text_end: TextEnd) -> Vec<String> {
    let describe = |chunks: &[&str]| {
        let mut all: Vec<(&str, String)> = Vec::new();
        let mut sink = |event: ParseEvent<'_>| {
            let kind = match event {
                ParseEvent::Text(_) => "text",
                ParseEvent::Reasoning(_) => "reasoning",
                ParseEvent::Markup(_) => "markup",
                ParseEvent::Call { call, .. } => {
                    return all.push(("call", format!("{}{}", call.name, call.arguments)));
                }
                ParseEvent::Rejected { .. } => "rejected",
                ParseEvent::Incomplete { .. } => "incomplete",
                ParseEvent::CallStart { .. } | ParseEvent::Arguments { .. } => return,
            };
            match all.last_mut() {
                Some((last, joined)) if *last == kind => joined.push_str(event.text()),
                Some(_) | None => all.push((kind, event.text().to_owned())),
            }
        };
        let tools = [Tool::new("echo", "", json!({}))].into_iter().collect();
        let options = ParserOptions { format, ..ParserOptions::default() };
        let mut parser = ToolCallParser::new(Arc::new(tools), &options);
        for chunk in chunks {
            parser.push(chunk, &mut sink);
        }
        parser.finish(text_end, &mut sink);
        all.into_iter().map(|(kind, text)| format!("{kind}: {text}")).collect::<Vec<_>>()
    };
    let whole = describe(&[text]);
    let letters: Vec<&str> = text.split_inclusive(|_| true).collect();
    assert_eq!(describe(&letters), whole, "letter by letter: {text}");
    whole
}

fn harmony(text: &str) -> Vec<String> {
    events(Format::Harmony, text, TextEnd::Stop)
}

#[test]
fn a_response_to_a_harmony_prompt_starts_inside_a_header_or_is_plain_text() {
    for (text, expected) in [
        ("Hello <b>", vec!["text: Hello <b>"]),
        ("to be or not", vec!["text: to be or not"]),
        ("t", vec!["text: t"]),
        ("<", vec!["text: <"]),
        ("  <i>", vec!["text:   <i>"]),
        ("", vec![]),
        (
            "<|channel|>analysis<|message|>hm<|end|>",
            vec!["markup: <|channel|>analysis<|message|>", "reasoning: hm", "markup: <|end|>"],
        ),
        (
            " <|channel|>final<|message|>Hi<|return|>",
            vec!["markup:  <|channel|>final<|message|>", "text: Hi", "markup: <|return|>"],
        ),
        (
            "to=functions.echo<|message|>{\"a\": 1}<|call|>",
            vec!["call: echo{\"a\":1}", "markup: <|call|>"],
        ),
        ("\nto=echo<|message|>{}", vec!["call: echo{}"]),
        ("to=user<|message|>Hi", vec!["markup: to=user<|message|>", "text: Hi"]),
        ("to=echo", vec!["incomplete: to=echo"]),
        ("<|channel|>final", vec!["text: <|channel|>final"]),
    ] {
        assert_eq!(harmony(text), expected, "{text}");
    }
}

#[test]
fn a_harmony_header_that_ends_early_is_markup_and_a_long_header_is_text() {
    for token in ["<|end|>", "<|start|>", "<|return|>", "<|call|>"] {
        let text = format!("<|channel|>final{token}");
        let [first, ..] = &harmony(&text)[..] else { panic!("no event") };
        assert!(first.starts_with("markup: <|channel|>final"), "{token}: {first}");
    }
    let header = |length: usize| {
        let start = "<|channel|>final";
        format!("{start}{}", "x".repeat(length - start.len()))
    };
    let message = |length: usize| format!("{}<|message|>Hi", header(length));
    assert_eq!(harmony(&message(1024)).last().unwrap(), "text: Hi");
    assert_eq!(harmony(&message(1024)).len(), 2);
    assert_eq!(harmony(&message(1025)), [format!("text: {}", message(1025))]);
}

#[test]
fn a_harmony_message_ends_at_a_token_before_the_next_message_only() {
    let start = "<|start|>assistant<|channel|>final<|message|>";
    for end in ["<|end|>", "<|return|>", "<|call|>"] {
        for between in ["", " ", "\n"] {
            let text = format!("{start}a < b{end}{between}{start}c");
            let events = harmony(&text);
            let texts: String =
                events.iter().filter_map(|event| event.strip_prefix("text: ")).collect();
            assert_eq!(texts.replace(between, ""), "a < bc".replace(between, ""), "{text}");
        }
        let quoted = format!("{start}the token {end} ends a message");
        assert_eq!(harmony(&quoted)[1], format!("text: the token {end} ends a message"));
    }
    let next = format!("{start}a{start}b");
    assert_eq!(harmony(&next)[1..], ["text: a", &format!("markup: {start}"), "text: b"]);
}

/// Attack: model | the body of a Harmony call is no JSON, is incomplete or has a token inside | the
/// call does not run | No guessed call
#[test]
fn a_harmony_call_without_a_complete_json_body_does_not_run() {
    let start = "<|channel|>commentary to=functions.echo<|message|>";
    for body in ["x", "a < b", "a <| b <", "[1]", "\"a\"", "{\"a\": 1<|end|>", "{\"a\": ]}"] {
        let text = format!("{start}{body}<|call|>");
        let events = harmony(&text);
        assert!(events[0].starts_with("rejected: "), "{text}: {events:?}");
        let texts: String = events.iter().map(|event| event.split_once(": ").unwrap().1).collect();
        assert_eq!(texts, text);
    }
    for (body, call) in
        [("{\"a\": [1", None), ("{\"a\": [\"b\"", Some("call: echo{\"a\":[\"b\"]}"))]
    {
        let text = format!("{start}{body}");
        let incomplete = format!("incomplete: {text}");
        assert_eq!(harmony(&text), [call.unwrap_or(&incomplete)]);
        assert_eq!(events(Format::Harmony, &text, TextEnd::Length), [incomplete]);
    }
}

#[test]
fn text_in_a_call_section_is_markup_if_the_section_has_a_call_and_else_text() {
    let (open, close) = ("<function_calls>", "</function_calls>");
    let call = "<invoke name=\"echo\"></invoke>";
    let detect = |text: &str| events(Format::Detect, text, TextEnd::Stop);
    for noise in ["", " ", "\n", " x ", "<b>", "<invoke nam"] {
        let with_call = detect(&format!("{open}{noise}{call}{noise}{close}"));
        let kinds: Vec<&str> =
            with_call.iter().map(|event| event.split(':').next().unwrap()).collect();
        assert_eq!(kinds, ["markup", "call", "markup"], "{noise}");
        let without = detect(&format!("{open}{noise}{close}"));
        let expected = if noise.trim().is_empty() {
            vec![format!("markup: {open}{noise}{close}")]
        } else {
            vec![format!("markup: {open}"), format!("text: {noise}"), format!("markup: {close}")]
        };
        assert_eq!(without, expected, "{noise}");
    }
}

/// The state says whether the parser still waits for a call of the section.
#[test]
fn a_section_without_a_call_ends_after_its_limit_of_text() {
    let state_after = |noise: &str, call: &str| {
        let tools = [Tool::new("echo", "", json!({}))].into_iter().collect();
        let mut parser = ToolCallParser::new(Arc::new(tools), &ParserOptions::default());
        let mut texts = String::new();
        let mut sink = |event: ParseEvent<'_>| {
            if let ParseEvent::Text(text) = event {
                texts.push_str(text);
            }
        };
        for chunk in ["<function_calls>", call, noise] {
            parser.push(chunk, &mut sink);
        }
        (parser.state(), texts)
    };
    let call = "<invoke name=\"echo\"></invoke>";
    let (section, text) = (ParserState::AfterToolCall, ParserState::Narrative);
    for (letter, length, call, state) in [
        ("x", 4096, "", section),
        ("x", 4097, "", text),
        (" ", 4097, "", section),
        ("x", 4097, call, section),
    ] {
        let noise = letter.repeat(length);
        let expected = if state == text { noise.as_str() } else { "" };
        assert_eq!(state_after(&noise, call), (state, expected.to_owned()), "{letter:?} {length}");
    }
}

#[test]
fn text_after_a_harmony_prompt_is_emitted_as_soon_as_it_is_no_header() {
    let spaces = " ".repeat(1024);
    for (chunk, emitted) in [
        ("Hello", "Hello"),
        ("<b", "<b"),
        ("th", "th"),
        ("<", ""),
        ("  <", ""),
        ("to", ""),
        ("<|channel|>final", ""),
        (&spaces[1..], ""),
        (&spaces, &spaces),
    ] {
        let tools = [Tool::new("echo", "", json!({}))].into_iter().collect();
        let options = ParserOptions { format: Format::Harmony, ..ParserOptions::default() };
        let mut parser = ToolCallParser::new(Arc::new(tools), &options);
        let mut texts = String::new();
        parser.push(chunk, &mut |event| texts.push_str(event.text()));
        assert_eq!(texts, emitted, "{chunk:?}");
    }
}

#[test]
fn a_stop_token_after_a_call_in_reasoning_decides_nothing() {
    let call = "<tool_call>{\"name\": \"echo\", \"arguments\": {}}</tool_call>";
    for between in ["<|im_end|>", " <|im_end|>\n", "<|im_end|><|endoftext|>"] {
        let text = format!("<think>a {call}{between}");
        let at_end = events(Format::Detect, &text, TextEnd::Stop);
        let markup = format!("markup: {between}");
        assert_eq!(at_end, ["markup: <think>", "reasoning: a ", "call: echo{}", &markup]);
        let goes_on = events(Format::Detect, &format!("{text}b</think>c"), TextEnd::Stop);
        let reasoning = format!("reasoning: a {call}{between}b");
        assert_eq!(goes_on, ["markup: <think>", &reasoning, "markup: </think>", "text: c"]);
    }
}
