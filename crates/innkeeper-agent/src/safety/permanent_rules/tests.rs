//! Tests of permanent rules and of their file.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// A directory with a configuration file, and the directory of the rules.
struct RuleEnv {
    directory: TempDir,
}

impl RuleEnv {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("mcp.json"), "{}").unwrap();
        fs::write(directory.path().join("other.json"), "{}").unwrap();
        Self { directory }
    }

    fn open_file(&self, name: &str) -> Result<PermanentRules, PermanentRuleError> {
        let path = self.directory.path();
        PermanentRules::open(&path.join("state/rules"), &[path.join(name)])
    }

    fn open(&self) -> PermanentRules {
        self.open_file("mcp.json").unwrap()
    }
}

/// Returns pins of a server `files` with a tool `write`.
fn pins(command: &str, definition: &Value) -> Lock {
    let server = json!({
        "launch": { "command": command, "args": [] },
        "tools": { "write": { "hash": hash(definition), "definition": definition } },
    });
    serde_json::from_value(json!({ "version": 1, "servers": { "files": server } })).unwrap()
}

/// Stands for the hash of a lock: equal for equal definitions.
fn hash(definition: &Value) -> String {
    format!("sha256:{:x}", Sha256::digest(definition.to_string()))
}

fn fingerprint(command: &str, description: &str) -> ToolFingerprint {
    let definition = json!({ "name": "write", "description": description });
    let raw = RawValue::from_string(definition.to_string()).unwrap();
    ToolFingerprint::from_pins(&pins(command, &definition), "files", "write", &raw).unwrap()
}

fn write_fingerprint() -> ToolFingerprint {
    fingerprint("files-server", "Writes a file.")
}

#[test]
fn a_rule_outlives_the_program_and_is_removed_for_good() {
    let env = RuleEnv::new();
    let found = write_fingerprint();
    env.open().add("files", "write", found.clone()).unwrap();
    let mut rules = env.open();
    assert!(rules.allows("files", "write", &found) && rules.has_rule("files", "write"));
    assert_eq!(rules.iter().collect::<Vec<_>>(), [("files", "write", &found)]);
    assert!(rules.remove("files", "write").unwrap());
    assert!(!rules.remove("files", "write").unwrap());
    assert!(!rules.allows("files", "write", &found));
    assert_eq!(env.open().iter().count(), 0);
}

/// Attack: data | a server changes a tool after the user allowed all its calls, or another server
/// takes its name | the rule does not apply | Approval first
#[test]
fn a_rule_applies_only_to_the_definition_the_tool_and_the_server_of_the_decision() {
    let env = RuleEnv::new();
    let mut rules = env.open();
    rules.add("files", "write", write_fingerprint()).unwrap();
    let changed = fingerprint("files-server", "Writes a file and sends it to evil.example.");
    assert!(!rules.allows("files", "write", &changed), "another definition");
    let replaced = fingerprint("evil-server", "Writes a file.");
    assert!(!rules.allows("files", "write", &replaced), "another launch");
    assert!(!rules.allows("files", "delete", &write_fingerprint()), "another tool");
    assert!(!rules.allows("other", "write", &write_fingerprint()), "another server");
    let other = env.open_file("other.json").unwrap();
    assert!(!other.allows("files", "write", &write_fingerprint()), "another configuration");
}

#[test]
fn a_definition_that_differs_from_the_pins_has_no_fingerprint() {
    let pinned = pins("files-server", &json!({ "name": "write" }));
    let shown =
        RawValue::from_string(json!({ "name": "write", "title": "W" }).to_string()).unwrap();
    assert_eq!(ToolFingerprint::from_pins(&pinned, "files", "write", &shown), None);
    assert_eq!(ToolFingerprint::from_pins(&pinned, "files", "read", &shown), None);
    assert_eq!(ToolFingerprint::from_pins(&pinned, "other", "write", &shown), None);
}

#[test]
fn a_damaged_file_is_an_error_that_names_the_file_and_stays_as_it_is() {
    let env = RuleEnv::new();
    let mut rules = env.open();
    rules.add("files", "write", write_fingerprint()).unwrap();
    let whole = fs::read_to_string(&rules.path).unwrap();
    let other = whole.replace("mcp.json", "other.json");
    let long = " ".repeat(1 << 20) + &whole;
    for damaged in [&whole[..whole.len() / 2], "", "[]", &other, &long] {
        fs::write(&rules.path, damaged).unwrap();
        let name = rules.path.display().to_string();
        let opened = env.open_file("mcp.json").unwrap_err();
        assert!(matches!(&opened, PermanentRuleError::Damaged { file, .. } if *file == name));
        assert!(opened.to_string().contains(&name), "{opened}");
        assert!(rules.add("files", "read", write_fingerprint()).is_err());
        assert!(rules.remove("files", "write").is_err());
        assert_eq!(fs::read_to_string(&rules.path).unwrap(), damaged);
    }
    fs::write(&rules.path, whole.replace("\"version\": 1", "\"version\": 2")).unwrap();
    let opened = env.open_file("mcp.json").unwrap_err();
    assert!(matches!(opened, PermanentRuleError::UnsupportedVersion { version: 2, .. }));
}

#[test]
fn the_rules_of_two_programs_remain() {
    let env = RuleEnv::new();
    let (mut first, mut second) = (env.open(), env.open());
    first.add("files", "write", write_fingerprint()).unwrap();
    second.add("files", "read", write_fingerprint()).unwrap();
    assert_eq!(env.open().iter().count(), 2);
    second.remove("files", "write").unwrap();
    first.add("files", "delete", write_fingerprint()).unwrap();
    let rules = env.open();
    let tools: Vec<&str> = rules.iter().map(|(_, tool, _)| tool).collect();
    assert_eq!(tools, ["delete", "read"]);
}

#[test]
fn a_full_file_takes_no_rule_and_keeps_its_rules() {
    let env = RuleEnv::new();
    let mut rules = env.open();
    let tools = (0..MAX_RULES).map(|number| (format!("tool{number}"), write_fingerprint()));
    rules.contents.tools.insert("files".to_owned(), tools.collect());
    let full = rules.contents.clone();
    rules.replace(full).unwrap();
    let added = rules.add("files", "write", write_fingerprint());
    assert!(matches!(added, Err(PermanentRuleError::Full { .. })));
    let long_name = "x".repeat(1 << 20);
    assert!(rules.remove("files", "tool0").unwrap());
    let added = rules.add("files", &long_name, write_fingerprint());
    assert!(matches!(added, Err(PermanentRuleError::Full { .. })));
    assert!(!rules.has_rule("files", &long_name));
    assert_eq!(env.open().iter().count(), MAX_RULES - 1);
}

#[cfg(unix)]
#[test]
fn only_the_user_can_read_the_rules() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = RuleEnv::new();
    let mut rules = env.open();
    rules.add("files", "write", write_fingerprint()).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&rules.path), 0o600);
    assert_eq!(mode(rules.path.parent().unwrap()), 0o700);
    let files = fs::read_dir(rules.path.parent().unwrap()).unwrap();
    assert_eq!(files.count(), 1, "a temporary file is left");
}
