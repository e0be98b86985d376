//! A note, the lines of the notes file, and what a line does to the notes.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// One note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) text: String,
    pub(super) tags: Vec<String>,
    /// RFC 3339, UTC.
    pub(super) created: String,
}

impl Note {
    pub(super) fn as_markdown(&self) -> String {
        format!("# {}\n\n{}\n", self.title, self.text)
    }

    /// Whether a word or phrase, in any case, stands in the note; `query` is in lower case.
    pub(super) fn has(&self, query: &str) -> bool {
        [&self.title, &self.text].into_iter().any(|text| text.to_lowercase().contains(query))
    }
}

/// One line of the file: a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(super) enum Record {
    Add(Note),
    Tag { id: String, tag: String },
    Delete { id: String },
}

/// The notes after all changes so far, oldest first.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    notes: IndexMap<String, Note>,
    /// The highest number that an id ever had, so that none is given out twice.
    last: u64,
}

impl Shelf {
    pub(super) fn apply(&mut self, record: Record) {
        match record {
            Record::Add(note) => {
                let number = note.id.strip_prefix("note-").and_then(|number| number.parse().ok());
                self.last = self.last.max(number.unwrap_or(0));
                self.notes.insert(note.id.clone(), note);
            }
            Record::Tag { id, tag } => {
                if let Some(note) = self.notes.get_mut(&id).filter(|note| !note.tags.contains(&tag))
                {
                    note.tags.push(tag);
                }
            }
            Record::Delete { id } => drop(self.notes.shift_remove(&id)),
        }
    }

    pub(super) fn next_id(&self) -> String {
        format!("note-{}", self.last + 1)
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
