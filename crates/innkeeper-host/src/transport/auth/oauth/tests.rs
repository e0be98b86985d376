//! Tests of the tokens of one server.

use std::time::SystemTime;

use futures_util::FutureExt;
use indexmap::IndexMap;
use serde_json::json;

use super::*;
use crate::transport::RemoteEndpoint;
use innkeeper_config::{Environment, ExpandedValue, TransportConfig};

fn test_client() -> OauthInner {
    let address = "http://127.0.0.1:9/mcp";
    let url = ExpandedValue::new(address.to_owned(), address);
    let transport = TransportConfig::Http { url, headers: IndexMap::new() };
    let remote = RemoteEndpoint::from_config(&transport, &Environment::default()).unwrap().unwrap();
    let http = Arc::new(AuthHttpClient::new(&remote));
    let (url, config) = (Url::parse(address).unwrap(), innkeeper_config::OauthConfig::default());
    let context =
        OauthContext { server: "inn".into(), url, config, http, user_agent: None, store: None };
    let (current, state) = (Mutex::default(), tokio::sync::Mutex::default());
    OauthInner { context, current, state }
}

/// Returns a renewable token that expires after `remaining_secs` seconds and is due for renewal.
fn token(remaining_secs: i64) -> StoredToken {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let client = json!({"id": "us", "redirectUri": ""});
    let expires = now.saturating_add_signed(remaining_secs);
    let token = json!({"access": "t", "refresh": "r", "expires": expires, "renew": 1,
        "issuer": "i", "client": client, "granted": []});
    serde_json::from_value(token).unwrap()
}

#[tokio::test]
async fn a_token_that_lasts_is_used_while_somebody_signs_in_for_more() {
    let inner = test_client();
    let _signing_in = inner.state.lock().await;
    inner.set_current(Some(&token(3600)));
    let used = inner.get_token().now_or_never().unwrap().unwrap();
    assert_eq!(used.unwrap().expose(), "t");
    inner.set_current(Some(&token(-1)));
    assert!(inner.get_token().now_or_never().is_none(), "one that has ended is waited for");
}

#[tokio::test(start_paused = true)]
async fn after_a_failed_renewal_a_valid_token_is_used_until_the_backoff_has_passed() {
    let inner = test_client();
    {
        let mut state = inner.state.lock().await;
        state.stored.token = Some(token(3600));
        state.renewal_failed_at = Some(Instant::now());
    }
    let millisecond = Duration::from_millis(1);
    for pause in [RENEWAL_BACKOFF - millisecond, millisecond] {
        let used = inner.get_token().now_or_never().unwrap().unwrap();
        assert_eq!(used.unwrap().expose(), "t");
        tokio::time::advance(pause).await;
    }
    assert!(inner.get_token().now_or_never().is_none(), "the renewal is under way");
}

#[tokio::test]
async fn a_token_that_another_process_renewed_is_used_unless_the_server_rejected_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut inner = test_client();
    inner.context.store = AuthStore::new(Some(directory.path()), None, "inn", "http://a/mcp");
    let mut renewed = serde_json::to_value(token(3600)).unwrap();
    renewed["access"] = json!("new");
    renewed["renew"] = renewed["expires"].clone();
    let record = json!({"token": renewed});
    let record: StoredAuth = serde_json::from_value(record).unwrap();
    inner.context.store.as_ref().unwrap().save(&record).unwrap();
    let due = StoredAuth { token: Some(token(60)), ..StoredAuth::default() };
    let state = || OauthState { stored: due.clone(), loaded: true, ..OauthState::default() };
    let challenge = |rejected: &str| Challenge {
        status: 401,
        header: None,
        rejected_token: Some(Secret::new(rejected.to_owned())),
    };
    for challenge in [None, Some(challenge("t"))] {
        let mut state = state();
        let used = inner.renew(&mut state, challenge.as_ref()).now_or_never().unwrap();
        assert_eq!(used.unwrap().unwrap().expose(), "new");
    }
    let (mut state, rejected) = (state(), challenge("new"));
    assert!(inner.renew(&mut state, Some(&rejected)).now_or_never().is_none());
}

#[tokio::test]
async fn the_deletion_of_the_stored_token_is_a_sign_out() {
    let directory = tempfile::tempdir().unwrap();
    let mut inner = test_client();
    inner.context.store = AuthStore::new(Some(directory.path()), None, "inn", "http://a/mcp");
    inner.set_current(Some(&token(3600)));
    let stored = StoredAuth { token: Some(token(3600)), ..StoredAuth::default() };
    let mut state = OauthState { stored, loaded: true, ..OauthState::default() };
    inner.load(&mut state);
    assert!(state.stored.token.is_none());
    assert!(inner.get_token().await.unwrap().is_none());
}

/// Attack: remote | a server names another authorization server than before | the token of the
/// former one is discarded | Secrets stay with their owner
#[tokio::test]
async fn the_token_of_another_authorization_server_is_discarded() {
    for (issuer, is_kept) in [("i", true), ("https://other.example", false)] {
        let inner = test_client();
        inner.set_current(Some(&token(3600)));
        let mut record = StoredAuth {
            token: Some(token(3600)),
            requested: vec!["a".to_owned()],
            ..StoredAuth::default()
        };
        inner.discard_other_issuer(&mut record, issuer);
        assert_eq!((record.token.is_some(), record.requested.is_empty()), (is_kept, !is_kept));
        assert_eq!(inner.current.lock().unwrap().is_some(), is_kept, "{issuer}");
    }
}

#[tokio::test]
async fn a_refusal_without_scope_is_reported_as_it_is() {
    let header = Some("Bearer error=\"insufficient_scope\"".to_owned());
    let challenge = Challenge { status: 403, header, rejected_token: None };
    let error = test_client().on_challenge(&challenge).await.err();
    assert_eq!(error, Some(AuthErrorKind::TokenRejected { status: 403 }));
}
