//! A discovered authorization server, accessed through the OAuth library.
//!
//! The library logs codes and tokens, so its log output is suppressed.

use std::error::Error;
use std::sync::Arc;

use innkeeper_config::Secret;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationMetadata,
    AuthorizationMetadataSource, ClientCredentialsConfig, CredentialStore, InMemoryCredentialStore,
    OAuthClientConfig,
};
use serde_json::Value;
use tracing::Dispatch;
use tracing::instrument::WithSubscriber;

use super::super::AuthErrorKind;
use super::super::client::AuthHttpClient;
use super::super::stored_auth::{RegisteredClient, StoredToken};
use super::assertion::sign_assertion;
use crate::transport::sent_secrets::SentSecrets;

const CLIENT_NAME: &str = "Innkeeper";

/// The prefix of the library's message for an OAuth error response.
const ERROR_RESPONSE_PREFIX: &str = "Server returned error response";

pub(super) struct AuthorizationServer {
    manager: AuthorizationManager,
    /// The store in which the library expects the token to renew.
    credential_store: InMemoryCredentialStore,
    http: Arc<AuthHttpClient>,
    metadata: AuthorizationMetadata,
    issuer: String,
    /// Whether the metadata was published, not guessed.
    published: bool,
}

impl AuthorizationServer {
    /// Discovers the authorization server of a resource. `header` is the `WWW-Authenticate` header
    /// of the resource.
    pub(super) async fn discover(
        http: Arc<AuthHttpClient>,
        url: &Url,
        header: Option<&str>,
    ) -> Result<Self, AuthErrorKind> {
        let manager = AuthorizationManager::new_with_oauth_http_client(url.clone(), http.clone());
        let mut manager = manager.await.map_err(|error| discovery_error(&error))?;
        let credential_store = InMemoryCredentialStore::new();
        manager.set_credential_store(credential_store.clone());
        let discovered = without_logging(manager.resolve_metadata_from_challenge(header)).await;
        let discovered = discovered.map_err(|error| discovery_error(&error))?;
        let metadata = discovered.metadata;
        manager.set_metadata(metadata.clone());
        let published = discovered.source != AuthorizationMetadataSource::LegacyEndpointFallback;
        let issuer = metadata.issuer.clone().unwrap_or_else(|| metadata.token_endpoint.clone());
        Ok(Self { manager, credential_store, http, metadata, issuer, published })
    }

    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    pub(super) fn token_endpoint(&self) -> &str {
        &self.metadata.token_endpoint
    }

    /// Returns whether the server accepts a client secret only in the body.
    pub(super) fn requires_client_secret_post(&self) -> bool {
        let field = self.metadata.additional_fields.get("token_endpoint_auth_methods_supported");
        let Some(methods) = field.and_then(Value::as_array) else { return false };
        let [takes_post, takes_basic] = ["client_secret_post", "client_secret_basic"]
            .map(|method| methods.iter().any(|supported| supported == method));
        takes_post && !takes_basic
    }

    pub(super) fn is_published(&self) -> bool {
        self.published
    }

    /// Returns whether the metadata announces PKCE. Without PKCE, a stolen code is usable.
    pub(super) fn supports_pkce(&self) -> bool {
        announces_pkce(&self.metadata)
    }

    pub(super) fn supports_client_metadata(&self) -> bool {
        let field = self.metadata.additional_fields.get("client_id_metadata_document_supported");
        field.and_then(Value::as_bool).unwrap_or_default()
    }

    /// Returns the initial scopes: from the challenge, else from the metadata of the resource.
    pub(super) async fn initial_scopes(&self) -> Vec<String> {
        without_logging(self.manager.select_initial_scopes(&[])).await
    }

    pub(super) fn supports_scope(&self, scope: &str) -> bool {
        self.metadata.scopes_supported.iter().flatten().any(|supported| supported == scope)
    }

    /// Sets the client for the following requests.
    pub(super) fn set_client(&mut self, client: &RegisteredClient) -> Result<(), AuthErrorKind> {
        let mut config = OAuthClientConfig::new(&*client.id, &*client.redirect_uri);
        config.client_secret.clone_from(&client.secret);
        self.manager
            .configure_client(config)
            .map_err(|error| AuthErrorKind::Discovery(describe_error(&error)))
    }

