//! The servers of a host with their states; rebuilds the catalog on changes.

mod transitions;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use indexmap::IndexMap;
use innkeeper_config::{Config, InvalidServer};
use tokio::sync::SetOnce;

use crate::audit::AuditEvent;
use crate::catalog::{Catalog, CatalogEntry, CatalogServer, PinMismatch, SecurityWarning};
use crate::connection::report_findings;
use crate::error::UnavailableReason;
use crate::event::{EventPublisher, HostEvent, REPORTED_TARGET};
use crate::lifecycle::ServerState;
use crate::lock::{Lock, PinVerifier, PinnedServer};
use crate::server::{LiveStatus, Server};

#[derive(Debug)]
pub(crate) struct Registry {
    server_set: ArcSwap<ServerSet>,
    catalog: ArcSwap<Catalog>,
    events: EventPublisher,
    allow_bare_names: bool,
    pin_verifier: Option<PinVerifier>,
    /// Warnings already reported for the current catalog.
    reported_warnings: Mutex<HashSet<SecurityWarning>>,
    /// Whether the catalog contains servers: false during the start and after the stop of the host.
    /// Locked while the catalog is built, so that an older view of the servers never replaces a newer
    /// one.
    is_open: Mutex<bool>,
    /// Set when the host stops.
    closing: SetOnce<()>,
}

/// The servers whose entries in the configuration have errors.
pub(crate) type InvalidServers = IndexMap<Arc<str>, InvalidServer>;

/// The current servers; a configuration change replaces the whole set.
#[derive(Debug, Default)]
struct ServerSet {
    /// Servers of the configuration, in its order.
    configured: IndexMap<Arc<str>, Arc<Server>>,
    /// Servers of the configuration whose entries have errors.
    invalid: Arc<InvalidServers>,
    /// Servers removed from the configuration that may still be running.
    draining: Vec<Arc<Server>>,
}

