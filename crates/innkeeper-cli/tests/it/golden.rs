//! Tests of `golden` with two recorded runs of a Chat Completions model: `notes` calls two tools and
//! answers, `broken_note` is refused, loses its connection and gets an error of a tool.

mod library;
mod page;
mod record;
mod upkeep;
mod verdicts;
mod views;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
#[cfg(target_os = "linux")]
use std::{process::Stdio, time::Duration};

use serde_json::Value;

#[cfg(target_os = "linux")]
use crate::program::innkeeper;
use crate::program::run;

const NOTES: &str = include_str!("golden/notes.json");
const BROKEN: &str = include_str!("golden/broken.json");

/// A directory with goldens.
struct Goldens(tempfile::TempDir);

impl Goldens {
    fn new<const N: usize>(files: [(&str, &str); N]) -> Self {
        let goldens = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            goldens.write(name, text);
        }
        goldens
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// Runs `golden` with these arguments.
    fn run(&self, args: &[&str]) -> Finished {
        Finished(run(&[&["golden"], args].concat(), self.path()))
    }
}

/// What a command printed, and its exit code.
struct Finished(Output);

impl Finished {
    fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    fn stdout(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    fn stderr(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout())
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout(), self.stderr()))
    }

    #[track_caller]
    fn succeeds(self) -> Self {
        assert_eq!(self.code(), Some(0), "{}{}", self.stdout(), self.stderr());
        self
    }

    /// Checks the exit code, and that stderr has these texts.
    #[track_caller]
    fn fails(self, code: i32, texts: &[&str]) -> Self {
        let stderr = self.stderr();
        assert_eq!(self.code(), Some(code), "{}{stderr}", self.stdout());
        for text in texts {
            assert!(stderr.contains(text), "{text} in {stderr}");
        }
        self
    }
}

/// Returns a golden whose recorded result has another final text: its replay shows a change.
fn with_other_result(golden: &str) -> String {
    let changed = golden.replace("\"final_result\": \"", "\"final_result\": \"Formerly: ");
    assert_ne!(changed, golden);
    changed
}

/// Returns a golden whose user asked something else: its replay finds no answer to the request.
fn with_other_question(golden: &str) -> String {
    let changed = golden.replace("\"user_prompt\": \"Look.\"", "\"user_prompt\": \"Search.\"");
    assert_ne!(changed, golden);
    changed
}

#[test]
fn every_verb_names_a_broken_file_and_ends_with_2() {
    let goldens = Goldens::new([
        ("broken.json", "{\"version\": 1, \"test_name\": \"a\""),
        ("other.json", "{\"tools\": []}"),
        ("newer.json", "{\"version\": 2, \"test_name\": \"a\"}"),
    ]);
    for verb in [
        &["inspect"][..],
        &["diff", "other.json"],
        &["replay"],
        &["accept", "--why", "x", "--who", "y"],
        &["stats"],
        &["review"],
    ] {
        for file in ["broken.json", "other.json", "newer.json"] {
            let [name, options @ ..] = verb else { unreachable!("a verb has a name") };
            let args = [&[*name, file], options].concat();
            let message = format!("error: `{file}` is no golden");
            goldens.run(&args).fails(2, &[&message, "hint: "]);
        }
        let missing = [verb, &["missing.json"]].concat();
        goldens.run(&missing).fails(2, &["error: "]);
    }
    goldens.run(&["list", "."]).fails(2, &["broken.json` is no golden"]);
    goldens.run(&["stale", "."]).fails(2, &["broken.json` is no golden"]);
    let error = goldens.run(&["inspect", "newer.json", "--json"]).fails(2, &[]).json();
    assert_eq!(error["error"]["exitCode"], 2);
    let cause = error["error"]["causes"][0].as_str().unwrap();
    assert_eq!(cause, "the golden has version 2; this program reads version 1");
}

/// A pipe without a writer never ends.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_pipe_is_no_golden_and_nothing_waits_for_it() {
    use rustix::fs::{CWD, Mode, mkfifoat};

    let goldens = Goldens::new([("notes.json", NOTES), ("other.json", NOTES)]);
    for pipe in ["pipe.json", "notes.rules.json", "other.review.json"] {
        mkfifoat(CWD, goldens.path().join(pipe), Mode::RUSR | Mode::WUSR).unwrap();
    }
    for (args, pipe) in [
        (&["golden", "inspect", "pipe.json"][..], "pipe.json"),
        (&["golden", "replay", "pipe.json"], "pipe.json"),
        (&["golden", "diff", "notes.json", "pipe.json"], "pipe.json"),
        (&["golden", "accept", "pipe.json", "--why", "x", "--who", "ada"], "pipe.json"),
        (&["golden", "replay", "notes.json"], "notes.rules.json"),
        (&["golden", "review", "other.json"], "other.review.json"),
        (&["ask", "--replay", "pipe.json"], "pipe.json"),
        (&["ask", "Look.", "--provider", "ollama", "--record", "pipe.json"], "pipe.json"),
    ] {
        let mut command = tokio::process::Command::from(innkeeper(args, goldens.path()));
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
        let output = tokio::time::timeout(Duration::from_secs(20), output).await;
        let finished = Finished(output.expect("the command does not wait").unwrap());
        finished.fails(2, &[&format!("`{pipe}`"), "not a regular file"]);
    }
}

#[test]
fn a_command_line_without_what_a_verb_needs_ends_with_2() {
    let goldens = Goldens::new([("notes.json", NOTES)]);
    for args in [
        &[][..],
        &["show"],
        &["list", "a", "b"],
        &["inspect"],
        &["diff", "notes.json"],
        &["replay", "--junit"],
        &["accept", "notes.json"],
        &["accept", "notes.json", "--why", " ", "--who", "ada"],
        &["accept", "notes.json", "--why", "x"],
        &["stale", "--max-age", "-1"],
        &["stale", ".", "--lock", "missing.lock"],
        &["stats", "missing"],
        &["review", "notes.json", "--note", "x"],
        &["review", "notes.json", "--mark", "great"],
        &["review", "notes.json", "--mark", "good"],
        &["from-trace"],
        &["from-trace", "missing.jsonl"],
    ] {
        goldens.run(args).fails(2, &[]);
    }
    assert_eq!(goldens.read("notes.json"), NOTES);
}

#[test]
fn without_a_directory_the_goldens_of_the_tests_are_used() {
    let goldens = Goldens::new([("tests/goldens/a/notes.json", NOTES)]);
    let list = goldens.run(&["list", "--json"]).succeeds().json();
    assert_eq!(list[0]["file"], "tests/goldens/a/notes.json");
    goldens.run(&["replay"]).succeeds();
    goldens.run(&["stale"]).succeeds();
    goldens.run(&["stats"]).succeeds();
    let elsewhere = Goldens::new([]);
    elsewhere.run(&["list"]).fails(2, &["cannot read `tests/goldens`", "hint: "]);
}
