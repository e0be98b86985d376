//! The work and the texts of the commands that need no screen, for all forms of display.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use innkeeper_agent::agent::CompactedHistory;
use innkeeper_agent::content::Content;
use innkeeper_agent::conversation::Conversation;
use innkeeper_host::{Environment, Host, LogLevel};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::conversation_file::{self, ConversationFile};
use super::file_thread::FileThreads;
use super::servers::ChatServers;
use super::session::ChatSession;
use super::{export, listings};
use crate::cli::ModelSelectionArgs;
use crate::exit::CliError;
use crate::local_model::LocalModel;
use crate::model_selection::{PreparedModel, SelectedModel, select_model};

/// Time for servers to accept a level of log messages.
const SET_LEVEL_TIMEOUT: Duration = Duration::from_secs(5);

/// The work of a command, with the text for the person.
pub(crate) type CommandWork = BoxFuture<'static, Result<String, CliError>>;

/// The work that reads a conversation.
pub(crate) type ConversationWork =
    BoxFuture<'static, Result<(ConversationFile, Conversation), CliError>>;

/// Returns the directory of the stored conversations.
fn require_directory(directory: Option<&Path>) -> Result<PathBuf, CliError> {
    match directory {
        Some(directory) => Ok(directory.to_owned()),
        None => Err(CliError::usage("conversations are not stored")),
    }
}

pub(crate) fn list(directory: Option<&Path>) -> Result<String, CliError> {
    Ok(listings::conversations(&require_directory(directory)?))
}

pub(crate) fn restart(host: Host, server: &str) -> Result<CommandWork, CliError> {
    if server.is_empty() {
        return Err(CliError::usage("usage: /restart SERVER"));
    }
    let server = server.to_owned();
    let restart = async move {
        match host.restart_server(&server).await {
            Ok(()) => Ok(format!("{server} is ready")),
            Err(error) => Err(CliError::failure(format!("{server} did not restart: {error}"))),
        }
    };
    Ok(restart.boxed())
}

/// Selects the model of `/model PROVIDER [MODEL]`; `None` without a provider.
pub(crate) fn select(
    argument: &str,
    environment: &Environment,
) -> Result<Option<SelectedModel>, CliError> {
    let mut words = argument.split_whitespace();
    let Some(provider) = words.next() else { return Ok(None) };
    let selection = ModelSelectionArgs {
        provider: Some(provider.to_owned()),
        name: words.next().map(str::to_owned),
        ..ModelSelectionArgs::default()
    };
    select_model(&selection, environment).map(Some)
}

/// Returns the text of `/model` without a provider.
pub(crate) fn model_text(session: &ChatSession) -> String {
    format!("model: {}\nusage: /model PROVIDER [MODEL]", session.model_label())
}

/// Continues with another model. Returns the text, and the local model that must stop.
pub(crate) fn set_model(
    session: &mut ChatSession,
    model: PreparedModel,
) -> (String, Option<LocalModel>) {
    let earlier = session.set_model(model);
    (format!("the conversation continues with {}", session.model_label()), earlier)
}

/// Gets the prompt of `/prompt SERVER.NAME [KEY=VALUE …]` as the content of a message.
pub(crate) fn prompt(
    servers: &ChatServers,
    argument: &str,
) -> Result<BoxFuture<'static, Result<Content, CliError>>, CliError> {
    let words = shlex::split(argument)
        .ok_or_else(|| CliError::usage("a quotation mark of the arguments is not closed"))?;
    let Some((name, pairs)) = words.split_first() else {
        return Err(CliError::usage("usage: /prompt SERVER.NAME [KEY=VALUE …]"));
    };
    let mut arguments = Map::new();
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(CliError::usage(format!("`{pair}` is not KEY=VALUE")));
        };
        arguments.insert(key.to_owned(), Value::from(value));
    }
    Ok(servers.clone().get_prompt(name.clone(), arguments).boxed())
}

/// Stores a summary and returns its text.
pub(crate) fn compacted(
    session: &mut ChatSession,
    compacted: &CompactedHistory,
) -> Result<String, CliError> {
    session.on_compacted(compacted).map_err(storage_error)?;
    Ok(format!("a summary replaces {} messages for the model", compacted.messages))
}

/// Starts a new conversation.
pub(crate) fn clear(
    session: &mut ChatSession,
    directory: Option<&Path>,
) -> Result<String, CliError> {
    let file = directory.map(ConversationFile::create).transpose()?;
    session.clear(file).map_err(storage_error)?;
    Ok("new conversation".to_owned())
}

