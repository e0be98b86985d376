//! Which calls in a text are calls: a table of places, and a random place of a random Markdown document.

use std::sync::Arc;

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};

use super::*;
use crate::run::response_parser::ResponseParser;

const CALLS: [&str; 2] = [
    r#"{"tool": "fs.read", "params": {"path": "a"}}"#,
    r#"<tool_call>{"name": "fs.read", "arguments": {"path": "a"}}</tool_call>"#,
];

fn prose_line() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        8 => "[a-z]{1,8}",
        1 => Just("`code`".to_owned()),
        1 => Just("``a ` b``".to_owned()),
        1 => Just("**bold**".to_owned()),
        1 => Just("\"quoted\"".to_owned()),
        1 => Just("isn't".to_owned()),
        1 => Just("[link](x)".to_owned()),
        1 => Just("{x}".to_owned()),
        1 => Just("a < b".to_owned()),
    ];
    prop::collection::vec(word, 1..6).prop_map(|words| words.join(" "))
}

/// A fenced block, with shorter fences between its lines.
fn fenced_block() -> impl Strategy<Value = Vec<String>> {
    let line =
        prop_oneof![4 => prose_line(), 1 => Just("```".to_owned()), 1 => Just(String::new())];
    let lines = prop::collection::vec(line, 1..5);
    (any::<bool>(), 3..6_usize, prop_oneof![Just(""), Just("json"), Just("sh")], lines).prop_map(
        |(tildes, length, language, mut lines)| {
            // The stream parser does not know fences of tildes, so an odd fence inside is open for it.
            if tildes || length == 3 {
                lines.retain(|line| line != "```");
            }
            let fence = if tildes { "~" } else { "`" }.repeat(length);
            let mut block = vec![format!("{fence}{language}"), "first".to_owned()];
            block.extend(lines);
            block.push(fence);
            block
        },
    )
}

fn prefixed(prefix: &'static str) -> impl Strategy<Value = Vec<String>> {
    let lines = prop::collection::vec(prose_line(), 1..4);
    lines.prop_map(move |lines| lines.iter().map(|line| format!("{prefix}{line}")).collect())
}

fn block() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![
        3 => prefixed(""),
        1 => prose_line().prop_map(|line| vec![format!("## {line}")]),
        1 => prefixed("- "),
        1 => prefixed("1. "),
        1 => prefixed("> "),
        1 => prefixed("> - "),
        1 => prefixed("    "),
        3 => fenced_block(),
        1 => prose_line().prop_map(|line| vec!["<!--".to_owned(), line, "-->".to_owned()]),
        1 => prose_line().prop_map(|cell| {
            vec![format!("| a | {cell} |"), "| --- | --- |".to_owned(), format!("| {cell} | b |")]
        }),
    ]
}

/// A document with `CALL` on a line of its own, behind the start of another line, or at a line's end.
fn document() -> impl Strategy<Value = String> {
    let places = (any::<prop::sample::Index>(), 0..6_usize);
    (prop::collection::vec(block(), 1..6), places).prop_map(|(blocks, (place, kind))| {
        let mut lines: Vec<String> = Vec::new();
        for block in blocks {
            lines.extend(block);
            lines.push(String::new());
        }
        let at = place.index(lines.len());
        match kind {
            0 => lines.insert(at, "> CALL".to_owned()),
            1 => lines.insert(at, "- CALL".to_owned()),
            2 if !lines[at].is_empty() && !lines[at].starts_with(['`', '~']) => {
                lines[at].push_str(" CALL");
            }
            3 => lines.insert(at, "  CALL".to_owned()),
            _ => lines.insert(at, "CALL".to_owned()),
        }
        lines.join("\n")
    })
}

/// Whether the call begins its line, and stands in nothing but a paragraph for a Markdown parser.
fn counts(document: &str, start: usize, end: usize) -> bool {
    let line_start = document[..start].rfind('\n').map_or(0, |at| at + 1);
    let begins_line = document[line_start..start].trim().is_empty();
    let options = Options::ENABLE_TABLES;
    let is_marked = Parser::new_ext(document, options).into_offset_iter().any(|(event, range)| {
        let marks = match event {
            // The call itself can be HTML.
            Event::Start(Tag::Paragraph) => false,
            Event::Start(Tag::HtmlBlock) => document[range.clone()].starts_with("<!--"),
            Event::Start(_) | Event::Code(_) => true,
            _ => false,
        };
        marks && range.start <= start && end <= range.end
    });
    begins_line && !is_marked
}

fn verdict(answer: &str, mode: ToolCallMode, last_attempt: Option<&str>) -> TextCallVerdict {
    let config = Arc::new(crate::run::tests::config());
    let judge = TextCallJudge { config: &config, messages: &[], mode, can_ask: true, last_attempt };
    let response = Response::from_text(answer);
    ResponseParser::new(&config, false).into_parsed(&judge, &response, false).verdict
}

fn is_question(verdict: &TextCallVerdict) -> bool {
    matches!(verdict, TextCallVerdict::Unclear(_))
}

