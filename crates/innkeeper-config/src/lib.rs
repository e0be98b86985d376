//! Configuration: reads `mcp.json` and reports all problems at once.
//!
//! A file passes through the modules below in order: text to a tree with positions, spellings of
//! other hosts to our spelling, validation of the tree against the JSON Schema, typed entries,
//! expansion of variables, and the checks across servers: names, dependencies, cycles.

pub mod name;

mod diagnostic;
mod environment;
mod secret;

mod key_location;
mod key_path;
mod source_text;
mod tree;

mod alias;
mod dialect;
mod document;

pub mod foreign;
mod raw;
mod raw_value;
mod schema;
mod schema_match;
mod unknown_keys;
mod validate;

mod dotenv;
mod expand;
mod files;
mod literal;

mod argument_rule;
mod extra_keys;
mod filter;
mod guard;
mod host;
mod inherited_environment;
mod seconds;
mod server;

mod check;
mod in_process;
mod invalid_server;
mod launch;
mod oauth;
mod remote;
mod secret_scan;
mod serve;
mod settings;

mod dependencies;
pub mod difference;
mod graph;
mod load;
mod names;
mod origin;
mod watch;
mod written;

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::Serialize;

use origin::LoadMode;

pub use argument_rule::ArgumentPatterns;
pub use diagnostic::{ConfigError, Diagnostic, Position, Severity};
pub use document::server_names;
pub use environment::Environment;
pub use extra_keys::ExtraKeys;
pub use files::read_bytes;
pub use filter::{DenyReason, ToolFilter};
pub use graph::UnknownServer;
pub use guard::{GuardMode, GuardModes};
pub use host::HostConfig;
pub use inherited_environment::InheritedEnvironment;
pub use invalid_server::InvalidServer;
pub use load::MAX_FILE_BYTES;
pub use origin::{ConfigOrigin, EnvFile};
pub use schema::json_schema;
pub use secret::{ExpandedValue, Secret};
pub use secret_scan::{mentions_secret, redact_argument, redact_url};
pub use serve::{
    ApiKeyConfig, ApprovalConfig, BindingConfig, ConsoleConfig, EndpointConfig, KeyDigest,
    LargeResults, MCP_ENDPOINT, NameStyle, Rate, RateConfig, ServeAuth, ServeConfig, ServeLimits,
    ServeOauth, TokenAlgorithm,
};
pub use server::{
    CacheConfig, EnterpriseConfig, IdToken, OauthConfig, OauthGrant, ResourceLimits, RestartPolicy,
    RetryPolicy, SandboxConfig, ServerConfig, Share, TransportConfig,
};
pub use tree::MAX_DEPTH;
pub use watch::ConfigWatcher;

/// The complete configuration of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Enabled servers, in file order.
    pub servers: IndexMap<String, ServerConfig>,
    /// Settings of the host.
    pub host: HostConfig,
    /// Settings of the gateway; `None` without a `serve` object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serve: Option<ServeConfig>,
    /// Warnings, sorted by position.
    pub warnings: Vec<Diagnostic>,
    /// Disabled servers with the position of each entry.
    pub disabled: IndexMap<String, Position>,
    /// Servers whose entries have errors, in file order; only [`Config::load_partial`] sets servers
    /// aside.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub invalid: IndexMap<String, InvalidServer>,
    /// Files of the configuration, as the user named them.
    pub sources: Vec<String>,
    /// Unknown top-level keys.
    #[serde(skip_serializing_if = "ExtraKeys::is_empty")]
    pub extra: ExtraKeys,
    /// Environment that the configuration was read against; servers inherit from this environment.
    #[serde(skip)]
    pub environment: Environment,
    /// Origin of the configuration, for reloads.
    #[serde(skip)]
    pub origin: ConfigOrigin,
}

