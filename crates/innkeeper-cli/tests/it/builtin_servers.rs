//! Tests of the built-in servers over stdio in every protocol revision.

use std::fs;

use serde_json::{Value, json};

use crate::program::{ServerProcess, innkeeper};

const LEGACY_REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Starts a server for each protocol revision.
fn servers_in_every_revision(start: &dyn Fn() -> ServerProcess) -> Vec<ServerProcess> {
    let legacy = LEGACY_REVISIONS.map(|revision| start().with_legacy_revision(revision));
    legacy.into_iter().chain([start().with_modern_revision()]).collect()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|item| item["name"].as_str()).collect()
}

#[test]
fn the_files_server_works_in_every_revision_and_ends_with_its_input() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "alpha Ω 🦀\n").unwrap();
    for mut server in servers_in_every_revision(&|| ServerProcess::start("files", dir.path())) {
        let tools = server.request("tools/list", json!({}))["tools"].clone();
        let expected =
            ["list_directory", "read_text_file", "write_file", "search_text", "file_info"];
        assert_eq!(names(&tools), expected);
        let listing = server.call("list_directory", &json!({ "path": "." }));
        assert_eq!(names(&listing["entries"])[0], "a.txt");
        let read = server.call("read_text_file", &json!({ "path": "a.txt" }));
        assert_eq!(read["text"], "alpha Ω 🦀\n");
        server.call("write_file", &json!({ "path": "b.txt", "content": "line\u{2028}\nbeta" }));
        let matches = server.call("search_text", &json!({ "query": "beta" }));
        assert_eq!(matches["matches"][0]["path"], "b.txt");
        let resources = server.request("resources/list", json!({}))["resources"].clone();
        let contents =
            server.request("resources/read", json!({ "uri": resources[0]["uri"] }))["contents"]
                .clone();
        assert_eq!(contents[0]["text"], "alpha Ω 🦀\n");
        assert!(server.close_and_wait().success());
    }
}

#[test]
fn the_files_server_refuses_to_leave_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("root")).unwrap();
    fs::write(dir.path().join("secret"), "s3cret").unwrap();
    let mut server =
        ServerProcess::start("files", &dir.path().join("root")).with_legacy_revision("2025-11-25");
    let params = json!({ "name": "read_text_file", "arguments": { "path": "../secret" } });
    let result = server.request("tools/call", params);
    assert_eq!(result["isError"], true);
    assert!(!result.to_string().contains("s3cret"));
    assert!(!result.to_string().contains(dir.path().to_str().unwrap()), "{result}");
    assert!(server.close_and_wait().success());
}

#[test]
fn the_notes_server_works_in_every_revision_and_remembers_across_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("notes.jsonl");
    for (index, mut server) in
        servers_in_every_revision(&|| ServerProcess::start("notes", &file)).into_iter().enumerate()
    {
        let note = json!({ "title": "Cellar", "text": "Turn the wine.", "tags": ["wine"] });
        let id = server.call("add_note", &note)["id"].clone();
        assert_eq!(server.call("get_note", &json!({ "id": id }))["title"], "Cellar");
        let result = server.call("find_notes", &json!({ "tag": "wine" }));
        assert_eq!(result["total"], index + 1);
        let prompts = server.request("prompts/list", json!({}))["prompts"].clone();
        assert_eq!(names(&prompts), ["summarize_notes"]);
        let prompt = server.request("prompts/get", json!({ "name": "summarize_notes" }));
        let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(text.contains("Turn the wine."));
        let templates = server.request("resources/templates/list", json!({}));
        assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "notes://{id}");
        assert!(server.close_and_wait().success());
    }
}

#[test]
fn a_server_that_cannot_serve_reports_why_and_exits_with_the_usage_code() {
    let dir = tempfile::tempdir().unwrap();
    let output = innkeeper(&["__server", "files", "nowhere"], dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("error: cannot serve `nowhere`\n  caused by: "), "{stderr}");
}
