//! Tests of the credential of a request.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::credential::MAX_CREDENTIAL_BYTES;
use super::*;

#[tokio::test(start_paused = true)]
async fn a_key_is_accepted_in_either_header_and_a_token_in_the_one() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    for headers in [
        [("authorization", format!("Bearer {API_KEY}"))],
        [("authorization", format!("bearer  {API_KEY}"))],
        [("x-api-key", API_KEY.to_owned())],
    ] {
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        let principal = authenticator.authenticate(&request(&headers)).await.unwrap();
        assert_eq!(principal.id().as_ref(), "ci");
    }
    assert_eq!(issuer.requests(), 0, "an API key needs no request to the issuer");
    let token = issuer.token(&json!({}));
    let principal = authenticator.authenticate(&bearer(&token)).await.unwrap();
    assert_eq!(principal.id().as_ref(), "oauth:ann");
    let in_key_header = authenticator.authenticate(&request(&[("x-api-key", &token)])).await;
    assert_eq!(in_key_header.unwrap_err().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_credential_learns_where_to_sign_in() {
    let authenticator = authenticator(&Issuer::new());
    let rejection = authenticator.authenticate(&request(&[])).await.unwrap_err();
    assert_eq!(rejection.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(
        challenge(&rejection),
        "Bearer resource_metadata=\
         \"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\", scope=\"mcp:tools\""
    );
    let body: Value = serde_json::from_slice(&rejection.body()).unwrap();
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains("the request has no credential"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn without_an_authorization_server_the_challenge_has_the_scheme_only() {
    let authenticator = Authenticator::from_parts(api_keys(), None).unwrap();
    let rejection = authenticator.authenticate(&request(&[])).await.unwrap_err();
    assert_eq!(challenge(&rejection), "Bearer");
    let rejection = authenticator.authenticate(&bearer("x")).await.unwrap_err();
    assert!(challenge(&rejection).starts_with("Bearer error=\"invalid_token\""));
}

/// Attack: remote | a request has two `Authorization` headers, or a token and an API key, of which a
/// proxy checks one and the gateway uses the other | the gateway rejects the request | Complete checks
#[tokio::test(start_paused = true)]
async fn a_request_with_two_credentials_is_rejected() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    let (key, token) = (format!("Bearer {API_KEY}"), issuer.token(&json!({})));
    let token = format!("Bearer {token}");
    for headers in [
        [("authorization", key.as_str()), ("authorization", "Bearer x")],
        [("authorization", key.as_str()), ("authorization", key.as_str())],
        [("authorization", token.as_str()), ("x-api-key", API_KEY)],
        [("x-api-key", API_KEY), ("x-api-key", "")],
    ] {
        let rejection = authenticator.authenticate(&request(&headers)).await.unwrap_err();
        assert_eq!(rejection.status(), StatusCode::BAD_REQUEST);
        assert!(challenge(&rejection).contains("error=\"invalid_request\""), "{rejection:?}");
    }
    let joined = request(&[("authorization", &format!("{key},{token}"))]);
    assert!(authenticator.authenticate(&joined).await.is_err());
}

/// Attack: remote | a client sends a credential of megabytes | the gateway neither hashes nor decodes a
/// credential above the limit | No unbounded memory
#[tokio::test(start_paused = true)]
async fn a_credential_at_the_limit_is_checked_and_one_byte_more_is_not() {
    let authenticator = authenticator(&Issuer::new());
    let longest = "k".repeat(MAX_CREDENTIAL_BYTES - "Bearer ".len());
    assert_rejected(&authenticator, &longest, "no API key of this gateway").await;
    assert_rejected(&authenticator, &format!("{longest}k"), "more than 16384 bytes").await;
}

#[tokio::test(start_paused = true)]
async fn another_scheme_is_rejected_by_name() {
    let authenticator = authenticator(&Issuer::new());
    for value in ["Basic YTpi", "Bearer", "Bearer ", API_KEY, "", "DPoP x"] {
        let parts = request(&[("authorization", value)]);
        let rejection = authenticator.authenticate(&parts).await.unwrap_err();
        assert_eq!(rejection.status(), StatusCode::UNAUTHORIZED);
        assert!(rejection.message().contains("another form than `Bearer`"), "{rejection:?}");
    }
}

#[tokio::test]
async fn without_authentication_every_client_is_the_local_user() {
    let open = Authenticator::local_user();
    assert!(!open.requires_credential());
    let principal = open.authenticate(&request(&[])).await.unwrap();
    assert_eq!(principal, Principal::local_user());
}

#[test]
fn settings_that_would_reject_every_request_are_an_error() {
    let environment = Environment::default();
    let setup = |settings| Authenticator::new(settings, &environment);
    let none = setup(AuthSettings::default());
    assert!(matches!(none, Err(AuthSetupError::NoCredentials)), "{none:?}");
    let oauth = |oauth| setup(AuthSettings { oauth: Some(oauth), ..AuthSettings::default() });
    let no_algorithm = oauth(OauthSettings { algorithms: Vec::new(), ..oauth_settings() });
    assert!(matches!(no_algorithm, Err(AuthSetupError::NoAlgorithm)), "{no_algorithm:?}");
    let audience = oauth(OauthSettings { audience: "mcp".to_owned(), ..oauth_settings() });
    assert!(matches!(audience, Err(AuthSetupError::Audience)), "{audience:?}");
}

#[test]
fn the_settings_print_no_hash_of_a_key() {
    let settings = AuthSettings {
        api_keys: vec![ApiKey { principal: "ci".into(), sha256: [0xab; 32] }],
        oauth: None,
    };
    let printed = format!("{settings:?}");
    assert!(printed.contains("ci") && !printed.contains("171"), "{printed}");
}

proptest! {
    /// Attack: remote | random values of the headers with credentials | no request gets a principal |
    /// Secrets stay with their owner
    #[test]
    fn no_random_credential_has_a_principal(
        authorization in proptest::option::of("(Bearer |bearer |Basic )?[ -~]{0,80}"),
        key in proptest::option::of("[ -~]{0,80}"),
    ) {
        let authorization = authorization.as_deref().map(|value| ("authorization", value));
        let headers: Vec<_> =
            authorization.into_iter().chain(key.as_deref().map(|key| ("x-api-key", key))).collect();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let result = runtime.block_on(async {
            authenticator(&Issuer::new()).authenticate(&request(&headers)).await
        });
        prop_assert!(result.is_err());
    }
}
