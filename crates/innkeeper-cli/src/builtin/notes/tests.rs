//! Tests of the notes server on a real file: changes, restarts, incomplete lines, limits.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::store::{MAX_NAME_BYTES, MAX_TAGS, MAX_TEXT_BYTES};
use super::*;

struct NotesFixture {
    folder: tempfile::TempDir,
    notes: NotesService,
}

fn notes_fixture() -> NotesFixture {
    let dir = tempfile::tempdir().unwrap();
    let notes = NotesService::open(&dir.path().join("notes.jsonl")).unwrap();
    NotesFixture { folder: dir, notes }
}

impl NotesFixture {
    fn file(&self) -> PathBuf {
        self.folder.path().join("notes.jsonl")
    }

    fn reopen(&mut self) {
        self.notes = NotesService::open(&self.file()).unwrap();
    }

    fn append(&self, bytes: &[u8]) {
        fs::OpenOptions::new().append(true).open(self.file()).unwrap().write_all(bytes).unwrap();
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, FailureMessage> {
        let Value::Object(arguments) = arguments else { panic!("no object") };
        let produced = self.notes.call_tool(tool, arguments).expect("the tool is there")?;
        Ok(produced.structured)
    }

    fn add(&mut self, title: &str, tags: &[&str]) -> String {
        let note = json!({ "title": title, "text": format!("About {title}."), "tags": tags });
        self.call("add_note", note).unwrap()["id"].as_str().unwrap().to_owned()
    }

    fn find_ids(&mut self, arguments: Value) -> Vec<String> {
        let result = self.call("find_notes", arguments).unwrap();
        let notes = result["notes"].as_array().unwrap();
        notes.iter().map(|note| note["id"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn a_note_is_stored_found_tagged_and_deleted() {
    let mut fixture = notes_fixture();
    let id = fixture.add("Cellar", &["stock"]);
    let note = fixture.call("get_note", json!({ "id": id })).unwrap();
    assert_eq!((&note["title"], &note["tags"]), (&json!("Cellar"), &json!(["stock"])));
    assert_eq!(fixture.find_ids(json!({ "query": "CELLAR." })), std::slice::from_ref(&id));
    assert_eq!(fixture.find_ids(json!({ "tag": "stock" })), std::slice::from_ref(&id));
    assert!(fixture.find_ids(json!({ "query": "cellar", "tag": "other" })).is_empty());
    for _ in 0..2 {
        let note = fixture.call("tag_note", json!({ "id": id, "tag": "wine" })).unwrap();
        assert_eq!(note["tags"], json!(["stock", "wine"]));
    }
    fixture.call("delete_note", json!({ "id": id })).unwrap();
    for (tool, extra) in [("get_note", None), ("delete_note", None), ("tag_note", Some("x"))] {
        let mut arguments = json!({ "id": id });
        if let Some(tag) = extra {
            arguments["tag"] = tag.into();
        }
        assert_eq!(fixture.call(tool, arguments), Err(format!("note `{id}` does not exist")));
    }
}

#[test]
fn notes_survive_a_restart_and_no_id_is_given_out_twice() {
    let mut fixture = notes_fixture();
    let first = fixture.add("one", &[]);
    let second = fixture.add("two", &[]);
    fixture.call("tag_note", json!({ "id": first, "tag": "t" })).unwrap();
    fixture.call("delete_note", json!({ "id": second })).unwrap();
    fixture.reopen();
    assert_eq!(fixture.find_ids(json!({ "tag": "t" })), std::slice::from_ref(&first));
    let third = fixture.add("three", &[]);
    assert!(third != first && third != second);
}

#[test]
fn a_torn_last_line_is_ignored_and_the_next_note_takes_its_place() {
    let mut fixture = notes_fixture();
    let first = fixture.add("one", &[]);
    let original = fs::read(fixture.file()).unwrap();
    for length in 1..original.len() - 1 {
        fs::write(fixture.file(), &original).unwrap();
        fixture.append(&original[..length]);
        fixture.reopen();
        assert_eq!(fixture.find_ids(json!({})), std::slice::from_ref(&first));
        let second = fixture.add("two", &[]);
        fixture.reopen();
        assert_eq!(fixture.find_ids(json!({})), [first.clone(), second]);
    }
}

#[test]
fn a_last_line_that_lacks_only_its_newline_counts() {
    let mut fixture = notes_fixture();
    let first = fixture.add("one", &[]);
    let original = fs::read(fixture.file()).unwrap();
    fs::write(fixture.file(), &original[..original.len() - 1]).unwrap();
    fixture.reopen();
    let second = fixture.add("two", &[]);
    fixture.reopen();
    assert_eq!(fixture.find_ids(json!({})), [first, second]);
}

#[test]
fn an_invalid_line_is_named_and_the_file_is_left_alone() {
    let mut fixture = notes_fixture();
    fixture.add("one", &[]);
    fixture.append(b"dear diary\n{}\n");
    let before = fs::read(fixture.file()).unwrap();
    let error = NotesService::open(&fixture.file()).unwrap_err();
    assert_eq!(error.to_string(), "line 2 of the notes file is not a valid change");
    assert_eq!(fs::read(fixture.file()).unwrap(), before);
}

#[test]
fn two_servers_on_one_file_see_each_other_and_share_no_id() {
    let mut fixture = notes_fixture();
    let mut other = NotesFixture {
        notes: NotesService::open(&fixture.file()).unwrap(),
        folder: fixture.folder,
    };
    fixture = NotesFixture { folder: tempfile::tempdir().unwrap(), notes: fixture.notes };
    let ids = [fixture.add("one", &[]), other.add("two", &[]), fixture.add("three", &[])];
    assert_eq!(ids, ["note-1", "note-2", "note-3"]);
    assert_eq!(fixture.find_ids(json!({})), ids);
    assert_eq!(other.find_ids(json!({})), ids);
}

#[test]
fn each_limit_holds_at_the_limit_and_one_past_it() {
    let mut fixture = notes_fixture();
    let cases = [("title", "t", MAX_NAME_BYTES), ("text", "x", MAX_TEXT_BYTES)];
    for (key, filler, limit) in cases {
        let mut note = json!({ "title": "t", "text": "x" });
        note[key] = filler.repeat(limit).into();
        assert!(fixture.call("add_note", note.clone()).is_ok(), "{key}");
        note[key] = filler.repeat(limit + 1).into();
        let message = fixture.call("add_note", note).unwrap_err();
        assert!(message.contains(&limit.to_string()), "{message}");
    }
    let tags: Vec<_> = (0..MAX_TAGS).map(|number| number.to_string()).collect();
    let note = fixture.call("add_note", json!({ "title": "t", "text": "", "tags": tags })).unwrap();
    let message = fixture.call("tag_note", json!({ "id": note["id"], "tag": "more" })).unwrap_err();
    assert!(message.contains("number of tags"), "{message}");
    assert!(fixture.call("add_note", json!({ "title": " ", "text": "" })).is_err());
}

#[test]
fn a_search_shows_so_many_notes_and_counts_all() {
    let mut fixture = notes_fixture();
    for number in 0..=tools::MAX_SEARCH_RESULTS {
        fixture.add(&number.to_string(), &[]);
    }
    let result = fixture.call("find_notes", json!({ "query": "about" })).unwrap();
    assert_eq!(result["notes"].as_array().unwrap().len(), tools::MAX_SEARCH_RESULTS);
    assert_eq!(result["total"], tools::MAX_SEARCH_RESULTS + 1);
}

#[test]
fn notes_are_resources_under_their_own_scheme() {
    let mut fixture = notes_fixture();
    let id = fixture.add("Cellar", &[]);
    let uri = format!("notes://{id}");
    assert_eq!(fixture.notes.resources().unwrap()[0]["uri"], uri);
    assert_eq!(fixture.notes.resource_templates()[0]["uriTemplate"], "notes://{id}");
    let contents = fixture.notes.read_resource(&uri).unwrap().unwrap();
    assert_eq!(contents[0]["text"], "# Cellar\n\nAbout Cellar.\n");
    assert!(fixture.notes.read_resource("notes://note-99").is_none());
    assert!(fixture.notes.read_resource("file:///etc/passwd").is_none());
}

#[test]
fn the_summary_prompt_holds_the_notes_with_the_tag_and_no_others() {
    let mut fixture = notes_fixture();
    fixture.add("Cellar", &["stock"]);
    fixture.add("Roof", &["repairs"]);
    let mut text = |arguments: Value| {
        let Value::Object(arguments) = arguments else { panic!("no object") };
        let prompt = fixture.notes.get_prompt("summarize_notes", arguments).unwrap()?;
        assert_eq!(prompt["messages"][0]["role"], "user");
        Ok::<_, FailureMessage>(
            prompt["messages"][0]["content"]["text"].as_str().unwrap().to_owned(),
        )
    };
    let all = text(json!({})).unwrap();
    assert!(all.contains("Cellar") && all.contains("Roof"));
    let tagged = text(json!({ "tag": "stock" })).unwrap();
    assert!(tagged.contains("Cellar") && !tagged.contains("Roof"));
    assert!(text(json!({ "tag": "none" })).unwrap().contains("no notes tagged `none`"));
    assert!(text(json!({ "tga": "x" })).is_err());
    assert!(fixture.notes.get_prompt("other", JsonObject::new()).is_none());
}

#[test]
fn every_tool_has_closed_schemas_and_honest_annotations() {
    let tools = notes_fixture().notes.tools();
    for tool in &tools {
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["additionalProperties"], false, "{tool}");
        }
    }
    let hinted = |hint: &str| -> Vec<_> {
        let has_hint = |tool: &&Value| tool["annotations"][hint] == true;
        tools
            .iter()
            .filter(has_hint)
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(hinted("readOnlyHint"), ["get_note", "find_notes"]);
    assert_eq!(hinted("destructiveHint"), ["delete_note"]);
    assert_eq!(hinted("idempotentHint"), ["get_note", "find_notes", "tag_note"]);
}
