//! Signed client assertions (`private_key_jwt`) in place of a client secret.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;

/// Lifetime of an assertion in seconds. The client uses the assertion immediately.
const ASSERTION_LIFETIME_SECS: u64 = 300;

/// The signature algorithms with their JWT names.
const SIGNATURE_ALGORITHMS: [(SignatureScheme, &str); 3] = [
    (SignatureScheme::ECDSA_NISTP256_SHA256, "ES256"),
    (SignatureScheme::RSA_PKCS1_SHA256, "RS256"),
    (SignatureScheme::ED25519, "EdDSA"),
];

/// Signs an assertion of `client` for `audience` with a private key in PEM.
///
/// # Errors
///
/// Returns an error if the key is unusable. The message contains no part of the key.
pub(super) fn sign_assertion(
    key: &str,
    client: &str,
    audience: &str,
) -> Result<String, &'static str> {
    let invalid_key = "`oauth.privateKey` is not a PEM private key of type P-256, Ed25519 or RSA";
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| invalid_key)?;
    let key = any_supported_type(&key).map_err(|_| invalid_key)?;
    let algorithm = SIGNATURE_ALGORITHMS
        .iter()
        .find_map(|(kind, name)| Some((key.choose_scheme(&[*kind])?, *name)));
    let (signer, name) = algorithm.ok_or(invalid_key)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let head = json!({ "alg": name, "typ": "client-authentication+jwt" });
    let claims = json!({
        "iss": client, "sub": client, "aud": audience,
        "iat": now, "exp": now + ASSERTION_LIFETIME_SECS,
        // The id must only be unique.
        "jti": format!("{:032x}", fastrand::u128(..)),
    });
    let [head, claims] = [head, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let text = format!("{head}.{claims}");
    let signature = signer.sign(text.as_bytes()).map_err(|_| invalid_key)?;
    let signature = match name {
        "ES256" => der_signature_to_raw(&signature).ok_or(invalid_key)?,
        _ => signature,
    };
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(&signature)))
}

/// Converts a DER signature (TLS) to the two concatenated integers of JWT.
fn der_signature_to_raw(der: &[u8]) -> Option<Vec<u8>> {
    let [0x30, _, numbers @ ..] = der else { return None };
    let (first, rest) = parse_der_integer(numbers)?;
    let (second, _) = parse_der_integer(rest)?;
    Some([first, second].concat())
}

/// Parses one integer of 32 bytes and returns the remaining bytes.
fn parse_der_integer(der: &[u8]) -> Option<([u8; 32], &[u8])> {
    let [0x02, length, rest @ ..] = der else { return None };
    let (digits, rest) = rest.split_at_checked(usize::from(*length))?;
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    let digits = &digits[zeros..];
    let mut number = [0; 32];
    number.get_mut(32_usize.checked_sub(digits.len())?..)?.copy_from_slice(digits);
    Some((number, rest))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn numbers_of_any_length_are_filled_up_to_thirty_two_bytes() {
        let der = [0x30, 8, 0x02, 2, 0, 0xff, 0x02, 2, 1, 2];
        let flat = der_signature_to_raw(&der).unwrap();
        assert_eq!(flat.len(), 64);
        assert_eq!((flat[31], flat[62], flat[63]), (0xff, 1, 2));
        assert!(super::der_signature_to_raw(&[0x30, 3, 0x02, 9, 1]).is_none());
        assert!(super::der_signature_to_raw(&[]).is_none());
    }

    /// The P-256 key whose number is 1: its public key is the generator of the curve.
    const P256_KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAGhRANCAARrF9Hy4SxCR/i85uVjpEDydwN9gS3rM6D0oTlF2JjClk/jQuL+Gn+bjufr\
        SnwPnhYrzjNXazFezsu2QGg3v1H1";
    /// An Ed25519 key whose number is 0.
    const ED25519_KEY: &str = "MC4CAQAwBQYDK2VwBCIEIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

    /// Returns the head, the claims and the signature of an assertion of `us` for `https://sso`.
    fn signed_parts(key: &str) -> (Value, Value, Vec<u8>) {
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n");
        let assertion = sign_assertion(&pem, "us", "https://sso").unwrap();
        let parts = assertion.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).unwrap());
        let parts: Vec<Vec<u8>> = parts.collect();
        let [head, claims, signature] = &parts[..] else { panic!("{assertion}") };
        let parse = |part: &[u8]| serde_json::from_slice(part).unwrap();
        (parse(head), parse(claims), signature.clone())
    }

    #[test]
    fn an_assertion_states_the_client_to_its_audience_for_five_minutes_in_the_form_of_jwt() {
        for (key, algorithm) in [(P256_KEY, "ES256"), (ED25519_KEY, "EdDSA")] {
            let (head, claims, signature) = signed_parts(key);
            assert_eq!(head, json!({"alg": algorithm, "typ": "client-authentication+jwt"}));
            // A signature of a P-256 key in the form of TLS has 70 bytes or more.
            assert_eq!(signature.len(), 64, "{algorithm}");
            for (claim, value) in [("iss", "us"), ("sub", "us"), ("aud", "https://sso")] {
                assert_eq!(claims[claim], value);
            }
            let seconds = |claim: &str| claims[claim].as_u64().unwrap();
            assert_eq!(seconds("exp") - seconds("iat"), ASSERTION_LIFETIME_SECS);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            assert!(now.abs_diff(seconds("iat")) < 60);
            assert_ne!(claims["jti"], signed_parts(key).1["jti"]);
        }
    }

    #[test]
    fn a_key_that_is_none_is_not_quoted() {
        let error = sign_assertion("canary-5f1e", "us", "https://sso.example").unwrap_err();
        assert!(!error.contains("canary"), "{error}");
    }
}
