//! The notes server over a real file: changes, restarts, torn lines, limits.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::store::{MAX_NAME_BYTES, MAX_TAGS, MAX_TEXT_BYTES};
use super::*;

struct Kept {
    folder: tempfile::TempDir,
    notes: Notes,
}

fn kept() -> Kept {
    let folder = tempfile::tempdir().unwrap();
    let notes = Notes::open(&folder.path().join("notes.jsonl")).unwrap();
    Kept { folder, notes }
}

impl Kept {
    fn file(&self) -> PathBuf {
        self.folder.path().join("notes.jsonl")
    }

    fn again(&mut self) {
        self.notes = Notes::open(&self.file()).unwrap();
    }

    fn append(&self, bytes: &[u8]) {
        fs::OpenOptions::new().append(true).open(self.file()).unwrap().write_all(bytes).unwrap();
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Complaint> {
        let Value::Object(arguments) = arguments else { panic!("no object") };
        let produced = self.notes.call(tool, arguments).expect("the tool is there")?;
        Ok(produced.structured)
    }

    fn add(&mut self, title: &str, tags: &[&str]) -> String {
        let note = json!({ "title": title, "text": format!("About {title}."), "tags": tags });
        self.call("add_note", note).unwrap()["id"].as_str().unwrap().to_owned()
    }

    fn found(&mut self, arguments: Value) -> Vec<String> {
        let found = self.call("find_notes", arguments).unwrap();
        let notes = found["notes"].as_array().unwrap();
        notes.iter().map(|note| note["id"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn a_note_is_kept_found_tagged_and_deleted() {
    let mut kept = kept();
    let id = kept.add("Cellar", &["stock"]);
    let note = kept.call("get_note", json!({ "id": id })).unwrap();
    assert_eq!((&note["title"], &note["tags"]), (&json!("Cellar"), &json!(["stock"])));
    assert_eq!(kept.found(json!({ "query": "CELLAR." })), std::slice::from_ref(&id));
    assert_eq!(kept.found(json!({ "tag": "stock" })), std::slice::from_ref(&id));
    assert!(kept.found(json!({ "query": "cellar", "tag": "other" })).is_empty());
    for _ in 0..2 {
        let note = kept.call("tag_note", json!({ "id": id, "tag": "wine" })).unwrap();
        assert_eq!(note["tags"], json!(["stock", "wine"]));
    }
    kept.call("delete_note", json!({ "id": id })).unwrap();
    for (tool, extra) in [("get_note", None), ("delete_note", None), ("tag_note", Some("x"))] {
        let mut arguments = json!({ "id": id });
        if let Some(tag) = extra {
            arguments["tag"] = tag.into();
        }
        assert_eq!(kept.call(tool, arguments), Err(format!("there is no note `{id}`")));
    }
}

#[test]
fn notes_survive_a_restart_and_no_id_is_given_out_twice() {
    let mut kept = kept();
    let first = kept.add("one", &[]);
    let second = kept.add("two", &[]);
    kept.call("tag_note", json!({ "id": first, "tag": "t" })).unwrap();
    kept.call("delete_note", json!({ "id": second })).unwrap();
    kept.again();
    assert_eq!(kept.found(json!({ "tag": "t" })), std::slice::from_ref(&first));
    let third = kept.add("three", &[]);
    assert!(third != first && third != second);
}

#[test]
fn a_torn_last_line_never_happened_and_the_next_note_takes_its_place() {
    let mut kept = kept();
    let first = kept.add("one", &[]);
    let whole = fs::read(kept.file()).unwrap();
    for length in 1..whole.len() - 1 {
        fs::write(kept.file(), &whole).unwrap();
        kept.append(&whole[..length]);
        kept.again();
        assert_eq!(kept.found(json!({})), std::slice::from_ref(&first));
        let second = kept.add("two", &[]);
        kept.again();
        assert_eq!(kept.found(json!({})), [first.clone(), second]);
    }
}

#[test]
fn a_last_line_that_lacks_only_its_newline_counts() {
    let mut kept = kept();
    let first = kept.add("one", &[]);
    let whole = fs::read(kept.file()).unwrap();
    fs::write(kept.file(), &whole[..whole.len() - 1]).unwrap();
    kept.again();
    let second = kept.add("two", &[]);
    kept.again();
    assert_eq!(kept.found(json!({})), [first, second]);
}

#[test]
fn a_foreign_line_is_named_and_the_file_is_left_alone() {
    let mut kept = kept();
    kept.add("one", &[]);
    kept.append(b"dear diary\n{}\n");
    let before = fs::read(kept.file()).unwrap();
    let error = Notes::open(&kept.file()).unwrap_err();
    assert_eq!(error.to_string(), "line 2 of the notes file is not a change to a note");
    assert_eq!(fs::read(kept.file()).unwrap(), before);
}

#[test]
fn two_servers_on_one_file_see_each_other_and_share_no_id() {
    let mut kept = kept();
    let mut other = Kept { notes: Notes::open(&kept.file()).unwrap(), folder: kept.folder };
    kept = Kept { folder: tempfile::tempdir().unwrap(), notes: kept.notes };
    let ids = [kept.add("one", &[]), other.add("two", &[]), kept.add("three", &[])];
    assert_eq!(ids, ["note-1", "note-2", "note-3"]);
    assert_eq!(kept.found(json!({})), ids);
    assert_eq!(other.found(json!({})), ids);
}

#[test]
fn each_limit_holds_at_the_limit_and_one_past_it() {
    let mut kept = kept();
    let cases = [("title", "t", MAX_NAME_BYTES), ("text", "x", MAX_TEXT_BYTES)];
    for (key, filler, limit) in cases {
        let mut note = json!({ "title": "t", "text": "x" });
        note[key] = filler.repeat(limit).into();
        assert!(kept.call("add_note", note.clone()).is_ok(), "{key}");
        note[key] = filler.repeat(limit + 1).into();
        let complaint = kept.call("add_note", note).unwrap_err();
        assert!(complaint.contains(&limit.to_string()), "{complaint}");
    }
    let tags: Vec<_> = (0..MAX_TAGS).map(|number| number.to_string()).collect();
    let note = kept.call("add_note", json!({ "title": "t", "text": "", "tags": tags })).unwrap();
    let complaint = kept.call("tag_note", json!({ "id": note["id"], "tag": "more" })).unwrap_err();
    assert!(complaint.contains("number of tags"), "{complaint}");
    assert!(kept.call("add_note", json!({ "title": " ", "text": "" })).is_err());
}

#[test]
fn a_search_shows_so_many_notes_and_counts_all() {
    let mut kept = kept();
    for number in 0..=tools::MAX_FOUND {
        kept.add(&number.to_string(), &[]);
    }
    let found = kept.call("find_notes", json!({ "query": "about" })).unwrap();
    assert_eq!(found["notes"].as_array().unwrap().len(), tools::MAX_FOUND);
    assert_eq!(found["total"], tools::MAX_FOUND + 1);
}

#[test]
fn notes_are_resources_under_their_own_scheme() {
    let mut kept = kept();
    let id = kept.add("Cellar", &[]);
    let uri = format!("notes://{id}");
    assert_eq!(kept.notes.resources().unwrap()[0]["uri"], uri);
    assert_eq!(kept.notes.resource_templates()[0]["uriTemplate"], "notes://{id}");
    let contents = kept.notes.read(&uri).unwrap().unwrap();
    assert_eq!(contents[0]["text"], "# Cellar\n\nAbout Cellar.\n");
    assert!(kept.notes.read("notes://note-99").is_none());
    assert!(kept.notes.read("file:///etc/passwd").is_none());
}

#[test]
fn the_summary_prompt_holds_the_notes_with_the_tag_and_no_others() {
    let mut kept = kept();
    kept.add("Cellar", &["stock"]);
    kept.add("Roof", &["repairs"]);
    let mut text = |arguments: Value| {
        let Value::Object(arguments) = arguments else { panic!("no object") };
        let prompt = kept.notes.prompt("summarize_notes", arguments).unwrap()?;
        assert_eq!(prompt["messages"][0]["role"], "user");
        Ok::<_, Complaint>(prompt["messages"][0]["content"]["text"].as_str().unwrap().to_owned())
    };
    let all = text(json!({})).unwrap();
    assert!(all.contains("Cellar") && all.contains("Roof"));
    let tagged = text(json!({ "tag": "stock" })).unwrap();
    assert!(tagged.contains("Cellar") && !tagged.contains("Roof"));
    assert!(text(json!({ "tag": "none" })).unwrap().contains("no notes tagged `none`"));
    assert!(text(json!({ "tga": "x" })).is_err());
    assert!(kept.notes.prompt("other", Object::new()).is_none());
}

#[test]
fn every_tool_has_closed_schemas_and_honest_annotations() {
    let tools = kept().notes.tools();
    for tool in &tools {
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["additionalProperties"], false, "{tool}");
        }
    }
    let hinted = |hint: &str| -> Vec<_> {
        let has = |tool: &&Value| tool["annotations"][hint] == true;
        tools.iter().filter(has).map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(hinted("readOnlyHint"), ["get_note", "find_notes"]);
    assert_eq!(hinted("destructiveHint"), ["delete_note"]);
    assert_eq!(hinted("idempotentHint"), ["get_note", "find_notes", "tag_note"]);
}
