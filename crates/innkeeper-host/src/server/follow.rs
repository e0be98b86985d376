//! Follows what a server says has changed: its lists are read again, the application is told.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::Era;
use innkeeper_protocol::view::ServerCapabilities;
use tokio::time::{Instant, sleep};

use super::session::{Change, Session};
use super::{Server, offer, wishes};
use crate::catalog::Shelf;
use crate::error::{CallError, Lost};
use crate::event::Event;
use crate::registry::Registry;

/// The least time between two readings of lists that a server keeps changing.
const BETWEEN_READINGS: Duration = Duration::from_millis(250);

/// Readings with no quiet time between them until the pause begins to double: a server that sets
/// itself up is done by then, one that tells of a change after every reading is not.
const IN_A_ROW: u32 = 8;

/// The longest pause: what comes after it is still found within a few seconds.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

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
        biased;
        _ = session.closed() => {}
        () = follow(&registry, &server, &session, &declared) => {}
        () = async {
            match connection.revision.era() {
                Era::Legacy => {
                    let limit = server.config().timeout;
                    wishes::subscribe_anew(&connection, limit).await;
                }
                // It is listened to since before its lists were read.
                Era::Modern => std::future::pending().await,
            }
        } => {}
    }
}

/// How long to wait after each reading.
#[derive(Debug, Default)]
struct Pace {
    in_a_row: u32,
}

impl Pace {
    /// The pause after a reading before which nothing had changed for this long.
    fn pause(&mut self, quiet: Duration) -> Duration {
        let again = quiet < BETWEEN_READINGS;
        self.in_a_row = if again { self.in_a_row.saturating_add(1) } else { 0 };
        let doublings = self.in_a_row.saturating_sub(IN_A_ROW);
        BETWEEN_READINGS.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST_PAUSE)
    }
}

/// How often in a row lists that could not be read are read once more, until the server says again that
/// they have changed.
const FAILURES: u32 = 5;

/// The pause before the first of these times; before each further one it is longer by as much.
const BETWEEN_FAILURES: Duration = Duration::from_secs(1);

/// Reads a server's lists again when it says that they changed: at once, then at most four times
/// a second however often it says so, less often if it never stops, and never two readings at a
/// time. Lists that are only looked at for their age make a new catalog if they are otherwise.
async fn follow(
    registry: &Registry,
    server: &Server,
    session: &Session,
    declared: &ServerCapabilities,
) {
    let (mut pace, mut failures) = (Pace::default(), 0);
    loop {
        let waiting = Instant::now();
        let change = session.changed().await;
        let started = Instant::now();
        let mut pause = BETWEEN_READINGS;
        let Some(shelf) = server.status().shelf.clone() else { return };
        for uri in session.take_updated() {
            let server = server.name.clone();
            registry.events().publish(Event::ResourceUpdated { server, uri });
        }
        if change != Change::default() {
            let read = read_again(registry, server, &shelf, declared, change).await;
            pause = pace.pause(started - waiting);
            match read {
                Read::Whole | Read::Never => failures = 0,
                Read::Later if failures >= FAILURES => failures = 0,
                Read::Later => {
                    // They are as they were here, and not at the server.
                    failures += 1;
                    sleep(BETWEEN_FAILURES * failures).await;
                    session.look_at(change);
                }
            }
            if pause > BETWEEN_READINGS && pause < LONGEST_PAUSE {
                let pause_s = pause.as_secs_f64();
                tracing::warn!(server = &*server.name, pause_s, "lists change without end");
            }
        }
        sleep(pause.saturating_sub(started.elapsed())).await;
    }
}

/// What came of reading lists again.
enum Read {
    Whole,
    /// They may be read later.
    Later,
    /// They are not there to be read.
    Never,
}

async fn read_again(
    registry: &Registry,
    server: &Server,
    shelf: &Shelf,
    declared: &ServerCapabilities,
    change: Change,
) -> Read {
    let mut left_out = Vec::new();
    let before = shelf.whole_offer();
    let mut offer = before.clone();
    let connection = &shelf.connection;
    let limit = server.config().timeout;
    let read = offer::refresh(connection, declared, change, limit, &mut offer, &mut left_out);
    match read.await {
        Ok(()) if !change.told && offer.is_as(&before) => Read::Whole,
        Ok(()) => {
            let about = (shelf.server_info.clone(), shelf.instructions.clone());
            let next =
                Shelf::new(connection.clone(), &server.config(), about, offer, &mut left_out);
            registry.quarantined(server, &left_out);
            registry.reshelved(server, next);
            Read::Whole
        }
        Err(error) => {
            // Whoever has to sign in is not asked by itself again and again.
            let person =
                matches!(&error, CallError::Unavailable { reason: Lost::NotSignedIn(_), .. });
            let error: &dyn std::error::Error = &error;
            tracing::warn!(server = &*server.name, error, "changed lists could not be read");
            if person { Read::Never } else { Read::Later }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fault 39.
    #[test]
    fn the_pause_grows_while_a_server_changes_its_lists_without_end_and_not_before() {
        let mut pace = Pace::default();
        let mut pauses = |quiet: u64, count: usize| -> Vec<u128> {
            let quiet = Duration::from_millis(quiet);
            (0..count).map(|_| pace.pause(quiet).as_millis()).collect()
        };
        assert_eq!(pauses(60_000, 1), [250]);
        assert_eq!(pauses(0, 8), [250; 8]);
        assert_eq!(pauses(249, 7), [500, 1000, 2000, 4000, 5000, 5000, 5000]);
        assert_eq!(pauses(0, 40)[39], 5000);
        assert_eq!(pauses(250, 1), [250], "a quiet moment and all is as before");
    }
}