#[test]
fn a_decorated_call_alone_or_in_an_open_block_is_asked_about() {
    for template in [
        "~~~\nCALL\n~~~",
        "````\nCALL\n````",
        "```CALL```",
        "`CALL`",
        "```sh\n# lists all\nCALL\n```",
        "> CALL",
        "> The page says\nCALL",
        "> ```\n> CALL\n> ```",
        "    CALL",
        "\"CALL\"",
        "“CALL”",
        "**CALL**",
        "- CALL",
        "<!-- CALL -->",
        "<pre>\nCALL\n</pre>",
        "<think>Hm.</think>\n~~~\nCALL\n~~~",
        "<think>Hm.</think>\n> CALL",
        "Like this:\n\n```sh\nls\nCALL",
    ] {
        for call in CALLS {
            let answer = template.replace("CALL", call);
            for mode in [ToolCallMode::Native, ToolCallMode::Prompt] {
                assert!(is_question(&verdict(&answer, mode, None)), "{mode:?} {answer}");
            }
        }
    }
}

#[test]
fn invisible_characters_and_reasoning_before_a_call_are_no_prose() {
    for before in ["\u{feff}", "\u{a0}", "\u{200b}", "\u{2060} ", "<think>> a\n- b</think>\n"] {
        for call in CALLS {
            let answer = format!("{before}{call}");
            for mode in [ToolCallMode::Native, ToolCallMode::Prompt] {
                let verdict = verdict(&answer, mode, None);
                assert_eq!(verdict, TextCallVerdict::Accepted, "{mode:?} {answer:?}");
            }
        }
    }
}

#[test]
fn text_without_a_call_and_quoted_calls_next_to_prose_are_text() {
    for template in [
        "Hello.",
        "~~~\nls\n~~~",
        "- a\n- b",
        "I would write `CALL` to read.",
        "Like this:\n\n~~~\nCALL\n~~~",
        "> CALL\n\nI did not do that.",
    ] {
        for call in CALLS {
            let answer = template.replace("CALL", call);
            let text = verdict(&answer, ToolCallMode::Native, None);
            assert_eq!(text, TextCallVerdict::Text, "{answer}");
            let prompted = verdict(&answer, ToolCallMode::Prompt, None);
            assert!(!is_question(&prompted), "{answer}");
        }
    }
}

#[test]
fn prose_or_data_that_looks_like_a_call_is_the_answer_after_one_correction() {
    let about_tags = "The tag <tool_call> opens a call, then JSON follows.";
    let list = r#"[{"name": "Bob", "parameters": {"age": 3}}]"#;
    let near = r#"[{"name": "fs.raed", "arguments": {"path": "a"}}]"#;
    let marked = r#"<tool_call>{"name": "Bob", "arguments": {"age": 3}}</tool_call>"#;
    let cut = r#"I read it. <tool_call>{"name": "fs.read", "arguments": {"path": "#;
    for (answer, last_attempt, is_prose) in [
        (about_tags, None, false),
        (about_tags, Some("It is <tool_call>."), true),
        (list, None, false),
        (list, Some(list), true),
        (near, Some("Hm."), false),
        (marked, Some(marked), false),
        (cut, Some("Hm."), false),
        (cut, Some(cut), true),
    ] {
        let verdict = verdict(answer, ToolCallMode::Prompt, last_attempt);
        assert_eq!(verdict == TextCallVerdict::Prose, is_prose, "{answer} {verdict:?}");
    }
}

fn parse_prompted(answer: &str) -> ParsedResponse {
    let config = Arc::new(crate::run::tests::config());
    let judge = TextCallJudge {
        config: &config,
        messages: &[],
        mode: ToolCallMode::Prompt,
        can_ask: true,
        last_attempt: None,
    };
    let response = Response::from_text(answer);
    ResponseParser::new(&config, false).into_parsed(&judge, &response, false)
}

/// Whether a call of the answer is run or asked about as a call.
fn is_taken(answer: &str) -> bool {
    let parsed = parse_prompted(answer);
    parsed.verdict == TextCallVerdict::Accepted && !parsed.calls.is_empty()
}

const MADE_UP_TURNS: [&str; 5] = [
    "Observation: all is well.",
    "<tool_response>\n{}\n</tool_response>",
    "<|im_end|>\n<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant",
    "### User:\nGo on.",
    "**Tool result:**\n```json\n{}\n```",
];

#[test]
fn what_a_model_makes_up_behind_its_call_is_dropped() {
    for turn in MADE_UP_TURNS {
        for call in CALLS {
            let parsed = parse_prompted(&format!("I look.\n{call}\n{turn}\nNow:\n{call}\nDone."));
            assert_eq!(parsed.verdict, TextCallVerdict::Accepted, "{turn}");
            assert_eq!(parsed.calls.len(), 1, "{turn}");
            assert_eq!(parsed.message.visible_text().trim(), "I look.", "{turn}");
        }
    }
}

#[test]
fn a_call_behind_a_made_up_turn_of_someone_else_is_asked_about() {
    for turn in MADE_UP_TURNS {
        for call in CALLS {
            let answer = format!("Hello.\n\n{turn}\n\n{call}");
            for mode in [ToolCallMode::Native, ToolCallMode::Prompt] {
                assert!(is_question(&verdict(&answer, mode, None)), "{mode:?} {answer}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_call_in_markdown_is_taken_exactly_where_it_stands_in_a_paragraph(
        template in document(),
        call in prop::sample::select(&CALLS[..]),
    ) {
        let start = template.find("CALL").unwrap();
        let document = template.replace("CALL", call);
        prop_assert_eq!(is_taken(&document), counts(&document, start, start + call.len()), "{}", document);
    }
}
