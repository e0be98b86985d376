//! What is known of the servers of one host that do not run: clients see them as if they did.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use innkeeper_host::Catalog;

/// The definitions of the servers that the gateway stopped, by name.
pub(crate) type StoppedServers = HashMap<Arc<str>, Arc<Catalog>>;

/// The servers that never started, with whether a start failed.
type UnstartedServers = HashMap<Arc<str>, bool>;

/// The servers of one host that do not run.
#[derive(Debug, Default)]
pub(crate) struct DormantServers {
    stopped: ArcSwap<StoppedServers>,
    /// The last definitions of the servers that the gateway may stop: a server that ends by itself
    /// leaves the catalog before the gateway knows.
    last: Mutex<StoppedServers>,
    unstarted: ArcSwap<UnstartedServers>,
    /// The servers that never ended after they had started.
    first_starts: Mutex<HashSet<Arc<str>>>,
}

impl DormantServers {
    /// Creates the state of servers that start at their first use.
    pub(super) fn unstarted(names: &[Arc<str>]) -> Self {
        let unstarted = names.iter().map(|name| (name.clone(), false)).collect();
        Self {
            unstarted: ArcSwap::from_pointee(unstarted),
            first_starts: Mutex::new(names.iter().cloned().collect()),
            ..Self::default()
        }
    }

    fn last(&self) -> MutexGuard<'_, StoppedServers> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn first_starts(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        self.first_starts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stopped(&self) -> Arc<StoppedServers> {
        self.stopped.load_full()
    }

    pub(crate) fn is_stopped(&self, name: &str) -> bool {
        self.stopped.load().contains_key(name)
    }

    /// Returns whether a server that its first use starts has not ended since.
    pub(crate) fn is_first_start(&self, name: &str) -> bool {
        self.first_starts().contains(name)
    }

    /// Records the end of a server, or of any server.
    pub(crate) fn record_end(&self, name: Option<&str>) {
        self.first_starts().retain(|known| name.is_some_and(|name| **known != *name));
    }

    /// Returns whether a server never started.
    pub(crate) fn is_unstarted(&self, name: &str) -> bool {
        self.unstarted.load().contains_key(name)
    }

    /// Returns whether a server never started although a use started it.
    pub(crate) fn has_failed(&self, name: &str) -> bool {
        self.unstarted.load().get(name) == Some(&true)
    }

    /// Records the first start of a server, or that it failed.
    pub(crate) fn record_start(&self, name: &Arc<str>, is_ready: bool) {
        if !self.is_unstarted(name) {
            return;
        }
        self.unstarted.rcu(|unstarted| {
            let mut unstarted = UnstartedServers::clone(unstarted);
            if is_ready {
                unstarted.remove(name);
            } else {
                unstarted.insert(name.clone(), true);
            }
            unstarted
        });
    }

    /// Remembers the definitions of a server while it is ready.
    pub(super) fn remember(&self, name: &Arc<str>, catalog: Catalog) {
        self.last().insert(name.clone(), Arc::new(catalog));
    }

    /// Keeps the last definitions of a server that is about to stop, or that ended. Returns whether
    /// there are any.
    pub(super) fn keep_definitions(&self, name: &Arc<str>) -> bool {
        let Some(catalog) = self.last().get(name).cloned() else { return false };
        self.stopped.rcu(|stopped| {
            let mut stopped = StoppedServers::clone(stopped);
            stopped.insert(name.clone(), catalog.clone());
            stopped
        });
        true
    }

    /// Forgets the definitions of a server that is ready again.
    pub(crate) fn forget_definitions(&self, name: &str) {
        self.stopped.rcu(|stopped| {
            let mut stopped = StoppedServers::clone(stopped);
            stopped.remove(name);
            stopped
        });
    }
}
