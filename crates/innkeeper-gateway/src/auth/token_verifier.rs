//! Verifies tokens with the cached keys of their issuer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::challenge::Challenger;
use super::key_cache::{FetchKeys, KeyCache};
use super::token::UnverifiedToken;
use super::{AuthSetupError, OauthSettings, ResourceMetadata};
use crate::{Principal, Rejection};

/// Precedes the identity in the principal of a token, so that no token can have the principal of an
/// API key or of the local user.
const PRINCIPAL_PREFIX: &str = "oauth:";

#[derive(Debug)]
pub(super) struct TokenVerifier {
    settings: OauthSettings,
    metadata: ResourceMetadata,
    keys: KeyCache,
}

impl TokenVerifier {
    pub(super) fn new(settings: OauthSettings, fetch: FetchKeys) -> Result<Self, AuthSetupError> {
        if settings.algorithms.is_empty() {
            return Err(AuthSetupError::NoAlgorithm);
        }
        let metadata = ResourceMetadata::new(&settings).ok_or(AuthSetupError::Audience)?;
        Ok(Self { settings, metadata, keys: KeyCache::new(fetch) })
    }

    pub(super) fn metadata(&self) -> &ResourceMetadata {
        &self.metadata
    }

    pub(super) async fn verify(
        &self,
        token: &str,
        resource: &ResourceMetadata,
    ) -> Result<Principal, Rejection> {
        let rejection = |error| Challenger::new(Some(resource)).token_rejection(error);
        let token = UnverifiedToken::parse(token, &self.settings).map_err(rejection)?;
        let keys = self.keys.keys(|keys| token.has_key(keys)).await;
        let keys = keys.map_err(Challenger::unavailable_rejection)?;
        let identity = token
            .verify(&keys, &self.settings, resource.resource(), unix_time())
            .map_err(rejection)?;
        Ok(Principal::new(format!("{PRINCIPAL_PREFIX}{identity}")))
    }
}

/// Returns the time since the Unix epoch: the lifetime of a token continues while this machine is
/// suspended, so the time does not come from a timer.
fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
