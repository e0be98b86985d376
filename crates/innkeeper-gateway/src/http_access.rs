//! Who may send requests over HTTP.

use http::request::Parts;

use crate::auth::Authenticator;
use crate::origin::OriginCheck;
use crate::principal::Principal;
use crate::rejection::Rejection;

/// Who may send requests over HTTP.
#[derive(Debug)]
pub struct HttpAccess {
    /// Finds the principal of each request.
    pub authenticator: Authenticator,
    /// Rejects requests of web pages and names of other machines.
    pub origin: OriginCheck,
}

impl HttpAccess {
    /// Returns the principal of a request whose origin is permitted.
    ///
    /// # Errors
    ///
    /// Returns the response to a request that is not permitted.
    pub async fn admit(&self, parts: &Parts) -> Result<Principal, Rejection> {
        self.origin.check(parts)?;
        self.authenticator.authenticate(parts).await
    }
}
