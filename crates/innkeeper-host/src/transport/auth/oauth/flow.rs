//! Signing in: from a server's refusal to a token.

use std::time::Duration;

use reqwest::Url;
use rmcp::transport::auth::WWWAuthenticateParams;
use tokio::time::timeout;

use super::super::access::is_bearer;
use super::super::record::{Client, Token};
use super::super::{AuthFault, Challenge, Visit};
use super::library::Library;
use super::{Inner, State, enterprise};
use crate::audit::Fact;
use crate::config::{Grant, Secret};

/// How long a person may take to sign in; the authorization server's page lasts as long.
const SIGN_IN: Duration = Duration::from_secs(300);

/// The scope that has an authorization server give tokens that can be renewed.
const OFFLINE: &str = "offline_access";

/// The scopes that a refusal asks for.
pub(super) fn scopes_of(challenge: &Challenge, url: &Url) -> Vec<String> {
    let told = challenge.header.as_deref().map(|header| WWWAuthenticateParams::parse(header, url));
    let scope = told.and_then(|told| told.scope).unwrap_or_default();
    scope.split_whitespace().map(str::to_owned).collect()
}

impl Inner {
    /// Finds the authorization server, led by what the server said in refusing a request.
    pub(super) async fn discover(
        &self,
        challenge: Option<&Challenge>,
    ) -> Result<Library, AuthFault> {
        let header = challenge.and_then(|challenge| challenge.header.as_deref());
        if let Some(header) = header {
            self.check_pointer(header)?;
        }
        let terms = &self.terms;
        let library = Library::discover(terms.http.clone(), &terms.url, header).await?;
        let asks_for_one = header.is_some_and(|header| header.get(..6).is_some_and(is_bearer));
        if !library.is_published() && !asks_for_one {
            return Err(AuthFault::NoWay);
        }
        Ok(library)
    }

