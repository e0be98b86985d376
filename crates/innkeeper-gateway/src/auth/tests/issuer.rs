//! An issuer in memory that signs tokens and counts the requests for its keys.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::super::key_cache::FetchKeys;
use super::super::key_set::KeySet;
use super::{AUDIENCE, ISSUER};

pub(super) struct Issuer {
    key: Ed25519KeyPair,
    key_set: Arc<Mutex<Value>>,
    requests: Arc<AtomicUsize>,
    is_down: Arc<AtomicBool>,
}

impl Issuer {
    pub(super) fn new() -> Self {
        let random = SystemRandom::new();
        let document = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        let issuer = Self {
            key,
            key_set: Arc::default(),
            requests: Arc::default(),
            is_down: Arc::default(),
        };
        issuer.publish(&["key-1"]);
        issuer
    }

    /// Publishes the key under these identifiers.
    pub(super) fn publish(&self, ids: &[&str]) {
        let x = URL_SAFE_NO_PAD.encode(self.key.public_key());
        let keys = ids.iter().map(|id| json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": id}));
        *self.key_set.lock().unwrap() = json!({"keys": keys.collect::<Value>()});
    }

    pub(super) fn key_set_text(&self) -> String {
        self.key_set.lock().unwrap().to_string()
    }

    pub(super) fn public_key(&self) -> &[u8] {
        self.key.public_key().as_ref()
    }

    pub(super) fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::Relaxed);
    }

    /// Returns the number of requests for the keys.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns a function that takes one second and returns the published keys.
    pub(super) fn fetch(&self) -> FetchKeys {
        let (keys, requests) = (Arc::clone(&self.key_set), Arc::clone(&self.requests));
        let is_down = Arc::clone(&self.is_down);
        Arc::new(move || {
            requests.fetch_add(1, Ordering::Relaxed);
            let (keys, is_down) = (Arc::clone(&keys), Arc::clone(&is_down));
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if is_down.load(Ordering::Relaxed) {
                    return Err("the issuer is down".to_owned());
                }
                let text = keys.lock().unwrap().to_string();
                KeySet::parse(text.as_bytes()).map_err(|error| error.to_string())
            })
        })
    }

    pub(super) fn sign(&self, header: &Value, claims: &Value) -> String {
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", encode(header), encode(claims));
        let signature = self.key.sign(message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Signs a valid token with these changes of the claims; `null` removes a claim.
    pub(super) fn token(&self, changes: &Value) -> String {
        self.sign(&header(), &claims(changes))
    }
}

/// Returns the header of a valid token.
pub(super) fn header() -> Value {
    json!({"alg": "EdDSA", "kid": "key-1", "typ": "at+jwt"})
}

/// Returns the claims of a valid token with these changes; `null` removes a claim.
pub(super) fn claims(changes: &Value) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut claims = json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": now + 600, "nbf": now,
        "scope": "openid mcp:tools",
    });
    let members = claims.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    claims
}
