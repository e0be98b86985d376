//! Changes of the state of a server.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Registry;
use crate::catalog::CatalogEntry;
use crate::connection::Connection;
use crate::error::UnavailableReason;
use crate::event::{HostEvent, REPORTED_TARGET};
use crate::lifecycle::{LifecycleEvent, ServerState, next_state};
use crate::server::{FailedStart, Server, ServerHandle, ServerStopReport};

impl Registry {
    /// Marks a stopped server as starting. Its last entry still tells to which server an item belongs,
    /// and `lost` why calls don't find it.
    pub(crate) fn mark_restarting(
        &self,
        server: &Server,
        last_entry: Option<Arc<CatalogEntry>>,
        lost: Option<UnavailableReason>,
    ) {
        let mut status = server.status();
        status.is_stop_requested = false;
        if let Some(state) = next_state(status.state, LifecycleEvent::Restarted) {
            status.state = state;
            status.entry = last_entry;
            status.unavailable_reason =
                lost.map(|reason| UnavailableReason::Starting { after: Some(Box::new(reason)) });
            // The output stays until the server has another one.
            let stderr = std::mem::take(&mut status.next_start.last_failure.stderr);
            status.next_start.last_failure = FailedStart { stderr, ..FailedStart::default() };
        }
        drop(status);
        self.rebuild();
    }

    /// Removes a server from the catalog, so that no further call reaches the server before its
    /// stop. Returns the last entry of the server, if there is one.
    pub(crate) fn mark_stopping(&self, server: &Server) -> Option<Arc<CatalogEntry>> {
        let last_entry = {
            let mut status = server.status();
            status.is_stop_requested = true;
            status.entry.clone()
        };
        self.rebuild();
        last_entry
    }

    pub(crate) fn mark_ready(
        &self,
        server: &Server,
        catalog_entry: CatalogEntry,
        handle: ServerHandle,
        elapsed: Duration,
    ) {
        let tools;
        {
            let mut status = self.install_entry(server, catalog_entry);
            tools =
                status.entry.as_ref().map_or(0, |catalog_entry| catalog_entry.routes.tools.len());
            status.handle = Some(handle);
            status.launch_kill_handle = None;
            status.next_start.backoff.record_ready(Instant::now());
            if let Some(state) = next_state(status.state, LifecycleEvent::Initialized) {
                status.state = state;
                status.unavailable_reason = None;
            }
        }
        let name = server.name.clone();
        let took_ms = elapsed.as_secs_f64() * 1000.0;
        // An application may call as soon as it reads the event.
        self.rebuild();
        tracing::info!(server = &*name, took_ms, tools, "initialized");
        self.events.publish(HostEvent::Ready { server: name, elapsed, tools });
        self.report_warnings();
    }

    /// Marks a server as unavailable. Returns whether the state changed or an unresponsive server
    /// has now failed.
    pub(crate) fn mark_unavailable(&self, server: &Server, cause: UnavailableReason) -> bool {
        let reason = cause.without_server_text().to_string();
        // The audit log has the line of a failed start.
        let is_failed_start = matches!(cause, UnavailableReason::NotStarted(_));
        {
            let mut status = server.status();
            match next_state(status.state, LifecycleEvent::Failed) {
                Some(state) => status.state = state,
                None if status.was_unresponsive() && cause.is_failure() => {}
                None => return false,
            }
            // The entry stays: it maps resources to their server.
            status.unavailable_reason = Some(cause);
        }
        self.rebuild();
        if !is_failed_start {
            tracing::error!(target: REPORTED_TARGET, server = &*server.name, reason, "unavailable");
        }
        self.events.publish(HostEvent::Unavailable { server: server.name.clone(), reason });
        true
    }

    /// Makes a server ready again that had stopped responding and has now responded on the same
    /// connection, after `silence`.
    pub(crate) fn mark_responsive(
        &self,
        server: &Server,
        connection: &Connection,
        silence: Duration,
    ) {
        let tools = {
            let mut status = server.status();
            let entry =
                status.entry.as_ref().filter(|entry| entry.connection.number == connection.number);
            let Some(tools) = entry.map(|entry| entry.routes.tools.len()) else { return };
            if !status.was_unresponsive() || status.is_stop_requested {
                return;
            }
            let Some(state) = next_state(status.state, LifecycleEvent::Responded) else { return };
            status.state = state;
            status.unavailable_reason = None;
            tools
        };
        let silent_s = silence.as_secs_f64();
        self.rebuild();
        tracing::info!(server = &*server.name, silent_s, "server responds again");
        let name = server.name.clone();
        self.events.publish(HostEvent::Ready { server: name, elapsed: silence, tools });
        self.report_warnings();
    }

    /// Marks a server as shut down; `report` is `None` for a server that never ran.
    pub(crate) fn mark_stopped(&self, server: &Server, report: Option<&ServerStopReport>) {
        {
            let mut status = server.status();
            let Some(state) = next_state(status.state, LifecycleEvent::Stopped) else { return };
            status.state = state;
            status.entry = None;
            status.handle = None;
            status.stop_report = report.cloned();
            if status.is_stop_requested {
                status.unavailable_reason = None;
            }
        }
        self.rebuild();
        let stage = report.map(|report| report.stage.as_str());
        let exit = report.and_then(|report| report.exit).map(|exit| exit.to_string());
        tracing::info!(server = &*server.name, stage, exit, "shutdown");
        self.events.publish(HostEvent::Stopped { server: server.name.clone() });
    }

    /// Leaves the servers of a host that starts none stopped, until the application starts them.
    pub(crate) fn leave_stopped(&self) {
        for server in self.servers() {
            server.status().is_stop_requested = true;
        }
        self.shut_down_unstarted();
    }

    /// Marks servers as shut down whose first start was cancelled with the host.
    pub(crate) fn shut_down_unstarted(&self) {
        for server in self.servers() {
            let mut status = server.status();
            if status.state == ServerState::Starting && status.handle.is_none() {
                status.state = ServerState::Shutdown;
            }
        }
    }
}
