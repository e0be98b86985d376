//! A client that proves with a key who it is: the signed statement in place of a secret.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;

/// How long a statement holds, in seconds: it is used at once.
const HOLDS: u64 = 300;

/// The kinds of signatures, with their names in a statement.
const KINDS: [(SignatureScheme, &str); 3] = [
    (SignatureScheme::ECDSA_NISTP256_SHA256, "ES256"),
    (SignatureScheme::RSA_PKCS1_SHA256, "RS256"),
    (SignatureScheme::ED25519, "EdDSA"),
];

/// States to `audience` that this is `client`, signed with its key in PEM.
///
/// # Errors
/// The key cannot be used; the words have nothing of it.
pub(super) fn assertion(key: &str, client: &str, audience: &str) -> Result<String, &'static str> {
    let unfit = "`oauth.privateKey` is no private key in PEM, of P-256, Ed25519 or RSA";
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| unfit)?;
    let key = any_supported_type(&key).map_err(|_| unfit)?;
    let found = KINDS.iter().find_map(|(kind, name)| Some((key.choose_scheme(&[*kind])?, *name)));
    let (signer, name) = found.ok_or(unfit)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let head = json!({ "alg": name, "typ": "client-authentication+jwt" });
    let said = json!({
        "iss": client, "sub": client, "aud": audience,
        "iat": now, "exp": now + HOLDS,
        // It only has to be another one every time.
        "jti": format!("{:032x}", fastrand::u128(..)),
    });
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let text =
        format!("{}.{}", encode(head.to_string().as_bytes()), encode(said.to_string().as_bytes()));
    let signature = signer.sign(text.as_bytes()).map_err(|_| unfit)?;
    let signature = match name {
        "ES256" => flat(&signature).ok_or(unfit)?,
        _ => signature,
    };
    Ok(format!("{text}.{}", encode(&signature)))
}

/// The two numbers of a signature side by side, as statements have them; TLS has them in DER.
fn flat(der: &[u8]) -> Option<Vec<u8>> {
    let [0x30, _, numbers @ ..] = der else { return None };
    let (first, rest) = number(numbers)?;
    let (second, _) = number(rest)?;
    Some([first, second].concat())
}

/// One number of 32 bytes, and what follows it.
fn number(der: &[u8]) -> Option<([u8; 32], &[u8])> {
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
    use super::*;

    #[test]
    fn numbers_of_any_length_are_filled_up_to_thirty_two_bytes() {
        let der = [0x30, 8, 0x02, 2, 0, 0xff, 0x02, 2, 1, 2];
        let flat = flat(&der).unwrap();
        assert_eq!(flat.len(), 64);
        assert_eq!((flat[31], flat[62], flat[63]), (0xff, 1, 2));
        assert!(super::flat(&[0x30, 3, 0x02, 9, 1]).is_none());
        assert!(super::flat(&[]).is_none());
    }

    #[test]
    fn a_key_that_is_none_is_not_quoted() {
        let error = assertion("canary-5f1e", "us", "https://sso.example").unwrap_err();
        assert!(!error.contains("canary"), "{error}");
    }
}
