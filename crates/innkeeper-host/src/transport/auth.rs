//! Authorization at remote servers: token provider, user agent, token store.
//!
//! A library implements the OAuth protocol (discovery, registration, PKCE, code exchange), see
//! `oauth.rs`. The library is behind the trait [`TokenProvider`], which an application can
//! implement.

mod address_policy;
mod auth_store;
mod bearer_auth;
mod client;
mod headers_helper;
mod manager;
mod oauth;
mod stored_auth;
mod token_response;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use innkeeper_config::Secret;

use crate::error::{AuthError, AuthErrorKind};
pub(super) use bearer_auth::BearerAuth;
pub(super) use headers_helper::HeadersHelper;
pub(crate) use headers_helper::HelperLaunchContext;
pub(crate) use manager::AuthManager;

/// A remote server as the resource that tokens are for.
#[derive(Clone)]
pub struct ProtectedResource {
    /// The name of the server in the configuration.
    pub server: Arc<str>,
    /// The URL, which may contain secrets.
    pub url: Arc<str>,
}

impl fmt::Debug for ProtectedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtectedResource").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The response of a server that rejected a request without running it.
#[derive(Clone, Debug)]
pub struct Challenge {
    /// The HTTP status: 401, or 403 if the token lacks a scope.
    pub status: u16,
    /// The `WWW-Authenticate` header, as the server sent it.
    pub header: Option<String>,
    /// The token that the request carried.
    pub rejected_token: Option<Secret>,
}

/// The future of a token or an error.
pub type TokenFuture<T> = Pin<Box<dyn Future<Output = Result<T, AuthError>> + Send>>;

/// Provides the tokens for `Authorization: Bearer` headers of requests to remote servers.
///
/// The futures run in tasks of the host. A future is not dropped when a call ends, so a person may
/// sign in for longer than a call. The host does not call the provider for a server with an
/// `Authorization` header or a `headersHelper` in the configuration, nor for a server on a unix
/// socket.
///
/// # Examples
///
/// A provider with one token per server, which cannot renew a rejected token:
///
/// ```
/// use std::collections::HashMap;
///
/// use innkeeper_host::config::Secret;
/// use innkeeper_host::{
///     AuthError, AuthErrorKind, Challenge, Config, Host, ProtectedResource, TokenFuture,
///     TokenProvider,
/// };
///
/// struct Vault(HashMap<String, Secret>);
///
/// impl TokenProvider for Vault {
///     fn token(&self, server: &ProtectedResource) -> TokenFuture<Option<Secret>> {
///         let token = self.0.get(&*server.server).cloned();
///         Box::pin(async { Ok(token) })
///     }
///
///     fn on_challenge(
///         &self,
///         server: &ProtectedResource,
///         challenge: Challenge,
///     ) -> TokenFuture<Secret> {
///         let kind = AuthErrorKind::TokenRejected { status: challenge.status };
///         let server = server.server.clone();
///         Box::pin(async { Err(AuthError { server, kind }) })
///     }
/// }
///
/// # fn example(tokens: HashMap<String, Secret>) {
/// let builder = Host::builder(Config::default()).token_provider(Vault(tokens));
/// # }
/// ```
pub trait TokenProvider: Send + Sync + 'static {
    /// Returns the token for the next request, renewed if the token expires soon; `None` to send no
    /// token.
    fn token(&self, server: &ProtectedResource) -> TokenFuture<Option<Secret>>;

    /// Returns a token in place of a rejected token. Requests that are rejected at the same time
    /// share one call and its result.
    fn on_challenge(&self, server: &ProtectedResource, challenge: Challenge)
    -> TokenFuture<Secret>;
}

/// A request to a person to sign in.
#[derive(Clone)]
pub struct AuthorizationRequest {
    /// The name of the server that requires the sign-in.
    pub server: Arc<str>,
    /// The URL to open in a browser: `https`, or `http` on this machine.
    pub url: String,
    /// The redirect URI of the authorization response.
    pub redirect_uri: String,
}

impl fmt::Debug for AuthorizationRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationRequest").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The future of the full redirect URL, or an error message.
pub type RedirectFuture = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// Opens the page of an authorization server in a browser for a person.
///
/// # Examples
///
/// A user agent for a terminal, without a listener at the redirect URI:
///
/// ```
/// use innkeeper_host::{AuthorizationRequest, RedirectFuture, UserAgent};
///
/// struct Terminal;
///
/// impl UserAgent for Terminal {
///     fn redirect_uri(&self) -> String {
///         "http://127.0.0.1:7777/callback".to_owned()
///     }
///
///     fn authorize(&self, request: AuthorizationRequest) -> RedirectFuture {
///         Box::pin(async move {
///             println!("Open {}", request.url);
///             println!("Then paste the address of the last page:");
///             let line = tokio::task::spawn_blocking(|| std::io::stdin().lines().next()).await;
///             let line = line.ok().flatten().and_then(Result::ok);
///             line.ok_or_else(|| "no input".to_owned())
///         })
///     }
/// }
/// ```
pub trait UserAgent: Send + Sync + 'static {
    /// Returns the redirect URI, for example `http://127.0.0.1:7777/callback`. The server's
    /// `oauth.redirectUri` takes precedence.
    fn redirect_uri(&self) -> String;

    /// Lets a person sign in. Returns the full redirect URL with `code` and `state`. The host drops
    /// the future after five minutes.
    fn authorize(&self, request: AuthorizationRequest) -> RedirectFuture;
}

/// Stores the results of sign-ins in place of files, for example in the system's keyring.
///
/// Each value is one string per server and URL with a few thousand bytes. Requests to that server
/// wait for the store, so the methods must be fast and must not ask a person.
pub trait TokenStore: Send + Sync + 'static {
    /// Returns the value with this name, or `None` without a value.
    ///
    /// # Errors
    ///
    /// Returns an error if the store is not readable. The host then continues without a stored
    /// value.
    fn load(&self, name: &str) -> std::io::Result<Option<Secret>>;

    /// Stores a value in place of the previous value with this name.
    ///
    /// # Errors
    ///
    /// Returns an error if the store is not writable. The host then continues with the value in
    /// memory.
    fn save(&self, name: &str, value: &Secret) -> std::io::Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: secrets | URLs of a sign-in contain secrets | the debug text shows no URL | Secrets do
    /// not print
    #[test]
    fn the_debug_text_of_a_sign_in_names_the_server_and_shows_no_url() {
        let server: Arc<str> = "inn".into();
        let url = "https://sso.example/page?state=canary".to_owned();
        let resource = ProtectedResource { server: server.clone(), url: url.as_str().into() };
        let request = AuthorizationRequest { server, redirect_uri: url.clone(), url };
        let texts = [format!("{resource:?}"), format!("{request:?}")];
        assert_eq!(
            texts,
            [
                r#"ProtectedResource { server: "inn", .. }"#,
                r#"AuthorizationRequest { server: "inn", .. }"#
            ]
        );
    }
}
