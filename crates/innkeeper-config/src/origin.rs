//! The origin of a configuration, for reloads.

use std::path::PathBuf;

use super::{Config, ConfigError, graph};

/// The files and the selection of a configuration. A configuration from a value or a string has no
/// files and cannot be reloaded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigOrigin {
    pub(super) files: Vec<PathBuf>,
    /// Names of the selected servers, if there was a selection.
    pub(super) selected: Option<Vec<String>>,
    /// Hash of the files just before they were read; `None` if a file was unreadable.
    pub(super) content_hash: Option<ContentHash>,
}

/// A hash of the contents of all files.
pub(super) type ContentHash = [u8; 32];

impl ConfigOrigin {
    /// Returns the files in reading order; empty if the configuration has no files.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }
}

/// Reads the files again with the same selection; returns `None` without files.
pub(super) fn reload(config: &Config) -> Option<Result<Config, ConfigError>> {
    let ConfigOrigin { files, selected, content_hash: _ } = &config.origin;
    if files.is_empty() {
        return None;
    }
    let read = Config::load(files, &config.environment);
    let Some(only) = selected else { return Some(read) };
    let reduce = |full_config: Config| {
        let names = only.iter().map(String::as_str);
        let names: Vec<&str> =
            names.filter(|name| full_config.servers.contains_key(*name)).collect();
        // The list holds only existing names, so the selection succeeds.
        let reduced = graph::select(&full_config, &names).unwrap_or(full_config);
        // A server that is missing now may be back at the next reload.
        let origin = ConfigOrigin { selected: config.origin.selected.clone(), ..reduced.origin };
        Config { origin, ..reduced }
    };
    Some(read.map(reduce))
}
