//! Tests of the authentication through its public API, with an issuer in memory.

mod configuration;
mod credentials;
mod forged_tokens;
mod issuer;
mod key_refresh;
mod metadata;
mod signatures;

use http::request::Parts;
use http::{Request, StatusCode};

use issuer::Issuer;
use ring::digest::{SHA256, digest};

use super::*;

const ISSUER: &str = "https://idp.example";
const AUDIENCE: &str = "https://mcp.example.com/mcp";
const API_KEY: &str = "canary-key-0123456789-0123456789";

fn oauth_settings() -> OauthSettings {
    OauthSettings {
        issuer: ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
        jwks_url: "https://idp.example/keys".to_owned(),
        algorithms: vec![TokenAlgorithm::EdDsa, TokenAlgorithm::Rs256],
        required_scopes: vec!["mcp:tools".to_owned()],
        principal_claim: "sub".to_owned(),
    }
}

fn api_keys() -> ApiKeyTable {
    let sha256 = digest(&SHA256, API_KEY.as_bytes()).as_ref().try_into().unwrap();
    ApiKeyTable::new(vec![ApiKey { principal: "ci".into(), sha256 }])
}

/// Returns an authenticator with one API key and the tokens of this issuer.
fn authenticator(issuer: &Issuer) -> Authenticator {
    let tokens = TokenVerifier::new(oauth_settings(), issuer.fetch()).unwrap();
    Authenticator::from_parts(api_keys(), Some(tokens)).unwrap()
}

fn request(headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::post("/mcp");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn bearer(token: &str) -> Parts {
    request(&[("authorization", &format!("Bearer {token}"))])
}

fn challenge(rejection: &Rejection) -> &str {
    rejection.headers()["www-authenticate"].to_str().unwrap()
}

/// Asserts that the token is rejected with this status and this part of the message.
async fn assert_rejected(authenticator: &Authenticator, token: &str, message: &str) {
    let rejection = authenticator.authenticate(&bearer(token)).await.expect_err(message);
    assert_eq!(rejection.status(), StatusCode::UNAUTHORIZED, "{message}");
    assert!(rejection.message().contains(message), "{message}: {}", rejection.message());
    let challenge = challenge(&rejection);
    assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    assert!(challenge.contains("resource_metadata=\""), "{challenge}");
}
