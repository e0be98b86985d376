//! How other hosts spell what we read: one table each for keys, transports, files and units.

/// What a foreign key means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The same as one of our keys.
    Key(&'static str),
    /// The same as one of our keys, and it says which transport is meant.
    KeyOf(&'static str, &'static str),
    /// The opposite of one of our switches.
    Opposite(&'static str),
    /// A list that we keep one level deeper.
    Inside(&'static str, &'static str),
}

/// Keys of a server in other hosts' files.
pub(super) const KEYS: &[(&str, Meaning)] = &[
    ("transport", Meaning::Key("type")),
    ("httpUrl", Meaning::KeyOf("url", "http")),
    ("serverUrl", Meaning::Key("url")),
    ("http_headers", Meaning::Key("headers")),
    ("env_file", Meaning::Key("envFile")),
    ("enabled", Meaning::Opposite("disabled")),
    ("startup_timeout_sec", Meaning::Key("initTimeout")),
    ("tool_timeout_sec", Meaning::Key("timeout")),
    ("includeTools", Meaning::Inside("tools", "allow")),
    ("enabledTools", Meaning::Inside("tools", "allow")),
    ("enabled_tools", Meaning::Inside("tools", "allow")),
    ("excludeTools", Meaning::Inside("tools", "deny")),
    ("disabledTools", Meaning::Inside("tools", "deny")),
    ("disabled_tools", Meaning::Inside("tools", "deny")),
];

/// The transports, each with every spelling of it; the first one is ours.
pub(super) const TRANSPORTS: &[&[&str]] = &[
    &["stdio", "local"],
    &["http", "streamable-http", "streamableHttp", "streamable_http", "remote"],
    &["sse"],
    &["websocket", "ws"],
];

/// What VS Code's `sandbox` is called here, where ours has another shape.
pub(super) const OTHER_SANDBOX: &str = "sandbox of VS Code";

/// Keys that other hosts act on and this one has no use for.
pub(super) const WITHOUT_MEANING: &[&str] = &[
    "alwaysAllow",
    "alwaysLoad",
    "authProviderType",
    "autoApprove",
    "bearer_token_env_var",
    "description",
    "dev",
    "env_http_headers",
    "env_vars",
    "gallery",
    "inputs",
    "modernLogLevel",
    "protocolEra",
    "roots",
    OTHER_SANDBOX,
    "sandboxEnabled",
    "trust",
    "version",
];

/// Keys that only hosts write which count `timeout` in milliseconds (Gemini CLI, Claude Code).
pub(super) const MILLISECOND_KEYS: &[&str] = &[
    "httpUrl",
    "trust",
    "includeTools",
    "excludeTools",
    "authProviderType",
    "alwaysLoad",
    "headersHelper",
];

/// Files that hold much else beside servers: their other keys are nobody's mistake.
pub(super) const SETTINGS_FILES: &[&str] =
    &["settings.json", ".claude.json", "claude_desktop_config.json"];

/// Directories that keep a workspace's settings; the workspace is the directory around them.
pub(super) const SETTINGS_DIRECTORIES: &[&str] = &[".vscode", ".cursor", ".gemini", ".claude"];

/// A `timeout` under `mcpServers` above this many seconds is taken for milliseconds: an hour is
/// the longest anybody waits for a call, and four seconds the shortest anybody sets.
pub(super) const LONGEST_IN_SECONDS: f64 = 3600.0;

/// Below this even a host that counts milliseconds cannot have meant them.
pub(super) const SHORTEST_IN_MILLISECONDS: f64 = 1000.0;

/// Our name for a transport.
pub(super) fn transport(spelling: &str) -> Option<&'static str> {
    TRANSPORTS
        .iter()
        .find(|spellings| spellings.iter().any(|known| known.eq_ignore_ascii_case(spelling)))
        .and_then(|spellings| spellings.first().copied())
}

/// What a key of another host means here.
pub(super) fn meaning(key: &str) -> Option<Meaning> {
    KEYS.iter().find(|(foreign, _)| *foreign == key).map(|(_, meaning)| *meaning)
}