    /// Registers a client with this redirect URI.
    pub(super) async fn register(
        &mut self,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<RegisteredClient, AuthErrorKind> {
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let registered =
            without_logging(self.manager.register_client(CLIENT_NAME, redirect_uri, &scopes)).await;
        let registration =
            registered.map_err(|error| AuthErrorKind::Registration(describe_error(&error)))?;
        let redirect_uri = redirect_uri.to_owned();
        Ok(RegisteredClient {
            id: registration.client_id,
            secret: registration.client_secret,
            redirect_uri,
        })
    }

    /// Returns the URL at which a person signs in.
    pub(super) async fn authorization_url(
        &self,
        scopes: &[String],
    ) -> Result<String, AuthErrorKind> {
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let url = without_logging(self.manager.get_authorization_url(&scopes)).await;
        url.map_err(|error| AuthErrorKind::Discovery(describe_error(&error)))
    }

    /// Exchanges the authorization response for a token.
    pub(super) async fn exchange(
        &self,
        came_back: &str,
        client: RegisteredClient,
        scopes: &[String],
    ) -> Result<StoredToken, AuthErrorKind> {
        let callback = AuthorizationCallback::from_redirect_url(came_back);
        let callback =
            callback.map_err(|error| AuthErrorKind::TokenRequestFailed(describe_error(&error)))?;
        let sent = SentSecrets::new(client.secret.iter().chain([&callback.code]));
        let issuer = callback.issuer.as_deref();
        let exchange = self.manager.exchange_code_for_token_with_issuer(
            &callback.code,
            &callback.csrf_token,
            issuer,
        );
        let response = without_logging(exchange).await.map_err(|error| {
            AuthErrorKind::TokenRequestFailed(describe_error_masked(&sent, &error))
        })?;
        StoredToken::from_response(&response, &self.issuer, client, scopes)
            .ok_or_else(missing_token)
    }

    /// Requests a token with the client credentials grant.
    pub(super) async fn client_credentials_token(
        &mut self,
        url: &Url,
        client: RegisteredClient,
        scopes: &[String],
    ) -> Result<StoredToken, AuthErrorKind> {
        let sent = SentSecrets::new(&client.secret);
        let no_token = |error: AuthError| {
            AuthErrorKind::TokenRequestFailed(describe_error_masked(&sent, &error))
        };
        let credentials = ClientCredentialsConfig::ClientSecret {
            client_id: client.id.clone(),
            client_secret: client.secret.clone().unwrap_or_default(),
            scopes: scopes.to_vec(),
            resource: Some(url.to_string()),
        };
        let manager = &mut self.manager;
        manager.validate_client_credentials_metadata(&credentials).map_err(no_token)?;
        manager.configure_client_credentials(&credentials).map_err(no_token)?;
        let response = without_logging(manager.exchange_client_credentials(&credentials)).await;
        let response = response.map_err(no_token)?;
        StoredToken::from_response(&response, &self.issuer, client, scopes)
            .ok_or_else(missing_token)
    }

    /// Requests a token with the client credentials grant and a signed assertion.
    pub(super) async fn client_assertion_token(
        &self,
        url: &Url,
        client: RegisteredClient,
        key: &Secret,
        scopes: &[String],
    ) -> Result<StoredToken, AuthErrorKind> {
        let stated = sign_assertion(key.expose(), &client.id, &self.issuer).map_err(no_token)?;
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
        let response = self.http.post_form(&self.metadata.token_endpoint, &form).await;
        let response = response.map_err(|reason| no_token(&reason))?;
        if let Some(error) = response.get("error").and_then(Value::as_str) {
            return Err(no_token(error));
        }
        StoredToken::from_response(&response, &self.issuer, client, scopes)
            .ok_or_else(missing_token)
    }

    /// Renews a token. Returns `None` if the authorization server permanently rejects the renewal.
    pub(super) async fn renew(
        &mut self,
        token: &StoredToken,
    ) -> Result<Option<StoredToken>, AuthErrorKind> {
        let sent = token.sent_secrets();
        let no_token = |error: AuthError| {
            AuthErrorKind::TokenRequestFailed(describe_error_masked(&sent, &error))
        };
        let Some(stored) = token.to_credentials() else { return Ok(None) };
        self.set_client(&token.client)?;
        self.credential_store.save(stored).await.map_err(no_token)?;
        match without_logging(self.manager.refresh_token()).await {
            Ok(response) => {
                let client = token.client.clone();
                let granted = token.granted();
                Ok(Some(
                    StoredToken::from_response(&response, &self.issuer, client, granted)
                        .ok_or_else(missing_token)?,
                ))
            }
            Err(AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired) => Ok(None),
            Err(AuthError::TokenRefreshFailed(text)) if is_permanent(&text) => Ok(None),
            Err(error) => Err(no_token(error)),
        }
    }
}

fn no_token(reason: &str) -> AuthErrorKind {
    AuthErrorKind::TokenRequestFailed(AuthErrorKind::sanitize(reason))
}

fn discovery_error(error: &AuthError) -> AuthErrorKind {
    AuthErrorKind::Discovery(describe_error(error))
}

fn announces_pkce(metadata: &AuthorizationMetadata) -> bool {
    metadata.code_challenge_methods_supported.iter().flatten().any(|method| method == "S256")
}

/// Returns whether an error response is a permanent rejection.
fn is_permanent(text: &str) -> bool {
    let temporary = ["server_error", "temporarily_unavailable", "slow_down"];
    text.contains(ERROR_RESPONSE_PREFIX) && !temporary.iter().any(|code| text.contains(code))
}

/// Runs a future of the library without log output.
pub(super) async fn without_logging<T>(future: impl Future<Output = T>) -> T {
    future.with_subscriber(Dispatch::none()).await
}

fn missing_token() -> AuthErrorKind {
    AuthErrorKind::TokenRequestFailed("the response contains no token".into())
}

/// Describes an error of the library without secrets: a parse error may quote the response.
fn describe_error(error: &AuthError) -> Box<str> {
    describe_error_masked(&SentSecrets::default(), error)
}

/// Describes an error and masks the sent secrets, which the response may repeat.
fn describe_error_masked(sent: &SentSecrets, error: &AuthError) -> Box<str> {
    let masked = |text: &str| AuthErrorKind::sanitize(&sent.mask(text.to_owned()));
    match error {
        AuthError::TokenExchangeFailed(text)
        | AuthError::TokenRefreshFailed(text)
        | AuthError::TokenRefreshRejected(text)
        | AuthError::ClientCredentialsError(text) => match text.find(ERROR_RESPONSE_PREFIX) {
            Some(at) => masked(text[at + ERROR_RESPONSE_PREFIX.len()..].trim_start_matches(": ")),
            None => "invalid response".into(),
        },
        AuthError::RegistrationFailed(text) if text.contains("analyze") => {
            "invalid response".into()
        }
        AuthError::RegistrationFailed(text) => masked(text),
        error => {
            let mut text = error.to_string();
            let mut cause = error.source();
            while let Some(error) = cause {
                text = format!("{text}: {error}");
                cause = error.source();
            }
            masked(&text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_metadata_with_the_method_of_hashed_codes_announces_pkce() {
        let announces = |methods: Value| {
            let mut metadata = serde_json::json!({
                "issuer": "https://a.example",
                "authorization_endpoint": "https://a.example/authorize",
                "token_endpoint": "https://a.example/token",
            });
            metadata["code_challenge_methods_supported"] = methods;
            announces_pkce(&serde_json::from_value(metadata).unwrap())
        };
        assert!(announces(serde_json::json!(["plain", "S256"])));
        assert!(!announces(serde_json::json!(["plain"])));
        assert!(!announces(Value::Null));
    }

    #[test]
    fn an_error_response_is_a_permanent_rejection_unless_the_server_may_accept_later() {
        let permanent = |code: &str| is_permanent(&format!("{ERROR_RESPONSE_PREFIX}: {code}"));
        assert!(permanent("invalid_grant") && permanent("invalid_client: no such client"));
        for temporary in ["server_error", "temporarily_unavailable", "slow_down"] {
            assert!(!permanent(temporary), "{temporary}");
        }
        assert!(!is_permanent("HTTP request error: invalid_grant"));
    }

    #[test]
    fn an_error_of_the_library_is_described_without_secrets_and_without_the_response() {
        let secret = "s3cret-of-the-client".to_owned();
        let sent = SentSecrets::new([&secret]);
        let describe = |error: AuthError| describe_error_masked(&sent, &error).into_string();
        let rejected =
            AuthError::RegistrationFailed("HTTP 400 Bad Request: no\nnew clients".into());
        assert_eq!(describe(rejected), "HTTP 400 Bad Request: no new clients");
        let unreadable = "analyze response error: unknown member `registration_access_token`";
        assert_eq!(describe(AuthError::RegistrationFailed(unreadable.into())), "invalid response");
        let refused = format!("{ERROR_RESPONSE_PREFIX}: invalid_client: {secret}");
        let masked = describe(AuthError::TokenExchangeFailed(refused));
        assert!(masked.starts_with("invalid_client: ") && !masked.contains(&secret), "{masked}");
        let unreadable = AuthError::TokenRefreshFailed("expected value: access_token".into());
        assert_eq!(describe(unreadable), "invalid response");
    }
}
