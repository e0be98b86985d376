//! Stores a conversation in a file, message by message, so that the conversation outlives the program.
//!
//! The file has one JSON object a line: a header, messages, summaries and titles. A line that a kill
//! cut off is left out.

mod directory;

pub(crate) use directory::{earlier_messages, list, remove};

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use innkeeper_agent::conversation::{Conversation, MAX_BYTES, Message, OmittedHistory};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::atomic_file;
use crate::exit::CliError;
use crate::input_file;
use crate::timestamp;
use directory::{find, id_of, list_files};

const FORMAT_VERSION: u32 = 1;

const EXTENSION: &str = "jsonl";

/// Maximum size of a file: the text of the largest conversation with escapes.
const MAX_FILE_BYTES: u64 = 4 * MAX_BYTES as u64;

/// Maximum number of characters of a title.
const MAX_TITLE_CHARS: usize = 60;

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum WrittenLine<'l> {
    Version(u32),
    Message(&'l Message),
    Omitted(&'l OmittedHistory),
    Title(&'l str),
}

/// One line of a file, as read.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredLine {
    Version(u32),
    Message(Box<RawValue>),
    Omitted(Box<RawValue>),
    Title(String),
}

/// The file of one conversation, which no other program can open at the same time.
#[derive(Debug)]
pub(crate) struct ConversationFile {
    path: PathBuf,
    file: File,
    messages: usize,
    omitted: OmittedHistory,
    title: Option<String>,
}

impl ConversationFile {
    /// Creates a file with a new id in a directory, which is created if needed. Only the user can
    /// read both.
    pub(crate) fn create(directory: &Path) -> Result<Self, CliError> {
        let failure = |error| {
            let text = format!("cannot create a conversation in `{}`", directory.display());
            CliError::failure(text).with_source(error)
        };
        create_private_directory(directory).map_err(failure)?;
        let now = timestamp::format_for_file_name(SystemTime::now());
        let mut number = 1;
        loop {
            let id = if number == 1 { now.clone() } else { format!("{now}-{number}") };
            let path = directory.join(format!("{id}.{EXTENSION}"));
            match private_options().create_new(true).open(&path) {
                Ok(file) => {
                    let mut created = Self::locked(path, file)?;
                    created.write(&[WrittenLine::Version(FORMAT_VERSION)]).map_err(failure)?;
                    return Ok(created);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(failure(error)),
            }
        }
    }

    /// Opens the conversation with this id, or the newest conversation.
    pub(crate) fn open(
        directory: &Path,
        id: Option<&str>,
    ) -> Result<(Self, Conversation), CliError> {
        let path = match id {
            Some(id) => find(directory, id)?,
            None => {
                let newest = list_files(directory).into_iter().max_by_key(|(_, time)| *time);
                newest.ok_or_else(|| CliError::failure("no conversation is stored"))?.0
            }
        };
        let failure = |error| {
            CliError::failure(format!("cannot open `{}`", path.display())).with_source(error)
        };
        let file = private_options().open(&path).map_err(failure)?;
        let mut opened = Self::locked(path.clone(), file)?;
        let bytes = input_file::read_bytes(&path, MAX_FILE_BYTES).map_err(failure)?;
        let complete = complete_lines(&bytes);
        let stored = parse(complete).map_err(|problem| {
            CliError::failure(format!("cannot read the conversation `{}`", path.display()))
                .with_detail(problem)
        })?;
        // The next line must not continue a line that a kill cut off.
        opened.file.set_len(complete.len() as u64).map_err(failure)?;
        opened.messages = stored.conversation.messages().len();
        opened.omitted = stored.conversation.omitted_history().clone();
        opened.title = stored.title;
        Ok((opened, stored.conversation))
    }

    /// Opens the conversation with this id, which is not the current one.
    pub(crate) fn open_other(
        directory: &Path,
        id: &str,
        current: Option<&str>,
    ) -> Result<(Self, Conversation), CliError> {
        let found = id_of(&find(directory, id)?);
        if Some(&*found) == current {
            return Err(CliError::usage(format!("`{found}` is the current conversation")));
        }
        Self::open(directory, Some(&found))
    }

    fn locked(path: PathBuf, file: File) -> Result<Self, CliError> {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(CliError::failure(format!(
                    "the conversation `{}` is open in another program",
                    id_of(&path)
                )));
            }
            Err(TryLockError::Error(error)) => {
                let text = format!("cannot lock `{}`", path.display());
                return Err(CliError::failure(text).with_source(error));
            }
        }
        Ok(Self { path, file, messages: 0, omitted: OmittedHistory::default(), title: None })
    }

    /// Returns the id for `--resume`.
    pub(crate) fn id(&self) -> String {
        id_of(&self.path)
    }

    /// Returns the title that the user set.
    pub(crate) fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    pub(crate) fn set_title(&mut self, title: &str) -> io::Result<()> {
        let title: String = title.chars().take(MAX_TITLE_CHARS).collect();
        self.write(&[WrittenLine::Title(&title)])?;
        self.title = Some(title);
        Ok(())
    }

    /// Appends messages of a run in progress.
    pub(crate) fn append(&mut self, messages: &[Message]) -> io::Result<()> {
        self.write(&messages.iter().map(WrittenLine::Message).collect::<Vec<_>>())?;
        self.messages += messages.len();
        Ok(())
    }

    /// Writes what the file lacks of a conversation; a conversation that lost messages replaces the
    /// file.
    pub(crate) fn sync(&mut self, conversation: &Conversation) -> io::Result<()> {
        let Some(new) = conversation.messages().get(self.messages..) else {
            return self.replace(conversation);
        };
        if !new.is_empty() {
            self.append(new)?;
        }
        let omitted = conversation.omitted_history();
        if *omitted != self.omitted {
            self.write(&[WrittenLine::Omitted(omitted)])?;
            self.omitted = omitted.clone();
        }
        Ok(())
    }

    /// Replaces the file at once, so that a kill leaves the old or the new content.
    pub(crate) fn replace(&mut self, conversation: &Conversation) -> io::Result<()> {
        let messages = conversation.messages();
        let omitted = conversation.omitted_history();
        let title = self.title.as_deref().map(WrittenLine::Title);
        let lines = [WrittenLine::Version(FORMAT_VERSION)].into_iter().chain(title);
        let lines = lines.chain(messages.iter().map(WrittenLine::Message));
        let has_omitted = *omitted != OmittedHistory::default();
        let lines = lines.chain(has_omitted.then_some(WrittenLine::Omitted(omitted)));
        let text = to_text(&lines.collect::<Vec<_>>())?;
        atomic_file::write(&self.path, &text)?;
        let file = private_options().open(&self.path)?;
        // Between the two locks, another program can open the old file only.
        file.try_lock().map_err(io::Error::from)?;
        (self.file, self.messages, self.omitted) = (file, messages.len(), omitted.clone());
        Ok(())
    }

    pub(crate) fn remove_if_empty(self) -> io::Result<()> {
        if self.messages > 0 {
            return Ok(());
        }
        std::fs::remove_file(&self.path)
    }

    /// Writes all lines with one write, so that a kill cuts off at most the end.
    fn write(&mut self, lines: &[WrittenLine<'_>]) -> io::Result<()> {
        self.file.write_all(to_text(lines)?.as_bytes())
    }
}

fn to_text(lines: &[WrittenLine<'_>]) -> io::Result<String> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&serde_json::to_string(line)?);
        text.push('\n');
    }
    Ok(text)
}

struct ParsedFile {
    conversation: Conversation,
    title: Option<String>,
}

/// Returns the lines that end with a newline: a kill may have cut off the last write.
fn complete_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    &bytes[..end]
}

