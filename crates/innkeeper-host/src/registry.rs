//! The servers of a host with their states, and the catalog made from them at every change.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use indexmap::IndexMap;
use tokio::sync::SetOnce;
use tokio::time::Instant;

use crate::audit::Fact;
use crate::catalog::{Catalog, CatalogServer, Doubt, Shelf};
use crate::error::Lost;
use crate::event::{Event, Events};
use crate::lifecycle::{Happening, ServerState, next};
use crate::lock::{Guard, Lock, Mismatch, PinnedServer};
use crate::revive::is_failure;
use crate::server::connection::tell_found;
use crate::server::offer::Quarantined;
use crate::server::{Handle, Server, Status};
use crate::shutdown::ServerStopped;

/// All servers of one host.
#[derive(Debug)]
pub(crate) struct Registry {
    members: ArcSwap<Members>,
    catalog: ArcSwap<Catalog>,
    events: Events,
    allow_bare_names: bool,
    guard: Option<Guard>,
    /// What was told of the catalog as it is.
    doubts: Mutex<HashSet<Doubt>>,
    /// Closed while the host starts and once it stops: nothing is offered then.
    open: AtomicBool,
    /// Set once the host stops.
    closing: SetOnce<()>,
    building: Mutex<()>,
}

/// Which servers there are; replaced as a whole when the configuration is another one.
#[derive(Debug, Default)]
struct Members {
    /// Those of the configuration, in its order.
    present: IndexMap<Arc<str>, Arc<Server>>,
    /// Those it does not have any more and that may not be stopped yet.
    leaving: Vec<Arc<Server>>,
}

impl Registry {
    pub(crate) fn new(
        servers: impl IntoIterator<Item = Arc<Server>>,
        allow_bare_names: bool,
        events: Events,
        guard: Option<Guard>,
    ) -> Self {
        let present = by_name(servers);
        Self {
            members: ArcSwap::from_pointee(Members { present, leaving: Vec::new() }),
            catalog: ArcSwap::from_pointee(Catalog::default()),
            events,
            allow_bare_names,
            guard,
            doubts: Mutex::default(),
            open: AtomicBool::new(false),
            closing: SetOnce::new(),
            building: Mutex::new(()),
        }
    }

    /// The current snapshot.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// The servers of the configuration, in its order.
    pub(crate) fn servers(&self) -> Vec<Arc<Server>> {
        self.members.load().present.values().cloned().collect()
    }

    pub(crate) fn server(&self, name: &str) -> Option<Arc<Server>> {
        self.members.load().present.get(name).cloned()
    }

    /// Servers that the configuration does not have any more and that may not be stopped yet.
    pub(crate) fn leaving(&self) -> Vec<Arc<Server>> {
        self.members.load().leaving.clone()
    }

    /// Has exactly these servers from now on, and gives those that are not among them.
    pub(crate) fn replace(&self, servers: Vec<Arc<Server>>) -> Vec<Arc<Server>> {
        let present = by_name(servers);
        let before = self.members.load_full();
        let gone = before.present.values().filter(|server| !present.contains_key(&server.name));
        let leaving: Vec<Arc<Server>> = gone.cloned().collect();
        for server in &leaving {
            // A server is removed once.
            drop(server.removed.set(()));
        }
        self.members.store(Arc::new(Members { present, leaving: leaving.clone() }));
        self.rebuild();
        leaving
    }

    /// Those that were leaving are stopped.
    pub(crate) fn left(&self) {
        let present = self.members.load().present.clone();
        self.members.store(Arc::new(Members { present, leaving: Vec::new() }));
    }

    /// Makes the routes of a ready server anew, by its settings of now.
    pub(crate) fn shelve_again(&self, server: &Server) {
        loop {
            let Some(shelf) = server.status().shelf.clone() else { return };
            let mut next = shelf.made_by(&server.config());
            self.inspect(server, &mut next);
            let mut status = server.status();
            // Its lists may have been read anew meanwhile.
            if status.shelf.as_ref().is_some_and(|now| Arc::ptr_eq(now, &shelf)) {
                status.shelf = Some(Arc::new(next));
                return;
            }
        }
    }

