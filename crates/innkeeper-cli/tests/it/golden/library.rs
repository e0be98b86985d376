//! The goldens of the repository replay without network, servers and programs.

use std::fs;
use std::path::{Path, PathBuf};

use innkeeper_agent::golden::{ChunkData, Golden, ReplyRecord};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Finished, Goldens};

/// The hash of a golden that is never edited: a program of any later version replays it.
const FIRST_GOLDEN: (&str, &str) = (
    "anthropic/backtracking_scenario.json",
    "a807806bef8198dfb67ac8a242569467848481fafe6d3a120db60d6e2b97de1d",
);

fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens")
}

/// Copies the library to a directory.
fn copy() -> Goldens {
    let goldens = Goldens::new::<0>([]);
    for dir in fs::read_dir(library()).unwrap() {
        let dir = dir.unwrap().path();
        if !dir.is_dir() || dir.ends_with("shared") {
            continue;
        }
        for file in fs::read_dir(&dir).unwrap() {
            let file = file.unwrap().path();
            let name = file.strip_prefix(library()).unwrap().to_str().unwrap().to_owned();
            goldens.write(&name, &fs::read_to_string(&file).unwrap());
        }
    }
    goldens
}

fn replay(goldens: &Goldens) -> Value {
    let finished = goldens.run(&["replay", ".", "--json"]);
    serde_json::from_slice(&finished.0.stdout).unwrap()
}

/// Returns the files that did not replay to the same result, with their reports.
fn changed(report: &Value) -> Vec<(String, String)> {
    let goldens = report["goldens"].as_array().unwrap().iter();
    let changed = goldens.filter(|golden| golden["verdict"] != "ok");
    let text = |golden: &Value, key: &str| golden[key].as_str().unwrap().to_owned();
    changed.map(|golden| (text(golden, "file"), text(golden, "report"))).collect()
}

/// Proves: G64, G-b21
#[cfg(target_os = "linux")]
#[test]
#[expect(clippy::disallowed_methods, reason = "a child process without network")]
fn the_library_replays_with_every_network_refused_and_no_program_in_the_path() {
    let program = innkeeper_testkit::built_program("innkeeper");
    let run = |prefix: &[&str]| {
        let mut words = prefix.to_vec();
        words.extend([program.to_str().unwrap(), "golden", "replay"]);
        let mut command = std::process::Command::new(words[0]);
        command.args(&words[1..]).arg(library()).env("CI", "1");
        command.env("PATH", "/nowhere").output().unwrap()
    };
    // Without the right to make a namespace, the replay runs with the network of the machine.
    let refused = ["/usr/bin/unshare", "--net", "--map-root-user"];
    let probe = std::process::Command::new(refused[0]).args(&refused[1..]).arg("true").output();
    let finished = match probe.is_ok_and(|probe| probe.status.success()) {
        true => run(&refused),
        false => run(&["/usr/bin/env"]),
    };
    assert!(finished.status.success(), "{finished:?}");
    let text = String::from_utf8(finished.stderr).unwrap();
    assert!(text.contains("16 goldens: 16 ok, 0 changed, 0 failed"), "{text}");
}

/// Proves: G66, G70, G78
#[test]
fn the_library_has_the_files_of_the_document_and_all_categories() {
    for file in [
        "openai/happy_path_database_query.json",
        "openai/error_recovery_file_not_found.json",
        "openai/multi_tool_chain_analysis.json",
        "anthropic/happy_path_database_query.json",
        "anthropic/backtracking_scenario.json",
        "gemini/complex_tool_orchestration.json",
        "shared/tool_schema_definitions.json",
        "README.md",
    ] {
        assert!(library().join(file).is_file(), "{file}");
    }
    let goldens = copy();
    let Finished(list) = goldens.run(&["list", ".", "--json"]);
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    let list = list.as_array().unwrap();
    for category in ["happy_path", "error_recovery", "provider_comparison", "edge_case"] {
        assert!(list.iter().any(|golden| golden["category"] == category), "{category}");
    }
    let calls = list.iter().filter_map(|golden| golden["calls"].as_u64()).max();
    assert!(calls.is_some_and(|calls| calls >= 5), "{calls:?}");
}

/// Proves: G68, G-b21
#[test]
fn a_change_fails_exactly_the_goldens_that_it_touches_and_names_the_field() {
    let goldens = copy();
    assert_eq!(changed(&replay(&goldens)), []);
    // A rule about arguments that the run does not meet.
    let rules = r#"{"tool_chain": {"order": "strict"}, "forbidden_tools": ["files.list_files"]}"#;
    goldens.write("openai/error_recovery_file_not_found.rules.json", rules);
    // A byte of a response.
    let file = "openai/happy_path_database_query.json";
    let mut golden = Golden::from_json(&goldens.read(file)).unwrap();
    let answer = &mut golden.provider_responses.last_mut().unwrap().response;
    let ReplyRecord::Http(response) = answer else { panic!("{file}") };
    for chunk in &mut response.chunks {
        if let ChunkData::Text(text) = &mut chunk.data {
            *text = text.replace("Linz", "Wien");
        }
    }
    goldens.write(file, &golden.to_json().unwrap());
    // The results of two calls.
    let file = "gemini/complex_tool_orchestration.json";
    let mut golden = Golden::from_json(&goldens.read(file)).unwrap();
    let [first, second, ..] = &mut golden.tool_calls[..] else { panic!("{file}") };
    std::mem::swap(&mut first.outcome, &mut second.outcome);
    goldens.write(file, &golden.to_json().unwrap());
    let mut found = changed(&replay(&goldens));
    found.sort();
    let [(gemini, miss), (openai, rule), (happy, text)] = &found[..] else { panic!("{found:?}") };
    assert!(gemini.ends_with("complex_tool_orchestration.json"), "{gemini}");
    assert!(miss.contains("no recording answers request 2") && miss.contains("/body/"), "{miss}");
    assert!(openai.ends_with("error_recovery_file_not_found.json"), "{openai}");
    assert!(rule.contains("files.list_files"), "{rule}");
    assert!(happy.ends_with("openai/happy_path_database_query.json"), "{happy}");
    assert!(text.contains("/final_result") && text.contains("Wien"), "{text}");
}

#[test]
fn the_first_golden_is_never_edited() {
    let (file, hash) = FIRST_GOLDEN;
    let digest = Sha256::digest(fs::read(library().join(file)).unwrap());
    assert_eq!(
        format!("{digest:x}"),
        hash,
        "`{file}` proves that old goldens replay; record another file instead"
    );
}
