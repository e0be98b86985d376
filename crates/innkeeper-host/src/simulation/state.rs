//! The shared state of a simulation: plans, launches and tool runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use innkeeper_config::OauthConfig;
use innkeeper_process::{ExitStatus, ProcessSpec, SpawnError};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::plan::ServerPlan;
use super::process::{ProcessControl, ProcessSignal, ProcessState, SimulatedProcess};
use super::server::SimulatedServer;
use super::server_io::ServerIo;
use crate::server::endpoint_opener::{EndpointOpener, SpawnedServer};
use crate::session::{Session, SessionContext, SessionLimits};
use crate::transport::auth::AuthManager;
use crate::transport::{HttpClientError, RemoteEndpoint, TransportHandle};

/// Capacity of a pipe in bytes, as on Linux.
const PIPE_CAPACITY_BYTES: usize = 64 << 10;

/// The state of a simulation. Clones share the state.
#[derive(Clone, Debug)]
pub(super) struct Simulation(Arc<Mutex<SimulationState>>);

#[derive(Debug)]
struct SimulationState {
    seed: u64,
    plans: BTreeMap<String, ServerPlan>,
    launches: u64,
    alive: usize,
    runs_by_call: BTreeMap<String, u32>,
}

/// Counts a running server until the guard is dropped.
struct AliveGuard(Simulation);

impl Drop for AliveGuard {
    fn drop(&mut self) {
        self.0.lock_state().alive -= 1;
    }
}

impl Simulation {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(SimulationState {
            seed,
            plans: BTreeMap::new(),
            launches: 0,
            alive: 0,
            runs_by_call: BTreeMap::new(),
        })))
    }

    fn lock_state(&self) -> MutexGuard<'_, SimulationState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the plans for the next launches of servers.
    pub(super) fn set_plans(&self, servers: &[ServerPlan]) {
        let mut state = self.lock_state();
        state.plans.extend(servers.iter().map(|server| (server.name.clone(), server.clone())));
    }

    /// Records a tool run of a call.
    pub(super) fn record_run(&self, call: &str) {
        *self.lock_state().runs_by_call.entry(call.to_owned()).or_default() += 1;
    }

    /// Returns the number of tool runs of a call.
    pub(super) fn run_count(&self, call: &str) -> u32 {
        self.lock_state().runs_by_call.get(call).copied().unwrap_or_default()
    }

    /// Returns the number of running servers.
    pub(super) fn alive_count(&self) -> usize {
        self.lock_state().alive
    }

    /// Returns smaller limits, so that a seed reaches the limits in a short time.
    pub(super) fn small_limits(limits: SessionLimits) -> SessionLimits {
        let max_line_bytes = 32 << 10;
        let max_discarded_bytes = 256 << 10;
        SessionLimits {
            max_line_bytes,
            max_discarded_bytes,
            max_write_queue_bytes: 128 << 10,
            max_result_bytes: 128 << 10,
            ..limits
        }
    }

    fn launch_server(&self, name: &str, io: ServerIo) -> (SimulatedServer, u32, AliveGuard) {
        let mut state = self.lock_state();
        state.launches += 1;
        state.alive += 1;
        let mixed = (state.seed << 20) ^ (state.launches << 40) ^ state.launches;
        let plan = state.plans[name].clone();
        let launch = state.launches;
        drop(state);
        let peer = SimulatedServer::new(plan, fastrand::Rng::with_seed(mixed), self.clone(), io);
        (peer, u32::try_from(launch).unwrap(), AliveGuard(self.clone()))
    }

    /// Starts a server in place of a child process.
    fn spawn_server(&self, spec: &ProcessSpec) -> SpawnedServer {
        let name = spec.args[0].to_str().unwrap();
        let (stdin, input) = duplex(PIPE_CAPACITY_BYTES);
        let (output, stdout) = duplex(PIPE_CAPACITY_BYTES);
        let (errors, stderr) = duplex(PIPE_CAPACITY_BYTES);
        let io = ServerIo::Pipes { input, buffer: Vec::new(), output: Some(output) };
        let (peer, id, alive) = self.launch_server(name, io);
        let (process, control) = SimulatedProcess::new(id);
        #[expect(clippy::disallowed_methods, reason = "a process is no task of the host")]
        drop(tokio::spawn(run_process(peer, control, errors, alive)));
        SpawnedServer {
            process: Box::new(process),
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
        }
    }
}

impl EndpointOpener for Simulation {
    fn spawn<'a>(
        &'a self,
        spec: &'a ProcessSpec,
    ) -> BoxFuture<'a, Result<SpawnedServer, SpawnError>> {
        ready(Ok(self.spawn_server(spec))).boxed()
    }

    fn connect(
        &self,
        _remote: &RemoteEndpoint,
        context: SessionContext,
        limits: SessionLimits,
        _sign_in: &AuthManager,
        _oauth: Option<&OauthConfig>,
    ) -> Result<TransportHandle, HttpClientError> {
        let tasks = context.host.tasks.clone();
        let name = context.server.clone();
        let (session, inbound, outbound) = Session::over_transport(context, limits);
        let (open, ended) = oneshot::channel::<()>();
        let (mut peer, _, alive) =
            self.launch_server(&name, ServerIo::Transport { inbound, outbound });
        tasks.spawn(async move {
            peer.run().await;
            drop((open, alive));
        });
        Ok(TransportHandle { session, http_session: None, ended })
    }
}

/// Runs a process until it exits or is killed. The exit is reported shortly before or after the
/// pipes close.
async fn run_process(
    mut peer: SimulatedServer,
    control: ProcessControl,
    errors: DuplexStream,
    alive: AliveGuard,
) {
    let (stubborn, known_first, delay_ms) = peer.exit_behavior();
    let ProcessControl { mut signal, state } = control;
    let mut terminate_signal = signal.clone();
    let exit_status = tokio::select! {
        biased;
        _ = signal.wait_for(|told| *told == ProcessSignal::Kill) => ExitStatus::Signal(9),
        _ = terminate_signal.wait_for(|told| *told >= ProcessSignal::Terminate), if !stubborn => ExitStatus::Signal(15),
        code = peer.run() => ExitStatus::Code(code),
    };
    if known_first {
        state.send_replace(ProcessState::Exited(exit_status));
        sleep(Duration::from_millis(delay_ms)).await;
    }
    drop((peer, errors));
    if !known_first {
        sleep(Duration::from_millis(delay_ms)).await;
    }
    drop(alive);
    state.send_replace(ProcessState::TreeExited(exit_status));
}
