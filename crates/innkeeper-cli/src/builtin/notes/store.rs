//! The notes file: append-only JSON Lines, shared by several processes.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::note::{Note, NoteChange, NoteSet};
use crate::timestamp::format_rfc3339;

/// Maximum number of notes; all notes are in memory.
pub(super) const MAX_NOTES: usize = 10_000;
/// Maximum number of bytes in the notes file; the file contains all changes.
pub(super) const MAX_FILE_BYTES: u64 = 64 << 20;
/// Maximum number of bytes in the text of a note.
pub(super) const MAX_TEXT_BYTES: usize = 64 << 10;
/// Maximum number of bytes in a title or a tag.
pub(super) const MAX_NAME_BYTES: usize = 200;
/// Maximum number of tags of a note.
pub(super) const MAX_TAGS: usize = 16;

/// Maximum number of attempts to lock the file; with the delay, two seconds in total. A process
/// holds the lock for one read and one write.
const MAX_LOCK_ATTEMPTS: u32 = 200;
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Why a note cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("note `{id}` does not exist")]
    UnknownNote { id: String },
    #[error("{subject} exceeds the limit of {limit}")]
    OverLimit { subject: &'static str, limit: usize },
    #[error("`{field}` must not be empty")]
    Empty { field: &'static str },
    #[error("the notes file is locked by another program")]
    Locked,
    #[error("line {line} of the notes file is not a valid change")]
    InvalidLine { line: u64, source: serde_json::Error },
    #[error("cannot access the notes file")]
    Io(#[from] io::Error),
}

impl StoreError {
    /// Returns the error and its cause on one line.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::InvalidLine { source, .. } => format!("{self}: {source}"),
            Self::Io(source) => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileTail {
    Clean,
    /// A complete change without its newline.
    MissingNewline,
    /// An incomplete change of a process that died; this change is ignored.
    Torn,
}

#[derive(Debug)]
pub(super) struct NoteStore {
    file: File,
    notes: NoteSet,
    /// Bytes and lines of the file that are applied to `notes`.
    applied_bytes: u64,
    applied_lines: u64,
    tail: FileTail,
}

impl NoteStore {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut store = Self {
            file,
            notes: NoteSet::default(),
            applied_bytes: 0,
            applied_lines: 0,
            tail: FileTail::Clean,
        };
        store.with_lock(Self::refresh)?;
        Ok(store)
    }

    /// Returns all notes, oldest first.
    pub(super) fn notes(&mut self) -> Result<impl Iterator<Item = &Note>, StoreError> {
        self.with_lock(Self::refresh)?;
        Ok(self.notes.iter())
    }

    pub(super) fn get(&mut self, id: &str) -> Result<&Note, StoreError> {
        self.with_lock(Self::refresh)?;
        self.find_note(id)
    }

    pub(super) fn add(
        &mut self,
        title: String,
        text: String,
        tags: Vec<String>,
    ) -> Result<&Note, StoreError> {
        check_name("title", &title)?;
        check_limit("the text", text.len(), MAX_TEXT_BYTES)?;
        check_limit("the number of tags", tags.len(), MAX_TAGS)?;
        tags.iter().try_for_each(|tag| check_name("tag", tag))?;
        let id = self.with_lock(|store| {
            store.refresh()?;
            check_limit("the number of notes", store.notes.len() + 1, MAX_NOTES)?;
            let id = store.notes.next_id();
            let created = format_rfc3339(SystemTime::now());
            store.append(NoteChange::Add(Note { id: id.clone(), title, text, tags, created }))?;
            Ok(id)
        })?;
        self.find_note(&id)
    }

    pub(super) fn tag(&mut self, id: &str, tag: &str) -> Result<&Note, StoreError> {
        check_name("tag", tag)?;
        self.with_lock(|store| {
            store.refresh()?;
            let note = store.find_note(id)?;
            if note.tags.iter().any(|existing| existing == tag) {
                return Ok(());
            }
            check_limit("the number of tags", note.tags.len() + 1, MAX_TAGS)?;
            store.append(NoteChange::Tag { id: id.to_owned(), tag: tag.to_owned() })
        })?;
        self.find_note(id)
    }

    pub(super) fn delete(&mut self, id: &str) -> Result<(), StoreError> {
        self.with_lock(|store| {
            store.refresh()?;
            store.find_note(id)?;
            store.append(NoteChange::Delete { id: id.to_owned() })
        })
    }

    fn find_note(&self, id: &str) -> Result<&Note, StoreError> {
        self.notes.get(id).ok_or_else(|| StoreError::UnknownNote { id: id.to_owned() })
    }

    /// Runs an operation while this process has the file lock.
    fn with_lock<T>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        for _ in 0..MAX_LOCK_ATTEMPTS {
            match self.file.try_lock() {
                Ok(()) => {
                    let done = operation(self);
                    self.file.unlock()?;
                    return done;
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY_INTERVAL),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        Err(StoreError::Locked)
    }

    /// Applies changes that other processes appended; requires the lock.
    fn refresh(&mut self) -> Result<(), StoreError> {
        let length = self.file.metadata()?.len();
        if length > MAX_FILE_BYTES {
            let limit = usize::try_from(MAX_FILE_BYTES).unwrap_or(usize::MAX);
            return Err(StoreError::OverLimit { subject: "the notes file", limit });
        }
        if length < self.applied_bytes {
            // Another program replaced the content, so the notes in memory are invalid.
            (self.notes, self.applied_bytes, self.applied_lines) = (NoteSet::default(), 0, 0);
            self.tail = FileTail::Clean;
        }
        if self.tail == FileTail::Torn {
            // Incomplete bytes are read again: another process may have removed them.
            self.tail = FileTail::Clean;
        }
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.applied_bytes))?;
        (&self.file).take(length - self.applied_bytes).read_to_end(&mut bytes)?;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.apply_line(line)?;
        }
        Ok(())
    }

    fn apply_line(&mut self, line: &[u8]) -> Result<(), StoreError> {
        let complete = line.ends_with(b"\n");
        match serde_json::from_slice(line) {
            Ok(record) => self.notes.apply(record),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(_) if !complete => {
                self.tail = FileTail::Torn;
                return Ok(());
            }
            Err(source) => {
                return Err(StoreError::InvalidLine { line: self.applied_lines + 1, source });
            }
        }
        self.applied_bytes += line.len() as u64;
        self.applied_lines += 1;
        self.tail = if complete { FileTail::Clean } else { FileTail::MissingNewline };
        Ok(())
    }

    /// Appends a change with one write and applies the change; requires the lock.
    fn append(&mut self, record: NoteChange) -> Result<(), StoreError> {
        let mut line = Vec::new();
        match self.tail {
            FileTail::Clean => {}
            FileTail::MissingNewline => line.push(b'\n'),
            FileTail::Torn => self.file.set_len(self.applied_bytes)?,
        }
        serde_json::to_writer(&mut line, &record).map_err(io::Error::from)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.applied_bytes += line.len() as u64;
        self.applied_lines += 1;
        self.tail = FileTail::Clean;
        self.notes.apply(record);
        Ok(())
    }
}

fn check_name(name: &'static str, text: &str) -> Result<(), StoreError> {
    if text.trim().is_empty() {
        return Err(StoreError::Empty { field: name });
    }
    check_limit(name, text.len(), MAX_NAME_BYTES)
}

fn check_limit(field: &'static str, amount: usize, limit: usize) -> Result<(), StoreError> {
    if amount > limit { Err(StoreError::OverLimit { subject: field, limit }) } else { Ok(()) }
}
