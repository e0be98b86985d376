//! The configuration: from `mcp.json` to servers that can be started, or every problem at once.
//!
//! A file goes through the rooms below in order: text to a tree that knows its places, other
//! hosts' spellings to ours, the tree against the JSON Schema, typed entries, variables replaced,
//! and last what only the whole can tell: names, dependencies, cycles.

mod environment;
mod problem;
mod secret;

mod place;
mod source;
mod trail;
mod tree;

mod alias;
mod dialect;
mod document;

mod fit;
mod raw;
mod raw_value;
mod schema;
mod unknown;
mod validate;

mod dotenv;
mod expand;
mod files;

mod filter;
mod guard;
mod host;
mod kept;
mod seconds;
mod server;

mod check;
mod launch;
mod leak;
mod oauth;
mod remote;
mod settings;

mod depend;
mod graph;
mod load;
mod names;
mod origin;
mod watch;

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::Serialize;

pub use environment::Environment;
pub(crate) use files::read_bytes;
pub use filter::{Refusal, ToolFilter};
pub use graph::UnknownServer;
pub use guard::{GuardMode, GuardModes};
pub use host::HostConfig;
pub use kept::Kept;
pub(crate) use leak::{names_secret, without_secrets};
pub use load::MAX_FILE_BYTES;
pub use origin::Origin;
pub use problem::{ConfigError, Position, Problem, Severity};
pub use schema::json_schema;
pub use secret::{Expanded, Secret};
pub use server::{
    Cache, Enterprise, Grant, IdToken, Limits, Oauth, Restart, Retry, Sandbox, ServerConfig,
    TransportConfig,
};
pub use tree::MAX_DEPTH;
pub(crate) use watch::Watch;

/// Everything a host needs to know before it starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The servers in file order, without the disabled ones.
    pub servers: IndexMap<String, ServerConfig>,
    /// The host's own settings.
    pub host: HostConfig,
    /// What is doubtful, sorted by place.
    pub warnings: Vec<Problem>,
    /// The servers that are switched off, with where they stand.
    pub disabled: IndexMap<String, Position>,
    /// The files it was read from, as the user named them.
    pub sources: Vec<String>,
    /// Top-level keys that have no meaning here.
    #[serde(skip_serializing_if = "Kept::is_empty")]
    pub extra: Kept,
    /// What it was read against; servers inherit from it.
    #[serde(skip)]
    pub environment: Environment,
    /// How it was read.
    #[serde(skip)]
    pub origin: Origin,
}

impl Config {
    /// Reads one file against the environment of this process.
    ///
    /// The one convenience that looks at the process by itself; [`Config::load`] is told.
    ///
    /// # Errors
    ///
    /// Every problem of the file when one of them is an error.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::load(&[path.as_ref().to_owned()], &Environment::of_process())
    }

    /// Reads files and merges them; a server's name may stand in one of them only.
    ///
    /// A `.env` beside a file gives values to its variables where `env` has none.
    ///
    /// # Errors
    ///
    /// Every problem of every file when one of them is an error.
    pub fn load(sources: &[PathBuf], env: &Environment) -> Result<Self, ConfigError> {
        load::files(sources, env)
    }

    /// Reads a text as if it were a file called `source_name` in `base_dir`.
    ///
    /// # Errors
    ///
    /// Every problem of the text when one of them is an error.
    pub fn from_text(
        text: &str,
        source_name: &str,
        base_dir: &Path,
        env: &Environment,
    ) -> Result<Self, ConfigError> {
        load::text(text, source_name, base_dir, env)
    }

    /// Reads a value that an application put together; problems carry no lines.
    ///
    /// # Errors
    ///
    /// Every problem of the value when one of them is an error.
    pub fn from_value(
        value: &serde_json::Value,
        source_name: &str,
        base_dir: &Path,
        env: &Environment,
    ) -> Result<Self, ConfigError> {
        load::value(value, source_name, base_dir, env)
    }

    /// The same configuration with only these servers and everything they depend on.
    ///
    /// # Errors
    ///
    /// The first name that no server has.
    pub fn only(&self, servers: &[&str]) -> Result<Self, UnknownServer> {
        graph::only(self, servers)
    }

    /// What stands in its files now, read against the same environment and with the same servers
    /// picked out of it; `None` for a configuration without files.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn read_again(&self) -> Option<Result<Self, ConfigError>> {
        origin::again(self)
    }

    /// The servers in the order of starting: a wave depends on the waves before it only.
    ///
    /// Servers of one wave stand in file order and can be started together.
    pub fn waves(&self) -> Vec<Vec<&str>> {
        graph::waves(self)
    }
}

#[cfg(test)]
mod tests;