    /// Puts up what a server offers, by its settings of now: another configuration may have been
    /// taken up since the shelf was made. They do not change while the status is held.
    fn shelve<'s>(&self, server: &'s Server, mut shelf: Shelf) -> MutexGuard<'s, Status> {
        self.inspect(server, &mut shelf);
        loop {
            let mut status = server.status();
            let config = server.config();
            if Arc::ptr_eq(&config, &shelf.config) {
                status.shelf = Some(Arc::new(shelf));
                return status;
            }
            drop(status);
            shelf = shelf.made_by(&config);
            self.inspect(server, &mut shelf);
        }
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// Offers what is ready, from now on at every change.
    pub(crate) fn open(&self) {
        self.open.store(true, Ordering::Relaxed);
        self.rebuild();
        self.tell_doubts();
    }

    /// Offers nothing any more: calls from here on find every server away.
    pub(crate) fn close(&self) {
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        self.open.store(false, Ordering::Relaxed);
        // A second stop finds it set.
        drop(self.closing.set(()));
        let members = self.members.load();
        let away = members.present.values().map(|server| CatalogServer {
            name: server.name.clone(),
            state: crate::ServerState::Shutdown,
            transport: server.config().transport.kind(),
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

    pub(crate) fn ready(&self, server: &Server, shelf: Shelf, handle: Handle, took: Duration) {
        let tools;
        {
            let mut status = self.shelve(server, shelf);
            tools = status.shelf.as_ref().map_or(0, |shelf| shelf.tools.len());
            status.running = Some(handle);
            status.launching = None;
            status.falls.ready(Instant::now());
            if let Some(state) = next(status.state, Happening::Initialized) {
                status.state = state;
            }
        }
        let name = server.name.clone();
        let took_ms = took.as_secs_f64() * 1000.0;
        tracing::info!(server = &*name, took_ms, tools, "initialized");
        self.events.publish(Event::Ready { server: name, took, tools });
        self.rebuild();
        self.tell_doubts();
    }

    /// What a server offers has changed.
    pub(crate) fn reshelved(&self, server: &Server, shelf: Shelf) {
        drop(self.shelve(server, shelf));
        self.rebuild();
        self.tell_doubts();
        tracing::info!(server = &*server.name, "catalog changed");
        self.events.publish(Event::CatalogChanged { server: server.name.clone() });
    }

    /// Holds what a server offers against its pins, and tells what was not told before, by them or by
    /// the guard.
    fn inspect(&self, server: &Server, shelf: &mut Shelf) {
        self.tell_found(server, shelf);
        let Some(guard) = &self.guard else { return };
        guard.inspect(&server.config(), shelf);
        let before = server.status().shelf.clone();
        let told: HashSet<&Mismatch> = before.iter().flat_map(|shelf| &shelf.mismatches).collect();
        for broken in shelf.mismatches.iter().filter(|broken| !told.contains(broken)) {
            let Mismatch { what, reason, refused } = broken;
            let (why, refused) = (*reason, *refused);
            Fact::PinBroken { what, why, refused }.tell(&server.name);
            self.events.publish(Event::PinBroken {
                server: server.name.clone(),
                what: what.clone(),
                reason: why.to_owned(),
                refused,
            });
        }
    }

    /// Tells what the guard has found in what a server offers and was not told before.
    fn tell_found(&self, server: &Server, shelf: &Shelf) {
        let before = server.status().shelf.clone();
        let told: HashSet<_> = before.iter().flat_map(|shelf| &shelf.found).collect();
        for found @ (item, what) in &shelf.found {
            if !told.contains(found) {
                let item = item.as_ref().map(|(of, item)| (*of, &**item));
                tell_found(&self.events, &server.name, item, what);
            }
        }
    }

    /// Tells what a person should look at and was not told before.
    fn tell_doubts(&self) {
        let found: HashSet<Doubt> = self.catalog().doubts().into_iter().collect();
        let mut told = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        for Doubt { server, tool, reason, .. } in found.difference(&told) {
            let tool = tool.as_deref();
            Fact::Doubtful { tool, why: reason }.tell(server);
            self.events.publish(Event::Doubtful {
                server: server.clone(),
                tool: tool.map(Into::into),
                reason: reason.clone(),
            });
        }
        *told = found;
    }

    /// What the servers that are ready are now.
    pub(crate) fn pins(&self) -> Lock {
        let mut lock = Lock::default();
        for server in self.servers() {
            let status = server.status();
            if let (ServerState::Ready, Some(shelf)) = (status.state, status.shelf.clone()) {
                drop(status);
                let pins = PinnedServer::of(&server.config(), &shelf);
                lock.servers.insert(server.name.to_string(), pins);
            }
        }
        lock
    }

    /// A server cannot be used any more; whether that is news. That a silent one has failed is.
    pub(crate) fn lost(&self, server: &Server, lost: Lost) -> bool {
        let reason = lost.to_string();
        {
            let mut status = server.status();
            match next(status.state, Happening::Lost) {
                Some(state) => status.state = state,
                None if status.was_silent() && is_failure(&lost) => {}
                None => return false,
            }
            // The shelf stays: it tells whose the resources were.
            status.lost = Some(lost);
        }
        self.rebuild();
        tracing::error!(server = &*server.name, reason, "unavailable");
        self.events.publish(Event::Unavailable { server: server.name.clone(), reason });
        true
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

    /// Those whose first start was given up with the host are not starting any more.
    pub(crate) fn settle(&self) {
        for server in self.servers() {
            let mut status = server.status();
            if status.state == ServerState::Starting && status.running.is_none() {
                status.state = ServerState::Shutdown;
            }
        }
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
        let members = self.members.load();
        let servers = members.present.values().map(|server| {
            let status = server.status();
            CatalogServer {
                name: server.name.clone(),
                state: status.state,
                transport: server.config().transport.kind(),
                lost: status.lost.clone(),
                shelf: status.shelf.clone(),
            }
        });
        self.catalog.store(Arc::new(Catalog::build(servers.collect(), self.allow_bare_names)));
    }
}

fn by_name(servers: impl IntoIterator<Item = Arc<Server>>) -> IndexMap<Arc<str>, Arc<Server>> {
    servers.into_iter().map(|server| (server.name.clone(), server)).collect()
}

#[cfg(test)]
mod tests;
