//! Who uses a host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

use crate::principal::Principal;

#[derive(Debug)]
pub(crate) struct HostUsers {
    /// The principal whose share the processes use: the local user for servers that several principals
    /// share.
    pub(crate) owner: Principal,
    /// The principal of the first client.
    first: OnceLock<Principal>,
    has_several_principals: AtomicBool,
    /// Each use of a server has a clone.
    use_count: Arc<()>,
    created: Instant,
}

impl HostUsers {
    pub(super) fn new(owner: Principal) -> Self {
        Self {
            owner,
            first: OnceLock::new(),
            has_several_principals: AtomicBool::new(false),
            use_count: Arc::default(),
            created: Instant::now(),
        }
    }

    /// Records that a client of a principal uses the host.
    pub(crate) fn record_principal(&self, principal: &Principal) {
        if self.first.get_or_init(|| principal.clone()) != principal {
            self.has_several_principals.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether clients of several principals used the host.
    pub(crate) fn has_several_principals(&self) -> bool {
        self.has_several_principals.load(Ordering::Relaxed)
    }

    /// Returns a token that counts as a use of the host.
    pub(crate) fn host_use(&self) -> Arc<()> {
        self.use_count.clone()
    }

    /// Returns whether a call runs or waits for input of its client.
    pub(crate) fn is_used(&self) -> bool {
        Arc::strong_count(&self.use_count) > 1
    }

    /// Returns whether the host was created before `time` and is not in use.
    pub(crate) fn is_unused_since(&self, time: Instant) -> bool {
        !self.is_used() && self.created < time
    }
}