impl Config {
    /// Reads one file against the environment of this process. A file has at most
    /// [`MAX_FILE_BYTES`].
    ///
    /// Only this convenience function reads the process environment; [`Config::load`] takes an
    /// [`Environment`].
    ///
    /// # Errors
    ///
    /// Returns every problem of the file if at least one problem is an error.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use innkeeper_config::Config;
    ///
    /// let config = Config::from_file("mcp.json")?;
    /// for warning in &config.warnings {
    ///     println!("{warning}");
    /// }
    /// # Ok::<(), innkeeper_config::ConfigError>(())
    /// ```
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::load(&[path.as_ref().to_owned()], &Environment::from_process())
    }

    /// Reads files and merges them; a server name may occur in only one file.
    ///
    /// A `.env` file beside a configuration file supplies variables that `env` does not have.
    ///
    /// # Errors
    ///
    /// Returns every problem of every file if at least one problem is an error.
    pub fn load(sources: &[PathBuf], env: &Environment) -> Result<Self, ConfigError> {
        load::load_files(sources, env, LoadMode::Complete)
    }

    /// Reads files as [`Config::load`] does, and sets aside each server whose entry has an error, so
    /// that the other servers can start.
    ///
    /// [`Config::invalid`] contains the servers that were set aside, with their problems. A host
    /// lists these servers as unavailable; the servers that depend on them do not start. The errors
    /// of a disabled server are warnings.
    ///
    /// # Errors
    ///
    /// Returns every problem of every file if at least one error is not an error of one server:
    /// text that is not JSON, a duplicate server name, an error in `host`, or a cycle of
    /// dependencies.
    pub fn load_partial(sources: &[PathBuf], env: &Environment) -> Result<Self, ConfigError> {
        load::load_files(sources, env, LoadMode::Partial)
    }

    /// Reads a string as a file named `source_name` in `base_dir`.
    ///
    /// # Errors
    ///
    /// Returns every problem of the string if at least one problem is an error.
    pub fn from_text(
        text: &str,
        source_name: &str,
        base_dir: &Path,
        env: &Environment,
    ) -> Result<Self, ConfigError> {
        load::load_text(text, source_name, base_dir, env, LoadMode::Complete)
    }

    /// Reads a JSON value that the application built; problems have no line numbers.
    ///
    /// `source_name` names the value in problems, `base_dir` is the base of relative paths, and
    /// `env` supplies the variables.
    ///
    /// # Errors
    ///
    /// Returns every problem of the value if at least one problem is an error.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use innkeeper_config::{Config, Environment};
    /// use serde_json::json;
    ///
    /// let value = json!({"mcpServers": {"files": {"command": "serve", "args": ["${DATA}"]}}});
    /// let environment = Environment::from_pairs([("DATA", "documents")]);
    /// let config = Config::from_value(&value, "settings", Path::new("."), &environment)?;
    /// assert!(config.servers.contains_key("files"));
    /// # Ok::<(), innkeeper_config::ConfigError>(())
    /// ```
    pub fn from_value(
        value: &serde_json::Value,
        source_name: &str,
        base_dir: &Path,
        env: &Environment,
    ) -> Result<Self, ConfigError> {
        load::load_value(value, source_name, base_dir, env, LoadMode::Complete)
    }

    /// Works like [`Config::from_value`], and sets a server with errors aside
    /// ([`Config::invalid`]), as [`Config::load_partial`] does.
    ///
    /// # Errors
    ///
    /// See [`Config::load_partial`].
    pub fn from_value_partial(
        value: &serde_json::Value,
        source_name: &str,
        base_dir: &Path,
        env: &Environment,
    ) -> Result<Self, ConfigError> {
        load::load_value(value, source_name, base_dir, env, LoadMode::Partial)
    }

    /// Makes all servers optional: a host starts the other servers if one server fails. A reload
    /// keeps this setting.
    #[must_use]
    pub fn with_optional_servers(mut self) -> Self {
        for server in self.servers.values_mut() {
            server.required = false;
        }
        self.origin.all_optional = true;
        self
    }

    /// Returns the configuration reduced to these servers and their dependencies, which can include
    /// servers in [`Config::invalid`]. The warnings about the other servers are removed.
    ///
    /// # Errors
    ///
    /// Returns the first name that no enabled server has.
    pub fn select(&self, servers: &[&str]) -> Result<Self, UnknownServer> {
        graph::select(self, servers)
    }

    /// Returns the configuration reduced to the servers with this sharing policy. Dependencies on
    /// other servers are removed: these servers run in another host. The servers in
    /// [`Config::invalid`] stay with [`Share::Process`].
    #[must_use]
    pub fn shared_by(&self, share: Share) -> Self {
        graph::shared_by(self, share)
    }

    /// Reads the files again, with the same environment, the same options and the same selection of
    /// servers.
    ///
    /// Returns `None` for a configuration without files.
    ///
    /// # Errors
    ///
    /// Same as [`Config::load`], or as [`Config::load_partial`] if that function read the files.
    pub fn reload(&self) -> Option<Result<Self, ConfigError>> {
        origin::reload(self)
    }

    /// Returns the servers in start order: a wave depends only on the waves before it.
    ///
    /// Servers of one wave are in file order and can start concurrently.
    pub fn waves(&self) -> Vec<Vec<&str>> {
        graph::waves(self)
    }
}

#[cfg(test)]
mod tests;
