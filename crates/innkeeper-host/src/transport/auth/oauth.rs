//! The OAuth client: stores, renews and requests tokens.

mod assertion;
mod authorization_server;
mod enterprise;
mod flow;

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Url;

use super::auth_store::AuthStore;
use super::client::AuthHttpClient;
use super::stored_auth::{StoredAuth, StoredToken};
use super::{
    AuthError, AuthErrorKind, Challenge, ProtectedResource, TokenFuture, TokenProvider, UserAgent,
};
use crate::audit::AuditEvent;
use authorization_server::AuthorizationServer;
use innkeeper_config::{OauthGrant, Secret};
use tokio::time::Instant;

/// Time after a failed renewal without another attempt, while the token is valid.
const RENEWAL_BACKOFF: Duration = Duration::from_secs(30);

/// The settings of the OAuth client of one server.
pub(super) struct OauthContext {
    pub(super) server: Arc<str>,
    pub(super) url: Url,
    pub(super) config: innkeeper_config::OauthConfig,
    pub(super) http: Arc<AuthHttpClient>,
    pub(super) user_agent: Option<Arc<dyn UserAgent>>,
    pub(super) store: Option<AuthStore>,
}

/// The OAuth client of one server.
pub(super) struct OauthProvider(Arc<OauthInner>);

struct OauthInner {
    context: OauthContext,
    /// The token for requests. Readable during a sign-in.
    current: Mutex<Option<StoredToken>>,
    /// Locked during a renewal or sign-in: one at a time.
    state: tokio::sync::Mutex<OauthState>,
}

#[derive(Default)]
struct OauthState {
    /// Whether the store was read.
    loaded: bool,
    /// Whether the last write to the store failed, so that the stored record is outdated.
    unsaved: bool,
    stored: StoredAuth,
    /// The time of the last failed renewal.
    renewal_failed_at: Option<Instant>,
    authorization_server: Option<AuthorizationServer>,
}

impl OauthProvider {
    pub(super) fn new(context: OauthContext) -> Self {
        let state = tokio::sync::Mutex::default();
        Self(Arc::new(OauthInner { context, current: Mutex::default(), state }))
    }
}

impl TokenProvider for OauthProvider {
    fn token(&self, _: &ProtectedResource) -> TokenFuture<Option<Secret>> {
        let inner = self.0.clone();
        Box::pin(async move { inner.get_token().await.map_err(|kind| inner.error(kind)) })
    }

    fn on_challenge(&self, _: &ProtectedResource, challenge: Challenge) -> TokenFuture<Secret> {
        let inner = self.0.clone();
        Box::pin(
            async move { inner.on_challenge(&challenge).await.map_err(|kind| inner.error(kind)) },
        )
    }
}

impl OauthInner {
    fn error(&self, kind: AuthErrorKind) -> AuthError {
        AuthError { server: self.context.server.clone(), kind }
    }

