//! Finds and loads the configuration.

mod digest;
mod discovery;
mod source;

pub(crate) use digest::configuration_digest;
pub(crate) use discovery::{OWN_CONFIG_FILE, user_config_file};
pub(crate) use source::ConfigSource;

use std::path::PathBuf;

use innkeeper_host::config::{Diagnostic, Severity, name};
use innkeeper_host::{Config, ConfigError, Lock};

use crate::context::CommandContext;
use crate::exit::CliError;
use crate::log::LogLevel;
use crate::output::{Output, Style};
use crate::pins;

/// Selects the source of the configuration, and logs its files.
pub(crate) fn select_source(context: &CommandContext) -> Result<ConfigSource, CliError> {
    let source = ConfigSource::select(&context.global, &context.environment)?;
    for file in source.files() {
        tracing::info!(file = %file.display(), "configuration file selected");
    }
    Ok(source)
}

/// A configuration, and what its files decide about the command.
#[derive(Clone, Debug)]
pub(crate) struct LoadedConfig {
    pub(crate) config: Config,
    pub(crate) files: ConfigFiles,
}

/// What the files of a configuration decide about a command. The default is that of a configuration
/// without files.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigFiles {
    /// The path of the lock that the servers are verified against.
    pub(crate) lock: Option<PathBuf>,
    /// The file whose servers need the approval of the user.
    pub(crate) to_approve: Option<PathBuf>,
    /// The name of the socket of a running gateway, if commands can share the servers.
    pub(crate) digest: Option<String>,
}

impl ConfigFiles {
    /// Reads the lock; `None` if there is none.
    pub(crate) fn read_lock(&self) -> Result<Option<Lock>, CliError> {
        self.lock.as_deref().map_or(Ok(None), pins::read_lock)
    }
}

impl LoadedConfig {
    /// Returns a configuration that was built in the program.
    pub(crate) fn without_files(config: Config) -> Self {
        Self { config, files: ConfigFiles::default() }
    }

    pub(crate) fn map(self, change: impl FnOnce(Config) -> Config) -> Self {
        Self { config: change(self.config), ..self }
    }
}

/// Loads the configuration and applies `--timeout`. Without `--strict`, a server whose entry has
/// errors is set aside; if no other server exists, the errors are the error of the command.
pub(crate) fn load_config(context: &CommandContext) -> Result<LoadedConfig, CliError> {
    if context.global.strict {
        return load_complete_config(context);
    }
    let source = select_source(context)?;
    let config = source.load_partial(&context.environment);
    let config = config.map_err(|error| config_error(&error))?;
    if config.servers.is_empty() {
        check_entries(&config)?;
    }
    Ok(apply_options(context, &source, config))
}

/// Loads the configuration as [`load_config`] does, but without setting servers aside.
pub(crate) fn load_complete_config(context: &CommandContext) -> Result<LoadedConfig, CliError> {
    let source = select_source(context)?;
    let config = source.load(&context.environment).map_err(|error| config_error(&error))?;
    Ok(apply_options(context, &source, config))
}

fn apply_options(
    context: &CommandContext,
    source: &ConfigSource,
    mut config: Config,
) -> LoadedConfig {
    apply_timeout(&mut config, context);
    let lock = source.lock_file();
    let has_lock = lock.as_ref().is_some_and(|lock| lock.exists());
    let digest = if has_lock { None } else { shared_digest(context, source, &config) };
    let to_approve = source.file_to_approve().map(ToOwned::to_owned);
    LoadedConfig { config, files: ConfigFiles { lock, to_approve, digest } }
}

/// Returns the digest of a configuration whose servers several commands can share: not with options
/// that only servers of the command itself fulfil.
fn shared_digest(
    context: &CommandContext,
    source: &ConfigSource,
    config: &Config,
) -> Option<String> {
    let global = &context.global;
    let is_alone = global.no_attach
        || global.strict
        || global.log.log_file.is_some()
        || global.log.log_level < LogLevel::Warning;
    if is_alone { None } else { configuration_digest(source, config) }
}

/// Returns an error if a server of the configuration has an invalid entry.
fn check_entries(config: &Config) -> Result<(), CliError> {
    if config.invalid.is_empty() {
        return Ok(());
    }
    let problems = config.invalid.values().flat_map(|server| server.problems.clone());
    Err(config_error(&ConfigError(problems.collect())))
}

