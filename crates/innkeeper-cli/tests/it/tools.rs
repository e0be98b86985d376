//! Tests of `tools`: the table of all servers, and the definitions of one server or tool.

use innkeeper_testkit::{Fixture, Journal, fixture, mcp_json};
use serde_json::{Value, json};

use crate::program::run;
use crate::terminal::{run_on_terminal, screen_text};

fn config_dir(servers: impl IntoIterator<Item = Fixture>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mcp.json"), mcp_json(servers).to_string()).unwrap();
    dir
}

/// A server with one tool of each kind of parameter, and texts that are too long for a terminal.
fn search_server() -> Fixture {
    let tools = json!([
        {
            "name": "search_files",
            "description": "Finds text in all files below a directory.\n\nThe search compares the \
                            text of each line; 世界 counts as two characters of two columns.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "The text to find."},
                    "roots": {
                        "type": "array", "items": {"type": "string"},
                        "description": "The directories, relative to the directory of the server; \
                                        a directory that does not exist is skipped."
                    },
                    "maxResults": {"type": "integer", "default": 10},
                    "mode": {"enum": ["exact", "fuzzy"], "description": "The comparison."}
                },
                "required": ["query", "roots"]
            },
            "annotations": {"readOnlyHint": true}
        },
        {"name": "plain", "inputSchema": {"type": "object"}}
    ]);
    let resources =
        json!([{"uri": "fx://one/\u{1b}[2J", "name": "x", "description": "世界 ".repeat(60)}]);
    fixture("one").with("--tools", tools).with("--resources", resources).with("--templates", "[]")
}

fn visible(text: &str) -> String {
    text.replace('\u{1b}', "␛")
}

#[test]
fn the_table_fits_a_terminal_of_80_columns_with_whole_names_and_shortened_descriptions() {
    let dir = config_dir([search_server()]);
    let run = run_on_terminal(&["tools", "--config", "mcp.json"], dir.path(), 80);
    assert_eq!(run.status.code(), Some(0), "{}", run.stderr);
    insta::assert_snapshot!(visible(&run.stdout));
    let screen = screen_text(&run.stdout, 80);
    assert_eq!(screen.lines().count(), run.stdout.lines().count(), "no line wraps: {screen}");
}

#[test]
fn the_table_fits_a_terminal_of_120_columns() {
    let dir = config_dir([search_server()]);
    let run = run_on_terminal(&["tools", "--config", "mcp.json"], dir.path(), 120);
    insta::assert_snapshot!(screen_text(&run.stdout, 120));
    assert_eq!(screen_text(&run.stdout, 120).lines().count(), run.stdout.lines().count());
}

#[test]
fn on_a_pipe_the_table_has_whole_descriptions_and_no_styles() {
    let dir = config_dir([search_server()]);
    let output = run(&["tools", "--config", "mcp.json"], dir.path());
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap());
}

#[test]
fn one_server_is_shown_with_signatures_parameters_and_lines_to_copy() {
    let journal = tempfile::NamedTempFile::new().unwrap();
    let dir = config_dir([search_server(), fixture("other").journal(journal.path())]);
    let on_terminal = run_on_terminal(&["tools", "one", "--config", "mcp.json"], dir.path(), 80);
    assert_eq!(on_terminal.status.code(), Some(0), "{}", on_terminal.stderr);
    insta::assert_snapshot!("one_server_on_80_columns", visible(&on_terminal.stdout));
    let on_wide_terminal =
        run_on_terminal(&["tools", "one", "--config", "mcp.json"], dir.path(), 120);
    insta::assert_snapshot!(
        "one_server_on_120_columns",
        screen_text(&on_wide_terminal.stdout, 120)
    );
    let on_pipe = run(&["tools", "one", "--config", "mcp.json"], dir.path());
    insta::assert_snapshot!("one_server_on_a_pipe", String::from_utf8(on_pipe.stdout).unwrap());
    assert_eq!(Journal::read(journal.path()).pids().len(), 0, "the other server was started");
}

#[test]
fn one_tool_is_shown_alone_in_text_and_in_json() {
    let dir = config_dir([search_server(), fixture("other")]);
    let output = run(&["tools", "one.search_files"], dir.path());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("one.search_files(query, roots, maxResults?, mode?)\n"), "{text}");
    assert!(
        text.ends_with("\n  innkeeper call one.search_files query=QUERY roots=ROOTS\n"),
        "{text}"
    );
    let output = run(&["tools", "one.search_files", "--json"], dir.path());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let servers = result["servers"].as_object().unwrap();
    assert_eq!(servers.keys().collect::<Vec<_>>(), ["one"]);
    let tools = servers["one"]["tools"].as_array().unwrap();
    assert_eq!((tools.len(), &tools[0]["name"]), (1, &json!("search_files")));
    for list in ["prompts", "resources", "resourceTemplates"] {
        assert_eq!(servers["one"][list], json!([]), "{list}");
    }
    let output = run(&["tools", "one", "--json"], dir.path());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["servers"].as_object().unwrap().len(), 1);
    assert_eq!(result["servers"]["one"]["tools"].as_array().unwrap().len(), 2);
}

#[test]
fn the_line_to_copy_calls_the_tool() {
    let dir = config_dir([fixture("one")]);
    let output = run(&["tools", "one.echo", "--config", "mcp.json"], dir.path());
    let text = String::from_utf8(output.stdout).unwrap();
    let words = shlex::split(text.lines().last().unwrap()).unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = run(&words[1..], dir.path());
    assert_eq!(output.status.code(), Some(0), "{words:?}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["content"][0]["text"], "MESSAGE");
}

#[test]
fn an_unknown_server_or_tool_is_a_usage_error_with_the_next_step() {
    let denied = fixture("one").config_key("tools", json!({"deny": ["add"]}));
    let dir = config_dir([denied]);
    let stderr_of = |target: &str| {
        let output = run(&["tools", target, "--config", "mcp.json"], dir.path());
        assert_eq!(output.status.code(), Some(2), "{target}");
        assert_eq!(output.stdout, b"");
        String::from_utf8(output.stderr).unwrap()
    };
    insta::assert_snapshot!(stderr_of("on"));
    insta::assert_snapshot!(stderr_of("one.ecko"));
    insta::assert_snapshot!(stderr_of("one.nothing"));
    insta::assert_snapshot!(stderr_of("one.add"));
}