/// Brings back the exchange that `/undo` removed.
pub(crate) fn redo(session: &mut ChatSession) -> Result<String, CliError> {
    match session.restore_exchange().map_err(storage_error)? {
        true => Ok("brought back the exchange".to_owned()),
        false => {
            Err(CliError::usage("no removed exchange; a new message forgets what /undo removed"))
        }
    }
}

/// Continues in a copy of the conversation.
pub(crate) fn fork(
    session: &mut ChatSession,
    directory: Option<&Path>,
) -> Result<String, CliError> {
    match session.fork(&require_directory(directory)?)? {
        Some((id, earlier)) => Ok(format!(
            "the conversation continues as {id}; its state until now stays as {earlier}"
        )),
        None => Err(CliError::usage("the conversation is empty")),
    }
}

/// Sets the title, if there is one, and says where the conversation is stored.
pub(crate) fn save(session: &mut ChatSession, title: &str) -> Result<String, CliError> {
    if !title.is_empty() {
        session.set_title(title).map_err(storage_error)?;
    }
    let Some(file) = session.file() else {
        return Err(CliError::usage("the conversation is not stored"));
    };
    let title = file.title().map(|title| format!(" as `{title}`")).unwrap_or_default();
    Ok(format!("stored{title}; continue with: innkeeper chat --resume {}", file.id()))
}

/// Reads the conversation that continues in place of the present one.
pub(crate) fn open(
    session: &ChatSession,
    directory: Option<&Path>,
    threads: &FileThreads,
    id: &str,
) -> Result<ConversationWork, CliError> {
    let directory = require_directory(directory)?;
    if id.is_empty() {
        return Err(CliError::usage("usage: /resume ID; /list shows all"));
    }
    let threads = threads.clone();
    let id = id.to_owned();
    let current = session.file().map(ConversationFile::id);
    let open = async move {
        threads
            .run(move || ConversationFile::open_other(&directory, &id, current.as_deref()))
            .await
            .unwrap_or_else(|| Err(thread_error()))
    };
    Ok(open.boxed())
}

/// Removes a stored conversation.
pub(crate) fn remove(
    session: &ChatSession,
    directory: Option<&Path>,
    threads: &FileThreads,
    id: &str,
) -> Result<CommandWork, CliError> {
    let directory = require_directory(directory)?;
    if id.is_empty() {
        return Err(CliError::usage("usage: /remove ID, with the whole id; /list shows all"));
    }
    if session.file().is_some_and(|file| file.id() == id) {
        let text = "the current conversation cannot be removed; /clear starts another";
        return Err(CliError::usage(text));
    }
    let threads = threads.clone();
    let id = id.to_owned();
    let remove = async move {
        let removed = id.clone();
        let removed = threads.run(move || conversation_file::remove(&directory, &removed)).await;
        let title = removed.unwrap_or_else(|| Err(thread_error()))?;
        Ok(format!("removed {id}: {title}"))
    };
    Ok(remove.boxed())
}

/// Writes the conversation as Markdown to a new file.
pub(crate) fn export(
    session: &ChatSession,
    threads: &FileThreads,
    file: &str,
) -> Result<CommandWork, CliError> {
    if file.is_empty() {
        return Err(CliError::usage("usage: /export FILE"));
    }
    let conversation = session.agent().conversation();
    let title = session.file().and_then(|file| file.title().map(str::to_owned));
    let threads = threads.clone();
    let name = file.to_owned();
    let write = async move {
        let path = name.clone();
        let written = threads
            .run(move || {
                let text = export::to_markdown(&conversation, title.as_deref());
                export::write_new_file(Path::new(&path), &text)
            })
            .await
            .ok_or_else(thread_error)?;
        written.map_err(|error| {
            CliError::failure(format!("cannot write `{name}`")).with_source(error)
        })?;
        Ok(format!("wrote `{name}`"))
    };
    Ok(write.boxed())
}

/// Asks the servers for log messages from the shown level on; `text` says what is shown.
pub(crate) fn request_log_level(host: Host, level: Option<LogLevel>, text: String) -> CommandWork {
    let request = async move {
        let Some(level) = level else { return Ok(text) };
        let problem = match timeout(SET_LEVEL_TIMEOUT, host.set_log_level(None, level)).await {
            Ok(Ok(())) => return Ok(text),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "a server does not respond".to_owned(),
        };
        Err(CliError::failure(format!("{text}, but not every server has the level: {problem}")))
    };
    request.boxed()
}

pub(crate) fn storage_error(error: std::io::Error) -> CliError {
    CliError::failure("cannot store the conversation").with_source(error)
}

fn thread_error() -> CliError {
    CliError::failure("cannot start a thread")
}
