//! The notes file: JSON lines that are only ever appended, shared by all who have it open.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::record::{Note, Record, Shelf};
use crate::timestamp::rfc3339;

/// The most notes; all of them are in memory.
pub(super) const MAX_NOTES: usize = 10_000;
/// The largest notes file that is read; it holds every change there ever was.
pub(super) const MAX_FILE_BYTES: u64 = 64 << 20;
/// The longest text of a note.
pub(super) const MAX_TEXT_BYTES: usize = 64 << 10;
/// The longest title and the longest tag.
pub(super) const MAX_NAME_BYTES: usize = 200;
/// The most tags of a note.
pub(super) const MAX_TAGS: usize = 16;

/// How often the lock is tried for, and the pause in between: two seconds in all. Whoever holds
/// it needs it for one read and one write.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Why a note cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("there is no note `{id}`")]
    Unknown { id: String },
    #[error("{what} is over the limit of {limit}")]
    OverLimit { what: &'static str, limit: usize },
    #[error("`{what}` must not be empty")]
    Empty { what: &'static str },
    #[error("another program keeps the notes file locked")]
    Busy,
    #[error("line {line} of the notes file is not a change to a note")]
    Foreign { line: u64, source: serde_json::Error },
    #[error("the notes file cannot be used")]
    Broken(#[from] io::Error),
}

impl StoreError {
    /// The error with its cause on one line.
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Foreign { source, .. } => format!("{self}: {source}"),
            Self::Broken(source) => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }
}

/// How the file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    Clean,
    /// A whole change without its newline.
    Unended,
    /// The beginning of a change whose writer died; it never happened.
    Torn,
}

/// The notes and the file they are in.
#[derive(Debug)]
pub(super) struct Store {
    file: File,
    shelf: Shelf,
    /// How much of the file is in `shelf`, and in how many lines.
    known: u64,
    lines: u64,
    tail: Tail,
}

impl Store {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut store =
            Self { file, shelf: Shelf::default(), known: 0, lines: 0, tail: Tail::Clean };
        store.locked(Self::refresh)?;
        Ok(store)
    }

    /// All notes, oldest first.
    pub(super) fn notes(&mut self) -> Result<impl Iterator<Item = &Note>, StoreError> {
        self.locked(Self::refresh)?;
        Ok(self.shelf.iter())
    }

    pub(super) fn get(&mut self, id: &str) -> Result<&Note, StoreError> {
        self.locked(Self::refresh)?;
        self.known_note(id)
    }

    pub(super) fn add(
        &mut self,
        title: String,
        text: String,
        tags: Vec<String>,
    ) -> Result<&Note, StoreError> {
        named("title", &title)?;
        limited("the text", text.len(), MAX_TEXT_BYTES)?;
        limited("the number of tags", tags.len(), MAX_TAGS)?;
        tags.iter().try_for_each(|tag| named("tag", tag))?;
        let id = self.locked(|store| {
            store.refresh()?;
            limited("the number of notes", store.shelf.len() + 1, MAX_NOTES)?;
            let id = store.shelf.next_id();
            let created = rfc3339(SystemTime::now());
            store.append(Record::Add(Note { id: id.clone(), title, text, tags, created }))?;
            Ok(id)
        })?;
        self.known_note(&id)
    }

    pub(super) fn tag(&mut self, id: &str, tag: &str) -> Result<&Note, StoreError> {
        named("tag", tag)?;
        self.locked(|store| {
            store.refresh()?;
            let note = store.known_note(id)?;
            if note.tags.iter().any(|known| known == tag) {
                return Ok(());
            }
            limited("the number of tags", note.tags.len() + 1, MAX_TAGS)?;
            store.append(Record::Tag { id: id.to_owned(), tag: tag.to_owned() })
        })?;
        self.known_note(id)
    }

    pub(super) fn delete(&mut self, id: &str) -> Result<(), StoreError> {
        self.locked(|store| {
            store.refresh()?;
            store.known_note(id)?;
            store.append(Record::Delete { id: id.to_owned() })
        })
    }

    fn known_note(&self, id: &str) -> Result<&Note, StoreError> {
        self.shelf.get(id).ok_or_else(|| StoreError::Unknown { id: id.to_owned() })
    }

    /// Does something while nobody else reads or writes the file.
    fn locked<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        for _ in 0..LOCK_TRIES {
            match self.file.try_lock() {
                Ok(()) => {
                    let done = act(self);
                    self.file.unlock()?;
                    return done;
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        Err(StoreError::Busy)
    }

    /// Takes in what others have appended; needs the lock.
    fn refresh(&mut self) -> Result<(), StoreError> {
        let length = self.file.metadata()?.len();
        if length > MAX_FILE_BYTES {
            let limit = usize::try_from(MAX_FILE_BYTES).unwrap_or(usize::MAX);
            return Err(StoreError::OverLimit { what: "the notes file", limit });
        }
        if length < self.known {
            // Somebody replaced the content: what was known of it means nothing any more.
            (self.shelf, self.known, self.lines) = (Shelf::default(), 0, 0);
            self.tail = Tail::Clean;
        }
        if self.tail == Tail::Torn {
            // The torn bytes are read again: another writer may have cut them off by now.
            self.tail = Tail::Clean;
        }
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.known))?;
        (&self.file).take(length - self.known).read_to_end(&mut bytes)?;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.take_in(line)?;
        }
        Ok(())
    }

    fn take_in(&mut self, line: &[u8]) -> Result<(), StoreError> {
        let whole = line.ends_with(b"\n");
        match serde_json::from_slice(line) {
            Ok(record) => self.shelf.apply(record),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(_) if !whole => {
                self.tail = Tail::Torn;
                return Ok(());
            }
            Err(source) => return Err(StoreError::Foreign { line: self.lines + 1, source }),
        }
        self.known += line.len() as u64;
        self.lines += 1;
        self.tail = if whole { Tail::Clean } else { Tail::Unended };
        Ok(())
    }

    /// Writes a change as one line in one piece and applies it; needs the lock.
    fn append(&mut self, record: Record) -> Result<(), StoreError> {
        let mut line = Vec::new();
        match self.tail {
            Tail::Clean => {}
            Tail::Unended => line.push(b'\n'),
            Tail::Torn => self.file.set_len(self.known)?,
        }
        serde_json::to_writer(&mut line, &record).map_err(io::Error::from)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.known += line.len() as u64;
        self.lines += 1;
        self.tail = Tail::Clean;
        self.shelf.apply(record);
        Ok(())
    }
}

fn named(what: &'static str, text: &str) -> Result<(), StoreError> {
    if text.trim().is_empty() {
        return Err(StoreError::Empty { what });
    }
    limited(what, text.len(), MAX_NAME_BYTES)
}

fn limited(what: &'static str, amount: usize, limit: usize) -> Result<(), StoreError> {
    if amount > limit { Err(StoreError::OverLimit { what, limit }) } else { Ok(()) }
}
