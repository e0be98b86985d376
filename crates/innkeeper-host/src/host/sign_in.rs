//! Signs in at a server before the server asks for a token.

use super::Host;
use crate::error::AuthError;

impl Host {
    /// Signs in at a remote server that accepts the connection without a token, and may ask for one
    /// only at calls. Uses the authorization server that the server publishes.
    ///
    /// Returns `true` if requests to the server carry a token. Returns `false` without an effect if
    /// the server publishes no authorization server, has credentials in the configuration, or is not
    /// a remote server. A person has five minutes to sign in. Dropping the future does not end the
    /// sign-in.
    ///
    /// # Errors
    ///
    /// See [`AuthErrorKind`](crate::AuthErrorKind).
    pub async fn sign_in(&self, server: &str) -> Result<bool, AuthError> {
        self.0.launcher.sign_in.sign_in(server).await
    }
}
