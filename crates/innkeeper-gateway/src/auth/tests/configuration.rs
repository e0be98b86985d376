//! Tests of the authentication as a configuration sets it up, with an issuer over HTTP.

use axum::Router;
use axum::routing::get;
use serde_json::json;
use tokio::net::TcpListener;

use super::*;
use crate::test_config;

#[tokio::test]
async fn a_configuration_accepts_its_keys_and_the_tokens_of_its_issuer() {
    let issuer = Issuer::new();
    let key_set = issuer.key_set_text();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let jwks_url = format!("http://{}/keys", listener.local_addr().unwrap());
    let routes = Router::new().route("/keys", get(move || async { key_set }));
    let hash = hex::encode(digest(&SHA256, API_KEY.as_bytes()));
    let serve = test_config::serve(&json!({"auth": {
        "apiKeys": [{"principal": "ci", "sha256": hash}],
        "oauth": {"issuer": ISSUER, "audience": AUDIENCE, "jwksUrl": jwks_url,
            "algorithms": ["EdDSA"], "requiredScopes": ["openid"], "principalClaim": "email"},
    }}));
    let environment = Environment::default();
    let authenticator = Authenticator::new((&serve.auth).into(), &environment).unwrap();
    let requests = async {
        let token = issuer.token(&json!({"email": "ann@example.com"}));
        let by_token = authenticator.authenticate(&bearer(&token)).await.unwrap();
        assert_eq!(by_token.id().as_ref(), "oauth:ann@example.com");
        let by_key = authenticator.authenticate(&bearer(API_KEY)).await.unwrap();
        assert_eq!(by_key.id().as_ref(), "ci");
        let scope = issuer.token(&json!({"email": "ann", "scope": "mcp:tools"}));
        let forbidden = authenticator.authenticate(&bearer(&scope)).await.unwrap_err();
        assert_eq!(forbidden.status(), StatusCode::FORBIDDEN);
    };
    tokio::select! {
        () = requests => {}
        served = async { axum::serve(listener, routes).await } => panic!("{served:?}"),
    }
}
