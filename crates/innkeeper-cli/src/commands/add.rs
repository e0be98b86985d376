//! `add`: adds a server to the configuration file.

use std::path::{Path, PathBuf};

use innkeeper_host::{Config, LaunchSpec};
use serde_json::{Map, Value, json};

use super::edit_server::{reject_server_options, report_change};
use crate::cli::AddArgs;
use crate::config_editor::ConfigFile;
use crate::configuration::{ConfigSource, OWN_CONFIG_FILE, print_warnings};
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::output::Style;
use crate::server_definition::{self, DefinitionError};
use crate::trust;

pub(super) fn run(context: &mut CommandContext, args: &AddArgs) -> Result<(), CliError> {
    reject_server_options(context)?;
    let name = &args.name;
    let options = &context.global.server;
    let (definition, unused, option) = match &args.address {
        Some(url) => {
            let definition = server_definition::remote_definition(url, &options.header);
            (definition, !options.env.is_empty(), "--env")
        }
        None => {
            let definition = server_definition::stdio_definition(&args.command, &options.env);
            (definition, !options.header.is_empty(), "--header")
        }
    };
    if unused {
        let kind = if args.address.is_some() { "remote" } else { "local" };
        return Err(CliError::usage(format!("a {kind} server has no `{option}`")));
    }
    if args.address.is_none() && args.command.is_empty() {
        return Err(CliError::usage("`add` needs a command or a URL").with_hint(format!(
            "run `innkeeper add {name} -- COMMAND` or `innkeeper add {name} URL`"
        )));
    }
    let definition = definition.map_err(|error| definition_error(name, &error))?;
    let source = ConfigSource::find(&context.global, &context.environment)
        .unwrap_or_else(|| ConfigSource::new_file(PathBuf::from(OWN_CONFIG_FILE)));
    let mut file = match source.files() {
        [path] => ConfigFile::open_or_create(path)?,
        _ => ConfigFile::open(&source)?,
    };
    let exists = file.has_server(name);
    if exists && !args.force {
        let message = format!("`{}` has a server `{name}`", file.path().display());
        return Err(CliError::usage(message)
            .with_hint("use `--force` to replace the server, or choose another name"));
    }
    file.set_server(name, &definition);
    let warnings = file.save(&source.environment(&context.environment))?;
    print_warnings(&mut context.output, &warnings)?;
    report_change(context, &file, name, if exists { "replaced" } else { "added" })?;
    approve(context, &source, name, &definition)
}

/// Approves the added server if the user has typed its whole launch, so that the next command does
/// not ask. The `host` section or the `.env` of a cloned repository may change the launch; the user
/// has not seen these.
fn approve(
    context: &mut CommandContext,
    source: &ConfigSource,
    name: &str,
    definition: &Map<String, Value>,
) -> Result<(), CliError> {
    let Some(file) = source.file_to_approve() else { return Ok(()) };
    let environment = source.environment(&context.environment);
    let Ok(config) = source.load_partial(&context.environment) else { return Ok(()) };
    let document = json!({ "servers": { name: definition } });
    let directory = file.parent().unwrap_or(Path::new(""));
    let typed =
        Config::from_value(&document, "command line", directory, &environment.without_dotenv());
    let typed = typed.as_ref().ok().and_then(|typed| launch_of(typed, name));
    let Some(launch) = launch_of(&config, name) else { return Ok(()) };
    if typed.is_some_and(|typed| typed.fingerprint() == launch.fingerprint()) {
        trust::approve_launch(&context.environment, file, launch);
        return Ok(());
    }
    let path = file.display();
    let output = &mut context.output;
    let text = format!(
        "server `{name}` is not approved: `host` of `{path}` or a `.env` file changes its launch"
    );
    output.labelled_status(Style::Note, "warning", &text)?;
    let hint = "the next command that starts the server asks on a terminal; review the file, or use `--trust`";
    Ok(output.labelled_status(Style::Hint, "    hint", hint)?)
}

fn launch_of(config: &Config, name: &str) -> Option<LaunchSpec> {
    LaunchSpec::all(config).into_iter().find(|launch| launch.name == name)
}

fn definition_error(name: &str, error: &DefinitionError) -> CliError {
    let failure = CliError::usage(format!("cannot add `{name}`: {error}"));
    match error {
        DefinitionError::InvalidUrl { .. } => {
            failure.with_hint(format!("write a command after `--`: `add {name} -- COMMAND`"))
        }
        DefinitionError::InvalidHeader | DefinitionError::DuplicateHeader { .. } => {
            failure.with_hint("write `--header 'Name: value'`")
        }
        DefinitionError::InvalidVariable | DefinitionError::DuplicateVariable { .. } => {
            failure.with_hint("write `--env NAME=value`")
        }
        DefinitionError::EmptyCommand | DefinitionError::UnclosedQuote => failure,
    }
}
