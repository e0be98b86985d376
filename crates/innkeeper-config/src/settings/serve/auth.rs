//! Settings of the authentication of clients.

use std::fmt;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::RateConfig;
use crate::secret::MASK;
use crate::settings::filter::ToolFilter;

/// Authentication of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServeAuth {
    /// API keys. Default: none.
    pub api_keys: Vec<ApiKeyConfig>,
    /// Access tokens of an authorization server. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<ServeOauth>,
}

impl ServeAuth {
    /// Returns whether a client can authenticate.
    pub fn is_configured(&self) -> bool {
        !self.api_keys.is_empty() || self.oauth.is_some()
    }
}

/// One API key with the permissions of its client.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyConfig {
    /// Name of the client.
    pub principal: String,
    /// Hash of the key.
    pub sha256: KeyDigest,
    /// The tools that the client may use, by any of their names.
    pub tools: ToolFilter,
    /// The servers and endpoints that the client may use.
    #[serde(flatten)]
    pub binding: BindingConfig,
    /// Maximum rates of this client; `None` for the rates of `serve.rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateConfig>,
}

/// The name of the endpoint without a name in [`BindingConfig::endpoints`]. Other names have no slash.
pub const MCP_ENDPOINT: &str = "/mcp";

/// The servers and endpoints that a client may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingConfig {
    /// Names of the servers; `None` for all servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// Names of the endpoints, with [`MCP_ENDPOINT`]; `None` for all endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<String>>,
}

impl BindingConfig {
    /// Returns whether the client may use only some servers or endpoints.
    pub fn is_bound(&self) -> bool {
        self.servers.is_some() || self.endpoints.is_some()
    }
}

/// The SHA-256 hash of an API key, which is never printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    pub(crate) fn from_key(key: &str) -> Self {
        Self(Sha256::digest(key).into())
    }

    /// Parses 64 hexadecimal digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// Returns the bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for KeyDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

/// Access tokens of an authorization server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServeOauth {
    /// Issuer identifier, compared with `iss` byte for byte.
    pub issuer: String,
    /// URL of the gateway, compared with `aud` byte for byte.
    pub audience: String,
    /// URL of the signing keys.
    pub jwks_url: String,
    /// Signature algorithms of tokens. Default: `RS256` and `ES256`.
    pub algorithms: Vec<TokenAlgorithm>,
    /// Scopes that each token must contain. Default: none.
    pub required_scopes: Vec<String>,
    /// Claim with the identity of the client. Default: `sub`.
    pub principal_claim: String,
    /// The tools that clients with a token may use, by any of their names.
    pub tools: ToolFilter,
    /// The servers and endpoints that clients with a token may use.
    #[serde(flatten)]
    pub binding: BindingConfig,
    /// Maximum rates of each client with a token; `None` for the rates of `serve.rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateConfig>,
}

/// A signature algorithm with a public key. Algorithms without a signature (`none`) and with a shared
/// secret (`HS256`) do not exist here, so no setting can allow them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum TokenAlgorithm {
    /// RSA PKCS #1 with SHA-256.
    #[serde(rename = "RS256")]
    Rs256,
    /// RSA PKCS #1 with SHA-384.
    #[serde(rename = "RS384")]
    Rs384,
    /// RSA PKCS #1 with SHA-512.
    #[serde(rename = "RS512")]
    Rs512,
    /// RSA PSS with SHA-256.
    #[serde(rename = "PS256")]
    Ps256,
    /// RSA PSS with SHA-384.
    #[serde(rename = "PS384")]
    Ps384,
    /// RSA PSS with SHA-512.
    #[serde(rename = "PS512")]
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256,
    /// ECDSA on P-384 with SHA-384.
    #[serde(rename = "ES384")]
    Es384,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
}

impl TokenAlgorithm {
    const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// Returns the algorithm with this name in tokens.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Returns the name of the algorithm in tokens.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }
}
