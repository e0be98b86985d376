//! Prompts of the notes server.

use serde::Deserialize;
use serde_json::{Value, json};

use super::note::Note;
use super::store::NoteStore;
use super::tools::MAX_SEARCH_RESULTS;
use crate::builtin::service::{FailureMessage, JsonObject, parse_arguments};

const SUMMARIZE_PROMPT: &str = "summarize_notes";

pub(super) fn definitions() -> Vec<Value> {
    vec![json!({
        "name": SUMMARIZE_PROMPT,
        "title": "Summarize notes",
        "description": "Asks for a summary of all notes, or of those with a tag.",
        "arguments": [{ "name": "tag", "description": "Only notes with this tag", "required": false }],
    })]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SummarizeArguments {
    tag: Option<String>,
}

/// Returns the messages of a prompt; `None` if there is no prompt of this name.
pub(super) fn get(
    store: &mut NoteStore,
    name: &str,
    arguments: JsonObject,
) -> Option<Result<Value, FailureMessage>> {
    (name == SUMMARIZE_PROMPT)
        .then(|| parse_arguments(arguments).and_then(|parsed| summarize(store, &parsed)))
}

fn summarize(
    store: &mut NoteStore,
    arguments: &SummarizeArguments,
) -> Result<Value, FailureMessage> {
    let notes = store.notes().map_err(|error| error.describe())?;
    let notes: Vec<String> = notes
        .filter(|note| arguments.tag.as_ref().is_none_or(|tag| note.tags.contains(tag)))
        .take(MAX_SEARCH_RESULTS)
        .map(Note::as_markdown)
        .collect();
    let which = arguments.tag.as_ref().map(|tag| format!(" tagged `{tag}`")).unwrap_or_default();
    let text = if notes.is_empty() {
        format!("There are no notes{which}. Say so in one sentence.")
    } else {
        let task = "Summarize these notes in a few sentences, and name what they have in common";
        format!("{task}.\n\n{}", notes.join("\n"))
    };
    Ok(json!({
        "description": format!("A summary of the notes{which}"),
        "messages": [{ "role": "user", "content": { "type": "text", "text": text } }],
    }))
}
