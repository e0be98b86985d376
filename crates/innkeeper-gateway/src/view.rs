//! What a client sees: the servers of all hosts that it uses.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use innkeeper_host::Catalog;
use tokio::time::Instant;

use crate::offering::{CatalogSource, ListKind, Offering};
use crate::options::EndpointOptions;
use crate::upstream::{StoppedServers, Upstream};

/// The definitions that an offering was built from.
type Definitions = (Arc<Catalog>, Arc<StoppedServers>);

/// The offering of an endpoint, with the definitions that it was built from, by host.
#[derive(Debug)]
struct CachedOffering {
    definitions: Vec<Definitions>,
    offering: Arc<Offering>,
}

/// The hosts of one client, with the offering of each endpoint.
#[derive(Debug)]
pub(crate) struct View {
    /// Those that more clients share come first.
    upstreams: ArcSwap<Vec<Arc<Upstream>>>,
    /// The names of the servers that not all clients share, also of hosts that do not run yet; `None` for
    /// a view without such servers.
    private_names: Option<Arc<HashSet<String>>>,
    cached: Vec<ArcSwapOption<CachedOffering>>,
    /// The offerings whose lists the subscribers know, by endpoint; none without subscribers.
    announced: Mutex<Vec<Option<Arc<Offering>>>>,
    /// The servers that did not start for a list of the client.
    missed: Mutex<HashSet<Arc<str>>>,
    last_used: Mutex<Instant>,
}

impl View {
    /// Creates the view of clients without servers of their own.
    pub(crate) fn shared(upstream: Arc<Upstream>, endpoints: usize) -> Self {
        Self::new(upstream, None, endpoints)
    }

    /// Creates the view of a client with servers of its own, which [`Self::attach`] adds.
    pub(crate) fn private(
        shared: Arc<Upstream>,
        private_names: Arc<HashSet<String>>,
        endpoints: usize,
    ) -> Self {
        Self::new(shared, Some(private_names), endpoints)
    }

    fn new(
        shared: Arc<Upstream>,
        private_names: Option<Arc<HashSet<String>>>,
        endpoints: usize,
    ) -> Self {
        let cached = (0..endpoints).map(|_| ArcSwapOption::empty()).collect();
        Self {
            upstreams: ArcSwap::from_pointee(vec![shared]),
            private_names,
            cached,
            announced: Mutex::new(vec![None; endpoints]),
            missed: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
        }
    }

    /// Adds a host that runs now.
    pub(crate) fn attach(&self, upstream: &Arc<Upstream>) {
        self.upstreams.rcu(|upstreams| {
            let mut upstreams = Vec::clone(upstreams);
            upstreams.push(upstream.clone());
            upstreams.sort_by_key(|upstream| upstream.wider.len());
            upstreams
        });
    }

    /// Returns the running hosts.
    pub(crate) fn upstreams(&self) -> Arc<Vec<Arc<Upstream>>> {
        self.upstreams.load_full()
    }

    /// Returns whether the view can have servers that not all clients share.
    pub(crate) fn is_private(&self) -> bool {
        self.private_names.is_some()
    }

    pub(crate) fn host_of(&self, server: &str) -> Option<Arc<Upstream>> {
        self.upstreams.load().iter().find(|upstream| upstream.servers.contains(server)).cloned()
    }

    fn announced(&self) -> MutexGuard<'_, Vec<Option<Arc<Offering>>>> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches the lists of an endpoint for a subscriber, who is already registered.
    pub(crate) fn watch(&self, index: usize, endpoint: &EndpointOptions) {
        self.announced()[index].get_or_insert_with(|| self.offering(index, endpoint));
    }

    /// Returns the lists of an endpoint that changed since the last call or since the endpoint is
    /// watched, in the order of [`ListKind::ALL`]. Builds nothing for an endpoint without subscribers.
    pub(crate) fn changed_lists(
        &self,
        index: usize,
        endpoint: &EndpointOptions,
        has_subscribers: impl FnOnce() -> bool,
    ) -> [bool; 4] {
        let mut announced = self.announced();
        let Some(before) = announced[index].take() else { return [false; 4] };
        // Under the lock: a subscriber that is registered later finds nothing watched.
        if !has_subscribers() {
            return [false; 4];
        }
        let offering = self.offering(index, endpoint);
        announced[index] = Some(offering.clone());
        // The list for which a server starts contains its items.
        let missed = self.missed();
        ListKind::ALL.map(|kind| {
            !offering.has_same_list(&before, kind, |server| {
                before.server(&server.name).is_none()
                    && server.upstream.dormant.is_first_start(&server.name)
                    && !missed.contains(&server.name)
            })
        })
    }

    fn missed(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the client got lists without the items of a server that did not start.
    pub(crate) fn record_missed(&self, server: &Arc<str>) {
        self.missed().insert(server.clone());
    }

    /// Returns whether a host belongs to the view.
    pub(crate) fn contains(&self, upstream: &Arc<Upstream>) -> bool {
        self.upstreams.load().iter().any(|known| Arc::ptr_eq(known, upstream))
    }

    /// Returns whether a call runs, or waits for input of its client, at a host that not all clients share.
    pub(crate) fn has_used_private_host(&self) -> bool {
        let upstreams = self.upstreams.load();
        upstreams.iter().any(|upstream| !upstream.wider.is_empty() && upstream.users.is_used())
    }

    /// Returns the time of the last request.
    pub(crate) fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the view as used now.
    pub(crate) fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns the current offering of an endpoint. Builds it only if a definition changed.
    pub(crate) fn offering(&self, index: usize, endpoint: &EndpointOptions) -> Arc<Offering> {
        let cell = &self.cached[index];
        let upstreams = self.upstreams.load();
        let definitions = || {
            let hosts = upstreams.iter();
            hosts.map(|upstream| (upstream.host.catalog(), upstream.dormant.stopped()))
        };
        if let Some(cached) = &*cell.load()
            && cached.definitions.len() == upstreams.len()
        {
            let mut pairs = definitions().zip(&cached.definitions);
            if pairs.all(|((catalog, stopped), (catalog_then, stopped_then))| {
                Arc::ptr_eq(&catalog, catalog_then) && Arc::ptr_eq(&stopped, stopped_then)
            }) {
                return cached.offering.clone();
            }
        }
        let definitions: Vec<_> = definitions().collect();
        let hosts = upstreams.iter().zip(&definitions);
        let sources: Vec<CatalogSource> = hosts
            .flat_map(|(upstream, (catalog, stopped))| {
                // During a stop and a start, a server is in both.
                let stopped = stopped.iter().filter(|(name, _)| catalog.server(name).is_none());
                let stopped = stopped.map(|(_, catalog)| catalog.clone());
                std::iter::once(catalog.clone())
                    .chain(stopped)
                    .map(|catalog| CatalogSource { catalog, upstream: upstream.clone() })
            })
            .collect();
        let offering = Arc::new(Offering::build(&sources, endpoint, &|name| {
            self.private_names.as_ref().is_some_and(|names| names.contains(name))
                || upstreams.iter().any(|upstream| upstream.servers.contains(name))
        }));
        for omitted in &offering.omitted {
            tracing::warn!("{omitted}");
        }
        for warning in offering.name_warnings() {
            tracing::warn!("{warning}");
        }
        cell.store(Some(Arc::new(CachedOffering { definitions, offering: offering.clone() })));
        offering
    }
}

#[cfg(test)]
mod tests;
