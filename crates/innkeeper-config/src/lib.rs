//! Configuration: reads `mcp.json` and reports all problems at once.
//!
//! A file passes through the modules in this order: `text` makes a tree with positions of it, `form`
//! translates the spellings of other hosts and compares the tree with the JSON Schema, and `checks`
//! expands the `variables` and makes the `settings`.

pub mod difference;
pub mod foreign;
pub mod name;

mod checks;
mod config;
mod content_hash;
mod diagnostic;
mod form;
mod graph;
mod in_process;
mod invalid_server;
mod load;
mod origin;
mod reload;
mod secret;
mod settings;
mod text;
mod variables;
mod watch;

pub use checks::secret_scan::{mentions_secret, redact_argument, redact_url};
pub use config::Config;
pub use diagnostic::{ConfigError, Diagnostic, Position, Severity};
pub use form::document::server_names;
pub use form::schema::json_schema;
pub use graph::UnknownServer;
pub use invalid_server::InvalidServer;
pub use origin::ConfigOrigin;
pub use secret::{ExpandedValue, Secret};
pub use settings::argument_rule::ArgumentPatterns;
pub use settings::extra_keys::ExtraKeys;
pub use settings::filter::{DenyReason, ToolFilter};
pub use settings::guard::{GuardMode, GuardModes};
pub use settings::host::HostConfig;
pub use settings::inherited_environment::InheritedEnvironment;
pub use settings::serve::{
    ApiKeyConfig, ApprovalConfig, BindingConfig, ConsoleConfig, EndpointConfig, KeyDigest,
    LargeResults, MCP_ENDPOINT, NameStyle, Rate, RateConfig, ServeAuth, ServeConfig, ServeLimits,
    ServeOauth, TokenAlgorithm,
};
pub use settings::server::{
    EnterpriseConfig, IdToken, OauthConfig, OauthGrant, ServerConfig, TransportConfig,
};
pub use settings::shared::{
    CacheConfig, CallConfig, ConfinementConfig, LifecycleConfig, ResourceLimits, RestartPolicy,
    RetryPolicy, SandboxConfig, Share,
};
pub use text::tree::MAX_DEPTH;
pub use variables::env_file::EnvFile;
pub use variables::environment::Environment;
pub use variables::files::{MAX_FILE_BYTES, read_bytes};
pub use watch::ConfigWatcher;

#[cfg(test)]
mod tests;
