//! Tests of the arguments of `call` and `prompt`.

use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use innkeeper_testkit::{Journal, fixture, mcp_json};
use serde_json::{Value, json};

use crate::program::{innkeeper, run};

/// A directory with a server whose tool `any` returns its arguments.
fn argument_server(journal: &Path) -> tempfile::TempDir {
    let tools = json!([{
        "name": "any",
        "inputSchema": {
            "type": "object",
            "properties": {
                "names": {"type": "array", "items": {"type": "string"}},
                "sizes": {"type": "array", "items": {"type": "integer"}},
                "text": {"type": "string"},
                "id": {"type": "integer"},
                "filter": {"type": "object"}
            }
        }
    }]);
    let dir = tempfile::tempdir().unwrap();
    let server = fixture("one").with("--tools", tools).journal(journal);
    std::fs::write(dir.path().join("mcp.json"), mcp_json([server]).to_string()).unwrap();
    dir
}

/// Returns the arguments that the tool received.
fn received(output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap();
    serde_json::from_str::<Value>(text).unwrap()["arguments"].take()
}

fn run_with_stdin(args: &[&str], dir: &Path, stdin: &str) -> Output {
    let mut command = innkeeper(args, dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn every_form_of_an_argument_reaches_the_tool() {
    let journal = tempfile::NamedTempFile::new().unwrap();
    let dir = argument_server(journal.path());
    std::fs::write(dir.path().join("text.md"), "[1]\n").unwrap();
    let call = |args: &[&str]| {
        received(&run(&[&["call", "one.any", "--config", "mcp.json"], args].concat(), dir.path()))
    };
    assert_eq!(call(&["names=Ann"]), json!({"names": ["Ann"]}));
    assert_eq!(call(&["names=Ann", "names=Bob"]), json!({"names": ["Ann", "Bob"]}));
    assert_eq!(call(&["id:=5", "filter:={\"a\": 1}"]), json!({"id": 5, "filter": {"a": 1}}));
    assert_eq!(call(&["text=@text.md", "sizes=@text.md"]), json!({"text": "[1]\n", "sizes": [1]}));
    assert_eq!(call(&["text=@@ada"]), json!({"text": "@ada"}));
    assert_eq!(call(&[r#"{"text": "a", "id": 1}"#, "id=2"]), json!({"text": "a", "id": 2}));
}

#[test]
fn all_arguments_or_the_text_of_one_come_from_stdin() {
    let journal = tempfile::NamedTempFile::new().unwrap();
    let dir = argument_server(journal.path());
    let call = |argument: &str, stdin: &str| {
        let args = ["call", "one.any", argument, "--config", "mcp.json"];
        received(&run_with_stdin(&args, dir.path(), stdin))
    };
    assert_eq!(call("-", r#"{"id": 7}"#), json!({"id": 7}));
    assert_eq!(call("text=@-", "line\n"), json!({"text": "line\n"}));
    let prompt = ["prompt", "one.greet", "name=@-", "--config", "mcp.json"];
    let output = run_with_stdin(&prompt, dir.path(), "Ada");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "user: one: greet Ada\n");
}

#[test]
fn a_number_keeps_all_digits_on_its_way_to_the_tool() {
    let journal = tempfile::NamedTempFile::new().unwrap();
    let dir = argument_server(journal.path());
    let digits = "12345678901234567890123";
    let args = ["call", "one.any", &format!("id={digits}"), "--config", "mcp.json"];
    let output = run(&args, dir.path());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let sent = std::fs::read_to_string(journal.path()).unwrap();
    assert!(sent.contains(&format!("\"id\":{digits}")), "{sent}");
}

#[test]
fn an_invalid_argument_says_what_to_type_and_nothing_is_sent() {
    let journal = tempfile::NamedTempFile::new().unwrap();
    let dir = argument_server(journal.path());
    let stderr_of = |args: &[&str]| {
        let output =
            run(&[&["call", "one.any", "--config", "mcp.json"], args].concat(), dir.path());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    insta::assert_snapshot!(stderr_of(&["names=[Ann", "nmaes=x", "sizes=a"]));
    insta::assert_snapshot!(stderr_of(&["text=@missing.md"]));
    insta::assert_snapshot!(stderr_of(&["-", "text=@-"]));
    insta::assert_snapshot!(stderr_of(&["Ann"]));
    assert_eq!(Journal::read(journal.path()).count("tools/call"), 0);
}
