//! What a client sees: the servers of all hosts that it uses.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
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
    upstreams: Vec<Arc<Upstream>>,
    cached: Vec<ArcSwapOption<CachedOffering>>,
    /// The offerings whose lists the subscribers know, by endpoint; none without subscribers.
    announced: Mutex<Vec<Option<Arc<Offering>>>>,
    last_used: Mutex<Instant>,
}

impl View {
    pub(crate) fn new(upstreams: Vec<Arc<Upstream>>, endpoints: usize) -> Self {
        let cached = (0..endpoints).map(|_| ArcSwapOption::empty()).collect();
        let announced = Mutex::new(vec![None; endpoints]);
        Self { upstreams, cached, announced, last_used: Mutex::new(Instant::now()) }
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
        (index, endpoint): (usize, &EndpointOptions),
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
        ListKind::ALL.map(|kind| !offering.list(kind).has_same_items(before.list(kind)))
    }

    /// Returns whether a host belongs to the view.
    pub(crate) fn contains(&self, upstream: &Arc<Upstream>) -> bool {
        self.upstreams.iter().any(|known| Arc::ptr_eq(known, upstream))
    }

    /// Returns the hosts that not all clients share.
    pub(crate) fn private_upstreams(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.upstreams.iter().filter(|upstream| !upstream.wider.is_empty())
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
        let definitions = || {
            let hosts = self.upstreams.iter();
            hosts.map(|upstream| (upstream.host.catalog(), upstream.stopped()))
        };
        if let Some(cached) = &*cell.load() {
            let mut pairs = definitions().zip(&cached.definitions);
            if pairs.all(|((catalog, stopped), (catalog_then, stopped_then))| {
                Arc::ptr_eq(&catalog, catalog_then) && Arc::ptr_eq(&stopped, stopped_then)
            }) {
                return cached.offering.clone();
            }
        }
        let definitions: Vec<_> = definitions().collect();
        let hosts = self.upstreams.iter().zip(&definitions);
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
        let offering = Arc::new(Offering::build(&sources, endpoint));
        for omitted in &offering.omitted {
            tracing::warn!("{omitted}");
        }
        cell.store(Some(Arc::new(CachedOffering { definitions, offering: offering.clone() })));
        offering
    }
}

#[cfg(test)]
mod tests;
