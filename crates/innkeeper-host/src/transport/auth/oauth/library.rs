//! The OAuth library and one authorization server that it has found.
//!
//! What the library logs has codes and tokens in it, so nothing of it reaches a log.

use std::error::Error;
use std::sync::Arc;

use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationMetadata,
    AuthorizationMetadataSource, ClientCredentialsConfig, CredentialStore, InMemoryCredentialStore,
    OAuthClientConfig,
};
use serde_json::Value;
use tracing::Dispatch;
use tracing::instrument::WithSubscriber;

use super::super::AuthFault;
use super::super::client::Outgoing;
use super::super::record::{Client, Token};
use super::assertion::assertion;
use crate::config::Secret;
use crate::transport::sent::Sent;

/// The name that clients are registered by.
const NAME: &str = "Innkeeper";

/// How the library tells of an error that the server answered with.
const ANSWERED: &str = "Server returned error response";

/// An authorization server that was found.
pub(super) struct Library {
    manager: AuthorizationManager,
    /// What the library renews lies here.
    kept: InMemoryCredentialStore,
    http: Arc<Outgoing>,
    metadata: AuthorizationMetadata,
    issuer: String,
    /// Whether it was published, not guessed.
    published: bool,
}

impl Library {
    /// Finds the authorization server of a resource; `header` is what the resource said of it.
    pub(super) async fn discover(
        http: Arc<Outgoing>,
        url: &Url,
        header: Option<&str>,
    ) -> Result<Self, AuthFault> {
        let no_use = |error: AuthError| AuthFault::Discovery(words(&error));
        let manager = AuthorizationManager::new_with_oauth_http_client(url.clone(), http.clone());
        let mut manager = manager.await.map_err(no_use)?;
        let kept = InMemoryCredentialStore::new();
        manager.set_credential_store(kept.clone());
        let found = quiet(manager.resolve_metadata_from_challenge(header)).await;
        let found = found.map_err(no_use)?;
        let metadata = found.metadata;
        manager.set_metadata(metadata.clone());
        let published = found.source != AuthorizationMetadataSource::LegacyEndpointFallback;
        let issuer = metadata.issuer.clone().unwrap_or_else(|| metadata.token_endpoint.clone());
        Ok(Self { manager, kept, http, metadata, issuer, published })
    }

    /// The authorization server's own name.
    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Where it gives tokens.
    pub(super) fn token_endpoint(&self) -> &str {
        &self.metadata.token_endpoint
    }

    /// Whether it takes a client's secret in the body only.
    pub(super) fn takes_secret_in_body_only(&self) -> bool {
        let told = self.metadata.additional_fields.get("token_endpoint_auth_methods_supported");
        let Some(methods) = told.and_then(Value::as_array) else { return false };
        let takes = |method: &str| methods.iter().any(|known| known == method);
        takes("client_secret_post") && !takes("client_secret_basic")
    }

    pub(super) fn is_published(&self) -> bool {
        self.published
    }

    /// Whether it says that it knows PKCE. Without it a code can be used by who steals it.
    pub(super) fn knows_pkce(&self) -> bool {
        let methods = self.metadata.code_challenge_methods_supported.iter().flatten();
        methods.into_iter().any(|method| method == "S256")
    }

    /// Whether a client may be known by the address of its description.
    pub(super) fn takes_client_metadata(&self) -> bool {
        let told = self.metadata.additional_fields.get("client_id_metadata_document_supported");
        told.and_then(Value::as_bool).unwrap_or_default()
    }

    /// The scopes to begin with: what the challenge says, else what the resource's metadata does.
    pub(super) async fn scopes(&self) -> Vec<String> {
        quiet(self.manager.select_initial_scopes(&[])).await
    }

    pub(super) fn offers(&self, scope: &str) -> bool {
        self.metadata.scopes_supported.iter().flatten().any(|offered| offered == scope)
    }

    /// Speaks as this client from now on.
    pub(super) fn be(&mut self, client: &Client) -> Result<(), AuthFault> {
        let mut config = OAuthClientConfig::new(&*client.id, &*client.redirect_uri);
        config.client_secret.clone_from(&client.secret);
        let no_use = |error: AuthError| AuthFault::Discovery(words(&error));
        self.manager.configure_client(config).map_err(no_use)
    }

