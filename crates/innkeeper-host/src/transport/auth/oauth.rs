//! Tokens by OAuth: kept, renewed before their end, and asked for anew when a server wants that.

mod assertion;
mod enterprise;
mod flow;
mod library;

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Url;

use super::client::Outgoing;
use super::record::{Record, Token};
use super::store::Store;
use super::{AuthError, AuthFault, Authorize, Authorizing, Challenge, Protected, UserAgent};
use crate::audit::Fact;
use crate::config::{self, Grant, Secret};
use library::Library;
use tokio::time::Instant;

/// How long after a failed renewal none is tried while the token still holds.
const RENEW_AGAIN: Duration = Duration::from_secs(30);

/// One server and the ways to sign in there.
pub(super) struct Terms {
    pub(super) server: Arc<str>,
    pub(super) url: Url,
    pub(super) config: config::Oauth,
    pub(super) http: Arc<Outgoing>,
    pub(super) agent: Option<Arc<dyn UserAgent>>,
    pub(super) store: Option<Store>,
}

/// The OAuth client of one server.
pub(super) struct Oauth(Arc<Inner>);

struct Inner {
    terms: Terms,
    /// What requests are sent with; may be read while somebody signs in.
    current: Mutex<Option<Token>>,
    /// Held by who renews, or signs in: one at a time.
    state: tokio::sync::Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether the store was looked at.
    read: bool,
    /// Whether it could not be written, so that what it has is old.
    unsaved: bool,
    record: Record,
    /// When the last renewal failed.
    renewal_failed: Option<Instant>,
    /// The library, once it knows the authorization server.
    library: Option<Library>,
}

impl Oauth {
    pub(super) fn new(terms: Terms) -> Self {
        let (current, state) = (Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Inner { terms, current, state }))
    }
}

impl Authorize for Oauth {
    fn token(&self, _: &Protected) -> Authorizing<Option<Secret>> {
        let inner = self.0.clone();
        Box::pin(async move { inner.token().await.map_err(|fault| inner.error(fault)) })
    }

    fn challenged(&self, _: &Protected, challenge: Challenge) -> Authorizing<Secret> {
        let inner = self.0.clone();
        Box::pin(
            async move { inner.challenged(&challenge).await.map_err(|fault| inner.error(fault)) },
        )
    }
}

impl Inner {
    fn error(&self, fault: AuthFault) -> AuthError {
        AuthError { server: self.terms.server.clone(), fault }
    }

