//! The sign-in flow: from a challenge to a token.

use std::time::Duration;

use innkeeper_config::{OauthGrant, Secret};
use reqwest::Url;
use rmcp::transport::auth::WWWAuthenticateParams;
use tokio::time::timeout;

use super::super::bearer_auth::names_bearer;
use super::super::stored_auth::{RegisteredClient, StoredToken};
use super::super::{AuthErrorKind, AuthorizationRequest, Challenge};
use super::authorization_server::AuthorizationServer;
use super::{OauthInner, OauthState, enterprise};
use crate::audit::AuditEvent;

/// Timeout for a person's sign-in. The page of the authorization server is valid as long.
const USER_SIGN_IN_TIMEOUT: Duration = Duration::from_secs(300);

/// The scope for a refresh token.
const OFFLINE_ACCESS: &str = "offline_access";

/// Adds the scope for a refresh token to other scopes if the scope is offered, else removes it.
fn with_offline_access(mut scopes: Vec<String>, is_offered: bool) -> Vec<String> {
    if !is_offered {
        scopes.retain(|scope| scope != OFFLINE_ACCESS);
    } else if !scopes.is_empty() && !scopes.iter().any(|scope| scope == OFFLINE_ACCESS) {
        scopes.push(OFFLINE_ACCESS.to_owned());
    }
    scopes
}

pub(super) fn required_scopes(challenge: &Challenge, url: &Url) -> Vec<String> {
    let params =
        challenge.header.as_deref().map(|header| WWWAuthenticateParams::parse(header, url));
    let scope = params.and_then(|params| params.scope).unwrap_or_default();
    scope.split_whitespace().map(str::to_owned).collect()
}

impl OauthInner {
    /// Discovers the authorization server with the information in the challenge.
    pub(super) async fn discover(
        &self,
        challenge: Option<&Challenge>,
    ) -> Result<AuthorizationServer, AuthErrorKind> {
        let header = challenge.and_then(|challenge| challenge.header.as_deref());
        if let Some(header) = header {
            self.check_metadata_url(header)?;
        }
        let context = &self.context;
        let library =
            AuthorizationServer::discover(context.http.clone(), &context.url, header).await?;
        let asks_for_one = header.is_some_and(names_bearer);
        if !library.is_published() && !asks_for_one {
            return Err(AuthErrorKind::NoAuthorizationServer);
        }
        Ok(library)
    }

