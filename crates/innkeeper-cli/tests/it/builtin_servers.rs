//! The two servers inside the program over their pipes, in every revision of the protocol.

use std::fs;

use serde_json::{Value, json};

use crate::program::{Server, innkeeper};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Every way to speak to a server.
fn spoken(start: &dyn Fn() -> Server) -> Vec<Server> {
    let legacy = LEGACY.map(|revision| start().legacy(revision));
    legacy.into_iter().chain([start().modern()]).collect()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|item| item["name"].as_str()).collect()
}

#[test]
fn the_files_server_works_in_every_revision_and_ends_with_its_input() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "alpha Ω 🦀\n").unwrap();
    for mut server in spoken(&|| Server::start("files", folder.path())) {
        let tools = server.request("tools/list", json!({}))["tools"].clone();
        let expected =
            ["list_directory", "read_text_file", "write_file", "search_text", "file_info"];
        assert_eq!(names(&tools), expected);
        let listed = server.call("list_directory", &json!({ "path": "." }));
        assert_eq!(names(&listed["entries"])[0], "a.txt");
        let read = server.call("read_text_file", &json!({ "path": "a.txt" }));
        assert_eq!(read["text"], "alpha Ω 🦀\n");
        server.call("write_file", &json!({ "path": "b.txt", "content": "line\u{2028}\nbeta" }));
        let found = server.call("search_text", &json!({ "query": "beta" }));
        assert_eq!(found["matches"][0]["path"], "b.txt");
        let resources = server.request("resources/list", json!({}))["resources"].clone();
        let contents =
            server.request("resources/read", json!({ "uri": resources[0]["uri"] }))["contents"]
                .clone();
        assert_eq!(contents[0]["text"], "alpha Ω 🦀\n");
        assert!(server.end().success());
    }
}

#[test]
fn the_files_server_refuses_to_leave_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("root")).unwrap();
    fs::write(folder.path().join("secret"), "s3cret").unwrap();
    let mut server = Server::start("files", &folder.path().join("root")).legacy("2025-11-25");
    let params = json!({ "name": "read_text_file", "arguments": { "path": "../secret" } });
    let result = server.request("tools/call", params);
    assert_eq!(result["isError"], true);
    assert!(!result.to_string().contains("s3cret"));
    assert!(!result.to_string().contains(folder.path().to_str().unwrap()), "{result}");
    assert!(server.end().success());
}

#[test]
fn the_notes_server_works_in_every_revision_and_remembers_across_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.jsonl");
    for (round, mut server) in spoken(&|| Server::start("notes", &file)).into_iter().enumerate() {
        let note = json!({ "title": "Cellar", "text": "Turn the wine.", "tags": ["wine"] });
        let id = server.call("add_note", &note)["id"].clone();
        assert_eq!(server.call("get_note", &json!({ "id": id }))["title"], "Cellar");
        let found = server.call("find_notes", &json!({ "tag": "wine" }));
        assert_eq!(found["total"], round + 1);
        let prompts = server.request("prompts/list", json!({}))["prompts"].clone();
        assert_eq!(names(&prompts), ["summarize_notes"]);
        let prompt = server.request("prompts/get", json!({ "name": "summarize_notes" }));
        let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(text.contains("Turn the wine."));
        let templates = server.request("resources/templates/list", json!({}));
        assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "notes://{id}");
        assert!(server.end().success());
    }
}

#[test]
fn a_server_that_cannot_serve_says_why_and_exits_with_the_usage_code() {
    let folder = tempfile::tempdir().unwrap();
    let output = innkeeper(&["__server", "files", "nowhere"], folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: cannot serve `nowhere`\n  caused by: "), "{said}");
}
