//! `remove`, `enable` and `disable`: change one server of the configuration file.

use serde_json::json;

use crate::cli::ServerNameArgs;
use crate::config_editor::ConfigFile;
use crate::configuration::{ConfigSource, print_warnings, select_source};
use crate::context::CommandContext;
use crate::exit::CliError;

pub(super) fn remove(context: &mut CommandContext, args: &ServerNameArgs) -> Result<(), CliError> {
    let (source, mut file) = open(context)?;
    if !file.remove_server(&args.server) {
        return Err(unknown_server(&file, &args.server));
    }
    save(context, &source, &file)?;
    report_change(context, &file, &args.server, "removed")
}

pub(super) fn set_enabled(
    context: &mut CommandContext,
    args: &ServerNameArgs,
    enabled: bool,
) -> Result<(), CliError> {
    let (source, file) = open(context)?;
    match file.set_disabled(&args.server, !enabled) {
        None => return Err(unknown_server(&file, &args.server)),
        Some(false) => {
            let text = if enabled { "already enabled" } else { "already disabled" };
            return report_change(context, &file, &args.server, text);
        }
        Some(true) => save(context, &source, &file)?,
    }
    report_change(context, &file, &args.server, if enabled { "enabled" } else { "disabled" })
}

fn open(context: &CommandContext) -> Result<(ConfigSource, ConfigFile), CliError> {
    reject_server_options(context)?;
    let source = select_source(context)?;
    let file = ConfigFile::open(&source)?;
    Ok((source, file))
}

fn save(
    context: &mut CommandContext,
    source: &ConfigSource,
    file: &ConfigFile,
) -> Result<(), CliError> {
    let warnings = file.save(&source.environment(&context.environment))?;
    Ok(print_warnings(&mut context.output, &warnings)?)
}

/// Rejects the options that replace a configuration file.
pub(super) fn reject_server_options(context: &CommandContext) -> Result<(), CliError> {
    if !context.global.server.is_given() {
        return Ok(());
    }
    Err(CliError::usage("`--stdio` and `--url` have no configuration file to change")
        .with_hint("use `innkeeper add NAME -- COMMAND` or `innkeeper add NAME URL`"))
}

fn unknown_server(file: &ConfigFile, server: &str) -> CliError {
    CliError::usage(format!("`{}` has no server `{server}`", file.path().display()))
        .with_hint("run `innkeeper graph` to list the enabled servers")
}

/// Prints what changed in which file.
pub(super) fn report_change(
    context: &mut CommandContext,
    file: &ConfigFile,
    server: &str,
    change: &str,
) -> Result<(), CliError> {
    let path = file.path();
    let output = &mut context.output;
    if output.is_json() {
        let report = json!({ "file": path, "server": server, "change": change });
        return Ok(output.print_json(&report)?);
    }
    Ok(output.status(&format!("`{}`: server `{server}` {change}", path.display()))?)
}
