//! Signing in at remote servers: who is asked for a token, and who brings the user to a browser.
//!
//! What OAuth itself asks for (discovery, registration, PKCE, the exchange of codes) is the work of
//! a library, in `oauth.rs`; it is kept behind [`Authorize`], which an application may replace.

mod access;
mod client;
mod error;
mod guard;
mod helper;
mod oauth;
mod record;
mod sign_in;
mod store;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::config::Secret;

pub(super) use access::Access;
pub use error::{AuthError, AuthFault};
pub(super) use helper::Helper;
pub(crate) use helper::Programs;
pub(crate) use sign_in::SignIn;

/// A remote server, as far as tokens are concerned.
#[derive(Clone)]
pub struct Protected {
    /// Its name in the configuration.
    pub server: Arc<str>,
    /// Its address, which may hold secrets.
    pub url: Arc<str>,
}

impl fmt::Debug for Protected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protected").field("server", &self.server).finish_non_exhaustive()
    }
}

/// How a server refused a request that it did not run.
#[derive(Clone, Debug)]
pub struct Challenge {
    /// 401, or 403 where the token does not reach far enough.
    pub status: u16,
    /// Its `WWW-Authenticate` header, as the server sent it.
    pub header: Option<String>,
    /// The token that was sent along.
    pub refused: Option<Secret>,
}

/// A token on its way, or why there is none.
pub type Authorizing<T> = Pin<Box<dyn Future<Output = Result<T, AuthError>> + Send>>;

/// Gives the tokens that requests to remote servers carry as `Authorization: Bearer`.
///
/// Its futures run in tasks of the host and are not dropped when a call ends, so that a person who
/// signs in may take longer than a call. A server that has an `Authorization` header in the
/// configuration is never asked about.
pub trait Authorize: Send + Sync + 'static {
    /// The token for the next request, renewed if it is about to expire; `None` to send none.
    fn token(&self, server: &Protected) -> Authorizing<Option<Secret>>;

    /// Another token than the one that was refused. Requests that are refused at the same time ask
    /// once and share the answer.
    fn challenged(&self, server: &Protected, challenge: Challenge) -> Authorizing<Secret>;
}

/// Where a person has to go to sign in.
#[derive(Clone)]
pub struct Visit {
    /// The server that wants it.
    pub server: Arc<str>,
    /// The address to open in a browser; `https`, or `http` on this machine.
    pub url: String,
    /// Where the browser is sent once that is done.
    pub redirect_uri: String,
}

impl fmt::Debug for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The address that a browser was sent to, or why there is none, in words.
pub type Visiting = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// Opens browsers for a host: shows a person the page of an authorization server.
pub trait UserAgent: Send + Sync + 'static {
    /// Where browsers are to be sent back to, such as `http://127.0.0.1:7777/callback`. The
    /// server's `oauth.redirectUri` goes first.
    fn redirect_uri(&self) -> String;

    /// Has a person sign in; given up after five minutes. The result is the whole address that the
    /// browser was sent back to, with its `code` and `state`.
    fn visit(&self, visit: Visit) -> Visiting;
}

/// Keeps what came of signing in, in place of files: the system's keyring, for instance.
///
/// What is kept is one text a server and address, of a few thousand bytes. Requests to that server
/// wait meanwhile, so neither may take long or ask a person.
pub trait TokenStore: Send + Sync + 'static {
    /// What is kept under this name; `None` if nothing is.
    ///
    /// # Errors
    /// It cannot be looked at. The host goes on as if nothing were kept.
    fn load(&self, name: &str) -> std::io::Result<Option<Secret>>;

    /// Keeps a text in place of what is kept under this name.
    ///
    /// # Errors
    /// It cannot be kept. The host goes on with what it has in memory.
    fn save(&self, name: &str, kept: &Secret) -> std::io::Result<()>;
}