    /// Rejects a challenge whose `resource_metadata` URL is not allowed. No other URL is tried
    /// instead.
    fn check_metadata_url(&self, header: &str) -> Result<(), AuthErrorKind> {
        const KEY: &str = "resource_metadata=";
        let Some(at) = header.to_ascii_lowercase().find(KEY) else { return Ok(()) };
        let metadata_url = header[at + KEY.len()..].trim_start();
        let metadata_url = match metadata_url.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => metadata_url.split([',', ' ']).next().unwrap_or_default(),
        };
        let allowed_url =
            WWWAuthenticateParams::parse(header, &self.context.url).resource_metadata_url;
        let allowed_url = allowed_url.filter(|url| self.context.http.allows(url));
        allowed_url
            .map(drop)
            .ok_or_else(|| AuthErrorKind::disallowed_address("`resource_metadata`", metadata_url))
    }

    /// Requests a token with the grant of the configuration.
    pub(super) async fn sign_in(
        &self,
        state: &mut OauthState,
        challenge: &Challenge,
        requested_scopes: Vec<String>,
    ) -> Result<Secret, AuthErrorKind> {
        let mut library = self.discover(Some(challenge)).await?;
        self.check_issuer(state, library.issuer())?;
        self.discard_other_issuer(&mut state.stored, library.issuer());
        let scopes = self.scopes_to_request(state, &library, requested_scopes).await;
        AuditEvent::SigningIn.emit(&self.context.server);
        let config = &self.context.config;
        let token = match (&config.enterprise, config.grant) {
            (Some(enterprise), _) => {
                let client =
                    self.configured_client(String::new()).ok_or(AuthErrorKind::NoUserAgent)?;
                enterprise::request_token(&self.context, enterprise, &library, client, &scopes)
                    .await?
            }
            (None, OauthGrant::AuthorizationCode) => {
                self.sign_in_user(state, &mut library, &scopes).await?
            }
            (None, OauthGrant::ClientCredentials) => {
                let client =
                    self.configured_client(String::new()).ok_or(AuthErrorKind::NoUserAgent)?;
                let url = &self.context.url;
                match &config.private_key {
                    Some(key) => library.client_assertion_token(url, client, key, &scopes).await?,
                    None => library.client_credentials_token(url, client, &scopes).await?,
                }
            }
        };
        state.stored.token = Some(token);
        state.stored.requested = scopes;
        state.authorization_server = Some(library);
        self.save(state);
        AuditEvent::SignedIn.emit(&self.context.server);
        self.set_current(state.stored.token.as_ref()).ok_or(AuthErrorKind::NoAuthorizationServer)
    }

    /// Returns all previously requested scopes and the new scopes.
    async fn scopes_to_request(
        &self,
        state: &OauthState,
        library: &AuthorizationServer,
        requested_scopes: Vec<String>,
    ) -> Vec<String> {
        let config = &self.context.config;
        let first = match config.scopes.is_empty() {
            true => library.initial_scopes().await,
            false => config.scopes.clone(),
        };
        let mut scopes: Vec<String> = Vec::new();
        for scope in state.stored.requested.iter().cloned().chain(first).chain(requested_scopes) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        let is_offered = self.requires_user() && library.supports_scope(OFFLINE_ACCESS);
        with_offline_access(scopes, is_offered)
    }

    /// Restricts the configured client to one authorization server. A server can name another
    /// authorization server later, which would receive the client's secret.
    fn check_issuer(&self, state: &mut OauthState, issuer: &str) -> Result<(), AuthErrorKind> {
        let config = &self.context.config;
        let Some(client) = &config.client_id else { return Ok(()) };
        let expected = match &config.issuer {
            Some(expected) => expected.expose(),
            None if let Some(expected) = state.stored.client_issuers.get(client.expose()) => {
                expected
            }
            None => {
                state.stored.client_issuers.insert(client.expose().clone(), issuer.to_owned());
                self.save(state);
                return Ok(());
            }
        };
        if expected.trim_end_matches('/') == issuer.trim_end_matches('/') {
            return Ok(());
        }
        let found = AuthErrorKind::sanitize(issuer);
        let expected = AuthErrorKind::sanitize(expected);
        Err(AuthErrorKind::IssuerMismatch { found, expected })
    }

    fn configured_client(&self, redirect_uri: String) -> Option<RegisteredClient> {
        let config = &self.context.config;
        let secret = config.client_secret.as_ref().map(|secret| secret.expose().to_owned());
        Some(RegisteredClient {
            id: config.client_id.as_ref()?.expose().clone(),
            secret,
            redirect_uri,
        })
    }

    /// Lets a person sign in with a browser.
    async fn sign_in_user(
        &self,
        state: &mut OauthState,
        library: &mut AuthorizationServer,
        scopes: &[String],
    ) -> Result<StoredToken, AuthErrorKind> {
        let agent = self.context.user_agent.clone().ok_or(AuthErrorKind::NoUserAgent)?;
        if library.is_published() && !library.supports_pkce() {
            let reason = "the authorization server does not announce PKCE with `S256`";
            return Err(AuthErrorKind::Discovery(reason.into()));
        }
        let redirect = self.context.config.redirect_uri.as_ref();
        let redirect = redirect.map_or_else(|| agent.redirect_uri(), |uri| uri.expose().clone());
        let client = self.resolve_client(state, library, &redirect, scopes).await?;
        library.set_client(&client)?;
        let page = library.authorization_url(scopes).await?;
        let disallowed = || AuthErrorKind::disallowed_address("authorization endpoint", &page);
        let url = Url::parse(&page).map_err(|_| disallowed())?;
        if !self.context.http.allows(&url) {
            return Err(disallowed());
        }
        let server = self.context.server.clone();
        let visit =
            agent.authorize(AuthorizationRequest { server, url: page, redirect_uri: redirect });
        let came_back = timeout(USER_SIGN_IN_TIMEOUT, visit)
            .await
            .map_err(|_| AuthErrorKind::Timeout(USER_SIGN_IN_TIMEOUT))?;
        let came_back = came_back
            .map_err(|reason| AuthErrorKind::UserAgentFailed(AuthErrorKind::sanitize(&reason)))?;
        if let Some(reason) = authorization_error(&came_back) {
            return Err(AuthErrorKind::Declined(reason));
        }
        let issuer = library.issuer().to_owned();
        let exchanged = library.exchange(&came_back, client, scopes).await;
        if exchanged.is_err() {
            // The authorization server may have deleted the client.
            state.stored.clients.remove(&issuer);
            self.save(state);
        }
        exchanged
    }

    /// Returns the client: the configured client, else the client metadata URL, else a client that
    /// was registered before, else a newly registered client.
    async fn resolve_client(
        &self,
        state: &mut OauthState,
        library: &mut AuthorizationServer,
        redirect: &str,
        scopes: &[String],
    ) -> Result<RegisteredClient, AuthErrorKind> {
        if let Some(client) = self.configured_client(redirect.to_owned()) {
            return Ok(client);
        }
        if let Some(url) = &self.context.config.client_metadata_url
            && library.supports_client_metadata()
        {
            let id = url.expose().clone();
            let redirect_uri = redirect.to_owned();
            return Ok(RegisteredClient { id, secret: None, redirect_uri });
        }
        let registered = state.stored.clients.get(library.issuer());
        if let Some(client) = registered.filter(|client| client.redirect_uri == redirect) {
            return Ok(client.clone());
        }
        let client = library.register(redirect, scopes).await?;
        state.stored.clients.insert(library.issuer().to_owned(), client.clone());
        self.save(state);
        Ok(client)
    }
}

/// Returns the error of an authorization response without a code.
fn authorization_error(came_back: &str) -> Option<Box<str>> {
    let url = Url::parse(came_back).ok()?;
    let query_value = |name: &str| {
        let value = url.query_pairs().find(|(key, _)| key == name)?.1;
        Some(value.into_owned())
    };
    let error = query_value("error")?;
    Some(AuthErrorKind::sanitize(&match query_value("error_description") {
        Some(description) => format!("{error}: {description}"),
        None => error,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refresh_token_is_requested_once_with_other_scopes_where_it_is_offered() {
        let request = |scopes: &str, is_offered| {
            let scopes = scopes.split_whitespace().map(str::to_owned).collect();
            with_offline_access(scopes, is_offered).join(" ")
        };
        assert_eq!(request("a b", true), "a b offline_access");
        assert_eq!(request("offline_access a", true), "offline_access a");
        assert_eq!(request("", true), "");
        assert_eq!(request("a offline_access", false), "a");
        assert_eq!(request("a b", false), "a b");
    }
}