/// Reads the lines of a file.
fn parse(bytes: &[u8]) -> Result<ParsedFile, String> {
    let mut messages = Vec::new();
    let mut omitted = None;
    let mut title = None;
    let mut version = None;
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(StoredLine::Version(number)) => version = Some(number),
            Ok(StoredLine::Message(message)) => messages.push(message),
            Ok(StoredLine::Omitted(history)) => omitted = Some(history),
            Ok(StoredLine::Title(text)) => title = Some(text),
            Err(error) => return Err(format!("line {}: {error}", index + 1)),
        }
    }
    match version {
        Some(FORMAT_VERSION) => {}
        Some(other) => return Err(format!("version {other} needs another release of innkeeper")),
        None => return Err("the first line has no version".to_owned()),
    }
    let messages: Vec<&str> = messages.iter().map(|message| message.get()).collect();
    let omitted = omitted.map(|raw| format!(r#","omitted":{}"#, raw.get())).unwrap_or_default();
    let stored = format!(r#"{{"version":1,"messages":[{}]{omitted}}}"#, messages.join(","));
    let conversation = serde_json::from_str(&stored).map_err(|error| error.to_string())?;
    Ok(ParsedFile { conversation, title })
}

/// Options for a file that is read and appended to by its owner only.
fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn create_private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

#[cfg(test)]
mod tests;