/// Applies `--timeout`.
pub(crate) fn apply_timeout(config: &mut Config, context: &CommandContext) {
    if let Some(timeout) = context.global.timeout {
        for server in config.servers.values_mut() {
            server.calls.timeout = timeout;
        }
    }
}

/// Returns the part of the configuration that `name` (`SERVER.ITEM`) needs, with the server's name.
/// Errors name the kind of the item, such as `tool`.
/// If bare names are allowed, returns the whole configuration with optional servers, because any
/// server may have the item. An only server is required.
pub(crate) fn config_for_item(
    config: &Config,
    name: &str,
    item_kind: &str,
) -> Result<(Config, Option<String>), CliError> {
    let split = |is_server: &dyn Fn(&str) -> bool| {
        innkeeper_host::split_name(name, is_server).map(|(server, _)| server)
    };
    if let Some(server) =
        split(&|server| config.servers.contains_key(server) || config.invalid.contains_key(server))
    {
        return Ok((config_for_server(config, server)?, Some(server.to_owned())));
    }
    if let Some(server) = split(&|server| config.disabled.contains_key(server)) {
        return Ok((config_for_server(config, server)?, Some(server.to_owned())));
    }
    if config.host.allow_bare_names {
        let mut config = config.clone();
        // The only server must have the item, so its failure is that of the command.
        if config.servers.len() + config.invalid.len() == 1 {
            config.servers.values_mut().for_each(|server| server.required = true);
            check_entries(&config)?;
            return Ok((config, None));
        }
        return Ok((config.with_optional_servers(), None));
    }
    if config.servers.contains_key(name) || config.invalid.contains_key(name) {
        return Err(server_instead_of_item(name, item_kind));
    }
    let failure = CliError::usage(format!("`{name}` does not start with a server name"));
    let servers = || config.servers.keys().chain(config.invalid.keys()).map(String::as_str);
    let similar = match (name.split_once('.'), servers().next(), servers().nth(1)) {
        (None, Some(only), None) => Some(format!("{only}.{name}")),
        (None, _, _) => None,
        (Some((server, item)), _, _) => {
            name::closest(server, servers()).map(|similar| format!("{similar}.{item}"))
        }
    };
    Err(match similar {
        Some(similar) => failure.with_hint(format!("did you mean `{similar}`?")),
        None => failure.with_hint(format!(
            "use SERVER.NAME; the servers are {}",
            servers().collect::<Vec<_>>().join(", ")
        )),
    })
}

/// Returns the error for the name of a server in the place of a tool or a prompt.
pub(crate) fn server_instead_of_item(name: &str, item_kind: &str) -> CliError {
    CliError::usage(format!("`{name}` is a server; name a {item_kind}: `{name}.NAME`"))
        .with_hint(format!("run `innkeeper tools {name}` to show the server"))
}

/// Returns the part of the configuration that one server needs. Other servers and their problems
/// are not part of the result.
///
/// # Errors
///
/// The server does not exist, or the entry of a needed server has errors.
pub(crate) fn config_for_server(config: &Config, server: &str) -> Result<Config, CliError> {
    let config = config.select(&[server]).map_err(|error| {
        let failure = CliError::usage(error.to_string());
        match (&error.disabled, &error.similar) {
            (Some(_), _) => {
                failure.with_hint("remove `disabled` from the definition of the server")
            }
            (None, Some(similar)) => failure.with_hint(format!("did you mean `{similar}`?")),
            (None, None) => failure,
        }
    })?;
    check_entries(&config)?;
    Ok(config)
}

pub(crate) fn print_warnings(output: &mut Output, problems: &[Diagnostic]) -> std::io::Result<()> {
    for problem in problems {
        output.labelled_status(Style::Note, "warning", &problem.to_string())?;
        if let Some(hint) = &problem.hint {
            output.labelled_status(Style::Hint, "    hint", hint)?;
        }
    }
    Ok(())
}

/// Converts a configuration error to an error that lists every problem.
pub(crate) fn config_error(error: &ConfigError) -> CliError {
    let errors = error.0.iter().filter(|problem| problem.severity == Severity::Error).count();
    let plural = if errors == 1 { "" } else { "s" };
    let mut failure = CliError::usage(format!("{errors} problem{plural} in the configuration"));
    for problem in &error.0 {
        failure = failure.with_detail(problem.to_string());
        if let Some(hint) = &problem.hint {
            failure = failure.with_detail(format!("    hint: {hint}"));
        }
    }
    failure
}
