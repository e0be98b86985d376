//! Reads the files of a configuration again.

use crate::config::Config;
use crate::diagnostic::ConfigError;
use crate::load;
use crate::origin::ConfigOrigin;

impl Config {
    /// Reads the files again, with the same environment, the same options and the same selection of
    /// servers.
    ///
    /// Returns `None` for a configuration without files.
    ///
    /// # Errors
    ///
    /// Same as [`Config::load`], or as [`Config::load_partial`] if that function read the files.
    pub fn reload(&self) -> Option<Result<Self, ConfigError>> {
        let ConfigOrigin { files, selected, load_mode, all_optional, .. } = &self.origin;
        if files.is_empty() {
            return None;
        }
        let read = load::load_files(files, &self.environment, *load_mode);
        let read = if *all_optional { read.map(Self::with_optional_servers) } else { read };
        let Some(only) = selected else { return Some(read) };
        Some(read.map(|full_config| {
            let Self { servers, invalid, .. } = &full_config;
            let names = only.iter().map(String::as_str);
            let names: Vec<&str> = names
                .filter(|name| servers.contains_key(*name) || invalid.contains_key(*name))
                .collect();
            // The list holds only existing names, so the selection succeeds.
            let reduced = full_config.select(&names).unwrap_or(full_config);
            // A server that is missing now may be back at the next reload.
            let origin = ConfigOrigin { selected: self.origin.selected.clone(), ..reduced.origin };
            Self { origin, ..reduced }
        }))
    }
}
