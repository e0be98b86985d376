//! The signing keys of an issuer: a JSON Web Key Set (RFC 7517).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use innkeeper_host::config::TokenAlgorithm;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::signature::PublicKey;

/// Maximum number of keys: issuers publish fewer than ten.
pub(super) const MAX_KEYS: usize = 128;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeySet(Vec<SigningKey>);

/// A public key with its identifier and its only algorithm, if the key set has them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SigningKey {
    id: Option<String>,
    algorithm: Option<String>,
    key: PublicKey,
}

/// A key set that the gateway cannot use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum KeySetError {
    #[error("the response is not a JSON Web Key Set")]
    Malformed,
    #[error("the key set has more than {MAX_KEYS} keys")]
    TooManyKeys,
    #[error("the key set has no key for the verification of signatures")]
    Empty,
}

#[derive(Deserialize)]
struct RawKeySet<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawKey {
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
}

/// The numbers of a key, in base64 (RFC 7518, section 6; RFC 8037, section 2).
#[derive(Deserialize)]
struct KeyMaterial {
    kty: String,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a key set. Keys of other types and for other purposes are left out.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, KeySetError> {
        let set: RawKeySet<'_> =
            serde_json::from_slice(bytes).map_err(|_| KeySetError::Malformed)?;
        if set.keys.len() > MAX_KEYS {
            return Err(KeySetError::TooManyKeys);
        }
        let keys: Vec<SigningKey> =
            set.keys.iter().filter_map(|key| signing_key(key.get())).collect();
        if keys.is_empty() { Err(KeySetError::Empty) } else { Ok(Self(keys)) }
    }

    /// Returns the keys that a token with this algorithm and key identifier may be signed with.
    ///
    /// A token without an identifier matches only if one key fits the algorithm.
    pub(super) fn find(&self, algorithm: TokenAlgorithm, id: Option<&str>) -> Vec<&PublicKey> {
        let fitting = self.0.iter().filter(|key| {
            let only = key.algorithm.as_deref().map(TokenAlgorithm::from_name);
            key.key.fits(algorithm) && only.is_none_or(|only| only == Some(algorithm))
        });
        match id {
            Some(id) => {
                fitting.filter(|key| key.id.as_deref() == Some(id)).map(|key| &key.key).collect()
            }
            None => {
                let keys: Vec<_> = fitting.map(|key| &key.key).collect();
                if keys.len() == 1 { keys } else { Vec::new() }
            }
        }
    }
}

/// Reads a key; `None` for a key of another type or for another purpose.
fn signing_key(text: &str) -> Option<SigningKey> {
    let raw: RawKey = serde_json::from_str(text).ok()?;
    let material: KeyMaterial = serde_json::from_str(text).ok()?;
    let verifies = raw.usage.as_deref().is_none_or(|usage| usage == "sig")
        && raw.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|op| op == "verify"));
    let key = public_key(&material).filter(|_| verifies)?;
    Some(SigningKey { id: raw.kid, algorithm: raw.alg, key })
}

fn public_key(material: &KeyMaterial) -> Option<PublicKey> {
    let KeyMaterial { kty, crv, n, e, x, y } = material;
    let [x, y] = [x.as_deref(), y.as_deref()];
    match (kty.as_str(), crv.as_deref()) {
        ("RSA", _) => {
            Some(PublicKey::Rsa { modulus: number(n.as_deref())?, exponent: number(e.as_deref())? })
        }
        ("EC", Some("P-256")) => point(x, y, 32).map(PublicKey::P256),
        ("EC", Some("P-384")) => point(x, y, 48).map(PublicKey::P384),
        ("OKP", Some("Ed25519")) => number(x).filter(|key| key.len() == 32).map(PublicKey::Ed25519),
        _ => None,
    }
}

fn number(text: Option<&str>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text?).ok()
}

/// Returns an uncompressed point of a curve whose coordinates have this many bytes.
fn point(x: Option<&str>, y: Option<&str>, bytes: usize) -> Option<Vec<u8>> {
    let [x, y] = [number(x)?, number(y)?];
    (x.len() == bytes && y.len() == bytes).then(|| [&[4], &x[..], &y[..]].concat())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(keys: &Value) -> Result<KeySet, KeySetError> {
        KeySet::parse(json!({"keys": keys}).to_string().as_bytes())
    }

    fn ed(id: &str, more: &Value) -> Value {
        let x = URL_SAFE_NO_PAD.encode([7; 32]);
        let mut key = json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": id});
        key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key
    }

    #[test]
    fn a_key_is_found_by_its_identifier_its_type_and_its_algorithm() {
        let keys = set(&json!([ed("a", &json!({})), ed("b", &json!({"alg": "ES256"}))])).unwrap();
        let found = |algorithm, id| keys.find(algorithm, Some(id)).len();
        assert_eq!(found(TokenAlgorithm::EdDsa, "a"), 1);
        assert_eq!(found(TokenAlgorithm::EdDsa, "b"), 0, "the key has another algorithm");
        assert_eq!(found(TokenAlgorithm::Es256, "a"), 0, "the key has another type");
        assert_eq!(found(TokenAlgorithm::EdDsa, "c"), 0);
    }

    #[test]
    fn a_token_without_an_identifier_needs_a_single_key_of_its_type() {
        let one = set(&json!([ed("a", &json!({}))])).unwrap();
        assert_eq!(one.find(TokenAlgorithm::EdDsa, None).len(), 1);
        let two = set(&json!([ed("a", &json!({})), ed("b", &json!({}))])).unwrap();
        assert_eq!(two.find(TokenAlgorithm::EdDsa, None).len(), 0);
    }

    #[test]
    fn keys_for_other_purposes_and_shared_secrets_are_left_out() {
        let others = json!([
            ed("a", &json!({"use": "enc"})),
            ed("b", &json!({"key_ops": ["sign"]})),
            ed("c", &json!({"x": URL_SAFE_NO_PAD.encode([7; 31])})),
            ed("d", &json!({"kty": "EC", "crv": "P-256"})),
            {"kty": "oct", "k": "c2VjcmV0", "kid": "e"},
            5,
        ]);
        assert_eq!(set(&others), Err(KeySetError::Empty));
        let kept =
            json!([ed("a", &json!({"use": "sig"})), ed("b", &json!({"key_ops": ["verify"]}))]);
        assert_eq!(set(&kept).unwrap().0.len(), 2);
    }

    #[test]
    fn a_key_set_at_the_limit_is_read_and_one_key_more_is_not() {
        let keys = |count: usize| {
            set(&(0..count).map(|index| ed(&index.to_string(), &json!({}))).collect::<Value>())
        };
        assert_eq!(keys(MAX_KEYS).unwrap().0.len(), MAX_KEYS);
        assert_eq!(keys(MAX_KEYS + 1), Err(KeySetError::TooManyKeys));
        assert_eq!(KeySet::parse(b"<html>"), Err(KeySetError::Malformed));
    }
}
