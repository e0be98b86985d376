//! The identity of a client.

use std::borrow::Borrow;
use std::fmt;
use std::sync::{Arc, LazyLock};

pub(crate) const LOCAL_ID: &str = "local";

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
        // Each request without authentication has this principal.
        static LOCAL: LazyLock<Arc<str>> = LazyLock::new(|| LOCAL_ID.into());
        Self(LOCAL.clone())
    }

    /// Returns whether other clients can have principals of their own: the local user is alone.
    pub(crate) fn shares_limits(&self) -> bool {
        *self.0 != *LOCAL_ID
    }

    /// Returns the id.
    pub fn id(&self) -> &Arc<str> {
        &self.0
    }
}

/// Maps with principals as keys find them by their ids.
impl Borrow<str> for Principal {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