    /// A pointer to where no request may go ends the sign-in; nothing else is tried in its place.
    fn check_pointer(&self, header: &str) -> Result<(), AuthFault> {
        const KEY: &str = "resource_metadata=";
        let Some(at) = header.to_ascii_lowercase().find(KEY) else { return Ok(()) };
        let told = header[at + KEY.len()..].trim_start();
        let told = match told.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => told.split([',', ' ']).next().unwrap_or_default(),
        };
        let refused = || AuthFault::address("`resource_metadata`", told);
        let taken = WWWAuthenticateParams::parse(header, &self.terms.url).resource_metadata_url;
        let taken = taken.filter(|url| self.terms.http.allows(url));
        taken.map(drop).ok_or_else(refused)
    }

    /// Gets a token by whatever the configuration and the authorization server have in common.
    pub(super) async fn sign_in(
        &self,
        state: &mut State,
        challenge: &Challenge,
        wanted: Vec<String>,
    ) -> Result<Secret, AuthFault> {
        let mut library = self.discover(Some(challenge)).await?;
        self.stay_home(state, library.issuer())?;
        self.forget_others(&mut state.record, library.issuer());
        let scopes = self.scopes(state, &library, wanted).await;
        Fact::SigningIn.tell(&self.terms.server);
        let config = &self.terms.config;
        let token = match (&config.enterprise, config.grant) {
            (Some(enterprise), _) => {
                let client = self.configured(String::new()).ok_or(AuthFault::Nobody)?;
                enterprise::token(&self.terms, enterprise, &library, client, &scopes).await?
            }
            (None, Grant::AuthorizationCode) => {
                self.by_person(state, &mut library, &scopes).await?
            }
            (None, Grant::ClientCredentials) => {
                let client = self.configured(String::new()).ok_or(AuthFault::Nobody)?;
                let url = &self.terms.url;
                match &config.private_key {
                    Some(key) => library.own_token_by_key(url, client, key, &scopes).await?,
                    None => library.own_token(url, client, &scopes).await?,
                }
            }
        };
        state.record.token = Some(token);
        state.record.requested = scopes;
        state.library = Some(library);
        self.save(state);
        Fact::SignedIn.tell(&self.terms.server);
        self.set(state.record.token.as_ref()).ok_or(AuthFault::NoWay)
    }

    /// All that was asked for so far, and what is asked for now.
    async fn scopes(&self, state: &State, library: &Library, wanted: Vec<String>) -> Vec<String> {
        let config = &self.terms.config;
        let first = match config.scopes.is_empty() {
            true => library.scopes().await,
            false => config.scopes.clone(),
        };
        let mut scopes: Vec<String> = Vec::new();
        for scope in state.record.requested.iter().cloned().chain(first).chain(wanted) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        scopes.retain(|scope| scope != OFFLINE || library.offers(OFFLINE));
        if !self.wants_person() {
            scopes.retain(|scope| scope != OFFLINE);
        } else if !scopes.is_empty()
            && library.offers(OFFLINE)
            && !scopes.iter().any(|scope| scope == OFFLINE)
        {
            scopes.push(OFFLINE.to_owned());
        }
        scopes
    }

    /// Keeps the client of the configuration to one authorization server: what a server names may
    /// change, and the next one would get the secret of the first.
    fn stay_home(&self, state: &mut State, issuer: &str) -> Result<(), AuthFault> {
        let config = &self.terms.config;
        let Some(client) = &config.client_id else { return Ok(()) };
        let home = match &config.issuer {
            Some(home) => home.expose(),
            None if let Some(home) = state.record.homes.get(client.expose()) => home,
            None => {
                state.record.homes.insert(client.expose().clone(), issuer.to_owned());
                self.save(state);
                return Ok(());
            }
        };
        if home.trim_end_matches('/') == issuer.trim_end_matches('/') {
            return Ok(());
        }
        let (named, home) = (AuthFault::words(issuer), AuthFault::words(home));
        Err(AuthFault::OtherIssuer { named, home })
    }

    /// The client of the configuration.
    fn configured(&self, redirect_uri: String) -> Option<Client> {
        let config = &self.terms.config;
        let secret = config.client_secret.as_ref().map(|secret| secret.expose().to_owned());
        Some(Client { id: config.client_id.as_ref()?.expose().clone(), secret, redirect_uri })
    }

    /// A person signs in with a browser.
    async fn by_person(
        &self,
        state: &mut State,
        library: &mut Library,
        scopes: &[String],
    ) -> Result<Token, AuthFault> {
        let agent = self.terms.agent.clone().ok_or(AuthFault::Nobody)?;
        if library.is_published() && !library.knows_pkce() {
            let why = "its authorization server does not say that it knows PKCE with `S256`";
            return Err(AuthFault::Discovery(why.into()));
        }
        let redirect = self.terms.config.redirect_uri.as_ref();
        let redirect = redirect.map_or_else(|| agent.redirect_uri(), |uri| uri.expose().clone());
        let client = self.client(state, library, &redirect, scopes).await?;
        library.be(&client)?;
        let page = library.page(scopes).await?;
        let refused = || AuthFault::address("authorization endpoint", &page);
        let url = Url::parse(&page).map_err(|_| refused())?;
        if !self.terms.http.allows(&url) {
            return Err(refused());
        }
        let server = self.terms.server.clone();
        let visit = agent.visit(Visit { server, url: page, redirect_uri: redirect });
        let came_back = timeout(SIGN_IN, visit).await.map_err(|_| AuthFault::Late(SIGN_IN))?;
        let came_back = came_back.map_err(|why| AuthFault::NotAsked(AuthFault::words(&why)))?;
        if let Some(why) = declined(&came_back) {
            return Err(AuthFault::Declined(why));
        }
        let issuer = library.issuer().to_owned();
        let exchanged = library.exchange(&came_back, client, scopes).await;
        if exchanged.is_err() {
            // It may be the client that is not known any more.
            state.record.clients.remove(&issuer);
            self.save(state);
        }
        exchanged
    }

    /// Who asks: the client of the configuration, else the one that is described at an address,
    /// else one that was registered before or is registered now.
    async fn client(
        &self,
        state: &mut State,
        library: &mut Library,
        redirect: &str,
        scopes: &[String],
    ) -> Result<Client, AuthFault> {
        if let Some(client) = self.configured(redirect.to_owned()) {
            return Ok(client);
        }
        if let Some(url) = &self.terms.config.client_metadata_url
            && library.takes_client_metadata()
        {
            let (id, redirect_uri) = (url.expose().clone(), redirect.to_owned());
            return Ok(Client { id, secret: None, redirect_uri });
        }
        let known = state.record.clients.get(library.issuer());
        if let Some(client) = known.filter(|client| client.redirect_uri == redirect) {
            return Ok(client.clone());
        }
        let client = library.register(redirect, scopes).await?;
        state.record.clients.insert(library.issuer().to_owned(), client.clone());
        self.save(state);
        Ok(client)
    }
}

/// Why the authorization server sent the person back without a code.
fn declined(came_back: &str) -> Option<Box<str>> {
    let url = Url::parse(came_back).ok()?;
    let told = |name: &str| {
        let value = url.query_pairs().find(|(key, _)| key == name)?.1;
        Some(value.into_owned())
    };
    let error = told("error")?;
    Some(AuthFault::words(&match told("error_description") {
        Some(description) => format!("{error}: {description}"),
        None => error,
    }))
}