impl Registry {
    pub(crate) fn new(
        servers: impl IntoIterator<Item = Arc<Server>>,
        invalid: InvalidServers,
        allow_bare_names: bool,
        events: EventPublisher,
        pin_verifier: Option<PinVerifier>,
    ) -> Self {
        let configured = by_name(servers);
        Self {
            server_set: ArcSwap::from_pointee(ServerSet {
                configured,
                invalid: Arc::new(invalid),
                draining: Vec::new(),
            }),
            catalog: ArcSwap::from_pointee(Catalog::default()),
            events,
            allow_bare_names,
            pin_verifier,
            reported_warnings: Mutex::default(),
            is_open: Mutex::default(),
            closing: SetOnce::new(),
        }
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Returns the servers of the configuration, in its order.
    pub(crate) fn servers(&self) -> Vec<Arc<Server>> {
        self.server_set.load().configured.values().cloned().collect()
    }

    pub(crate) fn server(&self, name: &str) -> Option<Arc<Server>> {
        self.server_set.load().configured.get(name).cloned()
    }

    /// Returns the servers whose entries in the configuration have errors.
    pub(crate) fn invalid_servers(&self) -> Arc<InvalidServers> {
        self.server_set.load().invalid.clone()
    }

    /// Reports each server whose entry has errors.
    pub(crate) fn report_invalid_servers(&self) {
        for (name, server) in &*self.invalid_servers() {
            let reason = invalid_reason(server).to_string();
            tracing::error!(target: REPORTED_TARGET, server = &**name, reason, "unavailable");
            self.events.publish(HostEvent::Unavailable { server: name.clone(), reason });
        }
    }

    /// Returns the servers removed from the configuration that may still be running.
    pub(crate) fn draining(&self) -> Vec<Arc<Server>> {
        self.server_set.load().draining.clone()
    }

    /// Replaces the configured servers and returns the removed servers.
    pub(crate) fn replace(
        &self,
        servers: Vec<Arc<Server>>,
        invalid: InvalidServers,
    ) -> Vec<Arc<Server>> {
        let configured = by_name(servers);
        let before = self.server_set.load_full();
        let removed_servers =
            before.configured.values().filter(|server| !configured.contains_key(&server.name));
        let leaving: Vec<Arc<Server>> = removed_servers.cloned().collect();
        for server in &leaving {
            // A server is removed only once, so the cell is empty.
            let _ = server.removed.set(());
        }
        let invalid = Arc::new(invalid);
        let draining = leaving.clone();
        self.server_set.store(Arc::new(ServerSet { configured, invalid, draining }));
        self.rebuild();
        leaving
    }

    /// Forgets the removed servers after their stop.
    pub(crate) fn clear_draining(&self) {
        let ServerSet { configured, invalid, .. } = &**self.server_set.load();
        let configured = configured.clone();
        let invalid = invalid.clone();
        self.server_set.store(Arc::new(ServerSet { configured, invalid, draining: Vec::new() }));
    }

    /// Rebuilds the catalog entry of a ready server with its current settings.
    pub(crate) fn rebuild_entry(&self, server: &Server) {
        loop {
            let Some(catalog_entry) = server.status().entry.clone() else { return };
            let mut next = catalog_entry.rebuilt_with(&server.config());
            self.verify_entry(server, &mut next);
            let mut status = server.status();
            // A list refresh may have replaced the entry in the meantime.
            if status.entry.as_ref().is_some_and(|now| Arc::ptr_eq(now, &catalog_entry)) {
                status.entry = Some(Arc::new(next));
                return;
            }
        }
    }

    /// Installs the catalog entry of a server, rebuilt with the current settings if the
    /// configuration changed after the entry was built. Settings cannot change while the status
    /// lock is held.
    fn install_entry<'s>(
        &self,
        server: &'s Server,
        mut catalog_entry: CatalogEntry,
    ) -> MutexGuard<'s, LiveStatus> {
        self.verify_entry(server, &mut catalog_entry);
        loop {
            let mut status = server.status();
            let config = server.config();
            if Arc::ptr_eq(&config, &catalog_entry.config) {
                status.entry = Some(Arc::new(catalog_entry));
                return status;
            }
            drop(status);
            catalog_entry = catalog_entry.rebuilt_with(&config);
            self.verify_entry(server, &mut catalog_entry);
        }
    }

    pub(crate) fn events(&self) -> &EventPublisher {
        &self.events
    }

    /// Opens the catalog: publishes the ready servers, now and after each change.
    pub(crate) fn open(&self) {
        *self.is_open() = true;
        self.rebuild();
        self.report_warnings();
    }

    fn is_open(&self) -> MutexGuard<'_, bool> {
        self.is_open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the catalog: new calls find every server unavailable.
    pub(crate) fn close(&self) {
        let mut is_open = self.is_open();
        *is_open = false;
        // A repeated stop finds the cell set.
        let _ = self.closing.set(());
        let members = self.server_set.load();
        let unavailable = members.configured.values().map(|server| CatalogServer {
            name: server.name.clone(),
            state: ServerState::Shutdown,
            transport: server.config().transport.kind(),
            unavailable_reason: Some(UnavailableReason::Shutdown),
            entry: server.status().entry.clone(),
        });
        let unavailable = unavailable.chain(
            members.invalid.iter().map(|(name, server)| invalid_catalog_server(name, server)),
        );
        self.catalog.store(Arc::new(Catalog::build(unavailable.collect(), self.allow_bare_names)));
    }

    /// Waits until the host stops.
    pub(crate) async fn closed(&self) {
        self.closing.wait().await;
    }

    pub(crate) fn listing_changed(&self, server: &Server, entry: CatalogEntry) {
        drop(self.install_entry(server, entry));
        self.rebuild();
        self.report_warnings();
        tracing::info!(server = &*server.name, "catalog changed");
        self.events.publish(HostEvent::CatalogChanged { server: server.name.clone() });
    }

    /// Verifies an entry against the pins, and reports new mismatches and new guard findings.
    fn verify_entry(&self, server: &Server, catalog_entry: &mut CatalogEntry) {
        self.report_findings(server, catalog_entry);
        let Some(guard) = &self.pin_verifier else { return };
        guard.verify(&server.config(), catalog_entry);
        let before = server.status().entry.clone();
        let reported: HashSet<&PinMismatch> =
            before.iter().flat_map(|catalog_entry| &catalog_entry.findings.mismatches).collect();
        for mismatch in
            catalog_entry.findings.mismatches.iter().filter(|mismatch| !reported.contains(mismatch))
        {
            let PinMismatch { subject: item, reason, withheld: is_withheld } = mismatch;
            let mismatch_reason = *reason;
            let is_withheld = *is_withheld;
            AuditEvent::PinMismatch {
                subject: item,
                reason: mismatch_reason,
                withheld: is_withheld,
            }
            .emit(&server.name);
            self.events.publish(HostEvent::PinMismatch {
                server: server.name.clone(),
                subject: item.clone(),
                reason: mismatch_reason.to_owned(),
                withheld: is_withheld,
            });
        }
    }

    /// Reports guard findings in the definitions of a server that were not reported before.
    fn report_findings(&self, server: &Server, catalog_entry: &CatalogEntry) {
        let before = server.status().entry.clone();
        let reported: HashSet<_> =
            before.iter().flat_map(|catalog_entry| &catalog_entry.findings.definitions).collect();
        for finding @ (item, verdict) in &catalog_entry.findings.definitions {
            if !reported.contains(finding) {
                let item = item.as_ref().map(|(kind, item)| (*kind, &**item));
                report_findings(&self.events, &server.name, item, verdict);
            }
        }
    }

    /// Reports security warnings that were not reported before.
    fn report_warnings(&self) {
        let current: HashSet<SecurityWarning> = self.catalog().warnings().into_iter().collect();
        let mut reported = self.reported_warnings.lock().unwrap_or_else(PoisonError::into_inner);
        for SecurityWarning { server, tool, reason, .. } in current.difference(&reported) {
            let tool = tool.as_deref();
            AuditEvent::SecurityWarning { tool, reason }.emit(server);
            self.events.publish(HostEvent::SecurityWarning {
                server: server.clone(),
                tool: tool.map(Into::into),
                reason: reason.clone(),
            });
        }
        *reported = current;
    }

    /// Returns pins for the current definitions of all ready servers.
    pub(crate) fn pins(&self) -> Lock {
        let mut lock = Lock::default();
        for server in self.servers() {
            let status = server.status();
            if let (ServerState::Ready, Some(catalog_entry)) = (status.state, status.entry.clone())
            {
                drop(status);
                let pins = PinnedServer::from_entry(&server.config(), &catalog_entry);
                lock.servers.insert(server.name.to_string(), pins);
            }
        }
        lock
    }

    fn rebuild(&self) {
        let is_open = self.is_open();
        if !*is_open {
            return;
        }
        let members = self.server_set.load();
        let servers = members.configured.values().map(|server| {
            let status = server.status();
            let (state, unavailable_reason) = if status.is_stop_requested {
                (ServerState::Shutdown, Some(UnavailableReason::Shutdown))
            } else {
                (status.state, status.unavailable_reason.clone())
            };
            CatalogServer {
                name: server.name.clone(),
                state,
                transport: server.config().transport.kind(),
                unavailable_reason,
                entry: status.entry.clone(),
            }
        });
        let servers = servers.chain(
            members.invalid.iter().map(|(name, server)| invalid_catalog_server(name, server)),
        );
        self.catalog.store(Arc::new(Catalog::build(servers.collect(), self.allow_bare_names)));
    }
}

/// Returns the servers of a configuration whose entries have errors.
pub(crate) fn invalid_servers(config: &Config) -> InvalidServers {
    config.invalid.iter().map(|(name, server)| (name.as_str().into(), server.clone())).collect()
}

/// Returns the reason why a server whose entry has errors is unavailable.
pub(crate) fn invalid_reason(server: &InvalidServer) -> UnavailableReason {
    UnavailableReason::InvalidConfiguration(server.reason().into())
}

fn invalid_catalog_server(name: &Arc<str>, server: &InvalidServer) -> CatalogServer {
    CatalogServer {
        name: name.clone(),
        state: ServerState::Unavailable,
        transport: server.transport.unwrap_or("unknown"),
        unavailable_reason: Some(invalid_reason(server)),
        entry: None,
    }
}

fn by_name(servers: impl IntoIterator<Item = Arc<Server>>) -> IndexMap<Arc<str>, Arc<Server>> {
    servers.into_iter().map(|server| (server.name.clone(), server)).collect()
}

#[cfg(test)]
mod tests;
