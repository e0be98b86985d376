//! Where the servers of a simulation live, and what they have done.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::peer::Peer;
use super::plan::ServerPlan;
use super::process::{Life, Process, Signal, State};
use super::wire::Wire;
use crate::server::process::{Exit, Launch};
use crate::server::session::{Limits, Owner, Session};
use crate::transport::Carried;

/// What a pipe holds, as the system's do.
const PIPE: usize = 64 << 10;

thread_local! {
    static STREET: RefCell<Option<Street>> = const { RefCell::new(None) };
}

/// The street of the simulation that this thread runs, if it runs one.
pub(crate) fn street() -> Option<Street> {
    STREET.with_borrow(Clone::clone)
}

/// All servers there can be, by name; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Street(Arc<Mutex<World>>);

#[derive(Debug)]
struct World {
    seed: u64,
    plans: BTreeMap<String, ServerPlan>,
    launches: u64,
    alive: usize,
    runs: BTreeMap<String, u32>,
}

/// Counts a server that lives.
struct Alive(Street);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.world().alive -= 1;
    }
}

impl Street {
    /// A street for this thread, in place of the one before.
    pub(super) fn open(seed: u64) -> Self {
        let (plans, runs) = (BTreeMap::new(), BTreeMap::new());
        let street = Self(Arc::new(Mutex::new(World { seed, plans, launches: 0, alive: 0, runs })));
        STREET.set(Some(street.clone()));
        street
    }

    /// Has [`street`] find nothing any more.
    pub(super) fn close() {
        STREET.set(None);
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What servers are like from their next launch on.
    pub(super) fn settle(&self, servers: &[ServerPlan]) {
        let mut world = self.world();
        world.plans.extend(servers.iter().map(|server| (server.name.clone(), server.clone())));
    }

    /// Notes that a tool did its work for a call.
    pub(super) fn ran(&self, call: &str) {
        *self.world().runs.entry(call.to_owned()).or_default() += 1;
    }

    /// How often a tool did its work for a call.
    pub(super) fn runs(&self, call: &str) -> u32 {
        self.world().runs.get(call).copied().unwrap_or_default()
    }

    /// How many servers live.
    pub(super) fn alive(&self) -> usize {
        self.world().alive
    }

    /// Smaller limits, so that a seed crosses them in little time.
    pub(crate) fn limits(&self, limits: Limits) -> Limits {
        let (line, thrown_away) = (32 << 10, 256 << 10);
        Limits { line, thrown_away, write_queue: 128 << 10, results: 128 << 10, ..limits }
    }

    fn peer(&self, name: &str, wire: Wire) -> (Peer, u32, Alive) {
        let mut world = self.world();
        world.launches += 1;
        world.alive += 1;
        let mixed = (world.seed << 20) ^ (world.launches << 40) ^ world.launches;
        let (plan, launch) = (world.plans[name].clone(), world.launches);
        drop(world);
        let peer = Peer::new(plan, fastrand::Rng::with_seed(mixed), self.clone(), wire);
        (peer, u32::try_from(launch).unwrap(), Alive(self.clone()))
    }

    /// Starts a server that looks like a child process; gives its stdin, stdout and stderr.
    pub(crate) fn spawn<P: From<Process>>(
        &self,
        launch: &Launch,
    ) -> (P, (DuplexStream, DuplexStream, DuplexStream)) {
        let name = launch.args[0].to_str().unwrap();
        let (stdin, input) = duplex(PIPE);
        let (output, stdout) = duplex(PIPE);
        let (errors, stderr) = duplex(PIPE);
        let wire = Wire::Pipes { input, buffer: Vec::new(), output: Some(output) };
        let (peer, id, alive) = self.peer(name, wire);
        let (process, life) = Process::new(id);
        #[expect(clippy::disallowed_methods, reason = "a process is no task of the host")]
        drop(tokio::spawn(live(peer, life, errors, alive)));
        (process.into(), (stdin, stdout, stderr))
    }

    /// Connects to a server that looks like one at an address.
    pub(crate) fn carry(&self, owner: Owner, limits: Limits) -> Carried {
        let (tasks, name) = (owner.tasks.clone(), owner.server.clone());
        let (session, inlet, orders) = Session::carried(owner, limits);
        let (open, ended) = oneshot::channel::<()>();
        let (mut peer, _, alive) = self.peer(&name, Wire::Carried { inlet, orders });
        tasks.spawn(async move {
            peer.run().await;
            drop((open, alive));
        });
        Carried { session, ended }
    }
}

/// The life of a process: it ends by itself or is ended, and its pipes close a little before or
/// after that is known.
async fn live(mut peer: Peer, life: Life, errors: DuplexStream, alive: Alive) {
    let (stubborn, known_first, pause) = peer.end();
    let Life { mut signal, state } = life;
    let mut asked = signal.clone();
    let exit = tokio::select! {
        biased;
        _ = signal.wait_for(|told| *told == Signal::Kill) => Exit::Signal(9),
        _ = asked.wait_for(|told| *told >= Signal::Terminate), if !stubborn => Exit::Signal(15),
        code = peer.run() => Exit::Code(code),
    };
    if known_first {
        state.send_replace(State::Exited(exit));
        sleep(Duration::from_millis(pause)).await;
    }
    drop((peer, errors));
    if !known_first {
        sleep(Duration::from_millis(pause)).await;
    }
    drop(alive);
    state.send_replace(State::Gone(exit));
}
