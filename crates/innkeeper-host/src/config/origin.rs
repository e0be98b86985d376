//! How a configuration was read, so that it can be read again.

use std::path::PathBuf;

use super::{Config, ConfigError, graph};

/// Where a configuration comes from. One that was put together from a value or a text comes from
/// nowhere and cannot be read again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    pub(super) files: Vec<PathBuf>,
    /// The servers it was cut down to, if it was.
    pub(super) only: Option<Vec<String>>,
    /// What the files held just before they were read; `None` where one could not be looked at.
    pub(super) content: Option<Content>,
}

/// A hash of what stands in all files together.
pub(super) type Content = [u8; 32];

impl Origin {
    /// The files, in the order they were read; empty where there is none.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }
}

/// The configuration that stands in the files now, cut down in the same way; `None` without files.
pub(super) fn again(config: &Config) -> Option<Result<Config, ConfigError>> {
    let Origin { files, only, content: _ } = &config.origin;
    if files.is_empty() {
        return None;
    }
    let read = Config::load(files, &config.environment);
    let Some(only) = only else { return Some(read) };
    let cut = |whole: Config| {
        let there = only.iter().map(String::as_str);
        let there: Vec<&str> = there.filter(|name| whole.servers.contains_key(*name)).collect();
        // All of them are there.
        let cut = graph::only(&whole, &there).unwrap_or(whole);
        // One that is away now may be back the next time.
        let origin = Origin { only: config.origin.only.clone(), ..cut.origin };
        Config { origin, ..cut }
    };
    Some(read.map(cut))
}
