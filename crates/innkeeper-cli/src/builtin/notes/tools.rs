//! Tool definitions of the notes server, with their dispatch.

use serde::Deserialize;
use serde_json::{Value, json};

use super::note::Note;
use super::store::{NoteStore, StoreError};
use crate::builtin::service::{
    FailureMessage, JsonObject, ToolDefinition, ToolEffect, ToolOutput, object_schema,
    parse_arguments, property_schema,
};

/// Maximum number of notes in a search result.
pub(super) const MAX_SEARCH_RESULTS: usize = 50;

pub(super) fn definitions() -> Vec<Value> {
    [add_tool(), get_tool(), find_tool(), tag_tool(), delete_tool()].map(Value::from).to_vec()
}

/// Calls a tool; `None` if there is no tool of this name.
pub(super) fn call_tool(
    store: &mut NoteStore,
    tool: &str,
    arguments: JsonObject,
) -> Option<Result<ToolOutput, FailureMessage>> {
    Some(match tool {
        "add_note" => parse_arguments::<AddArguments>(arguments).and_then(|add| {
            let note = store.add(add.title, add.text, add.tags).map_err(to_failure_message)?;
            Ok(to_tool_output(format!("added `{}`", note.id), json!(note)))
        }),
        "get_note" => parse_arguments::<NoteIdArguments>(arguments).and_then(|parsed| {
            let note = store.get(&parsed.id).map_err(to_failure_message)?;
            Ok(to_tool_output(note.as_markdown(), json!(note)))
        }),
        "find_notes" => {
            parse_arguments::<FindArguments>(arguments).and_then(|find| find.run(store))
        }
        "tag_note" => parse_arguments::<TagArguments>(arguments).and_then(|tagged| {
            let note = store.tag(&tagged.id, &tagged.tag).map_err(to_failure_message)?;
            Ok(to_tool_output(
                format!("`{}` has the tags: {}", note.id, note.tags.join(", ")),
                json!(note),
            ))
        }),
        "delete_note" => parse_arguments::<NoteIdArguments>(arguments).and_then(|parsed| {
            store.delete(&parsed.id).map_err(to_failure_message)?;
            Ok(to_tool_output(format!("deleted `{}`", parsed.id), json!({ "id": parsed.id })))
        }),
        _ => return None,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "maps the error of a result")]
fn to_failure_message(error: StoreError) -> FailureMessage {
    error.describe()
}

fn to_tool_output(text: String, structured: Value) -> ToolOutput {
    ToolOutput { text, structured }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddArguments {
    title: String,
    text: String,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoteIdArguments {
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TagArguments {
    id: String,
    tag: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FindArguments {
    query: Option<String>,
    tag: Option<String>,
}

impl FindArguments {
    fn run(&self, store: &mut NoteStore) -> Result<ToolOutput, FailureMessage> {
        let query = self.query.as_deref().unwrap_or_default().to_lowercase();
        let matches: Vec<&Note> = store
            .notes()
            .map_err(to_failure_message)?
            .filter(|note| self.tag.as_ref().is_none_or(|tag| note.tags.contains(tag)))
            .filter(|note| note.contains(&query))
            .collect();
        let listed = &matches[..matches.len().min(MAX_SEARCH_RESULTS)];
        let lines = listed.iter().map(|note| format!("{}: {}\n", note.id, note.title));
        let text =
            format!("{} of {} notes\n", listed.len(), matches.len()) + &lines.collect::<String>();
        Ok(to_tool_output(text, json!({ "notes": listed, "total": matches.len() })))
    }
}

fn id_schema() -> Value {
    property_schema("string", "The note's id, as `add_note` gave it")
}

fn note_schema() -> Value {
    object_schema(
        json!({
            "id": { "type": "string" },
            "title": { "type": "string" },
            "text": { "type": "string" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "created": property_schema("string", "RFC 3339, UTC"),
        }),
        &["id", "title", "text", "tags", "created"],
    )
}

fn add_tool() -> ToolDefinition {
    let tags = json!({
        "type": "array",
        "items": { "type": "string" },
        "description": "Words to find the note by, at most 16",
    });
    ToolDefinition {
        name: "add_note",
        title: "Add a note",
        description: "Keeps a note and gives back its id.",
        effect: ToolEffect::Create,
        input_schema: object_schema(
            json!({
                "title": property_schema("string", "One line"),
                "text": property_schema("string", "The note, at most 64 KiB"),
                "tags": tags,
            }),
            &["title", "text"],
        ),
        output_schema: note_schema(),
    }
}

fn get_tool() -> ToolDefinition {
    ToolDefinition {
        name: "get_note",
        title: "Get a note",
        description: "Gives a note by its id.",
        effect: ToolEffect::ReadOnly,
        input_schema: object_schema(json!({ "id": id_schema() }), &["id"]),
        output_schema: note_schema(),
    }
}

fn find_tool() -> ToolDefinition {
    ToolDefinition {
        name: "find_notes",
        title: "Find notes",
        description: "Finds the notes that have a text in title or body, in any case, and a tag. \
                      Gives at most 50; without arguments, any.",
        effect: ToolEffect::ReadOnly,
        input_schema: object_schema(
            json!({
                "query": property_schema("string", "A word or phrase of the note"),
                "tag": property_schema("string", "A tag, spelled exactly"),
            }),
            &[],
        ),
        output_schema: object_schema(
            json!({
                "notes": { "type": "array", "items": note_schema() },
                "total": property_schema("integer", "How many there are, shown or not"),
            }),
            &["notes", "total"],
        ),
    }
}

fn tag_tool() -> ToolDefinition {
    ToolDefinition {
        name: "tag_note",
        title: "Tag a note",
        description: "Adds a tag to a note; one that it has already changes nothing.",
        effect: ToolEffect::Update,
        input_schema: object_schema(
            json!({ "id": id_schema(), "tag": property_schema("string", "The tag") }),
            &["id", "tag"],
        ),
        output_schema: note_schema(),
    }
}

fn delete_tool() -> ToolDefinition {
    ToolDefinition {
        name: "delete_note",
        title: "Delete a note",
        description: "Removes a note for good.",
        effect: ToolEffect::Delete,
        input_schema: object_schema(json!({ "id": id_schema() }), &["id"]),
        output_schema: object_schema(json!({ "id": { "type": "string" } }), &["id"]),
    }
}
