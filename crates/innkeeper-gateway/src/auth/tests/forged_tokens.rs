//! Tests of tokens that the issuer did not issue for the gateway.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};

use super::super::key_set::KeySet;
use super::super::token::{CLOCK_LEEWAY, TokenError, UnverifiedToken};
use super::issuer::{claims, header};
use super::*;

fn encode(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// Attack: remote | a token of the same issuer for another resource, or for a URL that resembles the
/// URL of the gateway | the gateway rejects the token | Secrets stay with their owner
#[tokio::test(start_paused = true)]
async fn a_token_for_another_audience_is_rejected() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    for audience in [
        json!("https://other.example.com/mcp"),
        json!("https://mcp.example.com"),
        json!("https://mcp.example.com/mcp/"),
        json!("https://mcp.example.com/mcp/docs"),
        json!("HTTPS://MCP.EXAMPLE.COM/mcp"),
        json!(["https://a.example", "https://b.example"]),
        json!([[AUDIENCE]]),
        json!({ AUDIENCE: true }),
        json!(""),
        Value::Null,
    ] {
        let token = issuer.token(&json!({"aud": audience}));
        assert_rejected(&authenticator, &token, "for another resource").await;
    }
    let several = issuer.token(&json!({"aud": ["https://a.example", AUDIENCE]}));
    authenticator.authenticate(&bearer(&several)).await.unwrap();
}

/// Attack: remote | a token names another issuer, or an issuer that resembles the configured one | the
/// gateway rejects the token | Secrets stay with their owner
#[tokio::test(start_paused = true)]
async fn a_token_of_another_issuer_is_rejected() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    let resembling = ["https://evil.example", "https://idp.example/", "https://idp.example.evil"];
    let others = resembling.map(|issuer| json!(issuer)).into_iter();
    for other in others.chain([json!([ISSUER]), json!(5), Value::Null]) {
        let token = issuer.token(&json!({"iss": other}));
        assert_rejected(&authenticator, &token, "another issuer").await;
    }
    let other_key = Issuer::new().token(&json!({}));
    assert_rejected(&authenticator, &other_key, "signature of the token is not valid").await;
}

/// Attack: remote | a token without a signature has `alg: none` in any spelling | the gateway rejects
/// the token before the gateway reads a key | Complete checks
#[tokio::test(start_paused = true)]
async fn a_token_without_a_signature_is_rejected() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    for name in ["none", "None", "NONE", "nOnE", "", "eddsa"] {
        let header = encode(&json!({"alg": name, "kid": "key-1"}));
        for signature in ["", "AAAA"] {
            let token = format!("{header}.{}.{signature}", encode(&claims(&json!({}))));
            assert_rejected(&authenticator, &token, "signature algorithm").await;
        }
    }
    assert_eq!(issuer.requests(), 0);
    let unsigned = format!("{}.{}.", encode(&header()), encode(&claims(&json!({}))));
    assert_rejected(&authenticator, &unsigned, "signature of the token is not valid").await;
}

/// Attack: remote | a token is signed with HMAC, with the public key of the issuer as the shared
/// secret | the gateway rejects the token | Complete checks
#[tokio::test(start_paused = true)]
async fn a_token_signed_with_the_public_key_as_a_secret_is_rejected() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    let public_text = URL_SAFE_NO_PAD.encode(issuer.public_key());
    for secret in [issuer.public_key(), public_text.as_bytes()] {
        for name in ["HS256", "EdDSA", "RS256"] {
            let header = encode(&json!({"alg": name, "kid": "key-1"}));
            let message = format!("{header}.{}", encode(&claims(&json!({}))));
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
            let tag = URL_SAFE_NO_PAD.encode(hmac::sign(&key, message.as_bytes()));
            let result = authenticator.authenticate(&bearer(&format!("{message}.{tag}"))).await;
            assert_eq!(result.unwrap_err().status(), StatusCode::UNAUTHORIZED, "{name}");
        }
    }
}

/// Attack: remote | a token whose signature is valid has an algorithm that the settings do not allow |
/// the gateway rejects the token | Complete checks
#[tokio::test(start_paused = true)]
async fn an_algorithm_that_is_not_configured_is_rejected() {
    let issuer = Issuer::new();
    let settings = OauthSettings { algorithms: vec![TokenAlgorithm::Es256], ..oauth_settings() };
    let tokens = TokenVerifier::new(settings, issuer.fetch()).unwrap();
    let authenticator = Authenticator::from_parts(api_keys(), Some(tokens)).unwrap();
    assert_rejected(&authenticator, &issuer.token(&json!({})), "algorithm").await;
}

