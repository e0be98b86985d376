//! The source of a configuration: given files, a found file, or one server on the command line.

use std::path::{Path, PathBuf};

use innkeeper_host::{Config, ConfigError, Environment, LaunchSpec};
use serde_json::{Map, Value, json};

use super::discovery::{self, FoundFile};
use crate::cli::{GlobalOptions, SingleServerOptions};
use crate::exit::CliError;
use crate::pins;
use crate::server_definition::{
    self, DefinitionError, name_from_command, name_from_package, name_from_url,
};

#[derive(Clone, Debug)]
pub(crate) enum ConfigSource {
    /// Files given with `--config`.
    Given(Vec<PathBuf>),
    /// A file that was found.
    Found(FoundFile),
    /// The server of `--stdio` or `--url`.
    CommandLine(CommandLineServer),
}

impl ConfigSource {
    /// Returns the source that the options select, or the file that is found without options.
    ///
    /// # Errors
    ///
    /// The options are invalid, or there is no configuration file.
    pub(crate) fn select(
        options: &GlobalOptions,
        environment: &Environment,
    ) -> Result<Self, CliError> {
        if let Some(server) = CommandLineServer::from_options(&options.server, environment)? {
            return Ok(Self::CommandLine(server));
        }
        Self::find(options, environment).ok_or_else(|| missing_config(environment))
    }

    /// Returns the given files, or the file that is found.
    pub(crate) fn find(options: &GlobalOptions, environment: &Environment) -> Option<Self> {
        match &options.config[..] {
            [] => discovery::find_config_file(environment).map(Self::Found),
            given => Some(Self::Given(given.to_vec())),
        }
    }

    /// Returns the source for a file of this directory that does not exist yet.
    pub(crate) fn new_file(file: PathBuf) -> Self {
        Self::Found(FoundFile::Here(file))
    }

    /// Loads the configuration.
    ///
    /// # Errors
    ///
    /// The configuration has an error.
    pub(crate) fn load(&self, environment: &Environment) -> Result<Config, ConfigError> {
        match self {
            Self::CommandLine(server) => server.load(environment),
            Self::Given(_) | Self::Found(_) => {
                Config::load(self.files(), &self.environment(environment))
            }
        }
    }

    /// Loads the configuration, and sets aside the servers whose entries have errors.
    ///
    /// # Errors
    ///
    /// The configuration has an error that is not an error of one server of a file.
    pub(crate) fn load_partial(&self, environment: &Environment) -> Result<Config, ConfigError> {
        match self {
            Self::CommandLine(server) => server.load(environment),
            Self::Given(_) | Self::Found(_) => {
                Config::load_partial(self.files(), &self.environment(environment))
            }
        }
    }

    /// Returns the environment that the configuration is loaded with. Servers of a file in a parent
    /// directory run in that directory; one approval is then enough for all directories below.
    /// Servers of the user's file run beside the file: the programs in the current directory may be
    /// those of a cloned repository.
    pub(crate) fn environment(&self, environment: &Environment) -> Environment {
        match self {
            Self::Found(FoundFile::Parent { directory, .. }) => {
                environment.clone().with_current_dir(directory)
            }
            Self::Found(FoundFile::User(file)) => {
                let directory = file.parent().unwrap_or(Path::new("/"));
                environment.clone().with_current_dir(directory)
            }
            Self::Found(FoundFile::Here(_)) | Self::Given(_) | Self::CommandLine(_) => {
                environment.clone()
            }
        }
    }

    pub(crate) fn files(&self) -> &[PathBuf] {
        match self {
            Self::Given(files) => files,
            Self::Found(
                FoundFile::Here(file) | FoundFile::User(file) | FoundFile::Parent { file, .. },
            ) => std::slice::from_ref(file),
            Self::CommandLine(_) => &[],
        }
    }

    /// Returns the file whose servers need the approval of the user.
    pub(crate) fn file_to_approve(&self) -> Option<&Path> {
        match self {
            Self::Found(FoundFile::Here(file) | FoundFile::Parent { file, .. }) => Some(file),
            Self::Found(FoundFile::User(_)) | Self::Given(_) | Self::CommandLine(_) => None,
        }
    }

    /// Returns the path of the lock beside the configuration, if the configuration has a file.
    pub(crate) fn lock_file(&self) -> Option<PathBuf> {
        let files = self.files();
        (!files.is_empty()).then(|| pins::lock_path(files))
    }

