//! A handle that kills the tree of a server.

use std::fmt;
use std::sync::Arc;

/// A handle that kills one server's tree from any thread; no effect after the tree is gone.
#[derive(Clone)]
pub struct KillHandle(Arc<dyn Fn() + Send + Sync>);

impl KillHandle {
    /// Creates a handle from a function that kills the tree and never blocks.
    pub fn new(kill: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(kill))
    }

    /// Kills every process of the tree; never blocks.
    pub fn kill(&self) {
        (self.0)();
    }
}

impl fmt::Debug for KillHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KillHandle").finish_non_exhaustive()
    }
}
