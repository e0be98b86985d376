//! What may happen in a course, drawn at random.

use std::time::Duration;

use innkeeper_toolcall::Tool;
use proptest::prelude::*;
use serde_json::json;

use super::spoken::Ending;
use crate::provider::{Class, Wire};
use crate::tools::{Hints, Offered};

/// Two models of each wire, one of which takes more.
pub(super) fn models(wire: Wire) -> [&'static str; 2] {
    match wire {
        Wire::OpenAiChat => ["gpt-4o", "any"],
        Wire::OpenAiResponses => ["gpt-6.1-terra", "any"],
        Wire::Anthropic => ["claude-sonnet-5-5", "any"],
        Wire::GeminiGenerate | Wire::GeminiInteractions => ["gemini-3.8-flash", "any"],
        Wire::Ollama => ["llama3.1:8b", "any"],
    }
}

/// Names that are spelled otherwise over one wire or another, and two that are then the same.
fn names() -> [String; 7] {
    let long = format!("server.{}", "x".repeat(90));
    ["fs.read", "fs_read", "FS.read", "1st.größe", "a.b:c-d/e", "stdio.list_tables"]
        .map(str::to_owned)
        .into_iter()
        .chain([long])
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

pub(super) const TEXTS: [&str; 8] = [
    "Hello. ",
    "",
    " ",
    "größer \u{1F600} \"q\" \\ \u{2028}",
    r#"{"tool": "fs.read", "params": {"path": "a"}} "#,
    r#"{"tool": "fs.read", "params": {"path": "#,
    "<think>Hm.</think>I say {nothing}.",
    r#"<tool_call>{"name": "fs_read", "arguments": {"path": "b"}}</tool_call>"#,
];

pub(super) const ARGUMENTS: [&str; 9] = [
    r#"{"path": "a"}"#,
    r#"{ "path":"\u0061/é", "n": 123456789012345678901234567890 }"#,
    "{}",
    "",
    r#"{"path": "#,
    "[1]",
    r#""text""#,
    "null",
    r#"{"path": {"path": 1.10}}"#,
];

pub(super) const IDS: [&str; 5] = ["", "same", "call_1", "id with spaces/é", "call_own"];

/// What a model does when it is asked.
#[derive(Clone, Debug)]
pub(super) enum Move {
    Say { bits: Vec<Draw>, ending: Ending },
    Fail(usize),
}

/// A part of an answer, not yet in a model's words.
#[derive(Clone, Debug)]
pub(super) enum Draw {
    Text(usize),
    Thought(usize),
    Call { id: usize, tool: usize, arguments: usize },
}

/// What happens next.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The person says something; the message is dropped after so many polls.
    Say {
        streaming: bool,
        polls: Option<usize>,
        moves: Vec<Move>,
        outcomes: Vec<usize>,
    },
    /// Other tools are offered: by number, each with one of two schemas.
    Tools(Vec<(usize, bool)>),
    /// Another model answers.
    Switch(usize, usize),
    Clear,
}

fn draw() -> impl Strategy<Value = Draw> {
    prop_oneof![
        2 => (0..TEXTS.len()).prop_map(Draw::Text),
        2 => (0_usize..2).prop_map(Draw::Thought),
        4 => (0..IDS.len() + 3, 0_usize..12, 0..ARGUMENTS.len() + 6)
            .prop_map(|(id, tool, arguments)| Draw::Call { id, tool, arguments }),
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        8 => Just(Ending::Normal),
        1 => Just(Ending::Length),
        1 => Just(Ending::Refused),
        1 => Just(Ending::Malformed),
        1 => Just(Ending::Paused),
        1 => Just(Ending::Strange),
    ]
}

fn a_move() -> impl Strategy<Value = Move> {
    let say = (prop::collection::vec(draw(), 0..6), ending());
    prop_oneof![
        6 => say.prop_map(|(bits, ending)| Move::Say { bits, ending }),
        1 => (0_usize..14).prop_map(Move::Fail),
    ]
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    // One who never gets a call right, beside those who sometimes do.
    let stubborn = Move::Say { bits: vec![Draw::Text(5)], ending: Ending::Normal };
    let moves = prop_oneof![
        8 => prop::collection::vec(a_move(), 0..7),
        1 => Just(vec![stubborn; 6]),
    ];
    let say = (
        any::<bool>(),
        prop::option::weighted(0.4, 0_usize..30),
        moves,
        prop::collection::vec(0_usize..6, 4),
    );
    prop_oneof![
        6 => say.prop_map(|(streaming, polls, moves, outcomes)| {
            Step::Say { streaming, polls, moves, outcomes }
        }),
        2 => prop::collection::vec((0_usize..7, any::<bool>()), 0..5).prop_map(Step::Tools),
        2 => (0_usize..6, 0_usize..2).prop_map(|(wire, model)| Step::Switch(wire, model)),
        1 => Just(Step::Clear),
    ]
}

pub(super) fn class(number: usize) -> Class {
    match number {
        0 => Class::Later { after: None },
        1 => Class::Later { after: Some(Duration::from_secs(3600)) },
        2 => Class::Connection,
        3 => Class::TimedOut,
        4 => Class::Key,
        5 => Class::Billing,
        6 => Class::NotFound,
        7 => Class::TooLong,
        8 => Class::NoTools,
        9 | 10 => Class::Malformed,
        11 => Class::Refused,
        12 => Class::Unreadable,
        _ => Class::Request,
    }
}

pub(super) fn offered(tools: &[(usize, bool)]) -> Vec<Offered> {
    let names = names();
    let mut seen = std::collections::HashSet::new();
    let tools = tools.iter().filter(|(name, _)| seen.insert(*name)).map(|(name, wide)| {
        let path = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let strict = json!({"type": "object", "properties": {"path": {"type": "string"}},
            "required": ["path"], "additionalProperties": false});
        let schema = if *wide { path } else { strict };
        let tool = Tool::new(&*names[*name], "Does something with a path.", schema);
        Offered { tool, hints: Hints::default() }
    });
    tools.collect()
}
