//! Tests of `docs/streaming.md`: worked examples, trace, type table, example table.

use std::any::type_name;
use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::stream;
use innkeeper::chat::{self, Chat, ChatSettings, TextSegment, event_log};
use innkeeper::compat::{self, McpClient};
use innkeeper::tools;
use innkeeper_testkit::fixture_program;
use innkeeper_toolcall::{ParseEvent, ParserOptions, ParserState, Tool, ToolCallParser};
use serde_json::json;

const PAGE: &str = include_str!("../../../../docs/streaming.md");
const FIRST_PAGE: &str = include_str!("../../../../docs/getting-started.md");
const README: &str = include_str!("../../../../README.md");

/// Text of a section up to the next heading of any level.
fn section(heading: &str) -> &'static str {
    section_of(PAGE, heading)
}

fn section_of(page: &'static str, heading: &str) -> &'static str {
    let from = page.find(&format!("\n{heading}")).unwrap() + 1;
    let body = &page[from + page[from..].find('\n').unwrap()..];
    &body[..body.find("\n#").unwrap_or(body.len())]
}

/// Code blocks of a section, without the final newline.
fn code_blocks(section: &'static str) -> Vec<&'static str> {
    let parts: Vec<&str> = section.split("```").collect();
    let text = |block: &'static str| block.strip_prefix("text\n").unwrap().strip_suffix('\n');
    parts.into_iter().skip(1).step_by(2).map(|block| text(block).unwrap()).collect()
}

/// Cells of each table row, without back-ticks.
fn table_rows(section: &'static str) -> Vec<Vec<&'static str>> {
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
    let program = fixture_program().display().to_string();
    let client = McpClient::connect(&program, &[]).await.unwrap();
    let chat = Chat::new(Arc::new(client.server().clone()), ChatSettings::default()).unwrap();
    for number in 1..=3 {
        let parts = code_blocks(section(&format!("### Example {number}")));
        let (text, expected_text, calls) =
            (parts[0], parts[1], parts.get(2).copied().unwrap_or_default());
        for size in [1, 5, 1_000] {
            let letters: Vec<char> = text.chars().collect();
            let chunks: Vec<String> =
                letters.chunks(size).map(|chunk| chunk.iter().collect()).collect();
            let mut response = chat.start_run().read_response(stream::iter(chunks)).unwrap();
            let mut visible_text = String::new();
            while let Some(token) = response.segment_stream.recv().await {
                visible_text.push_str(token.visible_text().unwrap_or_default());
            }
            assert_eq!(visible_text, expected_text, "example {number}");
            let mut executed_names = Vec::new();
            while let Some(tool) = response.execution_stream.recv().await {
                executed_names.push(format!("{} {}", tool.tool, tool.arguments));
            }
            assert_eq!(executed_names.join("\n"), calls, "example {number}");
        }
    }
    client.close().await;
}

#[test]
fn the_trace_of_states_is_as_the_page_says() {
    let rows = table_rows(section("## States"));
    let at = rows.iter().position(|row| row[0] == "chunk").unwrap();
    let tools = [Tool::new("echo", "", json!({}))].into_iter().collect();
    let mut parser = ToolCallParser::new(Arc::new(tools), &ParserOptions::default());
    let trace = &rows[at + 2..];
    assert_eq!(trace.len(), 5);
    for row in trace {
        parser.push(row[0], &mut |_| {});
        assert_eq!(format!("{:?}", parser.state()), row[1], "behind {:?}", row[0]);
    }
    let earlier_names: Vec<&str> = rows[..at].iter().map(|row| row[0]).collect();
    let all = [
        ParserState::Narrative,
        ParserState::MaybeToolStart,
        ParserState::InToolCall,
        ParserState::AfterToolCall,
        ParserState::Reasoning,
    ];
    assert_eq!(earlier_names, all.map(|state| format!("{state:?}")));
}

/// Name of a type without path and parameters.
fn short_type_name<T: ?Sized>() -> &'static str {
    let name = type_name::<T>().trim_start_matches("dyn ");
    let name = name.split('<').next().unwrap();
    name.rsplit("::").next().unwrap()
}

/// Proves: S40
#[test]
fn every_type_of_the_page_exists_under_both_of_its_names() {
    // A type in `compat` can be an alias, so its name is taken from the path.
    macro_rules! type_pairs {
        ($($core:ty $(=> $compat:ident)?),* $(,)?) => {
            [$((short_type_name::<$core>(), {
                $(let _exists: Option<compat::$compat> = None;)?
                concat!($(stringify!($compat))?)
            })),*]
        };
    }
    let expected = type_pairs! {
        Chat => McpChatIntegration,
        ChatSettings => ChatIntegrationConfig,
        chat::StreamingMode => StreamingMode,
        chat::LogConfig => InstrumentationConfig,
        chat::ChatRun,
        chat::StreamingResponse => StreamingResponseHandle,
        chat::SegmentStream => ProcessedTokens,
        chat::ExecutionStream => ExecutedTools,
        TextSegment => ProcessedToken,
        chat::ToolExecution => ExecutedTool,
        event_log::LogEntry => McpEvent,
        event_log::LogEventKind => McpEventType,
        event_log::LogAnalyzer => LogAnalyzer,
        dyn tools::ToolRunner,
        tools::SingleServer => McpClient,
        ToolCallParser => StreamingInterceptor,
        ParserState => InterceptorState,
        ParseEvent<'static>,
    };
    assert!(README.contains("](docs/streaming.md)"), "no link to the page");
    let documented = table_rows(section("## Types"));
    assert_eq!(documented.len(), expected.len());
    for (row, (core, compat)) in documented.iter().zip(expected) {
        assert_eq!((row[0], row[1]), (core, compat));
    }
}

#[test]
fn every_example_of_the_two_pages_is_a_file_and_the_other_way_round() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let files: BTreeSet<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let tables = [section("## Examples"), section_of(FIRST_PAGE, "## Examples")];
    let rows = tables.into_iter().flat_map(table_rows);
    let documented: BTreeSet<String> = rows.map(|row| row[0].to_owned()).collect();
    assert_eq!(files, documented);
}
