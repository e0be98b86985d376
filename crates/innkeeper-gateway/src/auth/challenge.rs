//! Responses to requests without a valid credential, with the challenge for OAuth clients.

use http::StatusCode;

use super::credential::MAX_CREDENTIAL_BYTES;
use super::key_cache::KeysUnavailable;
use super::{CredentialError, ResourceMetadata, TokenError};
use crate::Rejection;

/// The message for a key that no entry of the configuration has.
const UNKNOWN_KEY: &str = "the credential is no API key of this gateway";

/// Builds challenges (RFC 6750 section 3, RFC 9728 section 5.1).
#[derive(Debug)]
pub(super) struct Challenger {
    /// The parameters of every challenge: the location of the metadata, and the required scopes.
    parameters: Vec<String>,
}

impl Challenger {
    pub(super) fn new(metadata: Option<&ResourceMetadata>) -> Self {
        let mut parameters = Vec::new();
        if let Some(metadata) = metadata {
            parameters.push(format!("resource_metadata=\"{}\"", metadata.url()));
            if !metadata.scopes().is_empty() {
                parameters.push(format!("scope=\"{}\"", metadata.scopes().join(" ")));
            }
        }
        Self { parameters }
    }

    pub(super) fn credential_rejection(&self, error: CredentialError) -> Rejection {
        match error {
            CredentialError::Missing => self.rejection(
                StatusCode::UNAUTHORIZED,
                None,
                "the request has no credential: send `Authorization: Bearer` or `X-API-Key`",
            ),
            CredentialError::Scheme => self.rejection(
                StatusCode::UNAUTHORIZED,
                None,
                "the header `Authorization` has another form than `Bearer` and a credential",
            ),
            CredentialError::Several => self.rejection(
                StatusCode::BAD_REQUEST,
                Some("invalid_request"),
                "the request has several credentials: send one header of `Authorization` and `X-API-Key`",
            ),
            CredentialError::Characters => self.rejection(
                StatusCode::UNAUTHORIZED,
                Some("invalid_token"),
                "the credential contains a blank, a comma or a character outside of ASCII",
            ),
            CredentialError::TooLong => {
                let reason =
                    format!("the credential has more than {MAX_CREDENTIAL_BYTES} bytes");
                self.rejection(StatusCode::UNAUTHORIZED, Some("invalid_token"), &reason)
            }
        }
    }

    pub(super) fn unknown_key_rejection(&self) -> Rejection {
        self.rejection(StatusCode::UNAUTHORIZED, Some("invalid_token"), UNKNOWN_KEY)
    }

    pub(super) fn token_rejection(&self, error: TokenError) -> Rejection {
        let (status, code) = match error {
            TokenError::Scope => (StatusCode::FORBIDDEN, "insufficient_scope"),
            TokenError::Malformed
            | TokenError::Algorithm
            | TokenError::Type
            | TokenError::CriticalHeader
            | TokenError::UnknownKey
            | TokenError::Signature
            | TokenError::Issuer
            | TokenError::Audience
            | TokenError::Expired
            | TokenError::NotYetValid
            | TokenError::Time
            | TokenError::Bound
            | TokenError::Identity => (StatusCode::UNAUTHORIZED, "invalid_token"),
        };
        self.rejection(status, Some(code), &error.to_string())
    }

    /// Returns a rejection without a challenge: another token would not help.
    pub(super) fn unavailable_rejection(error: KeysUnavailable) -> Rejection {
        let message =
            "the signing keys of the authorization server cannot be read; try again later";
        Rejection::new(StatusCode::SERVICE_UNAVAILABLE, message).with_retry_after(error.retry_after)
    }

    fn rejection(&self, status: StatusCode, code: Option<&str>, message: &str) -> Rejection {
        let mut parameters = self.parameters.clone();
        if let Some(code) = code {
            parameters.push(format!("error=\"{code}\", error_description=\"{message}\""));
        }
        let challenge = format!("Bearer {}", parameters.join(", "));
        Rejection::new(status, message).with_challenge(challenge.trim_end())
    }
}
