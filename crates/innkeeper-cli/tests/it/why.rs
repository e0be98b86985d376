//! Tests of the text of `why`.

use innkeeper_testkit::{fixture, mcp_json};
use serde_json::json;

use crate::program::run;
use crate::terminal::run_on_terminal;

#[test]
fn why_lays_out_the_facts_the_definition_and_stderr() {
    let server = fixture("one")
        .with("--stderr", "listening\u{1b}[2J")
        .config_key("tools", json!({"deny": ["add"]}));
    let dir = tempfile::tempdir().unwrap();
    let text = mcp_json([server]).to_string();
    std::fs::write(dir.path().join("mcp.json"), text).unwrap();
    let args = ["why", "one.echo", "--config", "mcp.json"];
    let on_pipe = String::from_utf8(run(&args, dir.path()).stdout).unwrap();
    insta::assert_snapshot!(on_pipe);
    let on_terminal = run_on_terminal(&args, dir.path(), 80);
    insta::assert_snapshot!(on_terminal.stdout.replace('\u{1b}', "␛"));
    let hidden = run(&["why", "one.add", "--config", "mcp.json"], dir.path());
    let hidden = String::from_utf8(hidden.stdout).unwrap();
    assert!(hidden.starts_with("one.add: hidden: denied by `add` in `tools.deny`\n\n"), "{hidden}");
}
