//! A call at a random place of a random Markdown document, for a model that was prompted.

use std::sync::Arc;

use proptest::prelude::*;
use pulldown_cmark::{Event, Parser, Tag};

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

/// Whether the call begins its line, and is neither code nor quoted for a Markdown parser.
fn counts(document: &str, start: usize, end: usize) -> bool {
    let line_start = document[..start].rfind('\n').map_or(0, |at| at + 1);
    let begins_line = document[line_start..start].trim().is_empty();
    let is_marked = Parser::new(document).into_offset_iter().any(|(event, range)| {
        let marks = match event {
            Event::Start(Tag::BlockQuote(_) | Tag::CodeBlock(_)) | Event::Code(_) => true,
            Event::Start(Tag::HtmlBlock) => document[range.clone()].starts_with("<!--"),
            _ => false,
        };
        marks && range.start <= start && end <= range.end
    });
    begins_line && !is_marked
}

/// Whether a call of the answer is run or asked about as a call.
fn is_taken(answer: &str) -> bool {
    let config = Arc::new(crate::run::tests::config());
    let judge = TextCallJudge {
        config: &config,
        messages: &[],
        mode: ToolCallMode::Prompt,
        can_ask: true,
        last_attempt: None,
    };
    let parsed = ResponseParser::new(&config, false).into_parsed(
        &judge,
        &Response::from_text(answer),
        false,
    );
    parsed.verdict == TextCallVerdict::Accepted && !parsed.calls.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_call_in_markdown_is_text_exactly_where_it_is_code_or_quoted(
        template in document(),
        call in prop::sample::select(&CALLS[..]),
    ) {
        let start = template.find("CALL").unwrap();
        let document = template.replace("CALL", call);
        prop_assert_eq!(is_taken(&document), counts(&document, start, start + call.len()), "{}", document);
    }
}
