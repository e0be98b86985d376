//! The origin of a configuration, for reloads.

use std::path::PathBuf;

use crate::content_hash::ContentHash;
use crate::form::written::WrittenServers;
use crate::variables::env_file::EnvFile;

/// The files and the selection of a configuration. A configuration from a value or a string has no
/// files and cannot be reloaded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigOrigin {
    pub(crate) files: Vec<PathBuf>,
    /// The `envFile` of each server that has one, also of a server that is set aside or not selected.
    pub(crate) env_files: Vec<EnvFile>,
    /// Names of the selected servers, if there was a selection.
    pub(crate) selected: Option<Vec<String>>,
    /// How the files were loaded.
    pub(crate) load_mode: LoadMode,
    /// Whether all servers are optional, regardless of `required` in the files.
    pub(crate) all_optional: bool,
    /// Hash of the files just before they were read; `None` if a file was unreadable.
    pub(crate) content_hash: Option<ContentHash>,
    pub(crate) written: WrittenServers,
}

/// The effect of an error in the entry of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LoadMode {
    /// The configuration is rejected.
    #[default]
    Complete,
    /// The server is set aside.
    Partial,
}

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
