//! The servers of a host with their states, and the catalog made from them at every change.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use indexmap::IndexMap;
use tokio::sync::SetOnce;

use crate::catalog::{Catalog, CatalogServer, Shelf};
use crate::config::Config;
use crate::error::Lost;
use crate::event::{Event, Events};
use crate::lifecycle::{Happening, ServerState, next};
use crate::lock::{Guard, Lock, Mismatch, PinnedServer};
use crate::server::offer::Quarantined;
use crate::server::{Handle, Server};
use crate::shutdown::ServerStopped;

/// All servers of one host.
#[derive(Debug)]
pub(crate) struct Registry {
    servers: IndexMap<Arc<str>, Arc<Server>>,
    catalog: ArcSwap<Catalog>,
    events: Events,
    allow_bare_names: bool,
    guard: Option<Guard>,
    /// Closed while the host starts and once it stops: nothing is offered then.
    open: AtomicBool,
    /// Set once the host stops.
    closing: SetOnce<()>,
    building: Mutex<()>,
}

impl Registry {
    pub(crate) fn new(config: &Config, events: Events, guard: Option<Guard>) -> Self {
        let servers = config.servers.values().map(|config| {
            let server = Server::new(config.clone());
            (server.name.clone(), Arc::new(server))
        });
        Self {
            servers: servers.collect(),
            catalog: ArcSwap::from_pointee(Catalog::default()),
            events,
            allow_bare_names: config.host.allow_bare_names,
            guard,
            open: AtomicBool::new(false),
            closing: SetOnce::new(),
            building: Mutex::new(()),
        }
    }

    /// The current snapshot.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    pub(crate) fn servers(&self) -> impl DoubleEndedIterator<Item = &Arc<Server>> {
        self.servers.values()
    }

    pub(crate) fn server(&self, name: &str) -> Option<&Arc<Server>> {
        self.servers.get(name)
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// Offers what is ready, from now on at every change.
    pub(crate) fn open(&self) {
        self.open.store(true, Ordering::Relaxed);
        self.rebuild();
    }

    /// Offers nothing any more: calls from here on find every server away.
    pub(crate) fn close(&self) {
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        self.open.store(false, Ordering::Relaxed);
        // A second stop finds it set.
        drop(self.closing.set(()));
        let away = self.servers.values().map(|server| CatalogServer {
            name: server.name.clone(),
            state: crate::ServerState::Shutdown,
            transport: server.config.transport.kind(),
            lost: Some(Lost::Shutdown),
            shelf: server.status().shelf.clone(),
        });
        self.catalog.store(Arc::new(Catalog::build(away.collect(), self.allow_bare_names)));
    }

    /// Resolves once the host stops.
    pub(crate) async fn closed(&self) {
        self.closing.wait().await;
    }

    /// A server that was stopped is about to be started again.
    pub(crate) fn restarting(&self, server: &Server) {
        let mut status = server.status();
        if let Some(state) = next(status.state, Happening::Restarted) {
            status.state = state;
            status.lost = None;
        }
        drop(status);
        self.rebuild();
    }

    pub(crate) fn ready(&self, server: &Server, mut shelf: Shelf, handle: Handle, took: Duration) {
        self.inspect(server, &mut shelf);
        let tools = shelf.tools.len();
        {
            let mut status = server.status();
            status.running = Some(handle);
            status.launching = None;
            status.shelf = Some(Arc::new(shelf));
            if let Some(state) = next(status.state, Happening::Initialized) {
                status.state = state;
            }
        }
        let name = server.name.clone();
        let took_ms = took.as_secs_f64() * 1000.0;
        tracing::info!(server = &*name, took_ms, tools, "initialized");
        self.events.publish(Event::Ready { server: name, took, tools });
        self.rebuild();
    }

    /// What a server offers has changed.
    pub(crate) fn reshelved(&self, server: &Server, mut shelf: Shelf) {
        self.inspect(server, &mut shelf);
        server.status().shelf = Some(Arc::new(shelf));
        self.rebuild();
        tracing::info!(server = &*server.name, "catalog changed");
        self.events.publish(Event::CatalogChanged { server: server.name.clone() });
    }

    /// Holds what a server offers against its pins, and tells what was not told before.
    fn inspect(&self, server: &Server, shelf: &mut Shelf) {
        let Some(guard) = &self.guard else { return };
        guard.inspect(&server.config, shelf);
        let before = server.status().shelf.clone();
        let told: HashSet<&Mismatch> = before.iter().flat_map(|shelf| &shelf.mismatches).collect();
        for broken in shelf.mismatches.iter().filter(|broken| !told.contains(broken)) {
            let Mismatch { what, reason, refused } = broken;
            let name = &*server.name;
            tracing::warn!(server = name, what, reason, refused, security = true, "pin broken");
            self.events.publish(Event::PinBroken {
                server: server.name.clone(),
                what: what.clone(),
                reason: (*reason).to_owned(),
                refused: *refused,
            });
        }
    }

    /// What the servers that are ready are now.
    pub(crate) fn pins(&self) -> Lock {
        let mut lock = Lock::default();
        for server in self.servers.values() {
            let status = server.status();
            if let (ServerState::Ready, Some(shelf)) = (status.state, status.shelf.clone()) {
                drop(status);
                let pins = PinnedServer::of(&server.config, &shelf);
                lock.servers.insert(server.name.to_string(), pins);
            }
        }
        lock
    }

    /// A server cannot be used any more.
    pub(crate) fn lost(&self, server: &Server, lost: Lost) {
        let reason = lost.to_string();
        {
            let mut status = server.status();
            let Some(state) = next(status.state, Happening::Lost) else { return };
            status.state = state;
            // The shelf stays: it tells whose the resources were.
            status.lost = Some(lost);
        }
        self.rebuild();
        tracing::error!(server = &*server.name, reason, "unavailable");
        self.events.publish(Event::Unavailable { server: server.name.clone(), reason });
    }

    pub(crate) fn stopped(&self, server: &Server, report: &ServerStopped) {
        {
            let mut status = server.status();
            let Some(state) = next(status.state, Happening::Stopped) else { return };
            status.state = state;
            status.shelf = None;
            status.running = None;
            status.stopped = Some(report.clone());
        }
        self.rebuild();
        let (stage, exit) = (report.stage.as_str(), report.exit.map(|exit| exit.to_string()));
        tracing::info!(server = &*server.name, stage, exit, "shutdown");
        self.events.publish(Event::Stopped { server: server.name.clone() });
    }

    pub(crate) fn quarantined(&self, server: &Server, left_out: &[Quarantined]) {
        for Quarantined { what, reason } in left_out {
            tracing::warn!(server = &*server.name, what, reason, "left out of the catalog");
            self.events.publish(Event::Quarantined {
                server: server.name.clone(),
                what: what.clone(),
                reason: reason.clone(),
            });
        }
    }

    fn rebuild(&self) {
        // One build at a time, so that an older view of the servers never replaces a newer one.
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.open.load(Ordering::Relaxed) {
            return;
        }
        let servers = self.servers.values().map(|server| {
            let status = server.status();
            CatalogServer {
                name: server.name.clone(),
                state: status.state,
                transport: server.config.transport.kind(),
                lost: status.lost.clone(),
                shelf: status.shelf.clone(),
            }
        });
        self.catalog.store(Arc::new(Catalog::build(servers.collect(), self.allow_bare_names)));
    }
}