    fn current(&self) -> Option<Secret> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|token| token.is_fresh()).map(Token::access)
    }

    /// The token, though it may be about to end.
    fn lasting(&self) -> Option<Secret> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|token| token.lasts()).map(Token::access)
    }

    fn set(&self, token: Option<&Token>) -> Option<Secret> {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = token.cloned();
        token.map(Token::access)
    }

    async fn token(&self) -> Result<Option<Secret>, AuthFault> {
        if let Some(token) = self.current() {
            return Ok(Some(token));
        }
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(_) => match self.lasting() {
                // Whoever has it may be a person who signs in for something else.
                Some(token) => return Ok(Some(token)),
                None => self.state.lock().await,
            },
        };
        if let Some(token) = self.current() {
            return Ok(Some(token));
        }
        if !state.read {
            self.read(&mut state);
        }
        let Some(token) = state.record.token.clone() else { return Ok(None) };
        let access = self.set(Some(&token));
        if token.is_fresh() {
            return Ok(access);
        }
        // One that still holds is not worth waiting for an authorization server that is slow.
        let failed = state.renewal_failed.is_some_and(|when| when.elapsed() < RENEW_AGAIN);
        if failed && token.lasts() {
            return Ok(Some(token.access()));
        }
        let renewed =
            if token.can_be_renewed() { self.renew(&mut state, None).await } else { Ok(None) };
        match renewed {
            Ok(Some(token)) => Ok(Some(token)),
            // The server decides whether it does without.
            Ok(None) => Ok(token.lasts().then(|| token.access())),
            Err(fault) => {
                let fault = fault.to_string();
                tracing::warn!(server = &*self.terms.server, fault, "token not renewed");
                state.renewal_failed = Some(Instant::now());
                Ok(token.lasts().then(|| token.access()))
            }
        }
    }

    async fn challenged(&self, challenge: &Challenge) -> Result<Secret, AuthFault> {
        let mut state = self.state.lock().await;
        // Another request may have signed in meanwhile, or another process.
        self.read(&mut state);
        if let Some(token) = &state.record.token
            && token.is_fresh()
            && !token.is(challenge.refused.as_ref())
            && let Some(token) = self.set(Some(token))
        {
            return Ok(token);
        }
        let wanted = flow::scopes_of(challenge, &self.terms.url);
        if challenge.status == 403 {
            if wanted.is_empty() {
                // It does not say what for.
                return Err(AuthFault::Refused { status: challenge.status });
            }
            let requested = &state.record.requested;
            if wanted.iter().all(|scope| requested.contains(scope)) {
                return Err(AuthFault::Scope(AuthFault::words(&wanted.join(" "))));
            }
        } else {
            self.set(None);
            let renewable = |token: &Token| token.can_be_renewed();
            if state.record.token.as_ref().is_some_and(renewable)
                && let Some(token) = self.renew(&mut state, Some(challenge)).await?
            {
                return Ok(token);
            }
        }
        if self.wants_person() && self.terms.agent.is_none() {
            return Err(AuthFault::Nobody);
        }
        self.sign_in(&mut state, challenge, wanted).await
    }

    /// Whether only a person can sign in.
    fn wants_person(&self) -> bool {
        let config = &self.terms.config;
        config.grant == Grant::AuthorizationCode && config.enterprise.is_none()
    }

    /// Takes what the store has; what cannot be read counts as not there.
    fn read(&self, state: &mut State) {
        state.read = true;
        let Some(store) = self.terms.store.as_ref().filter(|_| !state.unsaved) else { return };
        match store.load() {
            Ok(Some(record)) => state.record = record,
            // Whoever deletes it signs out.
            Ok(None) if state.record.token.is_some() => {
                state.record = Record::default();
                self.set(None);
            }
            Ok(None) => {}
            Err(error) => {
                let server = &*self.terms.server;
                tracing::warn!(server, %error, "kept tokens not read");
            }
        }
    }

    fn save(&self, state: &mut State) {
        state.record.server = self.terms.server.to_string();
        let Some(store) = &self.terms.store else { return };
        let saved = store.save(&state.record);
        state.unsaved = saved.is_err();
        if let Err(error) = saved {
            let server = &*self.terms.server;
            tracing::warn!(server, %error, "token not kept");
        }
    }

    /// This process's turn among those that share the store; without one it goes on all the same.
    async fn turn(&self) -> Option<File> {
        let store = self.terms.store.as_ref()?;
        match store.turn().await {
            Ok(turn) => turn,
            Err(error) => {
                tracing::warn!(server = &*self.terms.server, %error, "tokens not locked");
                None
            }
        }
    }

    /// Renews the token; `None` if it cannot be renewed any more.
    async fn renew(
        &self,
        state: &mut State,
        challenge: Option<&Challenge>,
    ) -> Result<Option<Secret>, AuthFault> {
        let _turn = self.turn().await;
        let before = state.record.token.clone();
        self.read(state);
        let refused = challenge.and_then(|challenge| challenge.refused.as_ref());
        if let Some(token) = &state.record.token
            && state.record.token != before
            && token.is_fresh()
            && !token.is(refused)
        {
            // Another process was faster.
            return Ok(self.set(Some(token)));
        }
        if challenge.is_some() || state.library.is_none() {
            state.library = Some(self.discover(challenge).await?);
        }
        let State { record, library: Some(library), .. } = state else { return Ok(None) };
        self.forget_others(record, library.issuer());
        let Some(token) = &mut record.token else {
            self.save(state);
            return Ok(None);
        };
        let renewed = library.renew(token).await?;
        match &renewed {
            Some(renewed) => token.clone_from(renewed),
            None => {
                token.not_renewed();
                // It may be the client that is not known any more.
                record.clients.remove(library.issuer());
            }
        }
        self.save(state);
        Ok(renewed.and_then(|token| self.set(Some(&token))))
    }

    /// Drops what another authorization server gave: it is no business of this one.
    fn forget_others(&self, record: &mut Record, issuer: &str) {
        if record.token.as_ref().is_some_and(|token| token.issuer != issuer) {
            Fact::IssuerChanged.tell(&self.terms.server);
            record.token = None;
            record.requested.clear();
            self.set(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use futures_util::FutureExt;
    use indexmap::IndexMap;
    use serde_json::json;

    use super::*;
    use crate::config::{Environment, Expanded, TransportConfig};
    use crate::transport::Remote;

    fn inner() -> Inner {
        let written = "http://a/mcp";
        let url = Expanded::new(written.to_owned(), written);
        let transport = TransportConfig::Http { url, headers: IndexMap::new() };
        let remote = Remote::of(&transport, &Environment::default()).unwrap().unwrap();
        let http = Arc::new(Outgoing::new(&remote));
        let (url, config) = (Url::parse(written).unwrap(), config::Oauth::default());
        let terms = Terms { server: "inn".into(), url, config, http, agent: None, store: None };
        let (current, state) = (Mutex::default(), tokio::sync::Mutex::default());
        Inner { terms, current, state }
    }

    /// A token that ends so many seconds from now and should be renewed.
    fn token(left: i64) -> Token {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let client = json!({"id": "us", "redirectUri": ""});
        let token = json!({"access": "t", "expires": now.saturating_add_signed(left), "renew": 1,
            "issuer": "i", "client": client, "granted": []});
        serde_json::from_value(token).unwrap()
    }

    #[tokio::test]
    async fn a_token_that_lasts_is_used_while_somebody_signs_in_for_more() {
        let inner = inner();
        let _signing_in = inner.state.lock().await;
        inner.set(Some(&token(3600)));
        let used = inner.token().now_or_never().unwrap().unwrap();
        assert_eq!(used.unwrap().expose(), "t");
        inner.set(Some(&token(-1)));
        assert!(inner.token().now_or_never().is_none(), "one that has ended is waited for");
    }

    #[tokio::test]
    async fn a_refusal_that_names_no_scope_is_told_as_it_is() {
        let header = Some("Bearer error=\"insufficient_scope\"".to_owned());
        let challenge = Challenge { status: 403, header, refused: None };
        let fault = inner().challenged(&challenge).await.err();
        assert_eq!(fault, Some(AuthFault::Refused { status: 403 }));
    }
}
