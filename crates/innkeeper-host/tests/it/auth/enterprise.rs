//! Signing in on the word of an enterprise's identity provider.

use serde_json::{Value, json};

use super::inn::{CANARY, Inn, Rules};
use super::{at, call, why};
use crate::setup::{Log, Scene};

/// The keys of a server whose user the provider knows; `who` says where the ID token is.
fn keys(inn: &Inn, who: (&str, &str)) -> Value {
    let mut enterprise = json!({"issuer": "https://idp.example", "clientId": "we",
        "tokenEndpoint": format!("{}/provider", inn.origin)});
    enterprise[who.0] = json!(who.1);
    let secret = format!("{CANARY}-own");
    json!({"oauth": {"clientId": "us", "clientSecret": secret, "enterprise": enterprise}})
}

#[tokio::test]
async fn a_user_whom_the_provider_vouches_for_needs_no_browser_and_no_renewal() {
    let inn = Inn::open(Rules::default()).await;
    let scene = Scene::new();
    let id = format!("{CANARY}-id");
    let host = at(&scene, &inn.url(), &keys(&inn, ("idToken", &id))).start().await.unwrap();
    call(&host).await.unwrap();
    let asked = inn.seen("/provider");
    for part in ["token-exchange", "subject_token=canary-7c1e-id", "client_id=we", "resource="] {
        assert!(asked[0].contains(part), "{asked:?}");
    }
    let tokens = inn.seen("/token");
    assert!(tokens[0].contains("grant-type%3Ajwt-bearer&assertion="), "{tokens:?}");
    assert!(!tokens[0].contains("canary-7c1e-id"), "the ID token is the provider's alone");
    inn.revoke();
    call(&host).await.unwrap();
    assert_eq!(inn.seen("/provider").len(), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn a_file_with_the_id_token_is_read_at_every_sign_in() {
    let inn = Inn::open(Rules::default()).await;
    let scene = Scene::new();
    let file = scene.path("id-token");
    let written = file.to_string_lossy().into_owned();
    std::fs::write(&file, "first\n").unwrap();
    let keys = keys(&inn, ("idTokenFile", &written));
    let host = at(&scene, &inn.url(), &keys).start().await.unwrap();
    std::fs::write(&file, "second\n").unwrap();
    inn.revoke();
    call(&host).await.unwrap();
    let asked = inn.seen("/provider");
    assert!(asked[0].contains("subject_token=first&"), "{asked:?}");
    assert!(asked[1].contains("subject_token=second&"), "{asked:?}");
    std::fs::remove_file(&file).unwrap();
    inn.revoke();
    let error = call(&host).await.unwrap_err().to_string();
    assert!(error.contains("cannot be read: entity not found"), "{error}");
    host.shutdown().await;
}

#[tokio::test]
async fn an_assertion_for_another_resource_is_not_shown_to_anybody() {
    let log = Log::capture();
    let refused = json!({"error": "invalid_grant", "error_description": CANARY}).to_string();
    let other = Some("https://other.example/mcp".to_owned());
    let wrong: [(Rules, &str); 3] = [
        (Rules { assertion_for: other, ..Rules::default() }, "ID-JAG resource mismatch"),
        (
            Rules { provider_answer: Some((400, refused)), ..Rules::default() },
            "does not vouch for the user: invalid_grant; a fresh ID token",
        ),
        (
            Rules { provider_answer: Some((200, CANARY.to_owned())), ..Rules::default() },
            "malformed token response",
        ),
    ];
    for (rules, words) in wrong {
        let inn = Inn::open(rules).await;
        let scene = Scene::new();
        let error = why(at(&scene, &inn.url(), &keys(&inn, ("idToken", CANARY))).start().await);
        assert!(error.contains(words), "{error}");
        assert!(inn.seen("/token").is_empty(), "{error}");
        assert!(!error.contains(CANARY), "{error}");
    }
    assert!(!json!(log.lines()).to_string().contains(CANARY));
}
