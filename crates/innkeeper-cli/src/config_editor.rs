//! Changes a configuration file: read, edit, check with the loader, write.

mod document;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use innkeeper_host::config::{Diagnostic, MAX_FILE_BYTES, server_names};
use innkeeper_host::{Config, Environment};
use serde_json::{Map, Value};

use document::{ConfigDocument, DocumentError, EMPTY_CONFIG};

use crate::atomic_file;
use crate::configuration::ConfigSource;
use crate::exit::CliError;
use crate::input_file;

pub(crate) struct ConfigFile {
    path: PathBuf,
    /// `None` if the file does not exist yet.
    text: Option<String>,
    document: ConfigDocument,
    /// The names of the servers after the change.
    servers: BTreeSet<String>,
}

impl ConfigFile {
    /// Reads the file that the other commands would use.
    ///
    /// # Errors
    ///
    /// There is no file or more than one file, or the file is not valid JSON.
    pub(crate) fn open(source: &ConfigSource) -> Result<Self, CliError> {
        match source.files() {
            [file] => Self::read(file),
            [] => {
                Err(CliError::usage("`--stdio` and `--url` have no configuration file to change")
                    .with_hint("use `innkeeper add NAME -- COMMAND` or `innkeeper add NAME URL`"))
            }
            _ => Err(CliError::usage("more than one configuration file")
                .with_hint("use `--config` once, with the file to change")),
        }
    }

    /// Reads a file, or starts a new one if the file does not exist.
    pub(crate) fn open_or_create(path: &Path) -> Result<Self, CliError> {
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if path.is_symlink() {
                    return Err(dangling_link(path));
                }
                let document = parse(path, EMPTY_CONFIG)?;
                Ok(Self { path: path.to_owned(), text: None, document, servers: BTreeSet::new() })
            }
            _ => Self::read(path),
        }
    }

    fn read(path: &Path) -> Result<Self, CliError> {
        let text = read_text(path).map_err(|error| CliError::cannot_read(path, error))?;
        let document = parse(path, &text)?;
        let servers = server_names(&text);
        let servers = servers.into_iter().collect();
        Ok(Self { path: path.to_owned(), document, text: Some(text), servers })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn has_server(&self, name: &str) -> bool {
        self.document.has_server(name)
    }

    pub(crate) fn set_server(&mut self, name: &str, definition: &Map<String, Value>) {
        self.servers.insert(name.to_owned());
        self.document.set_server(name, definition);
    }

    /// Removes a server; returns false if there is no such server.
    pub(crate) fn remove_server(&mut self, name: &str) -> bool {
        self.servers.remove(name);
        self.document.remove_server(name)
    }

    /// Sets whether a server is disabled. Returns whether the text changed, or `None` if there is no
    /// such server.
    pub(crate) fn set_disabled(&self, name: &str, disabled: bool) -> Option<bool> {
        self.document.set_disabled(name, disabled)
    }

    /// Checks the changed text and writes the file. Returns the warnings that the change caused.
    ///
    /// # Errors
    ///
    /// The change causes an error of the configuration, another program has changed the file
    /// meanwhile, or the file cannot be written.
    pub(crate) fn save(&self, environment: &Environment) -> Result<Vec<Diagnostic>, CliError> {
        let text = self.document.to_text();
        self.check_servers(&text)?;
        let before = self.text.as_deref().map(|text| self.problems(text, environment));
        let before = before.unwrap_or_default();
        let problems: Vec<_> = self
            .problems(&text, environment)
            .into_iter()
            .filter(|problem| {
                !before.iter().any(|old| old.key == problem.key && old.message == problem.message)
            })
            .collect();
        if problems.iter().any(Diagnostic::is_error) {
            let path = self.path.display();
            let mut failure = CliError::usage(format!(
                "the change would make `{path}` invalid; nothing was written"
            ));
            for problem in problems.iter().filter(|problem| problem.is_error()) {
                failure = failure.with_detail(format!("{}: {}", problem.key, problem.message));
                if let Some(hint) = problem.hint_line() {
                    failure = failure.with_detail(hint);
                }
            }
            return Err(failure);
        }
        let is_changed = match &self.text {
            Some(old) => {
                let text = read_text(&self.path);
                text.map_err(|error| CliError::cannot_write(&self.path, error))? != *old
            }
            None => fs::symlink_metadata(&self.path).is_ok(),
        };
        if is_changed {
            let message = format!("another program changed `{}`", self.path.display());
            return Err(CliError::failure(message).with_hint("run the command again"));
        }
        // A link keeps its place; the file behind the link changes.
        let target = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        atomic_file::write(&target, &text)
            .map_err(|error| CliError::cannot_write(&self.path, error))?;
        Ok(problems)
    }

    /// Checks that the loader finds every server in the changed text.
    fn check_servers(&self, text: &str) -> Result<(), CliError> {
        let found: BTreeSet<String> = server_names(text).into_iter().collect();
        let Some(lost) = self.servers.difference(&found).next() else { return Ok(()) };
        let path = self.path.display();
        Err(CliError::usage(format!(
            "the change would make `{path}` a file without the server `{lost}`; nothing was written"
        ))
        .with_hint("put the servers into `servers`, or choose another name"))
    }

    fn problems(&self, text: &str, environment: &Environment) -> Vec<Diagnostic> {
        let name = self.path.to_string_lossy();
        let directory = self.path.parent().unwrap_or(Path::new(""));
        match Config::from_text(text, &name, directory, environment) {
            Ok(config) => config.warnings,
            Err(error) => error.0,
        }
    }
}

fn parse(path: &Path, text: &str) -> Result<ConfigDocument, CliError> {
    ConfigDocument::parse(text).map_err(|error| {
        let failure = CliError::usage(format!("cannot change `{}`: {error}", path.display()));
        let failure = match error {
            DocumentError::Syntax(source) => failure.with_source(source),
            DocumentError::NotAnObject | DocumentError::ServersNotAnObject { .. } => failure,
        };
        failure.with_hint("run `innkeeper check` to list the problems of the file")
    })
}

/// Returns the error for a link to a missing file. The link of a cloned repository may lead anywhere.
fn dangling_link(path: &Path) -> CliError {
    let path = path.display();
    CliError::usage(format!("`{path}` is a link to a file that does not exist"))
        .with_hint("create the file behind the link, or remove the link")
}

/// Reads a regular file; a pipe could block forever.
fn read_text(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    input_file::read(path, MAX_FILE_BYTES)
}