/// Attack: remote | a client uses a token after its end, before its start, or without times | the
/// gateway rejects the token outside of the leeway of 30 seconds | Secrets stay with their owner
#[tokio::test(start_paused = true)]
async fn a_token_outside_of_its_lifetime_is_rejected() {
    let issuer = Issuer::new();
    let keys = (issuer.fetch())().await.unwrap();
    let verify = |changes: &Value, now: u64| {
        let token = issuer.token(changes);
        let settings = oauth_settings();
        let token = UnverifiedToken::parse(&token, &settings).unwrap();
        token.verify(&keys, &settings, &settings.audience, Duration::from_secs(now))
    };
    let leeway = CLOCK_LEEWAY.as_secs();
    let times = json!({"exp": 1000, "nbf": 500});
    assert!(verify(&times, 999 + leeway).is_ok());
    assert_eq!(verify(&times, 1000 + leeway), Err(TokenError::Expired));
    assert!(verify(&times, 500 - leeway).is_ok());
    assert_eq!(verify(&times, 499 - leeway), Err(TokenError::NotYetValid));
    assert!(verify(&json!({"exp": 1000.5, "nbf": null}), 900).is_ok());
    for missing in [json!({"exp": null}), json!({"exp": "9999999999"}), json!({"exp": true})] {
        assert_eq!(verify(&missing, 1), Err(TokenError::Time), "{missing}");
    }
    assert_eq!(verify(&json!({"exp": 1000, "nbf": "1"}), 900), Err(TokenError::Time));
    assert_eq!(verify(&json!({"exp": -5}), 900), Err(TokenError::Expired));
}

/// Attack: remote | a token has the identity of the local user or of a client with an API key | the
/// principal is neither of these | Isolation
#[tokio::test(start_paused = true)]
async fn a_token_cannot_have_the_principal_of_another_kind_of_client() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    for name in ["local", "ci", "oauth:ann"] {
        let token = issuer.token(&json!({"sub": name}));
        let principal = authenticator.authenticate(&bearer(&token)).await.unwrap();
        assert_eq!(principal.id().as_ref(), format!("oauth:{name}"));
    }
    for identity in [json!(""), json!("a\nb"), json!(5), json!("s".repeat(256)), Value::Null] {
        let token = issuer.token(&json!({"sub": identity}));
        assert_rejected(&authenticator, &token, "no usable identity").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_without_a_required_scope_is_forbidden_and_the_client_learns_the_scope() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    for scope in [json!("openid"), json!("mcp:tools2 xmcp:tools"), json!(["mcp"]), Value::Null] {
        let token = issuer.token(&json!({"scope": scope}));
        let rejection = authenticator.authenticate(&bearer(&token)).await.unwrap_err();
        assert_eq!(rejection.status(), StatusCode::FORBIDDEN);
        let challenge = challenge(&rejection);
        assert!(challenge.contains("error=\"insufficient_scope\""), "{challenge}");
        assert!(challenge.contains("scope=\"mcp:tools\""), "{challenge}");
    }
    for scope in [json!({"scope": null, "scp": ["a", "mcp:tools"]}), json!({"scp": "mcp:tools"})] {
        authenticator.authenticate(&bearer(&issuer.token(&scope))).await.unwrap();
    }
}

/// Attack: remote | a signed token of the issuer has another purpose, is bound to a key of a client, or
/// has header parameters that change its meaning | the gateway rejects the token | Complete checks
#[tokio::test(start_paused = true)]
async fn a_signed_token_for_another_purpose_is_rejected() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    let with = |name: &str, value: Value| {
        let mut header = header();
        header[name] = value;
        issuer.sign(&header, &claims(&json!({})))
    };
    for kind in ["logout+jwt", "dpop+jwt", "secevent+jwt"] {
        assert_rejected(&authenticator, &with("typ", json!(kind)), "not an access token").await;
    }
    let critical = with("crit", json!(["exp"]));
    assert_rejected(&authenticator, &critical, "header parameters").await;
    let bound = issuer.token(&json!({"cnf": {"jkt": "x"}}));
    assert_rejected(&authenticator, &bound, "bound to a key").await;
    let location = with("jku", json!("https://evil.example/keys"));
    authenticator.authenticate(&bearer(&location)).await.unwrap();
}

/// Attack: remote | a token has missing or additional parts, padding, two algorithms or broken JSON |
/// the gateway rejects the token | Complete checks
#[tokio::test(start_paused = true)]
async fn a_malformed_token_is_rejected() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    let token = issuer.token(&json!({}));
    let (head, rest) = token.split_once('.').unwrap();
    let two = URL_SAFE_NO_PAD.encode(r#"{"alg":"EdDSA","alg":"none","kid":"key-1"}"#);
    for malformed in [
        head.to_owned(),
        format!("{head}.x"),
        format!("{token}.x"),
        format!("{token}="),
        format!("{two}.{rest}"),
        format!("e30.{rest}"),
        format!("bm8.{rest}"),
        "..".to_owned(),
    ] {
        let result = authenticator.authenticate(&bearer(&malformed)).await;
        assert_eq!(result.unwrap_err().status(), StatusCode::UNAUTHORIZED, "{malformed}");
    }
    let settings = oauth_settings();
    let unknown = issuer.sign(&json!({"alg": "EdDSA"}), &json!([1]));
    let parsed = UnverifiedToken::parse(&unknown, &settings).unwrap();
    let keys = (issuer.fetch())().await.unwrap();
    assert_eq!(
        parsed.verify(&keys, &settings, &settings.audience, Duration::ZERO),
        Err(TokenError::Malformed)
    );
    let none = KeySet::default();
    assert_eq!(
        parsed.verify(&none, &settings, &settings.audience, Duration::ZERO),
        Err(TokenError::UnknownKey)
    );
}
