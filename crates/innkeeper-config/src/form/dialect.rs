//! Other hosts' spellings: tables of keys, transports, files and units.

/// The meaning of a foreign key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyMapping {
    /// Alias of one of our keys.
    Alias(&'static str),
    /// Alias of one of our keys that also sets the transport.
    AliasWithTransport(&'static str, &'static str),
    /// Negation of one of our booleans.
    Negated(&'static str),
    /// A key that our format stores in a nested object.
    Nested(&'static str, &'static str),
    /// Milliseconds for one of our keys.
    Milliseconds(&'static str),
    /// The name of the variable with the bearer token.
    BearerVariable,
    /// Names of variables by the header that has their value.
    HeaderVariables,
    /// Names of variables that the server inherits.
    InheritedVariables,
}

/// Server keys in other hosts' files.
pub(crate) const KEY_MAPPINGS: &[(&str, KeyMapping)] = &[
    ("transport", KeyMapping::Alias("type")),
    ("transportType", KeyMapping::Alias("type")),
    ("baseUrl", KeyMapping::Alias("url")),
    ("base_url", KeyMapping::Alias("url")),
    ("httpUrl", KeyMapping::AliasWithTransport("url", "http")),
    ("serverUrl", KeyMapping::Alias("url")),
    ("http_headers", KeyMapping::Alias("headers")),
    ("env_file", KeyMapping::Alias("envFile")),
    ("enabled", KeyMapping::Negated("disabled")),
    ("env_vars", KeyMapping::InheritedVariables),
    ("env_http_headers", KeyMapping::HeaderVariables),
    ("bearerTokenEnv", KeyMapping::BearerVariable),
    ("bearer_token_env", KeyMapping::BearerVariable),
    ("bearer_token_env_var", KeyMapping::BearerVariable),
    ("oauthRedirectUrl", KeyMapping::Nested("oauth", "redirectUri")),
    ("startup_timeout_ms", KeyMapping::Milliseconds("initTimeout")),
    ("startup_timeout_sec", KeyMapping::Alias("initTimeout")),
    ("tool_timeout_sec", KeyMapping::Alias("timeout")),
    ("includeTools", KeyMapping::Nested("tools", "allow")),
    ("enabledTools", KeyMapping::Nested("tools", "allow")),
    ("enabled_tools", KeyMapping::Nested("tools", "allow")),
    ("allowedTools", KeyMapping::Nested("tools", "allow")),
    ("allowed_tools", KeyMapping::Nested("tools", "allow")),
    ("blockedTools", KeyMapping::Nested("tools", "deny")),
    ("blocked_tools", KeyMapping::Nested("tools", "deny")),
    ("excludeTools", KeyMapping::Nested("tools", "deny")),
    ("disabledTools", KeyMapping::Nested("tools", "deny")),
    ("disabled_tools", KeyMapping::Nested("tools", "deny")),
];

/// Transports with all their spellings; the first spelling is ours.
pub(crate) const TRANSPORTS: &[&[&str]] = &[
    &["stdio", "local"],
    &["http", "streamable-http", "streamableHttp", "streamable_http", "remote"],
    &["sse"],
    &["websocket", "ws"],
    &["in-process"],
];

/// Key under which VS Code's `sandbox` is stored, because our `sandbox` has another shape.
pub(crate) const VSCODE_SANDBOX: &str = "sandbox of VS Code";

/// Keys that other hosts use and this host ignores.
pub(crate) const IGNORED_KEYS: &[&str] = &[
    "alwaysAllow",
    "alwaysLoad",
    "auth",
    "authProviderType",
    "autoApprove",
    "description",
    "dev",
    "gallery",
    "inputs",
    "lifecycle",
    "logging",
    "modernLogLevel",
    "protocolEra",
    "roots",
    VSCODE_SANDBOX,
    "sandboxEnabled",
    "trust",
    "version",
];

/// Keys of other programs for one of our keys. The values may have another form, so the keys are not
/// read.
const KEY_SYNONYMS: &[(&str, &str)] = &[
    ("dependsOn", "dependencies"),
    ("depends_on", "dependencies"),
    ("depends", "dependencies"),
    ("requires", "dependencies"),
    ("needs", "dependencies"),
    ("environment", "env"),
    ("arguments", "args"),
    ("cmd", "command"),
    ("program", "command"),
    ("workingDirectory", "cwd"),
    ("working_directory", "cwd"),
    ("workdir", "cwd"),
    ("uri", "url"),
    ("endpoint", "url"),
];

/// Returns our key for a key of another program.
pub(crate) fn key_synonym(key: &str) -> Option<&'static str> {
    KEY_SYNONYMS.iter().find(|(synonym, _)| *synonym == key).map(|(_, key)| *key)
}

/// Returns the transport that an unknown spelling resembles.
pub(crate) fn similar_transport(spelling: &str) -> Option<&'static str> {
    let spelling = spelling.to_ascii_lowercase();
    let contains = |parts: &[&str]| parts.iter().any(|part| spelling.contains(part));
    if contains(&["stream"]) {
        Some("http")
    } else if contains(&["sse", "event"]) {
        Some("sse")
    } else if contains(&["socket", "ws"]) {
        Some("websocket")
    } else if contains(&["http", "remote"]) {
        Some("http")
    } else {
        contains(&["std", "process", "command", "local", "pipe"]).then_some("stdio")
    }
}

/// Keys that only hosts with `timeout` in milliseconds write (Gemini CLI, Claude Code).
pub(crate) const MILLISECOND_KEYS: &[&str] = &[
    "httpUrl",
    "trust",
    "includeTools",
    "excludeTools",
    "authProviderType",
    "alwaysLoad",
    "headersHelper",
];

/// Files of hosts with `timeout` in milliseconds (Claude Code).
pub(crate) const MILLISECOND_FILES: &[&str] = &[".mcp.json", ".claude.json"];

/// Settings files with many keys beside servers: unknown keys in them are not reported.
pub(crate) const SETTINGS_FILES: &[&str] =
    &["settings.json", ".claude.json", "claude_desktop_config.json"];

/// Directories with workspace settings; the workspace is the parent directory.
pub(crate) const SETTINGS_DIRECTORIES: &[&str] = &[".vscode", ".cursor", ".gemini", ".claude"];

/// Maximum `timeout` in seconds under `mcpServers`; a larger number is read as milliseconds.
/// No realistic timeout is longer than one hour or shorter than four seconds.
pub(crate) const MAX_TIMEOUT_SECONDS: f64 = 3600.0;

/// Minimum `timeout` in milliseconds: a smaller number is in seconds, even in the file of a host
/// that uses milliseconds.
pub(crate) const MIN_TIMEOUT_MILLISECONDS: f64 = 1000.0;

/// Returns our name of a transport.
pub(crate) fn canonical_transport(spelling: &str) -> Option<&'static str> {
    TRANSPORTS
        .iter()
        .find(|spellings| {
            spellings.iter().any(|known_spelling| known_spelling.eq_ignore_ascii_case(spelling))
        })
        .and_then(|spellings| spellings.first().copied())
}

/// Returns whether an unknown key seems to restrict what the server may do. Without it the server
/// could do more than its file allows.
pub(crate) fn is_restriction(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    lower.contains("tool")
        && ["allow", "block", "deny", "denied", "disable", "enable", "exclude", "filter", "include"]
            .iter()
            .any(|part| lower.contains(part))
}

/// Returns the meaning of another host's key.
pub(crate) fn key_mapping(key: &str) -> Option<KeyMapping> {
    KEY_MAPPINGS.iter().find(|(foreign, _)| *foreign == key).map(|(_, meaning)| *meaning)
}
