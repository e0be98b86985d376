//! The values that complete a command or a message: names, files, and what servers propose.

mod files;
mod server_values;
mod template;

use std::path::PathBuf;

use innkeeper_host::{Host, LogLevel};

use super::conversation_file;
use super::file_thread::FileThreads;
use super::slash_command::{SlashCommand, TypedLine, parse_line};
use crate::model_selection::provider_names;
use crate::text::is_deceptive;
use files::matching_files;
pub(crate) use template::decode as decode_uri;

/// Maximum number of values of one kind.
const MAX_VALUES: usize = 50;

/// Maximum number of bytes of a value.
const MAX_VALUE_BYTES: usize = 4 << 10;

/// What values come from.
#[derive(Clone, Debug)]
pub(crate) struct CompletionSources {
    pub(crate) host: Host,
    pub(crate) threads: FileThreads,
    /// The directory of the stored conversations.
    pub(crate) conversations: Option<PathBuf>,
    pub(crate) current: Option<String>,
    /// The tools with a rule of the person.
    pub(crate) rules: Vec<String>,
    /// The home directory, for paths that start with `~/`.
    pub(crate) home: Option<String>,
}

/// The values for the end of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Completions {
    /// The end of the text that a value replaces.
    pub(crate) replaced: String,
    pub(crate) values: Vec<CompletionValue>,
}

/// A value that completes a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompletionValue {
    pub(crate) text: String,
    /// The shown text, such as a template.
    pub(crate) label: String,
    pub(crate) purpose: String,
    /// The resource or file that the value attaches to the message.
    pub(crate) attachment: Option<String>,
}

impl CompletionValue {
    pub(crate) fn new(text: impl Into<String>, purpose: impl Into<String>) -> Self {
        let text = text.into();
        Self { label: text.clone(), text, purpose: purpose.into(), attachment: None }
    }
}

impl Completions {
    /// Returns the values that start with a text, or, without such a value, those that contain the
    /// text.
    fn matching(replaced: &str, values: impl IntoIterator<Item = CompletionValue>) -> Self {
        let mut starting = Vec::new();
        let mut containing = Vec::new();
        for value in values {
            if value.label.starts_with(replaced) {
                starting.push(value);
            } else if value.label.contains(replaced) || value.purpose.contains(replaced) {
                containing.push(value);
            }
        }
        let mut values = if starting.is_empty() { containing } else { starting };
        values.truncate(MAX_VALUES);
        Self { replaced: replaced.to_owned(), values }
    }

    fn of_names<S: Into<String>>(replaced: &str, names: impl IntoIterator<Item = S>) -> Self {
        Self::matching(replaced, names.into_iter().map(|name| CompletionValue::new(name, "")))
    }
}

/// Returns the values for the end of a text. Dropping the future cancels the request to a server. A
/// value with control characters is left out: nobody sees what the value inserts.
pub(crate) async fn complete(sources: CompletionSources, text: String) -> Completions {
    let mut completions = complete_text(sources, text).await;
    completions.values.retain(|CompletionValue { text, .. }| {
        text.len() <= MAX_VALUE_BYTES && !text.contains(is_deceptive)
    });
    completions
}

async fn complete_text(sources: CompletionSources, text: String) -> Completions {
    match parse_line(&text) {
        TypedLine::Command(command, _) => {
            let argument = text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest);
            complete_command(sources, command, argument.trim_start()).await
        }
        TypedLine::Message(_) => match mentioned_name(&text) {
            Some(name) => complete_mention(sources, name).await,
            None => Completions::default(),
        },
        TypedLine::UnknownCommand(_) => Completions::default(),
    }
}

async fn complete_command(
    sources: CompletionSources,
    command: SlashCommand,
    argument: &str,
) -> Completions {
    let word = argument.rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_first_word = word.len() == argument.len();
    match command {
        SlashCommand::Tools
        | SlashCommand::Restart
        | SlashCommand::Disable
        | SlashCommand::Enable => {
            Completions::of_names(word, sources.host.status().keys().map(ToString::to_string))
        }
        SlashCommand::Model if is_first_word => Completions::of_names(word, provider_names()),
        SlashCommand::Rules if is_first_word => Completions::of_names(word, ["remove"]),
        SlashCommand::Rules => Completions::of_names(word, sources.rules),
        SlashCommand::Log => {
            let levels = LogLevel::ALL.map(LogLevel::as_str);
            Completions::of_names(word, levels.into_iter().chain(["off"]))
        }
        SlashCommand::Attach => complete_attachment(sources, argument).await,
        SlashCommand::Export => {
            let files = complete_path(&sources, argument).await;
            Completions { replaced: argument.to_owned(), values: files }
        }
        SlashCommand::Prompt => server_values::of_prompt(&sources.host, argument).await,
        SlashCommand::Resume | SlashCommand::Remove => {
            complete_conversation(&sources, argument).await
        }
        SlashCommand::Help
        | SlashCommand::Servers
        | SlashCommand::Reload
        | SlashCommand::Model
        | SlashCommand::Prompts
        | SlashCommand::Resources
        | SlashCommand::Detach
        | SlashCommand::Undo
        | SlashCommand::Redo
        | SlashCommand::Fork
        | SlashCommand::Compact
        | SlashCommand::Clear
        | SlashCommand::Save
        | SlashCommand::List
        | SlashCommand::Tokens
        | SlashCommand::Details
        | SlashCommand::Copy
        | SlashCommand::Edit
        | SlashCommand::Quit => Completions::default(),
    }
}

