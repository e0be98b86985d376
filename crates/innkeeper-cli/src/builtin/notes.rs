//! The notes server: small notes with tags, kept in one file.

mod record;
mod store;

mod tools;

mod prompt;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::{Value, json};

use super::service::{Complaint, Identity, Object, Produced, Service};
use record::Note;
use store::{Store, StoreError};

/// The most notes that are listed as resources; a client that wants more uses `find_notes`.
const MAX_RESOURCES: usize = 500;

/// What stands before a note's id in its URI.
const SCHEME: &str = "notes://";

/// Notes in a file.
#[derive(Debug)]
pub(crate) struct Notes {
    store: Store,
}

impl Notes {
    /// Keeps notes in a file, which is made where it is not there yet.
    ///
    /// # Errors
    ///
    /// The file cannot be used, or holds something other than notes.
    pub(crate) fn open(file: &Path) -> Result<Self, StoreError> {
        Ok(Self { store: Store::open(file)? })
    }
}

impl Service for Notes {
    fn identity(&self) -> Identity {
        Identity {
            name: "innkeeper-notes",
            title: "Notes",
            instructions: "Keeps short notes with tags. Add a note, remember its id, and find it \
                           again by a word of it or by a tag.",
        }
    }

    fn tools(&self) -> Vec<Value> {
        tools::all()
    }

    fn call(&mut self, tool: &str, arguments: Object) -> Option<Result<Produced, Complaint>> {
        tools::call(&mut self.store, tool, arguments)
    }

    fn resources(&mut self) -> Result<Vec<Value>, Complaint> {
        let notes = self.store.notes().map_err(|error| error.in_words())?;
        let described = |note: &Note| {
            json!({
                "uri": format!("{SCHEME}{}", note.id),
                "name": note.id,
                "title": note.title,
                "mimeType": "text/markdown",
            })
        };
        Ok(notes.take(MAX_RESOURCES).map(described).collect())
    }

    fn resource_templates(&self) -> Vec<Value> {
        vec![json!({
            "uriTemplate": format!("{SCHEME}{{id}}"),
            "name": "note",
            "title": "A note",
            "description": "A note by its id",
            "mimeType": "text/markdown",
        })]
    }

    fn read(&mut self, uri: &str) -> Option<Result<Value, Complaint>> {
        let id = uri.strip_prefix(SCHEME)?;
        match self.store.get(id) {
            Ok(note) => {
                let text = note.as_markdown();
                Some(Ok(json!([{ "uri": uri, "mimeType": "text/markdown", "text": text }])))
            }
            Err(StoreError::Unknown { .. }) => None,
            Err(error) => Some(Err(error.in_words())),
        }
    }

    fn prompts(&self) -> Vec<Value> {
        prompt::all()
    }

    fn prompt(&mut self, name: &str, arguments: Object) -> Option<Result<Value, Complaint>> {
        prompt::get(&mut self.store, name, arguments)
    }
}
