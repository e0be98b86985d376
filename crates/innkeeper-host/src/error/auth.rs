//! Errors of the authorization at a remote server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::text::display_safe;

/// Maximum length of displayed text from a server or library, in characters.
const MAX_SHOWN_CHARS: usize = 200;

/// An authorization error of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot sign in to server `{server}`: {kind}")]
pub struct AuthError {
    /// The name of the server.
    pub server: Arc<str>,
    /// The kind of the error.
    pub kind: AuthErrorKind,
}

/// The kind of an authorization error. The message contains a hint where one exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthErrorKind {
    /// A person must sign in, and the host has no user agent.
    NoUserAgent,
    /// The server does not name an authorization server.
    NoAuthorizationServer,
    /// The server names a URL that is not allowed.
    DisallowedAddress {
        /// The kind of the URL.
        endpoint: &'static str,
        /// The URL, escaped for display.
        url: Box<str>,
    },
    /// The authorization metadata of the server is invalid.
    Discovery(Box<str>),
    /// The authorization server did not register a client.
    Registration(Box<str>),
    /// The person or the authorization server declined the sign-in.
    Declined(Box<str>),
    /// The user agent failed.
    UserAgentFailed(Box<str>),
    /// The person did not sign in within this time.
    Timeout(Duration),
    /// The server names a different authorization server than the issuer of the configured client.
    /// The host sent nothing to the other authorization server.
    IssuerMismatch {
        /// The issuer that the server names, escaped for display.
        found: Box<str>,
        /// The issuer of the configured client, escaped for display.
        expected: Box<str>,
    },
    /// The authorization server returned no token.
    TokenRequestFailed(Box<str>),
    /// The identity provider of the enterprise returned no assertion.
    IdentityProvider(Box<str>),
    /// The server requires scopes that were already requested.
    InsufficientScope(Box<str>),
    /// The server rejects a new token.
    TokenRejected {
        /// The HTTP status of the response.
        status: u16,
    },
    /// The program of `headersHelper` returned no headers.
    HeadersHelper(Box<str>),
    /// An error of an application's own [`TokenProvider`](crate::TokenProvider).
    Other(Box<str>),
    /// The host is shutting down.
    Shutdown,
}

impl AuthErrorKind {
    /// Shortens and escapes text from a server or library for display.
    pub(crate) fn sanitize(text: &str) -> Box<str> {
        let text: String = text.trim().chars().take(MAX_SHOWN_CHARS).collect();
        display_safe(&text).replace('\n', " ").into()
    }

    pub(crate) fn disallowed_address(endpoint: &'static str, url: &str) -> Self {
        // A query may contain secrets.
        let url = url.split(['?', '#']).next().unwrap_or_default();
        Self::DisallowedAddress { endpoint, url: Self::sanitize(url) }
    }
}

impl fmt::Display for AuthErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUserAgent => f.write_str(
                "sign-in required, no user agent configured; \
                 set a token in `headers.Authorization`, \
                 or a client in `oauth` with `\"grant\": \"client_credentials\"`",
            ),
            Self::NoAuthorizationServer => f.write_str(
                "token required, no authorization server named; \
                 set a token in `headers.Authorization`",
            ),
            Self::DisallowedAddress { endpoint, url } => {
                write!(f, "{endpoint} `{url}` is not allowed")
            }
            Self::Discovery(why) => write!(f, "invalid authorization metadata: {why}"),
            Self::Registration(reason) => write!(
                f,
                "client registration failed: {reason}; \
                 register a client manually and set `oauth.clientId`"
            ),
            Self::Declined(reason) => write!(f, "sign-in declined: {reason}"),
            Self::UserAgentFailed(reason) => write!(f, "user agent failed: {reason}"),
            Self::Timeout(after) => {
                write!(f, "no sign-in within {} s; try again", after.as_secs())
            }
            Self::IssuerMismatch { found, expected } => write!(
                f,
                "authorization server `{found}` differs from `{expected}`, the issuer of the client in \
                 `oauth`; if `{found}` is right, set `oauth.issuer`"
            ),
            Self::TokenRequestFailed(reason) => {
                write!(f, "no token from the authorization server: {reason}")
            }
            Self::IdentityProvider(reason) => write!(
                f,
                "no assertion from the identity provider: {reason}; \
                 set a new ID token in `oauth.enterprise`"
            ),
            Self::InsufficientScope(scopes) => {
                write!(f, "insufficient scope: `{scopes}` was requested but not granted")
            }
            Self::TokenRejected { status } => {
                write!(f, "new token rejected (HTTP {status})")
            }
            Self::HeadersHelper(reason) => write!(f, "`headersHelper` failed: {reason}"),
            Self::Other(reason) => f.write_str(reason),
            Self::Shutdown => f.write_str("the host is shutting down"),
        }
    }
}
