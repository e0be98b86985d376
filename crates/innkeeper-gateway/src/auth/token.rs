//! Checks a signed token (JWT, RFC 7519 and RFC 9068) without I/O.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use innkeeper_host::config::TokenAlgorithm;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::OauthSettings;
use super::key_set::KeySet;

/// Difference between the clocks of the issuer and of this machine.
pub(super) const CLOCK_LEEWAY: Duration = Duration::from_secs(30);

/// Maximum length of the identity of a client, in bytes: the limit of OpenID Connect for `sub`.
const MAX_IDENTITY_BYTES: usize = 255;

/// Values of `typ` that an access token may have, in lower case. Other types, such as tokens for a
/// logout, come from the same issuer with the same keys.
const TOKEN_TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

/// A token whose header was read. Nothing in the token is verified.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct UnverifiedToken<'a> {
    pub(super) algorithm: TokenAlgorithm,
    pub(super) key_id: Option<String>,
    /// The signed text: header and claims.
    message: &'a str,
    claims: &'a str,
    signature: Vec<u8>,
}

/// Why a token is not accepted. The messages contain no text of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    #[error("the credential is no API key of this gateway and no signed token")]
    Malformed,
    #[error("the signature algorithm of the token is not allowed")]
    Algorithm,
    #[error("the token is not an access token (`typ`)")]
    Type,
    #[error("the token has header parameters that the gateway does not support (`crit`)")]
    CriticalHeader,
    #[error("the token is signed with a key that the issuer does not publish")]
    UnknownKey,
    #[error("the signature of the token is not valid")]
    Signature,
    #[error("the token comes from another issuer (`iss`)")]
    Issuer,
    #[error("the token is for another resource (`aud`)")]
    Audience,
    #[error("the token has expired (`exp`)")]
    Expired,
    #[error("the token is not valid yet (`nbf`)")]
    NotYetValid,
    #[error("a time in the token is missing or not a number (`exp`, `nbf`)")]
    Time,
    #[error(
        "the token is bound to a key of the client, which the gateway does not support (`cnf`)"
    )]
    Bound,
    #[error("the token has no usable identity of the client")]
    Identity,
    #[error("the token lacks a required scope")]
    Scope,
}

/// The header of a token. A duplicate member is an error.
#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

fn decode(text: &str) -> Result<Vec<u8>, TokenError> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::Malformed)
}

impl<'a> UnverifiedToken<'a> {
    /// Reads the header. Only the algorithms of the settings are accepted.
    pub(super) fn parse(token: &'a str, settings: &OauthSettings) -> Result<Self, TokenError> {
        let (message, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = message.split_once('.').ok_or(TokenError::Malformed)?;
        let header: TokenHeader =
            serde_json::from_slice(&decode(header)?).map_err(|_| TokenError::Malformed)?;
        let algorithm = TokenAlgorithm::from_name(&header.alg)
            .filter(|algorithm| settings.algorithms.contains(algorithm))
            .ok_or(TokenError::Algorithm)?;
        if header.crit.is_some() {
            return Err(TokenError::CriticalHeader);
        }
        let kind = header.typ.map(|kind| kind.to_ascii_lowercase());
        if kind.is_some_and(|kind| !TOKEN_TYPES.contains(&&*kind)) {
            return Err(TokenError::Type);
        }
        let signature = decode(signature)?;
        Ok(Self { algorithm, key_id: header.kid, message, claims, signature })
    }

    pub(super) fn has_key(&self, keys: &KeySet) -> bool {
        !keys.find(self.algorithm, self.key_id.as_deref()).is_empty()
    }

    /// Verifies the signature and the claims, and returns the identity of the client.
    ///
    /// `resource` is the URL of the request, which the token can have as its audience too; `now` is the
    /// time since the Unix epoch.
    pub(super) fn verify(
        &self,
        keys: &KeySet,
        settings: &OauthSettings,
        resource: &str,
        now: Duration,
    ) -> Result<String, TokenError> {
        let candidates = keys.find(self.algorithm, self.key_id.as_deref());
        if candidates.is_empty() {
            return Err(TokenError::UnknownKey);
        }
        let message = self.message.as_bytes();
        if !candidates.iter().any(|key| key.verifies(self.algorithm, message, &self.signature)) {
            return Err(TokenError::Signature);
        }
        let claims = decode(self.claims)?;
        let claims: Map<String, Value> =
            serde_json::from_slice(&claims).map_err(|_| TokenError::Malformed)?;
        check_claims(&claims, settings, resource, now)
    }
}

fn check_claims(
    claims: &Map<String, Value>,
    settings: &OauthSettings,
    resource: &str,
    now: Duration,
) -> Result<String, TokenError> {
    if claims.get("iss").and_then(Value::as_str) != Some(&settings.issuer) {
        return Err(TokenError::Issuer);
    }
    let audiences = [settings.audience.as_str(), resource];
    if !audiences.iter().any(|audience| has_audience(claims.get("aud"), audience)) {
        return Err(TokenError::Audience);
    }
    let now = now.as_secs_f64();
    let leeway = CLOCK_LEEWAY.as_secs_f64();
    let expires = claims.get("exp").and_then(Value::as_f64).ok_or(TokenError::Time)?;
    if now >= expires + leeway {
        return Err(TokenError::Expired);
    }
    if let Some(not_before) = claims.get("nbf") {
        let not_before = not_before.as_f64().ok_or(TokenError::Time)?;
        if now + leeway < not_before {
            return Err(TokenError::NotYetValid);
        }
    }
    if claims.contains_key("cnf") {
        return Err(TokenError::Bound);
    }
    let identity = claims.get(&settings.principal_claim).and_then(Value::as_str);
    let identity = identity.filter(|identity| is_identity(identity)).ok_or(TokenError::Identity)?;
    let scopes = scopes(claims);
    if !settings.required_scopes.iter().all(|scope| scopes.contains(&scope.as_str())) {
        return Err(TokenError::Scope);
    }
    Ok(identity.to_owned())
}

fn has_audience(claim: Option<&Value>, audience: &str) -> bool {
    match claim {
        Some(Value::String(only)) => only == audience,
        Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(audience)),
        _ => false,
    }
}

fn is_identity(text: &str) -> bool {
    (1..=MAX_IDENTITY_BYTES).contains(&text.len()) && !text.contains(char::is_control)
}

/// Returns the scopes of `scope` (RFC 9068) and of `scp`, which some issuers use.
fn scopes(claims: &Map<String, Value>) -> Vec<&str> {
    let claims = ["scope", "scp"].into_iter().filter_map(|name| claims.get(name));
    let texts = claims.flat_map(|claim| match claim {
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        claim => Vec::from_iter(claim.as_str()),
    });
    texts.flat_map(|text| text.split(' ')).collect()
}
