//! What the HTTP transport does without a request: it ends sessions and streams, and keeps their records.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::SetOnce;
use tokio::time::sleep;

use super::HttpTransport;
use crate::replicas::{OwnedKey, Replicas};
use crate::servers::ChangedSessions;

/// Starts the tasks of a transport. They end after it, at their next step.
pub(crate) fn start(transport: &Arc<HttpTransport>) {
    let gateway = &transport.gateway;
    let weak = || Arc::downgrade(transport);
    let tasks = &gateway.tasks;
    tasks.spawn(end_idle_sessions(weak(), gateway.options.idle_session));
    tasks.spawn(end_idle_streams(weak(), gateway.tasks.closing.clone()));
    if let Some(replicas) = &gateway.services.replicas {
        tasks.spawn(end_lost_sessions(weak(), replicas.clone()));
        tasks.spawn(hand_over_sessions(weak(), gateway.tasks.closing.clone()));
    }
    if let Some(changed) = gateway.servers.watch_sessions() {
        tasks.spawn(store_changed_sessions(weak(), changed));
    }
}

/// Longest interval of the search for idle sessions.
const MAX_CLEANUP_INTERVAL: Duration = Duration::from_secs(10);

/// Shortest interval of the search for idle sessions, for a short idle time.
const MIN_CLEANUP_INTERVAL: Duration = Duration::from_millis(100);

async fn end_idle_sessions(transport: Weak<HttpTransport>, idle: Duration) {
    // Redis forgets what the replica does not keep within the idle time.
    let interval = (idle / 8).clamp(MIN_CLEANUP_INTERVAL, MAX_CLEANUP_INTERVAL);
    loop {
        sleep(interval).await;
        let Some(transport) = transport.upgrade() else { return };
        transport.end_idle_sessions();
    }
}

/// Ends the sessions and the servers that other replicas can own.
async fn end_lost_sessions(transport: Weak<HttpTransport>, replicas: Replicas) {
    loop {
        let lost = replicas.lost().await;
        let Some(transport) = transport.upgrade() else { return };
        transport.end_lost_sessions();
        for key in lost {
            match key {
                OwnedKey::Session(_) => {}
                OwnedKey::Principal(principal) => {
                    transport.gateway.servers.end_principal(&principal);
                }
                OwnedKey::Singletons => transport.gateway.servers.end_singletons(),
            }
        }
    }
}

/// Time between two looks at the sessions of a gateway that closes.
const CLOSING_INTERVAL: Duration = Duration::from_millis(20);

/// Ends the streams for messages that belong to no request when the gateway closes, each when its
/// session has no request in flight: an open stream would delay the end of the gateway.
async fn end_idle_streams(transport: Weak<HttpTransport>, closing: Arc<SetOnce<()>>) {
    closing.wait().await;
    loop {
        let Some(current) = transport.upgrade() else { return };
        current.sessions.end_idle_streams();
        drop(current);
        sleep(CLOSING_INTERVAL).await;
    }
}

/// Gives the sessions up when the gateway closes.
async fn hand_over_sessions(transport: Weak<HttpTransport>, closing: Arc<SetOnce<()>>) {
    closing.wait().await;
    loop {
        // The gateway can be dropped between two looks.
        let Some(current) = transport.upgrade() else { return };
        current.hand_over_inactive().await;
        drop(current);
        sleep(CLOSING_INTERVAL).await;
    }
}

/// Stores the sessions of clients whose sessions with remote servers changed.
async fn store_changed_sessions(transport: Weak<HttpTransport>, changed: Arc<ChangedSessions>) {
    loop {
        let clients = changed.take().await;
        let Some(transport) = transport.upgrade() else { return };
        // A gateway that closes stores each session before it gives the session up.
        if transport.gateway.tasks.closing.initialized() {
            continue;
        }
        for client in clients {
            let storing = transport.clone();
            transport.gateway.tasks.spawn(async move { storing.store_session_of(client).await });
        }
    }
}
