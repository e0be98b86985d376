//! The stored conversations of a directory: their list, their removal and a search in their messages.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use innkeeper_agent::conversation::{Conversation, Message};

use super::{
    ConversationFile, EXTENSION, MAX_FILE_BYTES, MAX_TITLE_CHARS, StoredLine, complete_lines,
    parse, private_options,
};
use crate::exit::CliError;
use crate::input_file;

/// Maximum number of conversations in a list.
const MAX_LISTED: usize = 50;

/// Maximum number of files and of bytes that a search for earlier messages reads.
const MAX_SEARCHED_FILES: usize = 200;
const MAX_SEARCHED_BYTES: u64 = 64 << 20;

/// Maximum number of earlier messages, and of bytes of one of them.
pub(super) const MAX_EARLIER_MESSAGES: usize = 1_000;
const MAX_EARLIER_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct StoredConversation {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) messages: usize,
    pub(crate) modified: SystemTime,
}

/// Lists the stored conversations, newest first. Files that cannot be read are left out.
pub(crate) fn list(directory: &Path) -> Vec<StoredConversation> {
    let mut files = list_files(directory);
    files.sort_by_key(|(_, modified)| std::cmp::Reverse(*modified));
    let conversations = files.into_iter().take(MAX_LISTED).filter_map(|(path, modified)| {
        let bytes = input_file::read_bytes(&path, MAX_FILE_BYTES).ok()?;
        let stored = parse(complete_lines(&bytes)).ok()?;
        let title = stored.title.or_else(|| first_words(&stored.conversation)).unwrap_or_default();
        let messages = stored.conversation.messages().len();
        Some(StoredConversation { id: id_of(&path), title, messages, modified })
    });
    conversations.collect()
}

/// Removes the conversation with this whole id, and returns its title.
pub(crate) fn remove(directory: &Path, id: &str) -> Result<String, CliError> {
    let files = list_files(directory);
    let Some((path, _)) = files.into_iter().find(|(path, _)| id_of(path) == id) else {
        return Err(CliError::usage(format!("no stored conversation `{id}`"))
            .with_hint("the whole id is needed"));
    };
    let failure =
        |error| CliError::failure(format!("cannot remove `{}`", path.display())).with_source(error);
    let file = private_options().open(&path).map_err(failure)?;
    // Another program must not lose the file of its conversation.
    let _locked = ConversationFile::locked(path.clone(), file)?;
    let bytes = input_file::read_bytes(&path, MAX_FILE_BYTES).unwrap_or_default();
    let stored = parse(complete_lines(&bytes)).ok();
    let title = stored.and_then(|it| it.title.or_else(|| first_words(&it.conversation)));
    std::fs::remove_file(&path).map_err(failure)?;
    Ok(title.unwrap_or_default())
}

/// Returns the messages of the user in all stored conversations except one, newest first, each once.
/// Reads the newest files, up to a number of files and bytes.
pub(crate) fn earlier_messages(directory: &Path, except: Option<&str>) -> Vec<String> {
    let mut files = list_files(directory);
    files.retain(|(path, _)| Some(&*id_of(path)) != except);
    files.sort_by_key(|(_, modified)| std::cmp::Reverse(*modified));
    let mut messages = Vec::new();
    let mut known = HashSet::new();
    let mut room = MAX_SEARCHED_BYTES;
    for (path, _) in files.into_iter().take(MAX_SEARCHED_FILES) {
        let Ok(bytes) = input_file::read_bytes(&path, room) else { continue };
        room -= bytes.len() as u64;
        let texts: Vec<String> =
            complete_lines(&bytes).split(|byte| *byte == b'\n').filter_map(typed_text).collect();
        let new = texts.into_iter().rev().filter(|text| known.insert(text.clone()));
        messages.extend(new.take(MAX_EARLIER_MESSAGES - messages.len()));
        if messages.len() == MAX_EARLIER_MESSAGES {
            break;
        }
    }
    messages
}

/// Returns the text that a person typed, of a line with a message of the user; attachments are before
/// the text.
fn typed_text(line: &[u8]) -> Option<String> {
    let Ok(StoredLine::Message(message)) = serde_json::from_slice(line) else { return None };
    let Ok(Message::User(content)) = serde_json::from_str(message.get()) else { return None };
    let text = content.blocks().last()?.to_text()?.into_owned();
    Some(text).filter(|text| !text.trim().is_empty() && text.len() <= MAX_EARLIER_BYTES)
}

fn first_words(conversation: &Conversation) -> Option<String> {
    conversation.messages().iter().find_map(|message| match message {
        Message::User(content) => {
            let text = content.to_text();
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            Some(words.chars().take(MAX_TITLE_CHARS).collect())
        }
        Message::Assistant(_) | Message::ToolResults(_) => None,
    })
}

/// Returns the file of an id, or of the only id that starts with this text.
pub(super) fn find(directory: &Path, id: &str) -> Result<PathBuf, CliError> {
    let files = list_files(directory);
    let matching: Vec<_> = files.iter().filter(|(path, _)| id_of(path).starts_with(id)).collect();
    let exact = matching.iter().find(|(path, _)| id_of(path) == id);
    match (exact, &*matching) {
        (Some((path, _)), _) | (None, [(path, _)]) => Ok(path.clone()),
        (None, []) => Err(CliError::usage(format!("no stored conversation `{id}`"))
            .with_hint("run `innkeeper chat --list` to list the conversations")),
        (None, _) => Err(CliError::usage(format!("several conversations start with `{id}`"))
            .with_hint("run `innkeeper chat --list` to list the conversations")),
    }
}

pub(super) fn list_files(directory: &Path) -> Vec<(PathBuf, SystemTime)> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let files = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let is_conversation = path.extension().is_some_and(|extension| extension == EXTENSION);
        let modified = path.metadata().and_then(|metadata| metadata.modified()).ok()?;
        is_conversation.then_some((path, modified))
    });
    files.collect()
}

pub(super) fn id_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
