//! Sign-in with an assertion of an enterprise identity provider.

use innkeeper_host::ReloadOptions;
use serde_json::{Value, json};

use super::oauth_server::{CANARY, OauthServerOptions, OauthTestServer};
use super::{builder_for, call, start_error};
use crate::setup::{LogCapture, TestEnv};

/// The `oauth` keys of a server whose identity provider knows the user; `account` is the key and
/// value that locate the ID token.
fn enterprise_config(oauth_server: &OauthTestServer, account: (&str, &str)) -> Value {
    let mut enterprise = json!({"issuer": "https://idp.example", "clientId": "we",
        "tokenEndpoint": format!("{}/provider", oauth_server.origin)});
    enterprise[account.0] = json!(account.1);
    let secret = format!("{CANARY}-own");
    json!({"oauth": {"clientId": "us", "clientSecret": secret, "enterprise": enterprise}})
}

#[tokio::test]
async fn a_user_whom_the_provider_vouches_for_needs_no_browser_and_no_renewal() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let test_env = TestEnv::new();
    let id = format!("{CANARY}-id");
    let host = builder_for(
        &test_env,
        &oauth_server.url(),
        &enterprise_config(&oauth_server, ("idToken", &id)),
    )
    .start()
    .await
    .unwrap();
    call(&host).await.unwrap();
    let provider_requests = oauth_server.requests("/provider");
    for fragment in ["token-exchange", "subject_token=canary-7c1e-id", "client_id=we", "resource="]
    {
        assert!(provider_requests[0].contains(fragment), "{provider_requests:?}");
    }
    let tokens = oauth_server.requests("/token");
    assert!(tokens[0].contains("grant-type%3Ajwt-bearer&assertion="), "{tokens:?}");
    assert!(!tokens[0].contains("canary-7c1e-id"), "the ID token is the provider's alone");
    oauth_server.revoke();
    call(&host).await.unwrap();
    assert_eq!(oauth_server.requests("/provider").len(), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn the_tokens_of_a_server_that_a_reload_removes_are_gone_when_the_server_is_back() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let test_env = TestEnv::new();
    let keys = enterprise_config(&oauth_server, ("idToken", "id"));
    let mut entry = json!({"type": "http", "url": oauth_server.url()});
    entry["oauth"] = keys["oauth"].clone();
    let config = || test_env.config_from(&json!({"servers": {"inn": entry}}));
    let host = crate::setup::builder(config()).start().await.unwrap();
    let reload = async |config| {
        let options = ReloadOptions { config: Some(config), ..ReloadOptions::default() };
        host.reload_with(options).await.unwrap()
    };
    call(&host).await.unwrap();
    // A reload without a change keeps the sign-in.
    assert!(reload(config()).await.is_empty());
    call(&host).await.unwrap();
    assert_eq!(oauth_server.requests("/provider").len(), 1);
    let report = reload(test_env.config([test_env.fixture("other")])).await;
    assert_eq!(&*report.removed[0], "inn");
    let report = reload(config()).await;
    assert_eq!((&*report.added[0], report.failed.len()), ("inn", 0));
    call(&host).await.unwrap();
    assert_eq!(oauth_server.requests("/provider").len(), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn a_file_with_the_id_token_is_read_at_every_sign_in() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let test_env = TestEnv::new();
    let file = test_env.path("id-token");
    let path_text = file.to_string_lossy().into_owned();
    std::fs::write(&file, "first\n").unwrap();
    let keys = enterprise_config(&oauth_server, ("idTokenFile", &path_text));
    let host = builder_for(&test_env, &oauth_server.url(), &keys).start().await.unwrap();
    std::fs::write(&file, "second\n").unwrap();
    oauth_server.revoke();
    call(&host).await.unwrap();
    let provider_requests = oauth_server.requests("/provider");
    assert!(provider_requests[0].contains("subject_token=first&"), "{provider_requests:?}");
    assert!(provider_requests[1].contains("subject_token=second&"), "{provider_requests:?}");
    std::fs::remove_file(&file).unwrap();
    oauth_server.revoke();
    let error = call(&host).await.unwrap_err().to_string();
    assert!(error.contains("`: entity not found"), "{error}");
    host.shutdown().await;
}

/// Attack: secrets | an identity provider returns an assertion for another resource | the host does
/// not send the assertion | Secrets stay with their owner
#[tokio::test]
async fn an_assertion_for_another_resource_is_not_shown_to_anybody() {
    let log = LogCapture::capture();
    let rejection = json!({"error": "invalid_grant", "error_description": CANARY}).to_string();
    let other = Some("https://other.example/mcp".to_owned());
    let wrong: [(OauthServerOptions, &str); 3] = [
        (
            OauthServerOptions { assertion_resource: other, ..OauthServerOptions::default() },
            "ID-JAG resource mismatch",
        ),
        (
            OauthServerOptions {
                provider_response: Some((400, rejection)),
                ..OauthServerOptions::default()
            },
            "no assertion from the identity provider: invalid_grant; set a new ID token",
        ),
        (
            OauthServerOptions {
                provider_response: Some((200, CANARY.to_owned())),
                ..OauthServerOptions::default()
            },
            "malformed token response",
        ),
    ];
    for (options, expected) in wrong {
        let oauth_server = OauthTestServer::start(options).await;
        let test_env = TestEnv::new();
        let error = start_error(
            builder_for(
                &test_env,
                &oauth_server.url(),
                &enterprise_config(&oauth_server, ("idToken", CANARY)),
            )
            .start()
            .await,
        );
        assert!(error.contains(expected), "{error}");
        assert!(oauth_server.requests("/token").is_empty(), "{error}");
        assert!(!error.contains(CANARY), "{error}");
    }
    assert!(!json!(log.lines()).to_string().contains(CANARY));
}
