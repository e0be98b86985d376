//! The commands and the rules of the page about recordings, as they stand there.

use std::env;
use std::fs;
use std::path::Path;

use innkeeper_testkit::{Script, ScriptedLlm, ScriptedReply, fixture, mcp_json, shell_blocks};
use serde_json::json;

use super::Goldens;
use crate::program::innkeeper;

const PAGE: &str = "docs/goldens.md:";

fn blocks(info: &str) -> Vec<String> {
    let blocks = shell_blocks(info).into_iter();
    blocks.filter(|block| block.location.starts_with(PAGE)).map(|block| block.text).collect()
}

/// Runs a block in a shell, as a reader would; returns what the commands printed.
#[expect(clippy::disallowed_methods, reason = "the shell runs the commands as a reader would")]
async fn run_block(block: &str, dir: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_innkeeper")).parent().unwrap().to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([program].into_iter().chain(env::split_paths(&path))).unwrap();
    // The variables of the program in a test, which `CI` is not one of.
    let variables = innkeeper(&[], dir);
    let variables = variables.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-e", "-c", block]).current_dir(dir).env_clear().envs(variables).env("PATH", path);
    let output = shell.stdin(std::process::Stdio::null()).output().await.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{block}\n{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Proves: G63, G64, G78
#[tokio::test]
async fn the_commands_of_the_page_record_a_run_and_replay_it() {
    let goldens = Goldens::new::<0>([]);
    let config = mcp_json([fixture("db")]).to_string();
    goldens.write("mcp.json", &config);
    let call = json!({"message": "orders, customers and invoices"});
    let replies = [
        ScriptedReply::text("I look.").with_tool_call("db.echo", call),
        ScriptedReply::text("There are three tables."),
    ];
    let llm = ScriptedLlm::start(Script::new(replies)).await;
    let blocks = blocks("sh,no_run");
    // The tests of agents run the commands of the third block.
    let [record, replay, _] = &blocks[..] else { panic!("{blocks:#?}") };
    // The reader's model has its usual address, that of a test has its own.
    let provider = "--provider ollama";
    assert_eq!(record.matches(provider).count(), 1, "{record}");
    let record = record.replace(provider, &format!("{provider} --base-url {}", llm.origin()));
    let recorded = run_block(&record, goldens.path()).await;
    assert!(recorded.starts_with("There are three tables.\nok "), "{recorded}");
    assert_eq!(llm.remaining_replies(), 0);
    fs::remove_file(goldens.path().join("mcp.json")).unwrap();
    let replayed = run_block(replay, goldens.path()).await;
    assert!(replayed.ends_with("There are three tables.\n"), "{replayed}");
    assert!(goldens.read("report.xml").contains("tests=\"1\" failures=\"0\""));
}

/// Proves: G68, G78
#[test]
fn the_rules_of_the_page_judge_a_golden() {
    let goldens = Goldens::new([("notes.json", super::NOTES)]);
    let blocks = blocks("json");
    let [rules] = &blocks[..] else { panic!("{blocks:#?}") };
    goldens.write("notes.rules.json", rules);
    goldens.run(&["replay", "."]).succeeds();
    let forbidden = rules.replace("files.delete_file", "notes.slow");
    assert_ne!(&forbidden, rules);
    goldens.write("notes.rules.json", &forbidden);
    let shown = goldens.run(&["replay", "."]).fails(1, &["1 changed"]).stdout();
    assert!(shown.contains("notes.slow"), "{shown}");
}
