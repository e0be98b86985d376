//! What happens to a server whose calls time out: when it is unavailable, and how it becomes ready
//! again.
//!
//! A silent server may still be working, so its process keeps running. Its next response, to
//! whichever request, makes it ready again. If the host revives servers, it also pings a silent
//! server, and restarts it in the end.

use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

use super::restart_policy::restart_until_ready;
use super::{Launcher, Registry, ServerStart};
use crate::backoff::ReopenBackoff;
use crate::connection::{Connection, ping};
use crate::error::UnavailableReason;
use crate::server::Server;

/// Minimum time between the moment a server becomes unavailable and its restart, for servers with a
/// short `timeout`.
const MIN_SILENCE: Duration = Duration::from_secs(10);

/// Maximum time between the moment a server becomes unavailable and its restart: its clients wait.
const MAX_SILENCE: Duration = Duration::from_secs(60);

/// The parts of a [`ServerStart`] and its connection, which owns this value.
#[derive(Clone)]
struct Watched {
    registry: Weak<Registry>,
    launcher: Weak<Launcher>,
    server: Weak<Server>,
    connection: Weak<Connection>,
    /// Taken while a task decides about the server.
    deciding: Arc<Semaphore>,
}

/// Makes the server unavailable after too many timeouts, until it responds again.
pub(super) fn watch_timeouts(start: &ServerStart, connection: &Arc<Connection>) {
    let watched = Watched {
        registry: Arc::downgrade(&start.registry),
        launcher: Arc::downgrade(&start.launcher),
        server: Arc::downgrade(&start.server),
        connection: Arc::downgrade(connection),
        deciding: Arc::new(Semaphore::new(1)),
    };
    connection.instruments.timeout_streak.set_callback(move |calls| watched.decide(calls));
}

impl Watched {
    /// Decides about the server after this number of consecutive timeouts.
    fn decide(&self, calls: u32) {
        let (Some(registry), Some(launcher), Some(server), Some(connection)) = (
            self.registry.upgrade(),
            self.launcher.upgrade(),
            self.server.upgrade(),
            self.connection.upgrade(),
        ) else {
            return;
        };
        // A decision that is under way covers further timeouts.
        let Ok(turn) = self.deciding.clone().try_acquire_owned() else { return };
        let pings = launcher.client.pings_unresponsive;
        let tasks = launcher.host.tasks.clone();
        let start = ServerStart::new(&registry, &launcher, &server);
        let reason = UnavailableReason::Unresponsive { calls };
        if !pings {
            // Before the caller gets its error.
            registry.mark_unavailable(&server, reason.clone());
        }
        tasks.spawn(async move {
            let silent_since = Instant::now();
            let is_alive =
                pings && ping::responds(&connection, server.config().calls.timeout).await;
            if !is_alive {
                registry.mark_unavailable(&server, reason);
                match wait_for_response(&start, &connection).await {
                    SilenceEnd::Broken => {}
                    SilenceEnd::Closed => return,
                    SilenceEnd::Lasting => {
                        let name = &*server.name;
                        tracing::warn!(server = name, "server stays silent, restarting it");
                        drop((connection, turn));
                        return restart_until_ready(start).await;
                    }
                }
            }
            connection.instruments.timeout_streak.reset();
            registry.mark_responsive(&server, &connection, silent_since.elapsed());
            drop(turn);
        });
    }
}

/// How the silence of a server ends.
enum SilenceEnd {
    /// The server responded.
    Broken,
    /// The connection closed.
    Closed,
    /// The server does not respond, and is to be restarted.
    Lasting,
}

/// Waits until a silent server responds or has been silent for too long.
async fn wait_for_response(start: &ServerStart, connection: &Connection) -> SilenceEnd {
    let session = &connection.session;
    let timeout = start.server.config().calls.timeout;
    let restart_at = Instant::now() + timeout.clamp(MIN_SILENCE, MAX_SILENCE);
    let lasting = async {
        if !start.revives() {
            return pending().await;
        }
        sleep_until(restart_at).await;
        // Calls within their own time may still get their responses.
        session.idle().await;
    };
    let pinging = async {
        // Over HTTP, only a new request gets a response after a timeout.
        let mut backoff = ReopenBackoff::default();
        loop {
            if !start.launcher.client.pings_unresponsive {
                return pending().await;
            }
            sleep(backoff.delay()).await;
            if ping::responds(connection, timeout).await {
                return;
            }
            backoff.double();
        }
    };
    tokio::select! {
        biased;
        _ = session.closed() => SilenceEnd::Closed,
        () = session.responded() => SilenceEnd::Broken,
        () = pinging => SilenceEnd::Broken,
        () = lasting => SilenceEnd::Lasting,
    }
}
