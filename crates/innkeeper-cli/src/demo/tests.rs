//! Tests of the chains with in-process servers and with unexpected results.

use std::collections::VecDeque;
use std::error::Error;

use serde_json::{Value, json};

use super::*;
use crate::builtin::in_process::InProcessServer;

/// The built-in servers under the names of the demo's configuration.
struct InProcessServers {
    files: InProcessServer,
    notes: InProcessServer,
}

impl InProcessServers {
    fn from_demo(demo: &Demo) -> Self {
        let config = demo.config(Path::new("innkeeper"));
        let path_for = |name: &str| {
            let arguments = &config["servers"][name]["args"];
            assert_eq!((&arguments[0], &arguments[1]), (&json!("__server"), &json!(name)));
            arguments[2].as_str().unwrap().to_owned()
        };
        Self {
            files: InProcessServer::files(Path::new(&path_for("files"))),
            notes: InProcessServer::notes(Path::new(&path_for("notes"))),
        }
    }
}

impl ToolCaller for InProcessServers {
    async fn call_tool(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> Result<Value, Box<dyn Error + Send + Sync>> {
        match tool.split_once('.').unwrap() {
            ("files", tool) => Ok(self.files.call(tool, arguments)),
            ("notes", tool) => Ok(self.notes.call(tool, arguments)),
            _ => Err("no such server".into()),
        }
    }
}

/// Returns prepared responses and records the requests.
#[derive(Default)]
struct CannedResponses {
    responses: VecDeque<Value>,
    requests: Vec<(String, Value)>,
}

impl CannedResponses {
    fn new(responses: impl IntoIterator<Item = Value>) -> Self {
        Self { responses: responses.into_iter().collect(), requests: Vec::new() }
    }
}

impl ToolCaller for CannedResponses {
    async fn call_tool(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> Result<Value, Box<dyn Error + Send + Sync>> {
        self.requests.push((tool.to_owned(), arguments));
        self.responses.pop_front().ok_or_else(|| "nobody answers".into())
    }
}

fn structured_result(value: &Value) -> Value {
    json!({ "content": [], "structuredContent": value })
}

fn text_result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

async fn run_demo(
    cast: DemoServers,
    runner: &mut impl ToolCaller,
) -> (Result<usize, ScriptError>, Vec<CompletedStep>) {
    let demo = Demo::prepare(cast).unwrap();
    let mut done = Vec::new();
    let mut on_step = |completed: &CompletedStep| {
        let CompletedStep { number, tool, purpose, arguments, finding } = completed;
        let (arguments, finding) = (arguments.clone(), finding.clone());
        done.push(CompletedStep { number: *number, tool, purpose, arguments, finding });
    };
    let result = demo.run(runner, &mut on_step).await;
    (result, done)
}

#[tokio::test]
async fn the_built_in_chain_runs_to_its_end_over_the_real_servers() {
    let demo = Demo::prepare(DemoServers::BuiltIn).unwrap();
    let mut learned = Vec::new();
    let mut on_step = |completed: &CompletedStep| {
        learned.push(format!("{} {}", completed.tool, completed.finding));
    };
    let steps = demo.run(&mut InProcessServers::from_demo(&demo), &mut on_step).await.unwrap();
    assert_eq!(steps, learned.len());
    insta::assert_snapshot!(learned.join("\n"), @r"
    files.list_directory 3 files; the longest is `cellar.md`
    files.read_text_file the longest word is `elderberry`
    notes.add_note the note is `note-1`
    notes.find_notes `note-1` is one of 1 notes found
    files.write_file the report is `report-note-1.md`
    files.read_text_file the report names `note-1`
    files.search_text found in line 3
    ");
}

fn built_in_responses() -> Vec<Value> {
    let result = json!({ "notes": [{ "id": "n/77", "title": "Quagga" }] });
    [
        json!({ "entries": [{ "type": "directory", "name": "d", "size": 9 },
                            { "type": "file", "name": "zebra.txt", "size": 5 }] }),
        json!({ "text": "## Quagga\nit ran" }),
        json!({ "id": "n/77" }),
        result,
        json!({ "path": "elsewhere.md" }),
        json!({ "text": "# Notes about Quagga\n\n- n/77: Quagga\n" }),
        json!({ "matches": [{ "path": "elsewhere.md", "line": 3 }] }),
    ]
    .iter()
    .map(structured_result)
    .collect()
}

#[tokio::test]
async fn every_argument_of_the_built_in_chain_comes_from_an_earlier_result() {
    let mut runner = CannedResponses::new(built_in_responses());
    let (result, done) = run_demo(DemoServers::BuiltIn, &mut runner).await;
    assert_eq!(result.unwrap(), 7);
    assert_eq!(done.len(), 7);
    let arguments_seen: Vec<_> = runner.requests.iter().map(|(_, arguments)| arguments).collect();
    assert_eq!(
        json!(arguments_seen[1..]),
        json!([
            { "path": "zebra.txt" },
            { "title": "Quagga", "text": "## Quagga\nit ran", "tags": ["zebra.txt"] },
            { "query": "Quagga" },
            { "path": "report-n/77.md", "content": "# Notes about Quagga\n\n- n/77: Quagga\n" },
            { "path": "elsewhere.md" },
            { "query": "n/77" },
        ])
    );
}

#[tokio::test]
async fn a_result_without_what_the_next_step_needs_ends_the_chain_at_that_step() {
    for broken_step in 0..7 {
        let mut responses = built_in_responses();
        responses[broken_step] = structured_result(&json!({}));
        let (result, done) =
            run_demo(DemoServers::BuiltIn, &mut CannedResponses::new(responses)).await;
        assert!(
            matches!(result, Err(ScriptError::UnexpectedResult { number, .. }) if number == broken_step + 1),
            "{result:?}"
        );
        assert_eq!(done.len(), broken_step);
    }
}

#[tokio::test]
async fn a_failed_call_and_an_error_of_a_tool_name_the_step_and_the_tool() {
    let (result, _) = run_demo(DemoServers::BuiltIn, &mut CannedResponses::default()).await;
    let error = result.unwrap_err();
    assert_eq!(error.to_string(), "step 1: the call of `files.list_directory` failed");
    assert_eq!(error.source().unwrap().to_string(), "nobody answers");
    let mut error_result = text_result("no");
    error_result["isError"] = true.into();
    let (result, _) =
        run_demo(DemoServers::BuiltIn, &mut CannedResponses::new([error_result])).await;
    let expected = "step 1: `files.list_directory` returned an error: no";
    assert_eq!(result.unwrap_err().to_string(), expected);
}

#[tokio::test]
async fn every_argument_of_the_npm_chain_comes_from_an_earlier_result() {
    let sentence = "zebra.txt has 7 lines and words together";
    let mut runner = CannedResponses::new([
        text_result("Allowed directories:\n/srv/stable"),
        text_result("[DIR] d\n[FILE] zebra.txt\n[FILE] a.txt"),
        text_result("one two\nthree four five"),
        text_result("The sum of 2 and 5 is 7."),
        text_result(&format!("Echo: {sentence}")),
        text_result("Successfully wrote to /srv/stable/report-7.txt"),
        text_result(&format!("Echo: {sentence}")),
    ]);
    let (result, _) = run_demo(DemoServers::Npm, &mut runner).await;
    assert_eq!(result.unwrap(), 7);
    assert_eq!(
        json!(runner.requests),
        json!([
            ["filesystem.list_allowed_directories", {}],
            ["filesystem.list_directory", { "path": "/srv/stable" }],
            ["filesystem.read_text_file", { "path": "/srv/stable/zebra.txt" }],
            ["everything.get-sum", { "a": 2, "b": 5 }],
            ["everything.echo", { "message": sentence }],
            ["filesystem.write_file",
             { "path": "/srv/stable/report-7.txt", "content": format!("Echo: {sentence}") }],
            ["filesystem.read_text_file", { "path": "/srv/stable/report-7.txt" }],
        ])
    );
}

#[tokio::test]
async fn a_wrong_sum_does_not_pass_for_a_right_one() {
    let mut runner = CannedResponses::new([
        text_result("Allowed directories:\n/srv"),
        text_result("[FILE] a"),
        text_result("one"),
        text_result("The sum of 1 and 1 is 3."),
    ]);
    let (result, _) = run_demo(DemoServers::Npm, &mut runner).await;
    assert!(matches!(result, Err(ScriptError::UnexpectedResult { number: 4, .. })), "{result:?}");
}

#[test]
fn the_files_of_the_demo_go_with_it() {
    let demo = Demo::prepare(DemoServers::BuiltIn).unwrap();
    let path = demo.folder.path().to_owned();
    assert_eq!(std::fs::read_dir(path.join("files")).unwrap().count(), 3);
    drop(demo);
    assert!(!path.exists());
}
