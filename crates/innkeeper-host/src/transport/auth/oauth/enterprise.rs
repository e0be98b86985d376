//! Enterprise-managed authorization: exchanges an ID token for an access token.
//!
//! The identity provider exchanges the ID token for an assertion. The server's authorization server
//! exchanges the assertion for an access token.

use innkeeper_config::{EnterpriseConfig, IdToken, read_bytes};
use reqwest::Url;
use rmcp::transport::auth::enterprise::{
    EmaAuthorizationServer, EmaClientAuthentication, EmaError, EmaExchangeRequest,
};
use serde_json::{Value, json};

use super::super::AuthErrorKind;
use super::super::stored_auth::{RegisteredClient, StoredToken};
use super::OauthContext;
use super::authorization_server::{AuthorizationServer, without_logging};

/// Maximum size of an ID token file in bytes. ID tokens have a few thousand.
const MAX_ID_TOKEN_BYTES: u64 = 64 << 10;

pub(super) async fn request_token(
    context: &OauthContext,
    enterprise: &EnterpriseConfig,
    library: &AuthorizationServer,
    client: RegisteredClient,
    scopes: &[String],
) -> Result<StoredToken, AuthErrorKind> {
    let id_token = read_id_token(&enterprise.id_token).map_err(AuthErrorKind::IdentityProvider)?;
    let endpoint = enterprise.token_endpoint.expose();
    let id = enterprise.client_id.expose();
    let secret = enterprise.client_secret.as_ref().map(|secret| secret.expose());
    let provider = EmaAuthorizationServer::new(enterprise.issuer.expose(), endpoint, id)
        .with_client_authentication(client_authentication(secret, false));
    let by_body = library.requires_client_secret_post();
    let server =
        EmaAuthorizationServer::new(library.issuer(), library.token_endpoint(), &client.id)
            .with_client_authentication(client_authentication(client.secret.as_deref(), by_body));
    let resource = context.url.as_str();
    let request = EmaExchangeRequest::new_with_id_token(provider, server, resource, &id_token);
    let request = request.with_scopes(scopes);
    // The URL comes from the configuration, so the server's address policy does not apply.
    let url =
        Url::parse(endpoint).map_err(|_| AuthErrorKind::IdentityProvider("invalid URL".into()))?;
    let provider = context.http.for_url(&url);
    let assertion = without_logging(request.exchange_id_jag(&provider)).await;
    let assertion =
        assertion.map_err(|error| AuthErrorKind::IdentityProvider(describe_error(&error)))?;
    let token_response = without_logging(assertion.exchange(&*context.http)).await;
    let token_response = token_response
        .map_err(|error| AuthErrorKind::TokenRequestFailed(describe_error(&error)))?;
    let mut granted: Vec<&str> = token_response.scopes.iter().map(String::as_str).collect();
    granted.sort_unstable();
    let mut response = json!({ "access_token": token_response.access_token.secret() });
    if !granted.is_empty() {
        response["scope"] = granted.join(" ").into();
    }
    if let Some(lasts) = token_response.expires_in {
        response["expires_in"] = lasts.as_secs().into();
    }
    StoredToken::from_response(&response, library.issuer(), client, scopes)
        .ok_or_else(|| AuthErrorKind::TokenRequestFailed("the response contains no token".into()))
}

fn client_authentication(secret: Option<&str>, by_body: bool) -> EmaClientAuthentication {
    // The secret type belongs to a crate that is not a dependency, so the code deserializes any
    // string.
    let secret = secret.and_then(|secret| {
        let text = Value::from(secret);
        if by_body {
            serde_json::from_value(text).map(EmaClientAuthentication::ClientSecretPost).ok()
        } else {
            serde_json::from_value(text).map(EmaClientAuthentication::ClientSecretBasic).ok()
        }
    });
    secret.unwrap_or(EmaClientAuthentication::None)
}

fn read_id_token(from: &IdToken) -> Result<String, Box<str>> {
    match from {
        IdToken::Value(token) => Ok(token.expose().to_owned()),
        IdToken::File(path) => {
            let read = read_bytes(path.expose(), MAX_ID_TOKEN_BYTES);
            let text = read
                .map_err(|error| error.kind().to_string())
                .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned()));
            text.map(|text| text.trim().to_owned())
                .map_err(|cause| AuthErrorKind::sanitize(&format!("cannot read `{path}`: {cause}")))
        }
    }
}

/// Describes an error without text from the response.
fn describe_error(error: &EmaError) -> Box<str> {
    match error {
        EmaError::InvalidRequest(message) | EmaError::InvalidResponse { message, .. } => {
            (*message).into()
        }
        EmaError::RequestFailed(_) => "request failed".into(),
        EmaError::InvalidGrant(_) => "invalid_grant".into(),
        EmaError::InsufficientUserAuthentication(_) => "insufficient_user_authentication".into(),
        EmaError::OAuthRejected { status, code, .. } => format!("{code} (HTTP {status})").into(),
        other => AuthErrorKind::sanitize(&other.to_string()),
    }
}
