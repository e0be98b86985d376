//! Establishes the identity of the client of an HTTP request.
//!
//! A request has one credential: an API key, or a signed token of the configured issuer. A request
//! without a valid credential has no principal, so that no later code can treat the request as
//! anyone's. The credential stays here: no header of the request is passed on to a server.

mod api_keys;
mod challenge;
mod credential;
mod exposure;
mod key_cache;
mod key_request;
mod key_set;
mod peer_user;
mod resource_metadata;
mod signature;
mod token;
mod token_verifier;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::StatusCode;
use http::request::Parts;
use innkeeper_host::config::{ApiKeyConfig, ServeAuth, ServeOauth, TokenAlgorithm};
use innkeeper_host::{Environment, HttpClientError};

use api_keys::ApiKeyTable;
use challenge::Challenger;
use credential::{Credential, CredentialError};
use token::TokenError;
use token_verifier::TokenVerifier;

use crate::{Principal, Rejection};

pub use exposure::{ExposureError, ExposurePermissions, check_exposure};
pub(crate) use peer_user::LoopbackPeer;
pub use resource_metadata::ResourceMetadata;

/// The credentials that the gateway accepts.
#[derive(Clone, Debug, Default)]
pub struct AuthSettings {
    /// API keys of clients.
    pub api_keys: Vec<ApiKey>,
    /// Access tokens of an authorization server.
    pub oauth: Option<OauthSettings>,
}

/// One API key.
#[derive(Clone)]
pub struct ApiKey {
    /// The client with this key.
    pub principal: Arc<str>,
    /// SHA-256 hash of the key.
    pub sha256: [u8; 32],
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey").field("principal", &self.principal).finish_non_exhaustive()
    }
}

/// The access tokens that the gateway accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OauthSettings {
    /// Issuer identifier of the authorization server.
    pub issuer: String,
    /// URL of the gateway as clients use it: the resource that tokens are issued for.
    pub audience: String,
    /// URL of the signing keys of the authorization server.
    pub jwks_url: String,
    /// Signature algorithms of tokens.
    pub algorithms: Vec<TokenAlgorithm>,
    /// Scopes that each token must contain.
    pub required_scopes: Vec<String>,
    /// Claim with the identity of the client.
    pub principal_claim: String,
}

impl From<&ServeAuth> for AuthSettings {
    fn from(config: &ServeAuth) -> Self {
        let ServeAuth { api_keys, oauth } = config;
        Self {
            api_keys: api_keys.iter().map(ApiKey::from).collect(),
            oauth: oauth.as_ref().map(OauthSettings::from),
        }
    }
}

impl From<&ApiKeyConfig> for ApiKey {
    fn from(config: &ApiKeyConfig) -> Self {
        // Other modules use the rules and the rates of the client.
        let ApiKeyConfig { principal, sha256, tools: _, binding: _, rate: _ } = config;
        Self { principal: principal.as_str().into(), sha256: *sha256.as_bytes() }
    }
}

impl From<&ServeOauth> for OauthSettings {
    fn from(config: &ServeOauth) -> Self {
        let config = config.clone();
        Self {
            issuer: config.issuer,
            audience: config.audience,
            jwks_url: config.jwks_url,
            algorithms: config.algorithms,
            required_scopes: config.required_scopes,
            principal_claim: config.principal_claim,
        }
    }
}

/// The authentication cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum AuthSetupError {
    /// The settings contain no key and no issuer, so that every request would be rejected.
    #[error("no API key and no authorization server is configured")]
    NoCredentials,
    /// The audience is not a URL.
    #[error("the audience is not an `https` or `http` URL with a host")]
    Audience,
    /// No algorithm is allowed, so that every token would be rejected.
    #[error("no signature algorithm of tokens is configured")]
    NoAlgorithm,
    /// The HTTP client for the signing keys cannot be built.
    #[error("cannot read the signing keys of `{issuer}`")]
    Client {
        /// Issuer of the keys.
        issuer: String,
        /// The cause.
        source: HttpClientError,
    },
}

/// Establishes the principal of each request.
#[derive(Debug)]
pub struct Authenticator(Method);

#[derive(Debug)]
enum Method {
    LocalUser,
    Everyone,
    Credentials(Box<Credentials>),
    Application(ApplicationHook),
}

struct ApplicationHook(Box<dyn Fn(&Parts) -> PrincipalFuture + Send + Sync>);

type PrincipalFuture = BoxFuture<'static, Result<Principal, Rejection>>;

impl fmt::Debug for ApplicationHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplicationHook").finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Credentials {
    keys: ApiKeyTable,
    tokens: Option<TokenVerifier>,
}