    /// Returns the files as a text for messages: `` `a.json`, `b.json` ``.
    pub(crate) fn display(&self) -> Option<String> {
        let quoted: Vec<_> =
            self.files().iter().map(|file| format!("`{}`", file.display())).collect();
        (!quoted.is_empty()).then(|| quoted.join(", "))
    }
}

fn missing_config(environment: &Environment) -> CliError {
    let message = "no configuration found: `mcp.json`, `.vscode/mcp.json` and `.mcp.json` do not \
                   exist in this directory or its parents";
    let mut failure = CliError::usage(message);
    if let Some(file) = discovery::user_config_file(environment) {
        failure = failure.with_detail(format!("`{}` does not exist", file.display()));
    }
    failure.with_hint("use `--config FILE`, `--stdio COMMAND` or `--url URL`").with_hint(
        "run `innkeeper add NAME -- COMMAND` to create `mcp.json`, or `innkeeper import > mcp.json` \
         to convert the configuration of another host",
    )
}

/// A server that the command line defines in place of a configuration.
#[derive(Clone)]
pub(crate) struct CommandLineServer {
    option: &'static str,
    name: String,
    /// May contain secrets.
    definition: Map<String, Value>,
}

impl std::fmt::Debug for CommandLineServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandLineServer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl CommandLineServer {
    /// Returns the server of `--stdio` or `--url`, if one of the options is given.
    fn from_options(
        options: &SingleServerOptions,
        environment: &Environment,
    ) -> Result<Option<Self>, CliError> {
        if options.stdio.is_none() && !options.env.is_empty() {
            return Err(misplaced("--env", "--stdio"));
        }
        if options.url.is_none() && !options.header.is_empty() {
            return Err(misplaced("--header", "--url"));
        }
        if let Some(line) = &options.stdio {
            return Self::from_command(line, options, environment)
                .map(Some)
                .map_err(|error| definition_error("--stdio", &error));
        }
        let Some(url) = &options.url else { return Ok(None) };
        let definition = server_definition::remote_definition(url, &options.header)
            .map_err(|error| definition_error("--url", &error))?;
        Ok(Some(Self { option: "--url", name: name_from_url(url), definition }))
    }

    fn from_command(
        line: &str,
        options: &SingleServerOptions,
        environment: &Environment,
    ) -> Result<Self, DefinitionError> {
        let words = server_definition::split_command(line)?;
        let definition = server_definition::stdio_definition(&words, &options.env)?;
        let mut server = Self { option: "--stdio", name: name_from_command(&words), definition };
        // Only the configuration knows the options of package runners.
        if let Ok(config) = server.load(environment)
            && let Some(launch) = LaunchSpec::all(&config).into_iter().next()
            && let Some(package) = launch.downloads.packages.first()
        {
            server.name = name_from_package(&package.name);
        }
        Ok(server)
    }

    fn load(&self, environment: &Environment) -> Result<Config, ConfigError> {
        let document = json!({
            "host": { "allowBareNames": true },
            "servers": { self.name.as_str(): self.definition },
        });
        let directory = environment.current_dir().unwrap_or(Path::new("")).to_owned();
        // The current directory may be a cloned repository, whose `.env` is not trusted.
        let environment = environment.clone().without_dotenv();
        Config::from_value(&document, self.option, &directory, &environment)
    }
}

fn misplaced(option: &str, needed: &str) -> CliError {
    CliError::usage(format!("`{option}` needs `{needed}`"))
        .with_hint("a configuration file has the keys `env` and `headers`")
}

/// Converts an invalid definition to an error that names the option.
fn definition_error(option: &str, error: &DefinitionError) -> CliError {
    let (option, hint) = match error {
        DefinitionError::EmptyCommand | DefinitionError::UnclosedQuote => {
            (option, "quote the whole command: `--stdio 'npx -y PACKAGE ARGUMENT'`")
        }
        DefinitionError::InvalidUrl { .. } => {
            (option, "write the whole URL: `--url https://HOST/mcp`; `--stdio` takes a command")
        }
        DefinitionError::InvalidHeader | DefinitionError::DuplicateHeader { .. } => {
            ("--header", "write `--header 'Name: value'`")
        }
        DefinitionError::InvalidVariable | DefinitionError::DuplicateVariable { .. } => {
            ("--env", "write `--env NAME=value`")
        }
    };
    CliError::usage(format!("invalid `{option}`: {error}")).with_hint(hint)
}
