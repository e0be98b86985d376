//! `docs/streaming.md`: its worked examples, its trace, its types and its examples are true.

use std::any::type_name;
use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::stream;
use innkeeper::chat::{self, Chat, Settings, Token, record};
use innkeeper::compat::{self, McpClient};
use innkeeper::toolcall::{self, Interceptor, Options, State, Tool};
use innkeeper::tools;
use innkeeper_testkit::fx_program;
use serde_json::json;

const PAGE: &str = include_str!("../../../../docs/streaming.md");

/// The text of a section up to the next heading of any level.
fn section(heading: &str) -> &'static str {
    let from = PAGE.find(&format!("\n{heading}")).unwrap() + 1;
    let body = &PAGE[from + PAGE[from..].find('\n').unwrap()..];
    &body[..body.find("\n#").unwrap_or(body.len())]
}

/// The blocks of a section, without their last line end.
fn blocks(section: &'static str) -> Vec<&'static str> {
    let parts: Vec<&str> = section.split("```").collect();
    let text = |block: &'static str| block.strip_prefix("text\n").unwrap().strip_suffix('\n');
    parts.into_iter().skip(1).step_by(2).map(|block| text(block).unwrap()).collect()
}

/// The first cells of a table's rows, without back-ticks.
fn rows(section: &'static str) -> Vec<Vec<&'static str>> {
    let lines = section.lines().filter(|line| line.starts_with("| ")).skip(2);
    let cells = |line: &'static str| {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.strip_prefix(' ').unwrap_or(cell)).collect::<Vec<_>>()
    };
    lines
        .map(|line| {
            cells(line)
                .into_iter()
                .map(|cell| cell.trim_end_matches(' ').trim_matches('`'))
                .collect()
        })
        .collect()
}

/// Proves: S39
#[tokio::test]
async fn the_worked_examples_are_as_the_page_says_however_they_are_cut() {
    let program = fx_program().display().to_string();
    let client = McpClient::connect(&program, &[]).await.unwrap();
    let chat = Chat::new(Arc::new(client.server().clone()), Settings::default()).unwrap();
    for number in 1..=3 {
        let parts = blocks(section(&format!("### Example {number}")));
        let (text, shown, calls) = (parts[0], parts[1], parts.get(2).copied().unwrap_or_default());
        for size in [1, 5, 1_000] {
            let letters: Vec<char> = text.chars().collect();
            let pieces: Vec<String> =
                letters.chunks(size).map(|piece| piece.iter().collect()).collect();
            let mut answer = chat.turn().answer(stream::iter(pieces)).unwrap();
            let mut seen = String::new();
            while let Some(token) = answer.token_stream.recv().await {
                seen.push_str(token.shown().unwrap_or_default());
            }
            assert_eq!(seen, shown, "example {number}");
            let mut ran = Vec::new();
            while let Some(tool) = answer.tool_stream.recv().await {
                ran.push(format!("{} {}", tool.tool, tool.arguments));
            }
            assert_eq!(ran.join("\n"), calls, "example {number}");
        }
    }
    client.close().await;
}

#[test]
fn the_trace_of_states_is_as_the_page_says() {
    let rows = rows(section("## States"));
    let at = rows.iter().position(|row| row[0] == "piece").unwrap();
    let tools = [Tool::new("echo", "", json!({}))].into_iter().collect();
    let mut interceptor = Interceptor::new(Arc::new(tools), &Options::default());
    let trace = &rows[at + 2..];
    assert_eq!(trace.len(), 5);
    for row in trace {
        interceptor.push(row[0], &mut |_| {});
        assert_eq!(format!("{:?}", interceptor.state()), row[1], "behind {:?}", row[0]);
    }
    let named: Vec<&str> = rows[..at].iter().map(|row| row[0]).collect();
    let all = [
        State::Narrative,
        State::MaybeToolStart,
        State::InToolCall,
        State::AfterToolCall,
        State::Reasoning,
    ];
    assert_eq!(named, all.map(|state| format!("{state:?}")));
}

/// The name of a type without its path and parameters.
fn name<T: ?Sized>() -> &'static str {
    let name = type_name::<T>().trim_start_matches("dyn ");
    let name = name.split('<').next().unwrap();
    name.rsplit("::").next().unwrap()
}

/// Proves: S40
#[test]
fn every_type_of_the_page_exists_under_both_of_its_names() {
    // A name in `compat` may be another one for the same type, so it is taken from the path.
    macro_rules! beside {
        ($($core:ty $(=> $compat:ident)?),* $(,)?) => {
            [$((name::<$core>(), {
                $(let _exists: Option<compat::$compat> = None;)?
                concat!($(stringify!($compat))?)
            })),*]
        };
    }
    let wanted = beside! {
        Chat => McpChatIntegration,
        Settings => ChatIntegrationConfig,
        chat::Mode => StreamingMode,
        chat::Recording => InstrumentationConfig,
        chat::Turn,
        chat::Answer => StreamingResponseHandle,
        chat::TokenStream => ProcessedTokens,
        chat::ToolStream => ExecutedTools,
        Token => ProcessedToken,
        chat::Executed => ExecutedTool,
        record::Line => McpEvent,
        record::Kind => McpEventType,
        record::LogAnalyzer => LogAnalyzer,
        dyn tools::ToolRunner,
        tools::OneServer => McpClient,
        Interceptor,
        toolcall::Event<'static>,
    };
    let told = rows(section("## Types"));
    assert_eq!(told.len(), wanted.len());
    for (row, (core, compat)) in told.iter().zip(wanted) {
        assert_eq!((row[0], row[1]), (core, compat));
    }
}

#[test]
fn every_example_of_the_page_is_a_file_and_the_other_way_round() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let told: BTreeSet<String> =
        rows(section("## Examples")).into_iter().map(|row| row[0].to_owned()).collect();
    assert_eq!(files, told);
}
