//! A token on the word of an enterprise's identity provider: an ID token becomes an assertion there,
//! and the assertion a token at the server's own authorization server.

use reqwest::Url;
use rmcp::transport::auth::enterprise::{
    EmaAuthorizationServer, EmaClientAuthentication, EmaError, EmaExchangeRequest,
};
use serde_json::{Value, json};

use super::super::AuthFault;
use super::super::record::{Client, Token};
use super::Terms;
use super::library::{Library, quiet};
use crate::config::{Enterprise, IdToken, read_bytes};

/// The longest ID token that is read from a file; they have a few thousand bytes.
const ID_TOKEN: u64 = 64 << 10;

/// Gets a token for the user whom the ID token is about.
pub(super) async fn token(
    terms: &Terms,
    enterprise: &Enterprise,
    library: &Library,
    client: Client,
    scopes: &[String],
) -> Result<Token, AuthFault> {
    let id_token = id_token(&enterprise.id_token).map_err(AuthFault::Identity)?;
    let (endpoint, id) = (enterprise.token_endpoint.expose(), enterprise.client_id.expose());
    let secret = enterprise.client_secret.as_ref().map(|secret| secret.expose());
    let provider = EmaAuthorizationServer::new(enterprise.issuer.expose(), endpoint, id)
        .with_client_authentication(proof(secret, false));
    let by_body = library.takes_secret_in_body_only();
    let server =
        EmaAuthorizationServer::new(library.issuer(), library.token_endpoint(), &client.id)
            .with_client_authentication(proof(client.secret.as_deref(), by_body));
    let resource = terms.url.as_str();
    let asked = EmaExchangeRequest::new_with_id_token(provider, server, resource, &id_token);
    let asked = asked.with_scopes(scopes);
    // The configuration names it, so it may be where no server could send us.
    let url = Url::parse(endpoint).map_err(|_| AuthFault::Identity("no address".into()))?;
    let provider = terms.http.toward(&url);
    let assertion = quiet(asked.exchange_id_jag(&provider)).await;
    let assertion = assertion.map_err(|error| AuthFault::Identity(words(&error)))?;
    let given = quiet(assertion.exchange(&*terms.http)).await;
    let given = given.map_err(|error| AuthFault::NoToken(words(&error)))?;
    let mut granted: Vec<&str> = given.scopes.iter().map(String::as_str).collect();
    granted.sort_unstable();
    let mut answer = json!({ "access_token": given.access_token.secret() });
    if !granted.is_empty() {
        answer["scope"] = granted.join(" ").into();
    }
    if let Some(lasts) = given.expires_in {
        answer["expires_in"] = lasts.as_secs().into();
    }
    let nothing = || AuthFault::NoToken("its answer has no token".into());
    Token::of(&answer, library.issuer(), client, scopes).ok_or_else(nothing)
}

/// How a client proves who it is.
fn proof(secret: Option<&str>, by_body: bool) -> EmaClientAuthentication {
    // The type of a secret is another library's; any text is one.
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

/// The ID token as it is now, or why there is none.
fn id_token(from: &IdToken) -> Result<String, Box<str>> {
    match from {
        IdToken::Value(token) => Ok(token.expose().to_owned()),
        IdToken::File(path) => {
            let no = |why: &dyn std::fmt::Display| {
                AuthFault::words(&format!("`{path}` cannot be read: {why}"))
            };
            let read = read_bytes(path.expose(), ID_TOKEN).map_err(|error| no(&error.kind()))?;
            let text = String::from_utf8(read).map_err(|_| no(&"it is no text"))?;
            Ok(text.trim().to_owned())
        }
    }
}

/// What went wrong, without a word of what was answered.
fn words(error: &EmaError) -> Box<str> {
    match error {
        EmaError::InvalidRequest(why) | EmaError::InvalidResponse { message: why, .. } => {
            (*why).into()
        }
        EmaError::RequestFailed(_) => "it gives no answer".into(),
        EmaError::InvalidGrant(_) => "invalid_grant".into(),
        EmaError::InsufficientUserAuthentication(_) => "insufficient_user_authentication".into(),
        EmaError::OAuthRejected { status, code, .. } => format!("{code} (HTTP {status})").into(),
        other => AuthFault::words(&other.to_string()),
    }
}
