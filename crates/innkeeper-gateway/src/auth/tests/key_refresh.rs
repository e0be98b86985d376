//! Tests of the cached keys of the issuer.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, advance, timeout};

use super::super::key_cache::{FETCH_TIMEOUT, MAX_KEY_AGE, MIN_FETCH_INTERVAL, REFRESH_AGE};
use super::issuer::claims;
use super::*;

fn signed_with(issuer: &Issuer, id: &str) -> Parts {
    let header = json!({"alg": "EdDSA", "kid": id});
    bearer(&issuer.sign(&header, &claims(&json!({}))))
}

/// Attack: remote | a flood of tokens names 1,000 unknown keys | the gateway sends one request per
/// minute to the issuer, and tokens with known keys are accepted | No unbounded wait
#[tokio::test(start_paused = true)]
async fn a_flood_of_unknown_keys_causes_one_request_per_minute() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    let known = signed_with(&issuer, "key-1");
    authenticator.authenticate(&known).await.unwrap();
    for minute in 1..=3 {
        for index in 0..1_000 {
            let unknown = signed_with(&issuer, &format!("unknown-{index}"));
            let rejection = authenticator.authenticate(&unknown).await.unwrap_err();
            assert!(rejection.message().contains("does not publish"), "{rejection:?}");
        }
        assert_eq!(issuer.requests(), minute);
        authenticator.authenticate(&known).await.unwrap();
        advance(MIN_FETCH_INTERVAL).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_key_of_the_issuer_is_accepted_and_a_withdrawn_key_is_not() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    let (old, new) = (signed_with(&issuer, "key-1"), signed_with(&issuer, "key-2"));
    authenticator.authenticate(&old).await.unwrap();
    issuer.publish(&["key-2"]);
    advance(MIN_FETCH_INTERVAL).await;
    authenticator.authenticate(&new).await.unwrap();
    assert!(authenticator.authenticate(&old).await.is_err());
    issuer.publish(&["key-3"]);
    advance(REFRESH_AGE - Duration::from_millis(1)).await;
    authenticator.authenticate(&new).await.unwrap();
    advance(Duration::from_millis(1)).await;
    assert!(authenticator.authenticate(&new).await.is_err(), "the keys are read again");
}

#[tokio::test(start_paused = true)]
async fn requests_at_one_time_share_one_request_to_the_issuer() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    let token = signed_with(&issuer, "key-1");
    let all = (0..50).map(|_| authenticator.authenticate(&token));
    let results = futures_util::future::join_all(all).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(issuer.requests(), 1);
}

/// Attack: remote | a client disconnects during the request for the keys | the request continues, and
/// the next client gets the keys without another request | No unbounded wait
#[tokio::test(start_paused = true)]
async fn a_client_that_disconnects_does_not_consume_the_request_of_the_minute() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    let token = signed_with(&issuer, "key-1");
    let dropped = timeout(Duration::from_millis(1), authenticator.authenticate(&token)).await;
    assert!(dropped.is_err());
    authenticator.authenticate(&token).await.unwrap();
    assert_eq!(issuer.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_keys_the_client_learns_when_to_try_again_and_keeps_its_token() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    issuer.set_down(true);
    let token = signed_with(&issuer, "key-1");
    let rejection = authenticator.authenticate(&token).await.unwrap_err();
    assert_eq!(rejection.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(rejection.headers()["retry-after"], "59", "the request took one second");
    assert!(!rejection.headers().contains_key("www-authenticate"));
    issuer.set_down(false);
    assert!(authenticator.authenticate(&token).await.is_err());
    advance(Duration::from_secs(59)).await;
    authenticator.authenticate(&token).await.unwrap();
    assert_eq!(issuer.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn keys_are_used_for_a_day_if_the_issuer_is_down_and_no_longer() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    let token = signed_with(&issuer, "key-1");
    authenticator.authenticate(&token).await.unwrap();
    issuer.set_down(true);
    // The keys were read one second after the start, and each attempt takes one second.
    advance(MAX_KEY_AGE - Duration::from_secs(2)).await;
    authenticator.authenticate(&token).await.unwrap();
    advance(Duration::from_secs(1)).await;
    let rejection = authenticator.authenticate(&token).await.unwrap_err();
    assert_eq!(rejection.status(), StatusCode::SERVICE_UNAVAILABLE);
}

/// Attack: remote | the issuer fails while the gateway has its keys | one request waits for the issuer,
/// the following ones do not, and the keys are read when the issuer is back | No unbounded wait
#[tokio::test(start_paused = true)]
async fn an_issuer_that_fails_delays_clients_with_known_keys_once() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    let (old, new) = (signed_with(&issuer, "key-1"), signed_with(&issuer, "key-2"));
    authenticator.authenticate(&old).await.unwrap();
    issuer.set_down(true);
    advance(REFRESH_AGE).await;
    for (expected, requests) in [(1, 2), (0, 3), (0, 4)] {
        let before = Instant::now();
        authenticator.authenticate(&old).await.unwrap();
        assert_eq!(before.elapsed(), Duration::from_secs(expected));
        assert_eq!(issuer.requests(), requests);
        tokio::time::sleep(MIN_FETCH_INTERVAL).await;
    }
    issuer.set_down(false);
    issuer.publish(&["key-2"]);
    authenticator.authenticate(&new).await.unwrap();
    assert!(authenticator.authenticate(&old).await.is_err());
}

/// Attack: remote | the issuer accepts the request for its keys and never responds | the client gets a
/// response after 10 seconds | No unbounded wait
#[tokio::test(start_paused = true)]
async fn an_issuer_that_does_not_respond_costs_ten_seconds() {
    let issuer = Issuer::new();
    let silent = Arc::new(|| Box::pin(std::future::pending()) as _);
    let tokens = TokenVerifier::new(oauth_settings(), silent).unwrap();
    let authenticator = Authenticator::from_parts(api_keys(), Some(tokens)).unwrap();
    let before = Instant::now();
    let rejection = authenticator.authenticate(&signed_with(&issuer, "key-1")).await.unwrap_err();
    assert_eq!(rejection.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(before.elapsed(), FETCH_TIMEOUT);
}
