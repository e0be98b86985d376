//! The tools of the notes server: their schemas, and which of them does what.

use serde::Deserialize;
use serde_json::{Value, json};

use super::record::Note;
use super::store::{Store, StoreError};
use crate::builtin::service::{
    Acts, Complaint, Object, Produced, Tool, arguments, described, object,
};

/// The most notes that one search gives back.
pub(super) const MAX_FOUND: usize = 50;

/// All tools as they are listed.
pub(super) fn all() -> Vec<Value> {
    [add(), get(), find(), tag(), delete()].map(Value::from).to_vec()
}

/// Calls a tool; `None` where there is none of this name.
pub(super) fn call(
    store: &mut Store,
    tool: &str,
    given: Object,
) -> Option<Result<Produced, Complaint>> {
    Some(match tool {
        "add_note" => arguments::<Add>(given).and_then(|add| {
            let note = store.add(add.title, add.text, add.tags).map_err(words)?;
            Ok(produced(format!("added `{}`", note.id), json!(note)))
        }),
        "get_note" => arguments::<Named>(given).and_then(|named| {
            let note = store.get(&named.id).map_err(words)?;
            Ok(produced(note.as_markdown(), json!(note)))
        }),
        "find_notes" => arguments::<Find>(given).and_then(|find| find.run(store)),
        "tag_note" => arguments::<Tagged>(given).and_then(|tagged| {
            let note = store.tag(&tagged.id, &tagged.tag).map_err(words)?;
            Ok(produced(
                format!("`{}` has the tags: {}", note.id, note.tags.join(", ")),
                json!(note),
            ))
        }),
        "delete_note" => arguments::<Named>(given).and_then(|named| {
            store.delete(&named.id).map_err(words)?;
            Ok(produced(format!("deleted `{}`", named.id), json!({ "id": named.id })))
        }),
        _ => return None,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "maps the error of a result")]
fn words(error: StoreError) -> Complaint {
    error.in_words()
}

fn produced(text: String, structured: Value) -> Produced {
    Produced { text, structured }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Add {
    title: String,
    text: String,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tagged {
    id: String,
    tag: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Find {
    query: Option<String>,
    tag: Option<String>,
}

impl Find {
    fn run(&self, store: &mut Store) -> Result<Produced, Complaint> {
        let query = self.query.as_deref().unwrap_or_default().to_lowercase();
        let tagged = |note: &&Note| self.tag.as_ref().is_none_or(|tag| note.tags.contains(tag));
        let found: Vec<&Note> =
            store.notes().map_err(words)?.filter(tagged).filter(|note| note.has(&query)).collect();
        let shown = &found[..found.len().min(MAX_FOUND)];
        let lines = shown.iter().map(|note| format!("{}: {}\n", note.id, note.title));
        let text =
            format!("{} of {} notes\n", shown.len(), found.len()) + &lines.collect::<String>();
        Ok(produced(text, json!({ "notes": shown, "total": found.len() })))
    }
}

fn id() -> Value {
    described("string", "The note's id, as `add_note` gave it")
}

/// The schema of a note.
fn note() -> Value {
    object(
        json!({
            "id": { "type": "string" },
            "title": { "type": "string" },
            "text": { "type": "string" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "created": described("string", "RFC 3339, UTC"),
        }),
        &["id", "title", "text", "tags", "created"],
    )
}

fn add() -> Tool {
    let tags = json!({
        "type": "array",
        "items": { "type": "string" },
        "description": "Words to find the note by, at most 16",
    });
    Tool {
        name: "add_note",
        title: "Add a note",
        description: "Keeps a note and gives back its id.",
        acts: Acts::Adds,
        takes: object(
            json!({
                "title": described("string", "One line"),
                "text": described("string", "The note, at most 64 KiB"),
                "tags": tags,
            }),
            &["title", "text"],
        ),
        gives: note(),
    }
}

fn get() -> Tool {
    Tool {
        name: "get_note",
        title: "Get a note",
        description: "Gives a note by its id.",
        acts: Acts::Reads,
        takes: object(json!({ "id": id() }), &["id"]),
        gives: note(),
    }
}

fn find() -> Tool {
    Tool {
        name: "find_notes",
        title: "Find notes",
        description: "Finds the notes that have a text in title or body, in any case, and a tag. \
                      Gives at most 50; without arguments, any.",
        acts: Acts::Reads,
        takes: object(
            json!({
                "query": described("string", "A word or phrase of the note"),
                "tag": described("string", "A tag, spelled exactly"),
            }),
            &[],
        ),
        gives: object(
            json!({
                "notes": { "type": "array", "items": note() },
                "total": described("integer", "How many there are, shown or not"),
            }),
            &["notes", "total"],
        ),
    }
}

fn tag() -> Tool {
    Tool {
        name: "tag_note",
        title: "Tag a note",
        description: "Adds a tag to a note; one that it has already changes nothing.",
        acts: Acts::Marks,
        takes: object(json!({ "id": id(), "tag": described("string", "The tag") }), &["id", "tag"]),
        gives: note(),
    }
}

fn delete() -> Tool {
    Tool {
        name: "delete_note",
        title: "Delete a note",
        description: "Removes a note for good.",
        acts: Acts::Removes,
        takes: object(json!({ "id": id() }), &["id"]),
        gives: object(json!({ "id": { "type": "string" } }), &["id"]),
    }
}
