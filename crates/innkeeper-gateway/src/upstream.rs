//! The hosts behind the gateway, and what a client sees of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use innkeeper_host::{Catalog, Host};

use crate::offering::{ListKind, Offering};
use crate::options::EndpointOptions;
use crate::turns::Turns;

/// How clients share one server.
#[derive(Debug, Default)]
pub(crate) struct ServerUse {
    pub(crate) turns: Turns,
    /// The subscribers of each resource.
    pub(crate) subscriptions: tokio::sync::Mutex<HashMap<Box<str>, usize>>,
}

/// A host with its servers in use.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) host: Host,
    uses: Mutex<HashMap<Box<str>, Arc<ServerUse>>>,
}

impl Upstream {
    pub(crate) fn new(host: Host) -> Self {
        Self { host, uses: Mutex::default() }
    }

    /// Returns the use of a server, which stays the same when the server restarts.
    pub(crate) fn server_use(&self, name: &str) -> Arc<ServerUse> {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        uses.entry(name.into()).or_default().clone()
    }
}

/// The offering of an endpoint, with the catalogs that it was built from.
#[derive(Debug)]
struct CachedOffering {
    catalogs: Vec<Arc<Catalog>>,
    offering: Arc<Offering>,
}

/// The hosts of one client, with the offering of each endpoint.
#[derive(Debug)]
pub(crate) struct View {
    upstreams: Vec<Arc<Upstream>>,
    cached: Vec<ArcSwapOption<CachedOffering>>,
    /// The offerings whose lists the clients know, by endpoint.
    announced: Mutex<Vec<Option<Arc<Offering>>>>,
}

impl View {
    pub(crate) fn new(upstreams: Vec<Arc<Upstream>>, endpoint_count: usize) -> Self {
        let cached = (0..endpoint_count).map(|_| ArcSwapOption::empty()).collect();
        Self { upstreams, cached, announced: Mutex::new(vec![None; endpoint_count]) }
    }

    /// Returns the lists of an endpoint that changed since the last call, in the order of
    /// [`ListKind::ALL`]. The first call reports no change.
    pub(crate) fn changed_lists(&self, index: usize, endpoint: &EndpointOptions) -> [bool; 4] {
        let offering = self.offering(index, endpoint);
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        let before = announced[index].replace(offering.clone());
        let Some(before) = before else { return [false; 4] };
        ListKind::ALL.map(|kind| !offering.list(kind).has_same_items(before.list(kind)))
    }

    pub(crate) fn upstreams(&self) -> &[Arc<Upstream>] {
        &self.upstreams
    }

    /// Returns whether a host belongs to the view.
    pub(crate) fn contains(&self, upstream: &Arc<Upstream>) -> bool {
        self.upstreams.iter().any(|known| Arc::ptr_eq(known, upstream))
    }

    /// Returns the current offering of an endpoint. Builds it only if a catalog changed.
    pub(crate) fn offering(&self, index: usize, endpoint: &EndpointOptions) -> Arc<Offering> {
        let cell = &self.cached[index];
        let catalogs = self.upstreams.iter().map(|upstream| upstream.host.catalog());
        let cached = cell.load();
        if let Some(cached) = &*cached {
            let mut pairs = catalogs.zip(&cached.catalogs);
            if pairs.all(|(now, then)| Arc::ptr_eq(&now, then)) {
                return cached.offering.clone();
            }
        }
        let sources: Vec<_> = self
            .upstreams
            .iter()
            .map(|upstream| (upstream.host.catalog(), upstream.clone()))
            .collect();
        let offering = Arc::new(Offering::build(&sources, endpoint));
        for omitted in &offering.omitted {
            tracing::warn!("{omitted}");
        }
        let catalogs = sources.into_iter().map(|(catalog, _)| catalog).collect();
        cell.store(Some(Arc::new(CachedOffering { catalogs, offering: offering.clone() })));
        offering
    }
}
