//! Which configuration is meant, read with every problem in words.

use std::path::{Path, PathBuf};

use innkeeper_host::config::{Problem, Severity};
use innkeeper_host::{Config, ConfigError};

use crate::commands::Context;
use crate::exit::Failure;
use crate::output::{Output, Tone};
use crate::pins;

/// Where a configuration is looked for when none is named.
const DEFAULTS: [&str; 3] = ["mcp.json", ".vscode/mcp.json", ".mcp.json"];

/// The files that are meant: those named, else the first default that is there.
pub(crate) fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    match DEFAULTS.iter().find(|file| Path::new(file).is_file()) {
        Some(file) => Ok(vec![PathBuf::from(file)]),
        None => Err(Failure::usage("no configuration found: none of `mcp.json`, `.vscode/mcp.json` and `.mcp.json` is here")
            .hint("name one with `--config FILE`, or make one with `innkeeper import > mcp.json`")),
    }
}

/// Reads the configuration, says its warnings, and applies `--timeout`. From here on, servers are
/// held against the lock beside it.
pub(crate) fn load(context: &mut Context) -> Result<Config, Failure> {
    let files = files(&context.global.config)?;
    let mut config = Config::load(&files, &context.environment).map_err(|error| refuse(&error))?;
    say_problems(&mut context.output, &config.warnings)?;
    context.lock = Some(pins::beside(&files));
    if context.global.config.is_empty() {
        context.found = files.first().cloned();
    }
    limit(&mut config, context);
    Ok(config)
}

/// Applies `--timeout`.
pub(crate) fn limit(config: &mut Config, context: &Context) {
    if let Some(timeout) = context.global.timeout {
        for server in config.servers.values_mut() {
            server.timeout = timeout;
        }
    }
}

/// The part of the configuration that `name` (`SERVER.ITEM`) needs, and the server's name. Where names
/// of tools may stand alone, everything is needed to know whose such a name is.
pub(crate) fn for_item(config: &Config, name: &str) -> Result<(Config, Option<String>), Failure> {
    let split = |known: &dyn Fn(&str) -> bool| {
        innkeeper_host::split_name(name, known).map(|(server, _)| server)
    };
    if let Some(server) = split(&|server| config.servers.contains_key(server)) {
        return Ok((only(config, server)?, Some(server.to_owned())));
    }
    if let Some(server) = split(&|server| config.disabled.contains_key(server)) {
        return Ok((only(config, server)?, Some(server.to_owned())));
    }
    if config.host.allow_bare_names {
        return Ok((config.clone(), None));
    }
    let servers: Vec<&str> = config.servers.keys().map(String::as_str).collect();
    Err(Failure::usage(format!("`{name}` does not begin with the name of a server"))
        .hint(format!("write SERVER.NAME; servers here: {}", servers.join(", "))))
}

/// The part of the configuration that one server needs.
pub(crate) fn only(config: &Config, server: &str) -> Result<Config, Failure> {
    config.only(&[server]).map_err(|error| {
        let failure = Failure::usage(error.to_string());
        match (&error.disabled, &error.similar) {
            (Some(_), _) => failure.hint("take `disabled` away there"),
            (None, Some(similar)) => failure.hint(format!("did you mean `{similar}`?")),
            (None, None) => failure,
        }
    })
}

/// A configuration that cannot be used, as a failure with every problem.
pub(crate) fn refuse(error: &ConfigError) -> Failure {
    let errors = error.0.iter().filter(|problem| problem.severity == Severity::Error).count();
    let plural = if errors == 1 { "" } else { "s" };
    let mut failure = Failure::usage(format!("{errors} problem{plural} in the configuration"));
    for problem in &error.0 {
        failure = failure.detail(problem.to_string());
        if let Some(hint) = &problem.hint {
            failure = failure.detail(format!("    hint: {hint}"));
        }
    }
    failure
}

fn say_problems(output: &mut Output, problems: &[Problem]) -> std::io::Result<()> {
    for problem in problems {
        output.label(Tone::Note, "warning", &problem.to_string())?;
        if let Some(hint) = &problem.hint {
            output.label(Tone::Hint, "    hint", hint)?;
        }
    }
    Ok(())
}
