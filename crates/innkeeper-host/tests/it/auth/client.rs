//! The client of the host at an authorization server: its identity, its authentication, its scopes.

use serde_json::{Value, json};

use super::oauth_server::{CANARY, OauthServerOptions, OauthTestServer};
use super::{ScriptedBrowser, builder_for, call, start_error};
use crate::setup::TestEnv;

/// The P-256 key whose number is 1.
const PRIVATE_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAGh\
    RANCAARrF9Hy4SxCR/i85uVjpEDydwN9gS3rM6D0oTlF2JjClk/jQuL+Gn+bjufrSnwPnhYrzjNXazFezsu2QGg3v1H1\
    \n-----END PRIVATE KEY-----\n";

fn server_with(metadata: Value) -> OauthServerOptions {
    OauthServerOptions { metadata, ..OauthServerOptions::default() }
}

/// Starts a host whose user signs in, and returns the requests for the page.
async fn page_requests(oauth_server: &OauthTestServer, keys: &Value) -> Vec<String> {
    let test_env = TestEnv::new();
    let builder = builder_for(&test_env, &oauth_server.url(), keys);
    let host = builder.user_agent(ScriptedBrowser::default()).start().await.unwrap();
    call(&host).await.unwrap();
    host.shutdown().await;
    oauth_server.requests("/page")
}

#[tokio::test]
async fn the_url_of_a_metadata_document_is_the_client_where_the_server_supports_it() {
    let keys = json!({"oauth": {"clientMetadataUrl": "https://app.example/client.json"}});
    let key = "client_id_metadata_document_supported";
    for (metadata, is_supported) in
        [(json!({key: true}), true), (json!({key: false}), false), (json!({}), false)]
    {
        let oauth_server = OauthTestServer::start(server_with(metadata)).await;
        let pages = page_requests(&oauth_server, &keys).await;
        let client_id = "client_id=https%3A%2F%2Fapp.example%2Fclient.json";
        assert_eq!(pages[0].contains(client_id), is_supported, "{pages:?}");
        assert_eq!(oauth_server.requests("/register").is_empty(), is_supported);
    }
}

#[tokio::test]
async fn a_refresh_token_is_requested_where_the_authorization_server_offers_the_scope() {
    let keys = json!({"oauth": {"scopes": ["read"]}});
    for (scopes, expected) in [
        (json!(["read", "offline_access"]), "scope=read+offline_access&"),
        (json!(["read"]), "scope=read&"),
    ] {
        let metadata = json!({"scopes_supported": scopes});
        let oauth_server = OauthTestServer::start(server_with(metadata)).await;
        let pages = page_requests(&oauth_server, &keys).await;
        assert!(format!("{}&", pages[0]).contains(expected), "{pages:?}");
    }
}

#[tokio::test]
async fn a_client_secret_is_in_the_body_only_if_the_server_accepts_it_nowhere_else() {
    for (methods, is_in_body) in [
        (json!(["client_secret_post"]), true),
        (json!(["client_secret_post", "client_secret_basic"]), false),
        (json!(["client_secret_basic"]), false),
        (json!(["none"]), false),
        (Value::Null, false),
    ] {
        let metadata = json!({"token_endpoint_auth_methods_supported": methods});
        let oauth_server = OauthTestServer::start(server_with(metadata)).await;
        let test_env = TestEnv::new();
        let enterprise = json!({"issuer": "https://idp.example", "clientId": "we", "idToken": "id",
            "tokenEndpoint": format!("{}/provider", oauth_server.origin)});
        let secret = format!("{CANARY}-own");
        let keys = json!({"oauth": {"clientId": "us", "clientSecret": secret,
            "enterprise": enterprise}});
        let host = builder_for(&test_env, &oauth_server.url(), &keys).start().await.unwrap();
        host.shutdown().await;
        let tokens = oauth_server.requests("/token");
        let in_body = format!("client_secret={secret}");
        assert_eq!(tokens[0].contains(&in_body), is_in_body, "{methods}: {tokens:?}");
    }
}

#[tokio::test]
async fn a_client_with_a_private_key_sends_a_signed_assertion_and_no_secret() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let test_env = TestEnv::new();
    for (scopes, expected) in [(json!(["a", "b"]), "scope=a+b"), (json!([]), "")] {
        let keys = json!({"oauth": {"clientId": "us", "privateKey": PRIVATE_KEY,
            "grant": "client_credentials", "scopes": scopes}});
        let host = builder_for(&test_env, &oauth_server.url(), &keys).start().await.unwrap();
        call(&host).await.unwrap();
        host.shutdown().await;
        let tokens = oauth_server.requests("/token");
        let form = tokens.last().unwrap();
        for part in [
            "grant_type=client_credentials",
            "client-assertion-type%3Ajwt-bearer&client_assertion=eyJ",
            "&resource=http%3A%2F%2F127.0.0.1",
            expected,
        ] {
            assert!(form.contains(part), "{form}");
        }
        assert_eq!(form.contains("scope="), !expected.is_empty(), "{form}");
        assert!(!form.contains("client_secret"), "{form}");
    }
}

/// Attack: secrets | a token endpoint responds to a signed assertion with an error or with text that
/// contains secrets | the error shows the code alone | Secrets do not print
#[tokio::test]
async fn a_rejected_assertion_is_reported_with_the_error_code_alone() {
    let rejected = json!({"error": "invalid_client", "error_description": CANARY}).to_string();
    for (status, body, expected) in [
        (400, rejected, "invalid_client"),
        (200, CANARY.to_owned(), "the response is not JSON"),
        (200, json!({"token": CANARY}).to_string(), "the response contains no token"),
    ] {
        let options = OauthServerOptions {
            token_response: Some((status, body)),
            ..OauthServerOptions::default()
        };
        let oauth_server = OauthTestServer::start(options).await;
        let test_env = TestEnv::new();
        let keys = json!({"oauth": {"clientId": "us", "privateKey": PRIVATE_KEY,
            "grant": "client_credentials"}});
        let started = builder_for(&test_env, &oauth_server.url(), &keys).start().await;
        let error = start_error(started);
        assert!(error.contains(expected) && !error.contains(CANARY), "{error}");
    }
}

#[tokio::test]
async fn a_rejected_renewal_leads_to_a_sign_in_unless_the_rejection_is_temporary() {
    for (code, visits) in
        [("unauthorized_client", 2), ("invalid_grant", 2), ("temporarily_unavailable", 1)]
    {
        let oauth_server = OauthTestServer::start(OauthServerOptions {
            renewable: true,
            ..OauthServerOptions::default()
        })
        .await;
        let (test_env, browser) = (TestEnv::new(), ScriptedBrowser::default());
        let builder = builder_for(&test_env, &oauth_server.url(), &json!({}));
        let host = builder.user_agent(browser.clone()).start().await.unwrap();
        let rejection = (400, json!({"error": code}).to_string());
        oauth_server.configure(|options| options.renewal_response = Some(rejection));
        oauth_server.revoke();
        let result = call(&host).await;
        assert_eq!((result.is_ok(), browser.visit_count()), (visits == 2, visits), "{code}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_published_authorization_server_needs_no_challenge_with_bearer() {
    let options = OauthServerOptions { other_scheme: true, ..OauthServerOptions::default() };
    let oauth_server = OauthTestServer::start(options).await;
    assert_eq!(page_requests(&oauth_server, &json!({})).await.len(), 1);
}