impl Authenticator {
    /// Creates an authenticator for these credentials. `environment` supplies the proxies for the
    /// requests to the authorization server.
    ///
    /// # Errors
    ///
    /// Returns an error if no request could be authenticated, or if the HTTP client for the signing
    /// keys cannot be built.
    pub fn new(settings: AuthSettings, environment: &Environment) -> Result<Self, AuthSetupError> {
        let AuthSettings { api_keys, oauth } = settings;
        let tokens = match oauth {
            Some(oauth) => {
                let fetch = key_request::key_request(&oauth.jwks_url, environment);
                let fetch = fetch.map_err(|source| {
                    let issuer = oauth.issuer.clone();
                    AuthSetupError::Client { issuer, source }
                })?;
                Some(TokenVerifier::new(oauth, fetch)?)
            }
            None => None,
        };
        Self::from_parts(ApiKeyTable::new(api_keys), tokens)
    }

    fn from_parts(
        keys: ApiKeyTable,
        tokens: Option<TokenVerifier>,
    ) -> Result<Self, AuthSetupError> {
        if keys.is_empty() && tokens.is_none() {
            return Err(AuthSetupError::NoCredentials);
        }
        Ok(Self(Method::Credentials(Box::new(Credentials { keys, tokens }))))
    }

    /// Creates an authenticator that treats every client as the local user, and on Linux refuses the
    /// requests of other users on a loopback address (root excepted). [`check_exposure`] decides where
    /// the gateway may listen without authentication.
    pub fn local_user() -> Self {
        Self(Method::LocalUser)
    }

    /// Creates an authenticator that treats everyone who reaches the gateway as the local user.
    pub fn everyone() -> Self {
        Self(Method::Everyone)
    }

    /// Creates an authenticator that calls the application for each request. The future is dropped if
    /// the client leaves; it should have a time limit of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::StatusCode;
    /// use innkeeper_gateway::auth::Authenticator;
    /// use innkeeper_gateway::{Principal, Rejection};
    ///
    /// let authenticator = Authenticator::from_fn(|parts| {
    ///     let user = parts.headers.get("x-user").and_then(|user| user.to_str().ok());
    ///     let user = user.map(|user| Principal::new(user));
    ///     async move { user.ok_or_else(|| Rejection::new(StatusCode::UNAUTHORIZED, "no user")) }
    /// });
    /// ```
    pub fn from_fn<F>(authenticate: impl Fn(&Parts) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Principal, Rejection>> + Send + 'static,
    {
        let hook = ApplicationHook(Box::new(move |parts| Box::pin(authenticate(parts))));
        Self(Method::Application(hook))
    }

    /// Returns whether a request needs a credential.
    pub fn requires_credential(&self) -> bool {
        match self.0 {
            Method::LocalUser | Method::Everyone => false,
            Method::Credentials(_) | Method::Application(_) => true,
        }
    }

    /// Returns the metadata of the gateway as a protected resource (RFC 9728); `None` without an
    /// authorization server.
    pub fn resource_metadata(&self) -> Option<&ResourceMetadata> {
        match &self.0 {
            Method::LocalUser | Method::Everyone | Method::Application(_) => None,
            Method::Credentials(accepted) => accepted.tokens.as_ref().map(TokenVerifier::metadata),
        }
    }

    /// Returns the principal of a request.
    ///
    /// The wait is bounded: a request to the authorization server takes at most 10 seconds, and
    /// there is at most one per minute. The future can be dropped.
    ///
    /// # Errors
    ///
    /// Returns the response to a request without a valid credential.
    pub async fn authenticate(&self, parts: &Parts) -> Result<Principal, Rejection> {
        let Credentials { keys, tokens } = match &self.0 {
            Method::LocalUser => return local_user(parts).await,
            Method::Everyone => return Ok(Principal::local_user()),
            Method::Application(ApplicationHook(authenticate)) => return authenticate(parts).await,
            Method::Credentials(accepted) => &**accepted,
        };
        let resource = || tokens.as_ref().map(|tokens| tokens.metadata().at(parts.uri.path()));
        let credential = Credential::from_headers(&parts.headers)
            .map_err(|error| Challenger::new(resource().as_ref()).credential_rejection(error))?;
        let (Credential::ApiKey(text) | Credential::Bearer(text)) = credential;
        if let Some(principal) = keys.find(text) {
            return Ok(principal);
        }
        match (credential, tokens) {
            (Credential::Bearer(token), Some(tokens)) => {
                tokens.verify(token, &tokens.metadata().at(parts.uri.path())).await
            }
            (Credential::Bearer(_), None) | (Credential::ApiKey(_), _) => {
                Err(Challenger::new(resource().as_ref()).unknown_key_rejection())
            }
        }
    }
}

/// Returns the local user, unless the request comes from another user of this machine.
async fn local_user(parts: &Parts) -> Result<Principal, Rejection> {
    if let Some(peer) = parts.extensions.get::<LoopbackPeer>()
        && !peer.is_own_user().await
    {
        tracing::warn!("request of another user of this machine refused");
        return Err(Rejection::new(
            StatusCode::FORBIDDEN,
            "this gateway has no authentication and serves only the user who started it: set \
             `serve.auth.apiKeys` for other users of this machine",
        ));
    }
    Ok(Principal::local_user())
}

#[cfg(test)]
mod tests;
