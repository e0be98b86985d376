//! Secrets and untrusted servers or authorization servers.

use serde_json::{Value, json};

use super::oauth_server::{CANARY, OauthServerOptions, OauthTestServer};
use super::{builder_for, call, start_error};
use crate::setup::{LogCapture, TestEnv};

/// The `oauth` keys of a client with its own secret.
fn client_credentials_config(more: &Value) -> Value {
    let mut oauth = json!({"clientId": "us", "clientSecret": format!("{CANARY}-own"),
        "grant": "client_credentials"});
    for (key, value) in more.as_object().unwrap() {
        oauth[key] = value.clone();
    }
    json!({"oauth": oauth})
}

/// For debugging, some servers print the headers of a request in their response.
/// Attack: secrets | an endpoint repeats tokens and client secrets in its errors | logs and errors
/// contain a mask | Secrets do not print
#[tokio::test]
async fn a_secret_that_a_refusal_repeats_is_masked_in_logs_and_errors() {
    let log = LogCapture::capture();
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let test_env = TestEnv::new();
    let host = builder_for(&test_env, &oauth_server.url(), &client_credentials_config(&json!({})))
        .start()
        .await
        .unwrap();
    oauth_server.configure(|options| options.echoes_requests = true);
    let by_server = call(&host).await.unwrap_err();
    assert!(by_server.to_string().contains("what is Bearer ***?"), "{by_server}");
    oauth_server.revoke();
    let by_the_other = call(&host).await.unwrap_err();
    assert!(by_the_other.to_string().contains("client_secret=***"), "{by_the_other}");
    host.shutdown().await;
    let keys = json!({"headers": {"authorization": format!("Bearer {CANARY}-mine")}});
    oauth_server.accept_only(&format!("{CANARY}-mine"));
    let at_start = start_error(builder_for(&test_env, &oauth_server.url(), &keys).start().await);
    assert!(at_start.contains("what is ***?"), "{at_start}");
    let shown = format!("{by_server:?}{by_the_other:?}{at_start}{}", json!(log.lines()));
    assert!(shown.contains("signed in") && !shown.contains(CANARY), "{shown}");
}

/// An attacker who controls a server must not obtain its client secret.
/// Attack: secrets | a server names another authorization server after a sign-in | the client
/// secret is not sent there, also by the next host | Secrets stay with their owner
#[tokio::test]
async fn a_clients_secret_goes_to_no_other_authorization_server_than_the_first_or_the_one_named() {
    let (oauth_server, other) = (
        OauthTestServer::start(OauthServerOptions::default()).await,
        OauthTestServer::start(OauthServerOptions::default()).await,
    );
    let test_env = TestEnv::new();
    let token_dir = test_env.path("tokens");
    let start_with = |keys: &Value| {
        builder_for(&test_env, &oauth_server.url(), keys).token_directory(&token_dir).start()
    };
    let host = start_with(&client_credentials_config(&json!({}))).await.unwrap();
    oauth_server.configure(|options| options.issuer = Some(other.origin.clone()));
    oauth_server.revoke();
    let error = call(&host).await.unwrap_err().to_string();
    let (other_origin, home) = (&other.origin, &oauth_server.origin);
    let expected = format!(
        "authorization server `{other_origin}` differs from `{home}`, the issuer of the client in \
         `oauth`; if `{other_origin}` is right, set `oauth.issuer`"
    );
    assert!(error.ends_with(&expected), "{error}");
    host.shutdown().await;
    let error = start_error(start_with(&client_credentials_config(&json!({}))).await);
    assert!(error.ends_with(&expected), "the next host knows it too: {error}");
    let error = start_error(start_with(&client_credentials_config(&json!({"issuer": home}))).await);
    assert!(error.ends_with(&expected), "{error}");
    assert!(other.requests("/token").is_empty());
    // The resource server does not accept the resulting token; the test only checks where the host
    // requests it.
    let _ = start_with(&client_credentials_config(&json!({"issuer": format!("{other_origin}/")})))
        .await;
    assert!(!other.requests("/token").is_empty());
}
