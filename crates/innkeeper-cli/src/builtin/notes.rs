//! The notes server: short notes with tags in one file.

mod note;
mod store;

mod tools;

mod prompts;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::{Value, json};

use super::service::{FailureMessage, JsonObject, ServerIdentity, Service, ToolOutput};
use store::{NoteStore, StoreError};

/// Maximum number of notes listed as resources; clients use `find_notes` to find more.
const MAX_RESOURCES: usize = 500;

/// URI prefix before the note's id.
const SCHEME: &str = "notes://";

#[derive(Debug)]
pub(crate) struct NotesService {
    store: NoteStore,
}

impl NotesService {
    /// Opens a notes file; creates the file if it does not exist.
    ///
    /// # Errors
    ///
    /// The file is unusable, or its content is not a notes file.
    pub(crate) fn open(file: &Path) -> Result<Self, StoreError> {
        Ok(Self { store: NoteStore::open(file)? })
    }
}

impl Service for NotesService {
    fn identity(&self) -> ServerIdentity {
        ServerIdentity {
            name: "innkeeper-notes",
            title: "Notes",
            instructions: "Keeps short notes with tags. Add a note, remember its id, and find it \
                           again by a word of it or by a tag.",
        }
    }

    fn tools(&self) -> Vec<Value> {
        tools::definitions()
    }

    fn call_tool(
        &mut self,
        tool: &str,
        arguments: JsonObject,
    ) -> Option<Result<ToolOutput, FailureMessage>> {
        tools::call_tool(&mut self.store, tool, arguments)
    }

    fn resources(&mut self) -> Result<Vec<Value>, FailureMessage> {
        let notes = self.store.notes().map_err(|error| error.describe())?;
        Ok(notes
            .take(MAX_RESOURCES)
            .map(|note| {
                json!({
                    "uri": format!("{SCHEME}{}", note.id),
                    "name": note.id,
                    "title": note.title,
                    "mimeType": "text/markdown",
                })
            })
            .collect())
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

    fn read_resource(&mut self, uri: &str) -> Option<Result<Value, FailureMessage>> {
        let id = uri.strip_prefix(SCHEME)?;
        match self.store.get(id) {
            Ok(note) => {
                let text = note.as_markdown();
                Some(Ok(json!([{ "uri": uri, "mimeType": "text/markdown", "text": text }])))
            }
            Err(StoreError::UnknownNote { .. }) => None,
            Err(error) => Some(Err(error.describe())),
        }
    }

    fn prompts(&self) -> Vec<Value> {
        prompts::definitions()
    }

    fn get_prompt(
        &mut self,
        name: &str,
        arguments: JsonObject,
    ) -> Option<Result<Value, FailureMessage>> {
        prompts::get(&mut self.store, name, arguments)
    }
}
