//! Why there is no token for a server, and what can be done about it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::text::display_safe;

/// How much of what a stranger says is shown.
const SHOWN: usize = 200;

/// Why there is no token for a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("server `{server}` cannot be signed in at: {fault}")]
pub struct AuthError {
    /// The server.
    pub server: Arc<str>,
    /// What went wrong.
    pub fault: AuthFault,
}

/// What went wrong with signing in at a server, with the next step where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthFault {
    /// A person has to sign in, and this host was given no way to reach one.
    Nobody,
    /// The server does not say where tokens come from.
    NoWay,
    /// An address that it names is none to go to.
    Address {
        /// What it is the address of.
        what: &'static str,
        /// The address, escaped for display.
        url: Box<str>,
    },
    /// What it says about signing in cannot be used.
    Discovery(Box<str>),
    /// The authorization server knows no client for us.
    Registration(Box<str>),
    /// The person, or the authorization server in their place, said no.
    Declined(Box<str>),
    /// The person could not be asked.
    NotAsked(Box<str>),
    /// The person did not sign in within this time.
    Late(Duration),
    /// The server names another authorization server than the one that the client of the
    /// configuration is for; it was sent nothing.
    OtherIssuer {
        /// The one it names, escaped for display.
        named: Box<str>,
        /// The one the client is for, escaped for display.
        home: Box<str>,
    },
    /// The authorization server gave no token.
    NoToken(Box<str>),
    /// The identity provider of the enterprise does not vouch for the user.
    Identity(Box<str>),
    /// It wants scopes that were asked for already.
    Scope(Box<str>),
    /// It refuses a token that it was just given.
    Refused {
        /// The status of the HTTP answer.
        status: u16,
    },
    /// The program of `headersHelper` gave no headers.
    Helper(Box<str>),
    /// An application's own [`Authorize`](super::Authorize) says why.
    Other(Box<str>),
    /// The host is shutting down.
    Shutdown,
}

impl AuthFault {
    /// The words of a stranger or a library, safe to show.
    pub(super) fn words(text: &str) -> Box<str> {
        let text: String = text.trim().chars().take(SHOWN).collect();
        display_safe(&text).replace('\n', " ").into()
    }

    pub(super) fn address(what: &'static str, url: &str) -> Self {
        // A query may hold secrets.
        let url = url.split(['?', '#']).next().unwrap_or_default();
        Self::Address { what, url: Self::words(url) }
    }
}

impl fmt::Display for AuthFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str(
                "it asks for signing in and nobody is there to do it; \
                 give a token in `headers.Authorization`, \
                 or a client in `oauth` with `\"grant\": \"client_credentials\"`",
            ),
            Self::NoWay => f.write_str(
                "it asks for a token and does not say where to get one; \
                 give one in `headers.Authorization`",
            ),
            Self::Address { what, url } => {
                write!(f, "its {what} is `{url}`, which is not an address to sign in at")
            }
            Self::Discovery(why) => write!(f, "what it says about signing in is no use: {why}"),
            Self::Registration(why) => write!(
                f,
                "no client could be registered: {why}; \
                 register one by hand and give its `oauth.clientId`"
            ),
            Self::Declined(why) => write!(f, "signing in was declined: {why}"),
            Self::NotAsked(why) => write!(f, "nobody could be asked to sign in: {why}"),
            Self::Late(after) => {
                write!(f, "nobody signed in within {} s; try again", after.as_secs())
            }
            Self::OtherIssuer { named, home } => write!(
                f,
                "it names the authorization server `{named}`, and the client in `oauth` is for \
                 `{home}`; if `{named}` is right, give it as `oauth.issuer`"
            ),
            Self::NoToken(why) => write!(f, "the authorization server gave no token: {why}"),
            Self::Identity(why) => write!(
                f,
                "the identity provider does not vouch for the user: {why}; \
                 a fresh ID token in `oauth.enterprise` may help"
            ),
            Self::Scope(scopes) => {
                write!(f, "it wants the scope `{scopes}`, which was asked for and not given")
            }
            Self::Refused { status } => {
                write!(f, "it refuses the token that it was just given (HTTP {status})")
            }
            Self::Helper(why) => write!(f, "its `headersHelper` gave no headers: {why}"),
            Self::Other(why) => f.write_str(why),
            Self::Shutdown => f.write_str("the host is shutting down"),
        }
    }
}
