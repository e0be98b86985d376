//! The options of the connection service.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The header with the id of a connection.
pub const CONNECTION_ID_HEADER: &str = "x-mcp-connection-id";

/// The cookie with the id of a connection.
pub const CONNECTION_ID_COOKIE: &str = "mcp_connection_id";

/// When browsers may return the cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CookieSecure {
    /// Only over HTTPS, if the request came over HTTPS: a proxy says so with `X-Forwarded-Proto`.
    #[default]
    Auto,
    /// Only over HTTPS.
    Always,
    /// Also over plain HTTP.
    Never,
}

/// The start of the paths of the connection service, such as `/api/v1/mcp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPrefix(String);

/// The text is not the start of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the prefix must start with `/`, must not end with `/`, may contain letters, digits and \
     `/-._~`, and must not start with the path of an endpoint, such as `/mcp`"
)]
pub struct InvalidPathPrefix;

/// The first parts of the other paths of a gateway.
const TAKEN_PATHS: [&str; 11] = [
    ".well-known",
    "console",
    "endpoints",
    "healthz",
    "mcp",
    "messages",
    "metrics",
    "openapi.json",
    "readyz",
    "sse",
    "tools",
];

impl PathPrefix {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PathPrefix {
    type Err = InvalidPathPrefix;

    fn from_str(text: &str) -> Result<Self, InvalidPathPrefix> {
        let is_prefix = text.strip_prefix('/').is_some_and(|rest| {
            rest.split('/').all(|part| {
                // Clients resolve the parts `.` and `..`.
                !matches!(part, "" | "." | "..")
                    && part.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c))
            })
        });
        let first = text.split('/').nth(1).unwrap_or_default();
        if is_prefix && !TAKEN_PATHS.contains(&first) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidPathPrefix)
        }
    }
}

impl fmt::Display for PathPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The options of the connection service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionOptions {
    /// The start of the paths. Default: `/api/v1/mcp`.
    pub prefix: PathPrefix,
    /// The name of the server for clients. Default: `beam-mcp-server`, the name of the
    /// specification.
    pub server_name: String,
    /// The version of the server for clients. Default: `1.0.0`.
    pub server_version: String,
    /// The time after which an unused connection expires, as in the options of the store. Default:
    /// 1,800 s.
    pub expiry: Duration,
    /// When browsers may return the cookie.
    pub cookie_secure: CookieSecure,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            prefix: PathPrefix("/api/v1/mcp".to_owned()),
            server_name: "beam-mcp-server".to_owned(),
            server_version: "1.0.0".to_owned(),
            expiry: Duration::from_secs(1_800),
            cookie_secure: CookieSecure::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_path_without_patterns() {
        for text in ["/api/v1/mcp", "/a", "/a-b_c.d~e/F9"] {
            assert_eq!(
                text.parse::<PathPrefix>().map(|prefix| prefix.to_string()),
                Ok(text.into())
            );
        }
        for text in [
            "",
            "/",
            "api",
            "/a/",
            "//a",
            "/{name}",
            "/a b",
            "/a?b",
            "/\u{e4}",
            "/.",
            "/a/..",
            "/../a",
            "/mcp",
            "/mcp/v1",
            "/tools",
            "/.well-known/x",
        ] {
            assert_eq!(text.parse::<PathPrefix>(), Err(InvalidPathPrefix), "{text}");
        }
    }
}
