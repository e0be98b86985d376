//! The configuration: servers, transports, and diagnostics with their positions.

pub use innkeeper_config::foreign::{self, ForeignDefinition};
pub use innkeeper_config::name;
pub use innkeeper_config::{
    ApiKeyConfig, ApprovalConfig, BindingConfig, CacheConfig, CallConfig, Config, ConfigError,
    ConfigOrigin, ConfigWatcher, ConfinementConfig, ConsoleConfig, DenyReason, Diagnostic,
    EndpointConfig, EnterpriseConfig, Environment, ExpandedValue, ExtraKeys, GuardMode, GuardModes,
    HostConfig, IdToken, InheritedEnvironment, InvalidServer, KeyDigest, LargeResults,
    LifecycleConfig, MAX_DEPTH, MAX_FILE_BYTES, MCP_ENDPOINT, NameStyle, OauthConfig, OauthGrant,
    Position, Rate, RateConfig, ResourceLimits, RestartPolicy, RetryPolicy, SandboxConfig, Secret,
    ServeAuth, ServeConfig, ServeLimits, ServeOauth, ServerConfig, Severity, Share, TokenAlgorithm,
    ToolFilter, TransportConfig, UnknownServer, json_schema, redact_argument, redact_url,
    server_names,
};