    /// Registers a client that is sent back to this address.
    pub(super) async fn register(
        &mut self,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<Client, AuthFault> {
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let registered = quiet(self.manager.register_client(NAME, redirect_uri, &scopes)).await;
        let known = registered.map_err(|error| AuthFault::Registration(words(&error)))?;
        let redirect_uri = redirect_uri.to_owned();
        Ok(Client { id: known.client_id, secret: known.client_secret, redirect_uri })
    }

    /// The address where a person signs in.
    pub(super) async fn page(&self, scopes: &[String]) -> Result<String, AuthFault> {
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let url = quiet(self.manager.get_authorization_url(&scopes)).await;
        url.map_err(|error| AuthFault::Discovery(words(&error)))
    }

    /// The token for what the person came back with.
    pub(super) async fn exchange(
        &self,
        came_back: &str,
        client: Client,
        scopes: &[String],
    ) -> Result<Token, AuthFault> {
        let callback = AuthorizationCallback::from_redirect_url(came_back);
        let callback = callback.map_err(|error| AuthFault::NoToken(words(&error)))?;
        let sent = Sent::of(client.secret.iter().chain([&callback.code]));
        let no_token = |error: AuthError| AuthFault::NoToken(words_without(&sent, &error));
        let issuer = callback.issuer.as_deref();
        let exchange = self.manager.exchange_code_for_token_with_issuer(
            &callback.code,
            &callback.csrf_token,
            issuer,
        );
        let answer = quiet(exchange).await.map_err(no_token)?;
        Token::of(&answer, &self.issuer, client, scopes).ok_or_else(no_text)
    }

    /// A token for the client itself.
    pub(super) async fn own_token(
        &mut self,
        url: &Url,
        client: Client,
        scopes: &[String],
    ) -> Result<Token, AuthFault> {
        let sent = Sent::of(&client.secret);
        let no_token = |error: AuthError| AuthFault::NoToken(words_without(&sent, &error));
        let credentials = ClientCredentialsConfig::ClientSecret {
            client_id: client.id.clone(),
            client_secret: client.secret.clone().unwrap_or_default(),
            scopes: scopes.to_vec(),
            resource: Some(url.to_string()),
        };
        let manager = &mut self.manager;
        manager.validate_client_credentials_metadata(&credentials).map_err(no_token)?;
        manager.configure_client_credentials(&credentials).map_err(no_token)?;
        let answer = quiet(manager.exchange_client_credentials(&credentials)).await;
        let answer = answer.map_err(no_token)?;
        Token::of(&answer, &self.issuer, client, scopes).ok_or_else(no_text)
    }

    /// A token for the client itself, which proves with a key who it is.
    pub(super) async fn own_token_by_key(
        &self,
        url: &Url,
        client: Client,
        key: &Secret,
        scopes: &[String],
    ) -> Result<Token, AuthFault> {
        let no_token = |why: &str| AuthFault::NoToken(AuthFault::words(why));
        let stated = assertion(key.expose(), &client.id, &self.issuer).map_err(no_token)?;
        let scope = scopes.join(" ");
        let mut form = vec![
            ("grant_type", "client_credentials"),
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
            ("client_assertion", &*stated),
            ("resource", url.as_str()),
        ];
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let answer = self.http.post_form(&self.metadata.token_endpoint, &form).await;
        let answer = answer.map_err(|why| no_token(&why))?;
        if let Some(error) = answer.get("error").and_then(Value::as_str) {
            return Err(no_token(error));
        }
        Token::of(&answer, &self.issuer, client, scopes).ok_or_else(no_text)
    }

    /// The token renewed; `None` if the authorization server does not do that any more.
    pub(super) async fn renew(&mut self, token: &Token) -> Result<Option<Token>, AuthFault> {
        let sent = token.secrets();
        let no_token = |error: AuthError| AuthFault::NoToken(words_without(&sent, &error));
        let Some(stored) = token.stored() else { return Ok(None) };
        self.be(&token.client)?;
        self.kept.save(stored).await.map_err(no_token)?;
        match quiet(self.manager.refresh_token()).await {
            Ok(answer) => {
                let (client, granted) = (token.client.clone(), token.granted());
                Ok(Some(Token::of(&answer, &self.issuer, client, granted).ok_or_else(no_text)?))
            }
            Err(AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired) => Ok(None),
            Err(AuthError::TokenRefreshFailed(text)) if is_final(&text) => Ok(None),
            Err(error) => Err(no_token(error)),
        }
    }
}

/// Whether an authorization server has said no, and not that it cannot now.
fn is_final(text: &str) -> bool {
    let later = ["server_error", "temporarily_unavailable", "slow_down"];
    text.contains(ANSWERED) && !later.iter().any(|code| text.contains(code))
}

/// Runs a piece of the library without a log.
pub(super) async fn quiet<T>(work: impl Future<Output = T>) -> T {
    work.with_subscriber(Dispatch::none()).await
}

fn no_text() -> AuthFault {
    AuthFault::NoToken("its answer has no token".into())
}

/// An error of the library in words without secrets: a parser that fails quotes what it read.
fn words(error: &AuthError) -> Box<str> {
    words_without(&Sent::default(), error)
}

/// The same where secrets were sent, which the answer may repeat.
fn words_without(sent: &Sent, error: &AuthError) -> Box<str> {
    let words = |text: &str| AuthFault::words(&sent.mask(text.to_owned()));
    match error {
        AuthError::TokenExchangeFailed(text)
        | AuthError::TokenRefreshFailed(text)
        | AuthError::TokenRefreshRejected(text)
        | AuthError::ClientCredentialsError(text) => match text.find(ANSWERED) {
            Some(at) => words(text[at + ANSWERED.len()..].trim_start_matches(": ")),
            None => "its answer cannot be used".into(),
        },
        AuthError::RegistrationFailed(text) if text.contains("analyze") => {
            "its answer cannot be used".into()
        }
        AuthError::RegistrationFailed(text) => words(text),
        error => {
            let mut text = error.to_string();
            let mut cause = error.source();
            while let Some(error) = cause {
                text = format!("{text}: {error}");
                cause = error.source();
            }
            words(&text)
        }
    }
}
