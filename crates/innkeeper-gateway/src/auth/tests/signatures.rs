//! Tests of the signature algorithms with fixed keys.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, KeyPair,
};

use super::super::signature::PublicKey;
use super::TokenAlgorithm;

const MESSAGE: &[u8] = b"message";

/// The modulus of an RSA key of 2,048 bits, and its signatures of the message.
const MODULUS: &str = "\
    yG9_t8Ax6zf7R0t7UIaHIW5yI-eK6q1Tln9ooulI2N-Fr8xH0DoNO0IdHGqh0g_p-89OwfN48AzMvoUwwP7qrybNFt\
    CrV0rUyYUgBrO7XaQcfKYe5MJ3ifHLPXiqhv_tnY9dMd0hZhZ_yFZ16fi5OxKPNAK2Rh_iNWnlaZc2x-KuzUfuvKm3\
    Ic6DacNj4xsqCS7i6T5UdqTPAcBZ5cSYa-Lt4-lhbD7b49xhYmm10fGiKIeXpTc5horJHnl6hTF1ZA1KdEY_bzdP2l\
    pyUtLj1pR4HWbK6eY9Fp7EQ3wvmImSMvTLWzuOruxyKFvRrDLVtkMosIuj9m8ghSMMxd0yVw";
const RS256_SIGNATURE: &str = "\
    QRSsMWI-Vb1K-29gh0qH-Oqpte3xjKyhhZ0nAVzGjb-Giqx3NrfkETfzaDixntplLic5gxjZc_sL-IVf-Rpv8zB35e\
    uUdOCGkNhdc8h7KqbS7FDhfRUHezocQ4Fl4LwMuPK-kdVaF3uaRODdfO_cU86pJ1xVvvO3D6xwAyOLaoAlVjp78Oox\
    Q0eGAb0rGifRodPXKAh7G4bw13Ix2BopnVpOKdPY5KvGOcUnzEjWdLKWTUfMb6jhmNmuDt15N8mDCdyESrnnaktlxU\
    7JhFNQO1ghtGgtBSdhZLNFeP2Aq1QVcIEC30-MA2FTvGQLf--e7avddzAgWUm1McqKAy8jZA";
const PS256_SIGNATURE: &str = "\
    LzI6AGKIWIMOlg_WfF9ZzeaoHl62jo7DU28jzr8wPyS0KttkskvRfW9WonqAe7a0MkNvyBt6pxqafq_6XrqQGb0wtO\
    Raa2jx00yIfwA-GP78rTeUCEVENaZ6O2SK0MAFTpNujQssKRjEm5gEgeW2hamqSLXfAY8sJXpfJori-D5yoExRh4r4\
    HhBSml1dSsgbNg6O4gWc76bkU_rwNcsHuZdpPwJrl3zxxD__jj4hChe1U_UXKCLF_-ZNnoJVq3g4s7eno9Zk8u-oYJ\
    8lN38GzkgxndPKwWVA4NeFQIDx1WsNa5qZMcZZOZuMxsC2Bp0wc6jqnGw6I0-b6jhhwo_7Kg";

/// The modulus of an RSA key of 1,024 bits, and its signature of the message.
const SHORT_MODULUS: &str = "\
    zpEbV7deJqaghxylzsankAbxTett6VyQWfPuqmlX3JuEXUgYUBjz6ye59IhqKfQwOQyw8cgKNHHsj2fT2vj5GOhSYQ\
    KLpe0CjI2TT4ypIVMT9DwnZIrzFIfl8e6KgT57FxZtF4N4NxqrKeTDpJ3vdCQbotS-KyAvWc7y0DXVgpE";
const SHORT_SIGNATURE: &str = "\
    GONJEeCVVKInljrKCR7tAX6Tl-e5q1qJ5Wt0D9Qd1ZtVt_yDLiVPcVUbs8PHtdBFw0VmipMH0TLjaP0N4IlgxEZHvv\
    1jixhjImiFAMSHtD-jzv2ZxklhPT_wqD5HDs4Yu_fka3tPZINFd_FY1nkMhEUy63N-NJE1JV5E44gBYcQ";

fn decode(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

fn rsa(modulus: &str) -> PublicKey {
    PublicKey::Rsa { modulus: decode(modulus), exponent: vec![1, 0, 1] }
}

#[test]
fn an_rsa_signature_is_valid_for_its_padding_and_its_message_only() {
    let key = rsa(MODULUS);
    for (algorithm, valid, other) in [
        (TokenAlgorithm::Rs256, RS256_SIGNATURE, PS256_SIGNATURE),
        (TokenAlgorithm::Ps256, PS256_SIGNATURE, RS256_SIGNATURE),
    ] {
        assert!(key.verifies(algorithm, MESSAGE, &decode(valid)), "{algorithm:?}");
        assert!(!key.verifies(algorithm, MESSAGE, &decode(other)), "{algorithm:?}");
        assert!(!key.verifies(algorithm, b"massage", &decode(valid)), "{algorithm:?}");
    }
    for algorithm in [TokenAlgorithm::Rs384, TokenAlgorithm::Rs512, TokenAlgorithm::Es256] {
        assert!(!key.verifies(algorithm, MESSAGE, &decode(RS256_SIGNATURE)), "{algorithm:?}");
    }
}

/// Attack: remote | the issuer publishes an RSA key of 1,024 bits, which an attacker can factor | no
/// signature of the key is valid | Complete checks
#[test]
fn a_short_rsa_key_verifies_nothing() {
    let key = rsa(SHORT_MODULUS);
    assert!(!key.verifies(TokenAlgorithm::Rs256, MESSAGE, &decode(SHORT_SIGNATURE)));
}

#[test]
fn an_ecdsa_signature_is_valid_for_its_curve_only() {
    let random = SystemRandom::new();
    let pair = |algorithm: &'static EcdsaSigningAlgorithm| {
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap()
    };
    let small = pair(&ECDSA_P256_SHA256_FIXED_SIGNING);
    let large = pair(&ECDSA_P384_SHA384_FIXED_SIGNING);
    let (small_signature, large_signature) =
        (small.sign(&random, MESSAGE).unwrap(), large.sign(&random, MESSAGE).unwrap());
    let (small_key, large_key) = (
        PublicKey::P256(small.public_key().as_ref().to_vec()),
        PublicKey::P384(large.public_key().as_ref().to_vec()),
    );
    let verifies =
        |key: &PublicKey, algorithm, signature: &[u8]| key.verifies(algorithm, MESSAGE, signature);
    assert!(verifies(&small_key, TokenAlgorithm::Es256, small_signature.as_ref()));
    assert!(verifies(&large_key, TokenAlgorithm::Es384, large_signature.as_ref()));
    assert!(!verifies(&small_key, TokenAlgorithm::Es384, small_signature.as_ref()));
    assert!(!verifies(&small_key, TokenAlgorithm::EdDsa, small_signature.as_ref()));
    assert!(!verifies(&small_key, TokenAlgorithm::Es256, &[0; 64]));
    assert!(!verifies(&small_key, TokenAlgorithm::Es256, &[]));
}
