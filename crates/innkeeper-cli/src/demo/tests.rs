//! The chains over real servers in this process, and over answers nobody could have foreseen.

use std::collections::VecDeque;
use std::error::Error;

use serde_json::{Value, json};

use super::*;
use crate::builtin::direct::Direct;

/// The built-in servers, each named as in the demo's configuration.
struct BuiltIn {
    files: Direct,
    notes: Direct,
}

impl BuiltIn {
    fn of(demo: &Demo) -> Self {
        let config = demo.config(Path::new("innkeeper"));
        let place = |name: &str| {
            let arguments = &config["servers"][name]["args"];
            assert_eq!((&arguments[0], &arguments[1]), (&json!("__server"), &json!(name)));
            arguments[2].as_str().unwrap().to_owned()
        };
        Self {
            files: Direct::files(Path::new(&place("files"))),
            notes: Direct::notes(Path::new(&place("notes"))),
        }
    }
}

impl Runner for BuiltIn {
    async fn call(
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

/// Gives prepared answers and remembers what was asked.
#[derive(Default)]
struct Prepared {
    answers: VecDeque<Value>,
    asked: Vec<(String, Value)>,
}

impl Prepared {
    fn new(answers: impl IntoIterator<Item = Value>) -> Self {
        Self { answers: answers.into_iter().collect(), asked: Vec::new() }
    }
}

impl Runner for Prepared {
    async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> Result<Value, Box<dyn Error + Send + Sync>> {
        self.asked.push((tool.to_owned(), arguments));
        self.answers.pop_front().ok_or_else(|| "nobody answers".into())
    }
}

fn structured(value: &Value) -> Value {
    json!({ "content": [], "structuredContent": value })
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

async fn run(cast: Cast, runner: &mut impl Runner) -> (Result<usize, ScriptError>, Vec<Done>) {
    let demo = Demo::prepare(cast).unwrap();
    let mut done = Vec::new();
    let mut seen = |step: &Done| {
        let Done { number, tool, purpose, arguments, learned } = step;
        let (arguments, learned) = (arguments.clone(), learned.clone());
        done.push(Done { number: *number, tool, purpose, arguments, learned });
    };
    let result = demo.run(runner, &mut seen).await;
    (result, done)
}

#[tokio::test]
async fn the_built_in_chain_runs_to_its_end_over_the_real_servers() {
    let demo = Demo::prepare(Cast::BuiltIn).unwrap();
    let mut learned = Vec::new();
    let mut seen = |step: &Done| learned.push(format!("{} {}", step.tool, step.learned));
    let steps = demo.run(&mut BuiltIn::of(&demo), &mut seen).await.unwrap();
    assert_eq!(steps, learned.len());
    insta::assert_snapshot!(learned.join("\n"), @r"
    files.list_directory 3 files; the longest is `cellar.md`
    files.read_text_file its longest word is `elderberry`
    notes.add_note the note is `note-1`
    notes.find_notes `note-1` is among 1 found
    files.write_file the report is `report-note-1.md`
    files.read_text_file it names `note-1`
    files.search_text it stands in line 3
    ");
}

fn built_in_answers() -> Vec<Value> {
    let found = json!({ "notes": [{ "id": "n/77", "title": "Quagga" }] });
    [
        json!({ "entries": [{ "type": "directory", "name": "d", "size": 9 },
                            { "type": "file", "name": "zebra.txt", "size": 5 }] }),
        json!({ "text": "## Quagga\nit ran" }),
        json!({ "id": "n/77" }),
        found,
        json!({ "path": "elsewhere.md" }),
        json!({ "text": "# Notes about Quagga\n\n- n/77: Quagga\n" }),
        json!({ "matches": [{ "path": "elsewhere.md", "line": 3 }] }),
    ]
    .iter()
    .map(structured)
    .collect()
}

#[tokio::test]
async fn every_argument_of_the_built_in_chain_comes_from_an_earlier_result() {
    let mut runner = Prepared::new(built_in_answers());
    let (result, done) = run(Cast::BuiltIn, &mut runner).await;
    assert_eq!(result.unwrap(), 7);
    assert_eq!(done.len(), 7);
    let asked: Vec<_> = runner.asked.iter().map(|(_, arguments)| arguments).collect();
    assert_eq!(
        json!(asked[1..]),
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
    for broken in 0..7 {
        let mut answers = built_in_answers();
        answers[broken] = structured(&json!({}));
        let (result, done) = run(Cast::BuiltIn, &mut Prepared::new(answers)).await;
        assert!(
            matches!(result, Err(ScriptError::Surprise { number, .. }) if number == broken + 1),
            "{result:?}"
        );
        assert_eq!(done.len(), broken);
    }
}

#[tokio::test]
async fn a_failed_call_and_an_error_of_a_tool_name_the_step_and_the_tool() {
    let (result, _) = run(Cast::BuiltIn, &mut Prepared::default()).await;
    let error = result.unwrap_err();
    assert_eq!(error.to_string(), "step 1, calling `files.list_directory`, failed");
    assert_eq!(error.source().unwrap().to_string(), "nobody answers");
    let mut refused = text("no");
    refused["isError"] = true.into();
    let (result, _) = run(Cast::BuiltIn, &mut Prepared::new([refused])).await;
    let words = "step 1: `files.list_directory` answered with an error: no";
    assert_eq!(result.unwrap_err().to_string(), words);
}

#[tokio::test]
async fn every_argument_of_the_npm_chain_comes_from_an_earlier_result() {
    let sentence = "zebra.txt has 7 lines and words together";
    let mut runner = Prepared::new([
        text("Allowed directories:\n/srv/stable"),
        text("[DIR] d\n[FILE] zebra.txt\n[FILE] a.txt"),
        text("one two\nthree four five"),
        text("The sum of 2 and 5 is 7."),
        text(&format!("Echo: {sentence}")),
        text("Successfully wrote to /srv/stable/report-7.txt"),
        text(&format!("Echo: {sentence}")),
    ]);
    let (result, _) = run(Cast::Npm, &mut runner).await;
    assert_eq!(result.unwrap(), 7);
    assert_eq!(
        json!(runner.asked),
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
    let mut runner = Prepared::new([
        text("Allowed directories:\n/srv"),
        text("[FILE] a"),
        text("one"),
        text("The sum of 1 and 1 is 3."),
    ]);
    let (result, _) = run(Cast::Npm, &mut runner).await;
    assert!(matches!(result, Err(ScriptError::Surprise { number: 4, .. })), "{result:?}");
}

#[test]
fn the_files_of_the_demo_go_with_it() {
    let demo = Demo::prepare(Cast::BuiltIn).unwrap();
    let folder = demo.folder.path().to_owned();
    assert_eq!(std::fs::read_dir(folder.join("files")).unwrap().count(), 3);
    drop(demo);
    assert!(!folder.exists());
}
