//! Follows what a server says has changed: its lists are read again, kept copies forgotten.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::ServerCapabilities;
use tokio::time::{Instant, sleep};

use super::session::{Change, Session};
use super::{Server, listen, offer};
use crate::catalog::Shelf;
use crate::event::Event;
use crate::registry::Registry;

/// The least time between two readings of lists that a server keeps changing.
const BETWEEN_READINGS: Duration = Duration::from_millis(250);

/// Hears what a server says of itself until its session closes.
pub(crate) async fn follow_changes(
    registry: Arc<Registry>,
    server: Arc<Server>,
    session: Session,
    declared: ServerCapabilities,
) {
    let Some(shelf) = server.status().shelf.clone() else { return };
    let connection = shelf.connection.clone();
    drop(shelf);
    tokio::select! {
        () = follow(&registry, &server, &session, &declared) => {}
        _ = session.closed() => {}
        // Ends only where there is nothing to listen to.
        () = async {
            listen::listen(&connection, &declared).await;
            std::future::pending::<()>().await;
        } => {}
    }
}

/// Reads a server's lists again when it says that they changed: at once, then at most four times
/// a second however often it says so, and never two readings at a time.
async fn follow(
    registry: &Registry,
    server: &Server,
    session: &Session,
    declared: &ServerCapabilities,
) {
    loop {
        let change = session.changed().await;
        let started = Instant::now();
        let Some(shelf) = server.status().shelf.clone() else { return };
        for uri in session.take_updated() {
            shelf.connection.cache.forget_uri(&uri);
            let server = server.name.clone();
            registry.events().publish(Event::ResourceUpdated { server, uri });
        }
        if change != Change::default() {
            read_again(registry, server, &shelf, declared, change).await;
        }
        sleep(BETWEEN_READINGS.saturating_sub(started.elapsed())).await;
    }
}

async fn read_again(
    registry: &Registry,
    server: &Server,
    shelf: &Shelf,
    declared: &ServerCapabilities,
    change: Change,
) {
    let mut left_out = Vec::new();
    let mut offer = shelf.whole_offer();
    let connection = &shelf.connection;
    let limit = server.config.timeout;
    let read = offer::refresh(connection, declared, change, limit, &mut offer, &mut left_out);
    match read.await {
        Ok(()) => {
            let about = (shelf.server_info.clone(), shelf.instructions.clone());
            let next = Shelf::new(connection.clone(), &server.config, about, offer, &mut left_out);
            registry.quarantined(server, &left_out);
            registry.reshelved(server, next);
        }
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(server = &*server.name, error, "changed lists could not be read");
        }
    }
}
