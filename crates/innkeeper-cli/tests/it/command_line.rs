//! Tests of the command line contract: streams, exit codes, one JSON value.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::program::run;

fn utf8(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the program writes UTF-8")
}

fn json_value(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one JSON value on stdout")
}

#[test]
fn import_prints_the_configuration_and_reports_on_stderr_what_it_lacks() {
    let text = r#"{"mcpServers": {"fs": {"command": "npx", "autoApprove": ["x"]}}}"#;
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join(".cursor")).unwrap();
    fs::write(dir.path().join(".cursor/mcp.json"), text).unwrap();
    for args in [&["import", "cursor"][..], &["import"], &["--json", "import"]] {
        let output = run(args, dir.path());
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        let expected = json!({ "servers": { "fs": { "type": "stdio", "command": "npx" } } });
        assert_eq!(json_value(&output), expected);
        let stderr = utf8(&output.stderr);
        assert!(
            stderr.starts_with("note: `.cursor/mcp.json`: server `fs`: `autoApprove`"),
            "{stderr}"
        );
    }
}

#[test]
fn import_takes_the_files_that_it_can_read_and_names_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(".mcp.json", "{");
    write(".codex/config.toml", "mcp_servers = 1");
    let failed = run(&["import"], dir.path());
    assert_eq!(failed.status.code(), Some(2));
    assert_eq!(utf8(&failed.stdout), "");
    insta::assert_snapshot!(utf8(&failed.stderr), @r"
    error: no file can be imported
      cannot parse `.mcp.json`: Unterminated object on line 1 column 2
      `.codex/config.toml`: `mcp_servers` must be an object
    ");
    write(".gemini/settings.json", r#"{"mcpServers": {"fs": {"command": "npx"}}}"#);
    for args in [&["import"][..], &["--json", "import"]] {
        let output = run(args, dir.path());
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        let expected = json!({ "servers": { "fs": { "type": "stdio", "command": "npx" } } });
        assert_eq!(json_value(&output), expected);
        insta::allow_duplicates! {
            insta::assert_snapshot!(utf8(&output.stderr), @r"
            warning: cannot parse `.mcp.json`: Unterminated object on line 1 column 2; this file is not imported
            warning: `.codex/config.toml`: `mcp_servers` must be an object; this file is not imported
            ");
        }
    }
}

#[test]
fn import_of_a_file_without_servers_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".mcp.json"), r#"{"mcpServers": {"a": {}}}"#).unwrap();
    let output = run(&["import"], dir.path());
    assert_eq!((output.status.code(), utf8(&output.stdout)), (Some(2), ""));
    insta::assert_snapshot!(utf8(&output.stderr), @r"
    note: `.mcp.json`: server `a`: not imported: the definition has neither `command` nor `url`
    error: no server to import in `.mcp.json`
    ");
}

#[test]
fn a_failure_is_text_on_stderr_and_with_json_one_value_on_stdout() {
    let dir = tempfile::tempdir().unwrap();
    let plain = run(&["import", "cursor"], dir.path());
    assert_eq!(plain.status.code(), Some(2));
    assert_eq!(utf8(&plain.stdout), "");
    insta::assert_snapshot!(utf8(&plain.stderr), @r"
    error: no configuration of `cursor` found
      searched `.cursor/mcp.json`, `~/.cursor/mcp.json`
    ");
    let json = run(&["import", "cursor", "--json"], dir.path());
    assert_eq!(json.status.code(), Some(2));
    assert_eq!(json_value(&json)["error"]["exitCode"], 2);
    assert_eq!(json.stderr, plain.stderr);
}

#[test]
fn an_invalid_command_line_is_a_usage_error_in_both_forms() {
    let here = Path::new("/");
    let plain = run(&["imprt"], here);
    assert_eq!(plain.status.code(), Some(2));
    assert!(utf8(&plain.stderr).contains("imprt"));
    assert_eq!(utf8(&plain.stdout), "");
    let json = run(&["imprt", "--json"], here);
    assert_eq!(json.status.code(), Some(2));
    assert!(json_value(&json)["error"]["message"].as_str().unwrap().contains("imprt"));
}

#[test]
fn help_and_version_are_data_and_end_well() {
    let help = run(&["--help"], Path::new("/"));
    assert_eq!(help.status.code(), Some(0));
    let text = utf8(&help.stdout);
    assert!(text.contains("import") && !text.contains("__server"), "{text}");
    assert_eq!(run(&["--version"], Path::new("/")).status.code(), Some(0));
}

#[test]
fn the_command_of_the_built_in_servers_is_neither_suggested_nor_completed() {
    let output = run(&["servers"], Path::new("/"));
    assert_eq!(output.status.code(), Some(2));
    assert!(!utf8(&output.stderr).contains("__server"), "{}", utf8(&output.stderr));
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(&["completions", shell], Path::new("/"));
        assert!(!utf8(&script.stdout).contains("__server"), "{shell}");
    }
}

#[test]
fn completions_are_a_script_or_one_json_value() {
    let script = run(&["completions", "bash"], Path::new("/"));
    assert_eq!(script.status.code(), Some(0));
    assert!(utf8(&script.stdout).contains("_innkeeper"));
    let json = run(&["completions", "bash", "--json"], Path::new("/"));
    assert_eq!(json_value(&json)["shell"], "bash");
}

#[test]
fn completions_of_import_list_the_hosts() {
    let script_of = |shell| run(&["completions", shell], Path::new("/")).stdout;
    let bash = script_of("bash");
    assert!(utf8(&bash).contains("claude vscode cursor gemini codex windsurf opencode zed\""));
    let zsh = script_of("zsh");
    assert!(utf8(&zsh).contains("windsurf\\:\"Windsurf\""));
    let wrong = run(&["import", "emacs"], Path::new("/"));
    insta::assert_snapshot!(utf8(&wrong.stderr).lines().next().unwrap(), @"error: invalid value 'emacs' for '[HOST|PATH]': expected the path of a file, or one of claude, vscode, cursor, gemini, codex, windsurf, opencode, zed");
}

#[test]
fn what_is_imported_has_names_that_check_accepts() {
    let dir = tempfile::tempdir().unwrap();
    let file = r#"{"mcpServers": {"c\u200bd": {"command": "x"}}}"#;
    std::fs::write(dir.path().join(".mcp.json"), file).unwrap();
    let output = run(&["import", "claude"], dir.path());
    assert_eq!(output.status.code(), Some(0));
    assert!(utf8(&output.stderr).contains("renamed to `cd`"), "{}", utf8(&output.stderr));
    std::fs::write(dir.path().join("mcp.json"), &output.stdout).unwrap();
    assert_eq!(run(&["check"], dir.path()).status.code(), Some(0));
}

/// Attack: files | the file of another host is a pipe | the import ends with an error | No
/// unbounded wait
#[test]
fn a_pipe_in_the_place_of_another_hosts_file_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join(".mcp.json");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    let output = run(&["import", "claude"], dir.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(utf8(&output.stderr).contains("cannot read `.mcp.json`"));
    assert!(utf8(&output.stderr).contains("not a regular file"));
}

/// Attack: files | a named file is one byte longer than its limit | the file is rejected | No
/// unbounded memory
#[test]
fn files_that_are_named_are_read_up_to_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let sparse = std::fs::File::create(dir.path().join("big")).unwrap();
    let line = "ask x --demo --provider scripted --script big";
    let args: Vec<_> = line.split(' ').collect();
    for (line, mib) in [(&["extract", "--tools", "big"][..], 16), (&args, 64)] {
        sparse.set_len((mib << 20) + 1).unwrap();
        let output = run(line, dir.path());
        assert_eq!(output.status.code(), Some(2));
        let stderr = utf8(&output.stderr);
        assert!(
            stderr.contains(&format!("cannot read `big`\n  caused by: longer than {mib} MiB")),
            "{stderr}"
        );
        sparse.set_len(mib << 20).unwrap();
        let stderr = String::from_utf8(run(line, dir.path()).stderr).unwrap();
        assert!(stderr.contains("`big`") && !stderr.contains("longer"), "{stderr}");
    }
}
