//! Notes, and the changes in the notes file.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) text: String,
    pub(super) tags: Vec<String>,
    /// Time of creation: RFC 3339, UTC.
    pub(super) created: String,
}

impl Note {
    pub(super) fn as_markdown(&self) -> String {
        format!("# {}\n\n{}\n", self.title, self.text)
    }

    /// Whether the title or the text contains `query`, ignoring case; `query` is in lower case.
    pub(super) fn contains(&self, query: &str) -> bool {
        [&self.title, &self.text].into_iter().any(|text| text.to_lowercase().contains(query))
    }
}

/// A change: one line of the notes file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(super) enum NoteChange {
    Add(Note),
    Tag { id: String, tag: String },
    Delete { id: String },
}

/// The notes after all changes, oldest first.
#[derive(Debug, Default)]
pub(super) struct NoteSet {
    notes: IndexMap<String, Note>,
    /// Highest number used in an id; ids are never reused.
    last_number: u64,
}

impl NoteSet {
    pub(super) fn apply(&mut self, record: NoteChange) {
        match record {
            NoteChange::Add(note) => {
                let number = note.id.strip_prefix("note-").and_then(|number| number.parse().ok());
                self.last_number = self.last_number.max(number.unwrap_or(0));
                self.notes.insert(note.id.clone(), note);
            }
            NoteChange::Tag { id, tag } => {
                if let Some(note) = self.notes.get_mut(&id).filter(|note| !note.tags.contains(&tag))
                {
                    note.tags.push(tag);
                }
            }
            NoteChange::Delete { id } => drop(self.notes.shift_remove(&id)),
        }
    }

    pub(super) fn next_id(&self) -> String {
        format!("note-{}", self.last_number + 1)
    }

    pub(super) fn get(&self, id: &str) -> Option<&Note> {
        self.notes.get(id)
    }

    pub(super) fn len(&self) -> usize {
        self.notes.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Note> {
        self.notes.values()
    }
}
