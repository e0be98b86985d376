//! The contract of the command line: streams, exit codes, one JSON value.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::program::run;

fn words(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the program writes UTF-8")
}

fn one_value(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one JSON value on stdout")
}

#[test]
fn import_prints_the_configuration_and_says_on_stderr_what_it_lacks() {
    let text = r#"{"mcpServers": {"fs": {"command": "npx", "autoApprove": ["x"]}}}"#;
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".cursor")).unwrap();
    fs::write(folder.path().join(".cursor/mcp.json"), text).unwrap();
    for args in [&["import", "cursor"][..], &["import"], &["--json", "import"]] {
        let output = run(args, folder.path());
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        let expected = json!({ "servers": { "fs": { "type": "stdio", "command": "npx" } } });
        assert_eq!(one_value(&output), expected);
        let said = words(&output.stderr);
        assert!(said.starts_with("note: `.cursor/mcp.json`: server `fs`: `autoApprove`"), "{said}");
    }
}

#[test]
fn a_failure_is_words_on_stderr_and_with_json_one_value_on_stdout() {
    let folder = tempfile::tempdir().unwrap();
    let plain = run(&["import", "cursor"], folder.path());
    assert_eq!(plain.status.code(), Some(2));
    assert_eq!(words(&plain.stdout), "");
    insta::assert_snapshot!(words(&plain.stderr), @r"
    error: no configuration of `cursor` was found
      hint: looked for `.cursor/mcp.json`, `~/.cursor/mcp.json`
    ");
    let json = run(&["import", "cursor", "--json"], folder.path());
    assert_eq!(json.status.code(), Some(2));
    assert_eq!(one_value(&json)["error"]["exitCode"], 2);
    assert_eq!(json.stderr, plain.stderr);
}

#[test]
fn a_line_that_makes_no_sense_is_a_usage_error_in_both_forms() {
    let here = Path::new("/");
    let plain = run(&["imprt"], here);
    assert_eq!(plain.status.code(), Some(2));
    assert!(words(&plain.stderr).contains("imprt"));
    assert_eq!(words(&plain.stdout), "");
    let json = run(&["imprt", "--json"], here);
    assert_eq!(json.status.code(), Some(2));
    assert!(one_value(&json)["error"]["message"].as_str().unwrap().contains("imprt"));
}

#[test]
fn help_and_version_are_data_and_end_well() {
    let help = run(&["--help"], Path::new("/"));
    assert_eq!(help.status.code(), Some(0));
    let text = words(&help.stdout);
    assert!(text.contains("import") && !text.contains("__server"), "{text}");
    assert_eq!(run(&["--version"], Path::new("/")).status.code(), Some(0));
}

#[test]
fn completions_are_a_script_or_one_json_value() {
    let script = run(&["completions", "bash"], Path::new("/"));
    assert_eq!(script.status.code(), Some(0));
    assert!(words(&script.stdout).contains("_innkeeper"));
    let json = run(&["completions", "bash", "--json"], Path::new("/"));
    assert_eq!(one_value(&json)["shell"], "bash");
}

#[test]
fn what_is_imported_has_names_that_check_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let file = r#"{"mcpServers": {"c d": {"command": "x"}}}"#;
    std::fs::write(folder.path().join(".mcp.json"), file).unwrap();
    let made = run(&["import", "claude"], folder.path());
    assert_eq!(made.status.code(), Some(0));
    assert!(words(&made.stderr).contains("it is called `c-d`"), "{}", words(&made.stderr));
    std::fs::write(folder.path().join("mcp.json"), &made.stdout).unwrap();
    assert_eq!(run(&["check"], folder.path()).status.code(), Some(0));
}

#[test]
fn a_pipe_in_the_place_of_another_hosts_file_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join(".mcp.json");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    let refused = run(&["import", "claude"], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(words(&refused.stderr).contains("`.mcp.json` cannot be read"));
    assert!(words(&refused.stderr).contains("not a regular file"));
}

#[test]
fn files_that_are_named_are_read_up_to_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let sparse = std::fs::File::create(folder.path().join("big")).unwrap();
    let line = "ask x --demo --provider scripted --script big";
    let ask: Vec<_> = line.split(' ').collect();
    for (line, mib) in [(&["extract", "--tools", "big"][..], 16), (&ask, 64)] {
        sparse.set_len((mib << 20) + 1).unwrap();
        let refused = run(line, folder.path());
        assert_eq!(refused.status.code(), Some(2));
        let words = words(&refused.stderr);
        assert!(
            words.contains(&format!(
                "`big` cannot be read\n  caused by: it is longer than {mib} MiB"
            )),
            "{words}"
        );
        sparse.set_len(mib << 20).unwrap();
        let words = String::from_utf8(run(line, folder.path()).stderr).unwrap();
        assert!(words.contains("`big`") && !words.contains("longer"), "{words}");
    }
}
