//! The prompt of the notes server.

use serde::Deserialize;
use serde_json::{Value, json};

use super::record::Note;
use super::store::Store;
use super::tools::MAX_FOUND;
use crate::builtin::service::{Complaint, Object, arguments};

const SUMMARIZE: &str = "summarize_notes";

pub(super) fn all() -> Vec<Value> {
    vec![json!({
        "name": SUMMARIZE,
        "title": "Summarize notes",
        "description": "Asks for a summary of all notes, or of those with a tag.",
        "arguments": [{ "name": "tag", "description": "Only notes with this tag", "required": false }],
    })]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Summarize {
    tag: Option<String>,
}

/// The messages of a prompt; `None` where there is none of this name.
pub(super) fn get(
    store: &mut Store,
    name: &str,
    given: Object,
) -> Option<Result<Value, Complaint>> {
    (name == SUMMARIZE).then(|| arguments(given).and_then(|wanted| summarize(store, &wanted)))
}

fn summarize(store: &mut Store, wanted: &Summarize) -> Result<Value, Complaint> {
    let tagged = |note: &&Note| wanted.tag.as_ref().is_none_or(|tag| note.tags.contains(tag));
    let notes = store.notes().map_err(|error| error.in_words())?;
    let notes: Vec<String> = notes.filter(tagged).take(MAX_FOUND).map(Note::as_markdown).collect();
    let which = wanted.tag.as_ref().map(|tag| format!(" tagged `{tag}`")).unwrap_or_default();
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
