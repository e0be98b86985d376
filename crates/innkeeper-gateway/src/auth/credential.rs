//! Reads the credential of a request from its headers.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The header for API keys of clients that cannot set `Authorization`.
const API_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");

/// Maximum size of a credential, in bytes: four times a large token with many groups. A longer
/// credential is neither hashed nor decoded.
pub(super) const MAX_CREDENTIAL_BYTES: usize = 16 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Credential<'a> {
    /// The value of `X-API-Key`.
    ApiKey(&'a str),
    /// The value of `Authorization: Bearer`, an API key or a token.
    Bearer(&'a str),
}

/// Why a request has no credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CredentialError {
    /// No header contains a credential.
    Missing,
    /// The request has several credentials: it is not clear which credential counts, and a proxy in
    /// front may have checked another one.
    Several,
    /// `Authorization` has another scheme than `Bearer`, or no value.
    Scheme,
    /// The credential contains characters that no key and no token has.
    Characters,
    /// The credential is longer than [`MAX_CREDENTIAL_BYTES`].
    TooLong,
}

impl<'a> Credential<'a> {
    /// Returns the only credential of a request.
    pub(super) fn from_headers(headers: &'a HeaderMap) -> Result<Self, CredentialError> {
        let mut bearer = headers.get_all(AUTHORIZATION).iter();
        let mut keys = headers.get_all(API_KEY_HEADER).iter();
        let first_bearer = bearer.next();
        let first_key = keys.next();
        if bearer.next().is_some() || keys.next().is_some() {
            return Err(CredentialError::Several);
        }
        match (first_bearer, first_key) {
            (Some(_), Some(_)) => Err(CredentialError::Several),
            (Some(value), None) => {
                let text = checked(value)?;
                let (scheme, token) = text.split_once(' ').ok_or(CredentialError::Scheme)?;
                let token = token.trim_matches(' ');
                if !scheme.eq_ignore_ascii_case("Bearer") || token.is_empty() {
                    return Err(CredentialError::Scheme);
                }
                if token.contains([' ', ',']) {
                    return Err(CredentialError::Characters);
                }
                Ok(Self::Bearer(token))
            }
            (None, Some(value)) => match checked(value)? {
                "" => Err(CredentialError::Missing),
                key => Ok(Self::ApiKey(key)),
            },
            (None, None) => Err(CredentialError::Missing),
        }
    }
}

fn checked(value: &HeaderValue) -> Result<&str, CredentialError> {
    if value.len() > MAX_CREDENTIAL_BYTES {
        return Err(CredentialError::TooLong);
    }
    value.to_str().map_err(|_| CredentialError::Characters)
}
