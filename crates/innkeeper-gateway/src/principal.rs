//! The identity of a client.

use std::fmt;
use std::sync::Arc;

/// The identity of a client, as the authentication of its transport established it.
///
/// The type has no default: a request without a verified identity has no principal, and the gateway
/// rejects the request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Creates the principal with an id that the authentication verified.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// Returns the principal of the user that runs the program: of a client over stdio, over a Unix
    /// socket of the user, or over a loopback address without authentication.
    pub fn local_user() -> Self {
        Self("local".into())
    }

    /// Returns whether other clients can have principals of their own: the local user is alone.
    pub(crate) fn shares_limits(&self) -> bool {
        *self != Self::local_user()
    }

    /// Returns the id.
    pub fn id(&self) -> &Arc<str> {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
