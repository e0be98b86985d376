//! `stale` warns about goldens, `review` marks them.

use innkeeper_host::Lock;
use innkeeper_host::lock::{PinnedServer, PinnedTool};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::{Goldens, NOTES};
use crate::program::innkeeper;

/// Returns a golden of an old recording by a model of OpenAI that is shut down.
fn old_golden() -> String {
    let mut golden: Value = serde_json::from_str(NOTES).unwrap();
    golden["recorded_at"] = json!("2024-02-29T00:00:00Z");
    golden["program"] = json!("innkeeper 0.0.1");
    golden["input"]["provider"] = json!("openai");
    golden["input"]["model"] = json!("gpt-4-0613");
    // The definitions of tools have hashes over their bytes, which `Value` would change.
    golden["tools"] = json!([]);
    golden["offers"] = json!([]);
    golden.to_string()
}

/// Returns a lock whose tool `notes.slow` has another required argument.
fn lock() -> String {
    let definition = json!({
        "name": "slow",
        "description": "Finds.",
        "inputSchema": {
            "type": "object",
            "properties": {"q": {"type": "number"}, "user": {"type": "string"}},
            "required": ["user"],
        },
    });
    let server = json!({"launch": {"command": "notes", "args": []}, "tools": {}});
    let mut server: PinnedServer = serde_json::from_str(&server.to_string()).unwrap();
    let tool = PinnedTool::new(&to_raw_value(&definition).unwrap());
    server.tools.insert("slow".to_owned(), tool);
    let mut lock = Lock::default();
    lock.servers.insert("notes".to_owned(), server);
    lock.to_text().unwrap()
}

/// Proves: G69
#[test]
fn stale_warns_about_age_model_and_program_and_ends_with_0() {
    let goldens = Goldens::new([("set/old.json", &old_golden())]);
    let shown = goldens.run(&["stale", "set"]).succeeds();
    let stdout = shown.stdout();
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[0], "set/old.json");
    assert!(lines[1].starts_with("  recorded ") && lines[1].ends_with(" days ago"), "{stdout}");
    assert_eq!(lines[2], "  the model gpt-4-0613 was shut down on 2026-10-23");
    assert!(lines[3].starts_with("  recorded by innkeeper 0.0.1, this is innkeeper "), "{stdout}");
    assert_eq!(shown.stderr(), "1 of 1 golden may be stale\n");
    let young = goldens.run(&["stale", "set", "--max-age", "100000", "--json"]).succeeds().json();
    assert_eq!(young[0]["warnings"][0]["kind"], "shutdown");
    assert_eq!(young[0]["warnings"].as_array().unwrap().len(), 2);
}

/// Proves: G69
#[test]
fn stale_names_the_definitions_that_differ_from_their_pins() {
    let goldens = Goldens::new([("set/notes.json", NOTES), ("other.lock", &lock())]);
    let args = ["stale", "set", "--max-age", "100000"];
    assert_eq!(goldens.run(&args).succeeds().stdout(), "");
    let shown = goldens.run(&[&args[..], &["--lock", "other.lock"]].concat()).succeeds();
    let stdout = shown.stdout();
    assert!(stdout.contains("\n  breaking change of notes.slow: "), "{stdout}");
    assert_eq!(stdout.lines().count(), 4, "{stdout}");
    goldens.write("mcp.lock", &lock());
    let json = goldens.run(&[&args[..], &["--json"]].concat()).succeeds().json();
    assert_eq!(json[0]["warnings"][2]["class"], "breaking");
    goldens.write("mcp.lock", "{}");
    goldens.run(&args).fails(2, &["mcp.lock"]);
}

/// Proves: G-b22
#[test]
fn marks_are_added_beside_the_golden_and_know_if_it_changed() {
    let goldens = Goldens::new([("notes.json", NOTES)]);
    let none = goldens.run(&["review", "notes.json"]).succeeds();
    assert!(none.stderr().starts_with("nobody has marked `notes.json`"), "{}", none.stderr());
    let args = ["review", "notes.json", "--mark", "wrong", "--note", "one call is enough"];
    let marked = goldens.run(&[&args[..], &["--who", "ada"]].concat()).succeeds();
    assert_eq!(marked.stderr(), "marked as wrong in `notes.review.json`\n");
    // The name of the account is the default.
    let args = ["golden", "review", "notes.json", "--mark", "good"];
    let mut command = innkeeper(&args, goldens.path());
    assert!(command.env("USER", "grace").output().unwrap().status.success());
    let marks = goldens.json("notes.review.json");
    assert_eq!((&marks[0]["mark"], &marks[1]["who"]), (&json!("wrong"), &json!("grace")));
    let shown = goldens.run(&["review", "notes.json"]).succeeds().stdout();
    assert!(shown.contains(" by ada: one call is enough\n"), "{shown}");
    goldens.write("notes.json", &NOTES.replacen('\n', "\n\n", 1));
    let shown = goldens.run(&["review", "notes.json"]).succeeds().stdout();
    assert_eq!(shown.matches("(the golden has changed since)").count(), 2, "{shown}");
    let json = goldens.run(&["review", "notes.json", "--json"]).succeeds().json();
    assert_eq!(json["reviews"][1]["is_current"], false);
    let inspected = goldens.run(&["inspect", "notes.json"]).succeeds().stdout();
    assert!(inspected.contains("  review    wrong on "), "{inspected}");
    goldens.write("notes.review.json", "{}");
    let broken = ["review", "notes.json", "--mark", "good", "--who", "ada"];
    goldens.run(&broken).fails(2, &["`notes.review.json` has no marks of `golden review`"]);
}