    fn fresh_token(&self) -> Option<Secret> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|token| token.is_fresh()).map(StoredToken::access)
    }

    /// Returns the token if it is valid, even if it expires soon.
    fn valid_token(&self) -> Option<Secret> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|token| token.is_valid()).map(StoredToken::access)
    }

    fn set_current(&self, token: Option<&StoredToken>) -> Option<Secret> {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = token.cloned();
        token.map(StoredToken::access)
    }

    async fn get_token(&self) -> Result<Option<Secret>, AuthErrorKind> {
        if let Some(token) = self.fresh_token() {
            return Ok(Some(token));
        }
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(_) => match self.valid_token() {
                // The lock may be held for a long time, by a sign-in for another scope.
                Some(token) => return Ok(Some(token)),
                None => self.state.lock().await,
            },
        };
        if let Some(token) = self.fresh_token() {
            return Ok(Some(token));
        }
        if !state.loaded {
            self.load(&mut state);
        }
        let Some(token) = state.stored.token.clone() else { return Ok(None) };
        let access = self.set_current(Some(&token));
        if token.is_fresh() {
            return Ok(access);
        }
        // A valid token is better than a wait for a slow authorization server.
        let failed_recently =
            state.renewal_failed_at.is_some_and(|when| when.elapsed() < RENEWAL_BACKOFF);
        if failed_recently && token.is_valid() {
            return Ok(Some(token.access()));
        }
        let renewed =
            if token.is_renewable() { self.renew(&mut state, None).await } else { Ok(None) };
        match renewed {
            Ok(Some(token)) => Ok(Some(token)),
            // The server decides whether a request without a token is allowed.
            Ok(None) => Ok(token.is_valid().then(|| token.access())),
            Err(fault) => {
                let fault = fault.to_string();
                tracing::warn!(server = &*self.context.server, fault, "token renewal failed");
                state.renewal_failed_at = Some(Instant::now());
                Ok(token.is_valid().then(|| token.access()))
            }
        }
    }

    async fn on_challenge(&self, challenge: &Challenge) -> Result<Secret, AuthErrorKind> {
        let mut state = self.state.lock().await;
        // Another request or process may have signed in in the meantime.
        self.load(&mut state);
        if let Some(token) = &state.stored.token
            && token.is_fresh()
            && !token.matches(challenge.rejected_token.as_ref())
            && let Some(token) = self.set_current(Some(token))
        {
            return Ok(token);
        }
        let required = flow::required_scopes(challenge, &self.context.url);
        if challenge.status == 403 {
            if required.is_empty() {
                // The challenge names no scope.
                return Err(AuthErrorKind::TokenRejected { status: challenge.status });
            }
            let requested = &state.stored.requested;
            if required.iter().all(|scope| requested.contains(scope)) {
                return Err(AuthErrorKind::InsufficientScope(AuthErrorKind::sanitize(
                    &required.join(" "),
                )));
            }
        } else {
            self.set_current(None);
            if state.stored.token.as_ref().is_some_and(|token| token.is_renewable())
                && let Some(token) = self.renew(&mut state, Some(challenge)).await?
            {
                return Ok(token);
            }
        }
        if self.requires_user() && self.context.user_agent.is_none() {
            return Err(AuthErrorKind::NoUserAgent);
        }
        self.sign_in(&mut state, challenge, required).await
    }

    /// Returns whether only a person can sign in.
    fn requires_user(&self) -> bool {
        let config = &self.context.config;
        config.grant == OauthGrant::AuthorizationCode && config.enterprise.is_none()
    }

    /// Loads the record from the store. An unreadable record counts as absent.
    fn load(&self, state: &mut OauthState) {
        state.loaded = true;
        let Some(store) = self.context.store.as_ref().filter(|_| !state.unsaved) else { return };
        match store.load() {
            Ok(Some(record)) => state.stored = record,
            // The deletion of the file is a sign-out.
            Ok(None) if state.stored.token.is_some() => {
                state.stored = StoredAuth::default();
                self.set_current(None);
            }
            Ok(None) => {}
            Err(error) => {
                let server = &*self.context.server;
                tracing::warn!(server, %error, "token load failed");
            }
        }
    }

    fn save(&self, state: &mut OauthState) {
        state.stored.server = self.context.server.to_string();
        let Some(store) = &self.context.store else { return };
        let saved = store.save(&state.stored);
        state.unsaved = saved.is_err();
        if let Err(error) = saved {
            let server = &*self.context.server;
            tracing::warn!(server, %error, "token save failed");
        }
    }

    /// Takes the lock of the shared store. If the lock fails, continues without the lock.
    async fn lock_store(&self) -> Option<File> {
        let store = self.context.store.as_ref()?;
        match store.lock().await {
            Ok(guard) => guard,
            Err(error) => {
                tracing::warn!(server = &*self.context.server, %error, "token store lock failed");
                None
            }
        }
    }

    /// Renews the token. Returns `None` if the token is not renewable.
    async fn renew(
        &self,
        state: &mut OauthState,
        challenge: Option<&Challenge>,
    ) -> Result<Option<Secret>, AuthErrorKind> {
        let _turn = self.lock_store().await;
        self.load(state);
        let rejected = challenge.and_then(|challenge| challenge.rejected_token.as_ref());
        if let Some(token) = &state.stored.token
            && token.is_fresh()
            && !token.matches(rejected)
        {
            // Another process renewed the token first: the token before was due or rejected.
            return Ok(self.set_current(Some(token)));
        }
        if challenge.is_some() || state.authorization_server.is_none() {
            state.authorization_server = Some(self.discover(challenge).await?);
        }
        let OauthState { stored, authorization_server: Some(library), .. } = state else {
            return Ok(None);
        };
        self.discard_other_issuer(stored, library.issuer());
        let Some(token) = &mut stored.token else {
            self.save(state);
            return Ok(None);
        };
        let renewed = library.renew(token).await?;
        match &renewed {
            Some(renewed) => token.clone_from(renewed),
            None => {
                token.discard_refresh_token();
                // The authorization server may have deleted the client.
                stored.clients.remove(library.issuer());
            }
        }
        self.save(state);
        Ok(renewed.and_then(|token| self.set_current(Some(&token))))
    }

    /// Discards the token of a different authorization server: its secrets must not be sent to this
    /// one.
    fn discard_other_issuer(&self, record: &mut StoredAuth, issuer: &str) {
        if record.token.as_ref().is_some_and(|token| token.issuer != issuer) {
            AuditEvent::IssuerChanged.emit(&self.context.server);
            record.token = None;
            record.requested.clear();
            self.set_current(None);
        }
    }
}

#[cfg(test)]
mod tests;
