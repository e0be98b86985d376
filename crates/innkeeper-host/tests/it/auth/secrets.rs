//! What becomes of secrets where a server or its authorization server is not to be trusted with them.

use serde_json::{Value, json};

use super::inn::{CANARY, Inn, Rules};
use super::{at, call, why};
use crate::setup::{Log, Scene};

/// Access of the client's own, by a secret.
fn own(more: &Value) -> Value {
    let mut oauth = json!({"clientId": "us", "clientSecret": format!("{CANARY}-own"),
        "grant": "client_credentials"});
    for (key, value) in more.as_object().unwrap() {
        oauth[key] = value.clone();
    }
    json!({"oauth": oauth})
}

/// Those who debug have a server print the headers it got.
#[tokio::test]
async fn a_secret_that_a_refusal_repeats_is_masked_in_logs_and_errors() {
    let log = Log::capture();
    let inn = Inn::open(Rules::default()).await;
    let scene = Scene::new();
    let host = at(&scene, &inn.url(), &own(&json!({}))).start().await.unwrap();
    inn.rule(|rules| rules.repeats = true);
    let by_server = call(&host).await.unwrap_err();
    assert!(by_server.to_string().contains("what is Bearer ***?"), "{by_server}");
    inn.revoke();
    let by_the_other = call(&host).await.unwrap_err();
    assert!(by_the_other.to_string().contains("client_secret=***"), "{by_the_other}");
    host.shutdown().await;
    let keys = json!({"headers": {"authorization": format!("Bearer {CANARY}-mine")}});
    inn.admit(&format!("{CANARY}-mine"));
    let at_start = why(at(&scene, &inn.url(), &keys).start().await);
    assert!(at_start.contains("what is ***?"), "{at_start}");
    let told = format!("{by_server:?}{by_the_other:?}{at_start}{}", json!(log.lines()));
    assert!(told.contains("signed in") && !told.contains(CANARY), "{told}");
}

/// Whoever has taken a server over would else have the secret of its client sent to them.
#[tokio::test]
async fn a_clients_secret_goes_to_no_other_authorization_server_than_the_first_or_the_one_named() {
    let (inn, other) = (Inn::open(Rules::default()).await, Inn::open(Rules::default()).await);
    let scene = Scene::new();
    let kept = scene.path("tokens");
    let begin = |keys: &Value| at(&scene, &inn.url(), keys).token_store(&kept).start();
    let host = begin(&own(&json!({}))).await.unwrap();
    inn.rule(|rules| rules.issuer = Some(other.origin.clone()));
    inn.revoke();
    let error = call(&host).await.unwrap_err().to_string();
    let (named, home) = (&other.origin, &inn.origin);
    let words = format!(
        "it names the authorization server `{named}`, and the client in `oauth` is \
                         for `{home}`; if `{named}` is right, give it as `oauth.issuer`"
    );
    assert!(error.ends_with(&words), "{error}");
    host.shutdown().await;
    let error = why(begin(&own(&json!({}))).await);
    assert!(error.ends_with(&words), "the next host knows it too: {error}");
    let error = why(begin(&own(&json!({"issuer": home}))).await);
    assert!(error.ends_with(&words), "{error}");
    assert!(other.seen("/token").is_empty());
    // What it gives is no good at this server; here it is about who is asked.
    drop(begin(&own(&json!({"issuer": format!("{named}/")}))).await);
    assert!(!other.seen("/token").is_empty());
}
