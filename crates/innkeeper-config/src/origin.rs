//! The origin of a configuration, for reloads.

use std::path::PathBuf;

use super::written::WrittenServers;
use super::{Config, ConfigError, graph, load};

/// The files and the selection of a configuration. A configuration from a value or a string has no
/// files and cannot be reloaded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigOrigin {
    pub(super) files: Vec<PathBuf>,
    /// The `envFile` of each server that has one, also of a server that is set aside or not selected.
    pub(super) env_files: Vec<EnvFile>,
    /// Names of the selected servers, if there was a selection.
    pub(super) selected: Option<Vec<String>>,
    /// How the files were loaded.
    pub(super) load_mode: LoadMode,
    /// Whether all servers are optional, regardless of `required` in the files.
    pub(super) all_optional: bool,
    /// Hash of the files just before they were read; `None` if a file was unreadable.
    pub(super) content_hash: Option<ContentHash>,
    /// The entries of the servers.
    pub(super) written: WrittenServers,
}

/// The file with variables of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvFile {
    /// Name of the server.
    pub server: String,
    /// `envFile` as written in the file.
    pub written: String,
    /// Path after the expansion of variables; relative to the working directory if the environment of
    /// the configuration has none. The file may not exist.
    pub path: PathBuf,
}

/// The effect of an error in the entry of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LoadMode {
    /// The configuration is rejected.
    #[default]
    Complete,
    /// The server is set aside.
    Partial,
}

/// A hash of the contents of all files.
pub(super) type ContentHash = [u8; 32];

impl ConfigOrigin {
    /// Returns the files in reading order; empty if the configuration has no files.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns the `envFile` of each enabled server in the files, regardless of a selection.
    pub fn env_files(&self) -> &[EnvFile] {
        &self.env_files
    }

    /// Returns all servers as JSON in the form `{"mcpServers": {…}}`: as the user wrote them, without
    /// expanded variables, comments, and settings of the host or the gateway. Literal values of `env`
    /// and `headers` are in the text.
    pub fn servers_as_written(&self) -> String {
        self.written.to_json()
    }

    /// Returns whether the configuration was reduced to some of its servers.
    pub fn is_selection(&self) -> bool {
        self.selected.is_some()
    }
}

/// Reads the files again with the same options and the same selection; returns `None` without
/// files.
pub(super) fn reload(config: &Config) -> Option<Result<Config, ConfigError>> {
    let ConfigOrigin { files, selected, load_mode, all_optional, .. } = &config.origin;
    if files.is_empty() {
        return None;
    }
    let read = load::load_files(files, &config.environment, *load_mode);
    let read = if *all_optional { read.map(Config::with_optional_servers) } else { read };
    let Some(only) = selected else { return Some(read) };
    let reduce = |full_config: Config| {
        let names = only.iter().map(String::as_str);
        let exists = |name: &&str| {
            full_config.servers.contains_key(*name) || full_config.invalid.contains_key(*name)
        };
        let names: Vec<&str> = names.filter(exists).collect();
        // The list holds only existing names, so the selection succeeds.
        let reduced = graph::select(&full_config, &names).unwrap_or(full_config);
        // A server that is missing now may be back at the next reload.
        let origin = ConfigOrigin { selected: config.origin.selected.clone(), ..reduced.origin };
        Config { origin, ..reduced }
    };
    Some(read.map(reduce))
}
