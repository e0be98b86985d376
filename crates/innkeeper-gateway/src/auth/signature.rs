//! Verification of a signature with a public key.

use innkeeper_host::config::TokenAlgorithm;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, EcdsaVerificationAlgorithm,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PublicKey {
    /// An RSA key, with its numbers in big-endian bytes.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    /// An uncompressed point of P-256.
    P256(Vec<u8>),
    /// An uncompressed point of P-384.
    P384(Vec<u8>),
    /// An Ed25519 key.
    Ed25519(Vec<u8>),
}

impl PublicKey {
    /// Returns whether the key is of the type that the algorithm needs.
    pub(super) fn fits(&self, algorithm: TokenAlgorithm) -> bool {
        match algorithm {
            TokenAlgorithm::Rs256
            | TokenAlgorithm::Rs384
            | TokenAlgorithm::Rs512
            | TokenAlgorithm::Ps256
            | TokenAlgorithm::Ps384
            | TokenAlgorithm::Ps512 => matches!(self, Self::Rsa { .. }),
            TokenAlgorithm::Es256 => matches!(self, Self::P256(_)),
            TokenAlgorithm::Es384 => matches!(self, Self::P384(_)),
            TokenAlgorithm::EdDsa => matches!(self, Self::Ed25519(_)),
        }
    }

    /// Returns whether the signature of the message is valid. A key of another type than the
    /// algorithm's verifies nothing.
    pub(super) fn verifies(
        &self,
        algorithm: TokenAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let rsa = |parameters: &RsaParameters| match self {
            Self::Rsa { modulus: n, exponent: e } => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
            }
            Self::P256(_) | Self::P384(_) | Self::Ed25519(_) => false,
        };
        let ecdsa = |parameters: &'static EcdsaVerificationAlgorithm, point: &[u8]| {
            UnparsedPublicKey::new(parameters, point).verify(message, signature).is_ok()
        };
        match (algorithm, self) {
            (TokenAlgorithm::Rs256, _) => rsa(&RSA_PKCS1_2048_8192_SHA256),
            (TokenAlgorithm::Rs384, _) => rsa(&RSA_PKCS1_2048_8192_SHA384),
            (TokenAlgorithm::Rs512, _) => rsa(&RSA_PKCS1_2048_8192_SHA512),
            (TokenAlgorithm::Ps256, _) => rsa(&RSA_PSS_2048_8192_SHA256),
            (TokenAlgorithm::Ps384, _) => rsa(&RSA_PSS_2048_8192_SHA384),
            (TokenAlgorithm::Ps512, _) => rsa(&RSA_PSS_2048_8192_SHA512),
            (TokenAlgorithm::Es256, Self::P256(point)) => ecdsa(&ECDSA_P256_SHA256_FIXED, point),
            (TokenAlgorithm::Es384, Self::P384(point)) => ecdsa(&ECDSA_P384_SHA384_FIXED, point),
            (TokenAlgorithm::EdDsa, Self::Ed25519(key)) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok()
            }
            (TokenAlgorithm::Es256 | TokenAlgorithm::Es384 | TokenAlgorithm::EdDsa, _) => false,
        }
    }
}
