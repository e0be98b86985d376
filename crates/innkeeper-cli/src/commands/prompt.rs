//! `prompt`: gets a prompt and prints its messages.

use innkeeper_host::{CallOptions, Config, Host};
use innkeeper_protocol::skim;
use serde_json::{Map, Value, json};

use super::call::{call_error, own_name};
use crate::attach::RequestedItem;
use crate::cli::PromptArgs;
use crate::configuration::{LoadedConfig, config_for_item, load_config, server_instead_of_item};
use crate::content::{BlobDirectory, ContentPiece, ContentPrinter};
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::hosting::{HostOptions, with_host_options};
use crate::output::Output;
use crate::tool_arguments::ArgumentInput;

pub(super) async fn run(context: &mut CommandContext, args: &PromptArgs) -> Result<(), CliError> {
    let LoadedConfig { config, files } = load_config(context)?;
    let target = prompt_name(&config, &args.target);
    let (config, server) = config_for_item(&config, &target, "prompt")?;
    let prompt = own_name(&target, server.as_deref());
    let options = HostOptions {
        attached_item: Some(RequestedItem::Prompt(prompt)),
        ..HostOptions::default()
    };
    let input = ArgumentInput::read(&args.arguments, None, std::io::stdin().lock())?;
    let arguments = string_arguments(input)?;
    let blobs = BlobDirectory::new(args.save.as_deref())?;
    let loaded = LoadedConfig { config, files };
    with_host_options(context, loaded, options, async |host, output| {
        if host.status().contains_key(&*args.target) && find_prompt(host, &target).is_none() {
            return Err(server_instead_of_item(&args.target, "prompt"));
        }
        check_arguments(host, &target, &arguments)?;
        let got = host.get_prompt(&target, &arguments, CallOptions::default()).await;
        let got = got.map_err(|error| call_error(&error, server_of(host, &target)))?;
        if output.is_json() {
            return Ok(output.print_json(&got)?);
        }
        print_messages(output, &blobs, skim::member(got.get(), "messages").unwrap_or("[]"))
    })
    .await
    .map(drop)
}

/// Returns the complete name of a prompt; the name of the only server may be omitted if the
/// configuration allows bare names.
fn prompt_name(config: &Config, target: &str) -> String {
    match config.servers.keys().next() {
        Some(only)
            if config.host.allow_bare_names
                && config.servers.len() == 1
                && innkeeper_host::split_name(target, |name| config.servers.contains_key(name))
                    .is_none() =>
        {
            format!("{only}.{target}")
        }
        _ => target.to_owned(),
    }
}

fn server_of<'t>(host: &Host, target: &'t str) -> &'t str {
    let status = host.status();
    let split = innkeeper_host::split_name(target, |name: &str| status.contains_key(name));
    split.map_or(target, |(server, _)| server)
}

/// Returns the names of the arguments of a prompt, or `None` if no ready server has the prompt.
fn find_prompt(host: &Host, target: &str) -> Option<Vec<String>> {
    let catalog = host.catalog();
    let (server, name) = innkeeper_host::split_name(target, |name| catalog.server(name).is_some())?;
    let mut prompts = catalog.server(server)?.listing()?.prompts.iter();
    let prompt = prompts.find(|prompt| prompt.view.name == name)?;
    Some(prompt.view.arguments.iter().map(|argument| argument.name.clone()).collect())
}

/// Prints each message with its role: text on the line of the role, other content below.
fn print_messages(
    output: &mut Output,
    blobs: &BlobDirectory,
    messages: &str,
) -> Result<(), CliError> {
    let mut printer = ContentPrinter::new(output, blobs);
    for message in skim::elements(messages) {
        let role = skim::member(message, "role").and_then(skim::decode_string);
        let role = role.as_deref().unwrap_or("?");
        let content = skim::member(message, "content").unwrap_or("null");
        let block = (!content.starts_with('[')).then_some(content);
        for block in block.into_iter().chain(skim::elements(content)) {
            match ContentPiece::from_block(block) {
                ContentPiece::Text(text) => {
                    printer.print(&ContentPiece::Text(format!("{role}: {text}")))?;
                }
                other => {
                    printer.print_heading(role)?;
                    printer.print(&other)?;
                }
            }
        }
    }
    printer.finish()
}

/// Returns the arguments, whose values are all strings.
fn string_arguments(input: ArgumentInput) -> Result<Map<String, Value>, CliError> {
    let schema = json!({ "additionalProperties": { "type": "string" } });
    let mut arguments = Map::new();
    for (key, value) in input.convert(&schema)? {
        let text: String = serde_json::from_str(value.get()).map_err(|_| {
            CliError::usage(format!("argument `{key}` must be a string"))
                .with_hint("all arguments of a prompt are strings: use `KEY=VALUE`")
        })?;
        arguments.insert(key, Value::from(text));
    }
    Ok(arguments)
}

/// Rejects arguments that the prompt does not have; the host reports an unknown prompt.
fn check_arguments(
    host: &Host,
    target: &str,
    arguments: &Map<String, Value>,
) -> Result<(), CliError> {
    let Some(names) = find_prompt(host, target) else { return Ok(()) };
    let unknown = arguments.keys().filter(|key| !names.contains(key));
    let unknown: Vec<_> = unknown.map(|key| format!("`{key}`")).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let quoted: Vec<_> = names.iter().map(|key| format!("`{key}`")).collect();
    let takes = if quoted.is_empty() { "no arguments".to_owned() } else { quoted.join(", ") };
    Err(CliError::usage(format!("prompt `{target}` has no argument {}", unknown.join(", ")))
        .with_hint(format!("the prompt takes {takes}")))
}
