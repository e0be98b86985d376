//! The configuration: servers, transports, and diagnostics with their positions.

pub use innkeeper_config::{
    CacheConfig, Config, ConfigError, ConfigOrigin, DenyReason, Diagnostic, EnterpriseConfig,
    Environment, ExpandedValue, ExtraKeys, GuardMode, GuardModes, HostConfig, IdToken,
    InheritedEnvironment, InvalidServer, MAX_DEPTH, MAX_FILE_BYTES, OauthConfig, OauthGrant,
    Position, ResourceLimits, RestartPolicy, RetryPolicy, SandboxConfig, Secret, ServerConfig,
    Severity, Share, ToolFilter, TransportConfig, UnknownServer, json_schema, redact_argument,
    redact_url, server_names,
};
