//! The servers of one host, by name.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use crate::server_use::ServerUse;

/// The servers of a host, whether they run or not.
#[derive(Debug)]
pub(crate) struct HostServers {
    /// The names, in the order of the configuration.
    names: ArcSwap<Vec<Arc<str>>>,
    /// The servers that the gateway may stop.
    stoppable: ArcSwap<HashSet<String>>,
    uses: Mutex<HashMap<Box<str>, Arc<ServerUse>>>,
    starts_on_use: bool,
}

impl HostServers {
    pub(super) fn new(
        names: Vec<Arc<str>>,
        stoppable: Arc<HashSet<String>>,
        starts_on_use: bool,
    ) -> Self {
        let names = ArcSwap::from_pointee(names);
        let stoppable = ArcSwap::new(stoppable);
        Self { names, stoppable, uses: Mutex::default(), starts_on_use }
    }

    /// Returns the names, in the order of the configuration.
    pub(crate) fn names(&self) -> Arc<Vec<Arc<str>>> {
        self.names.load_full()
    }

    pub(super) fn set_names(&self, names: Vec<Arc<str>>) {
        self.names.store(Arc::new(names));
    }

    /// Returns whether a server belongs to the host.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// Returns the place of a server in the configuration.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.names.load().iter().position(|known| **known == *name)
    }

    pub(super) fn is_stoppable(&self, name: &str) -> bool {
        self.stoppable.load().contains(name)
    }

    /// Sets the servers that the gateway may stop, of which the later ones are not in use yet.
    pub(crate) fn set_stoppable(&self, stoppable: Arc<HashSet<String>>) {
        self.stoppable.store(stoppable);
    }

    pub(super) fn uses(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<ServerUse>>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the use of a server, which stays the same when the server restarts.
    pub(crate) fn server_use(&self, name: &str) -> Arc<ServerUse> {
        let mut uses = self.uses();
        let server_use = uses.entry(name.into()).or_insert_with(|| {
            Arc::new(match self.starts_on_use {
                true => ServerUse::unstarted(self.is_stoppable(name)),
                false => ServerUse::new(self.is_stoppable(name)),
            })
        });
        server_use.clone()
    }
}