/// Returns the resources, the values of template variables, the templates and the files for the
/// argument of `/attach`.
async fn complete_attachment(sources: CompletionSources, argument: &str) -> Completions {
    let mut values = server_values::of_templates(&sources.host, argument).await;
    let listed = resources(&sources.host).into_iter().chain(templates(&sources.host, argument));
    values.extend(Completions::matching(argument, listed).values);
    values.extend(complete_path(&sources, argument).await);
    // Tab takes the first value: the sort is stable.
    values.sort_by_key(|value| !value.label.starts_with(argument));
    Completions { replaced: argument.to_owned(), values }
}

/// Returns the resources and files for a name behind `@`. A file or resource is attached, and its
/// name stays in the message.
async fn complete_mention(sources: CompletionSources, name: &str) -> Completions {
    let mut values = Completions::matching(name, resources(&sources.host)).values;
    values.extend(complete_path(&sources, name).await);
    values.sort_by_key(|value| !value.label.starts_with(name));
    let values = values.into_iter().map(|value| match value.text.ends_with('/') {
        true => CompletionValue { text: format!("@{}", value.text), ..value },
        false => CompletionValue {
            text: format!("{} ", value.text),
            attachment: Some(value.text),
            ..value
        },
    });
    Completions { replaced: format!("@{name}"), values: values.collect() }
}

/// Returns the name behind the `@` with which the last word of a text starts.
pub(crate) fn mentioned_name(text: &str) -> Option<&str> {
    text.rsplit(char::is_whitespace).next()?.strip_prefix('@')
}

fn resources(host: &Host) -> Vec<CompletionValue> {
    let catalog = host.catalog();
    let listings = catalog.servers().filter_map(|(_, entry)| entry.listing());
    let resources = listings.flat_map(|listing| &listing.resources);
    let values = resources.map(|it| CompletionValue::new(&it.view.uri, &it.view.name));
    values.collect()
}

/// Returns the templates whose start is not typed yet.
fn templates(host: &Host, typed: &str) -> Vec<CompletionValue> {
    let catalog = host.catalog();
    let listings = catalog.servers().filter_map(|(_, entry)| entry.listing());
    let templates = listings.flat_map(|listing| &listing.resource_templates);
    let values = templates.filter_map(|template| {
        let label = template.view.uri_template.clone();
        let start = template::start_of(&label);
        let is_new = !start.is_empty() && !typed.starts_with(start);
        let text = start.to_owned();
        let purpose = template.view.name.clone();
        is_new.then_some(CompletionValue { text, label, purpose, attachment: None })
    });
    values.collect()
}

async fn complete_path(sources: &CompletionSources, typed: &str) -> Vec<CompletionValue> {
    let typed = match (typed.strip_prefix("~/"), &sources.home) {
        (Some(path), Some(home)) => format!("{}/{path}", home.trim_end_matches('/')),
        (Some(_), None) | (None, _) => typed.to_owned(),
    };
    let files = sources.threads.run(move || matching_files(&typed, MAX_VALUES)).await;
    let files = files.unwrap_or_default().into_iter();
    let values = files.map(|file| {
        CompletionValue::new(file.path, if file.is_directory { "directory" } else { "file" })
    });
    values.collect()
}

async fn complete_conversation(sources: &CompletionSources, typed: &str) -> Completions {
    let Some(directory) = sources.conversations.clone() else { return Completions::default() };
    let stored = sources.threads.run(move || conversation_file::list(&directory)).await;
    let stored = stored.unwrap_or_default().into_iter();
    let values = stored.filter(|it| Some(&it.id) != sources.current.as_ref());
    Completions::matching(typed, values.map(|it| CompletionValue::new(it.id, it.title)))
}

#[cfg(test)]
mod tests;
