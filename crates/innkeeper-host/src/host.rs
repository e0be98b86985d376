//! The face: start, catalog, calls, status, events, metrics, restart, shutdown. It forwards.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use indexmap::IndexMap;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, OnceCell, broadcast, oneshot};
use tokio::time::{Instant, timeout};

use crate::call::{self, CallOptions, CompletionOf, ToolResult};
use crate::callback::{Answers, Callback, Callbacks};
use crate::catalog::{Catalog, Hidden, Shelf};
use crate::config::{Config, ConfigError, Environment, Watch};
use crate::error::{CallError, RestartError, StartError};
use crate::event::{Event, Events};
use crate::ledger::Ledger;
use crate::lifecycle::ServerState;
use crate::lock::{Guard, Lock, PinPolicy};
use crate::measure::{ServerMetrics, prometheus};
use crate::registry::Registry;
use crate::reload::{ReloadError, ReloadOptions, ReloadReport, Reloader};
use crate::server::Server;
use crate::server::connect::ClientInfo;
use crate::server::launch::Launcher;
use crate::server::process::{Isolation, Supervisor};
use crate::server::session::Limits;
use crate::shutdown::{self, DRAIN, ShutdownReport};
use crate::start::{self, Start, Wish};
use crate::tasks::{self, Tasks};
use crate::telemetry::Telemetry;
use crate::transport::auth::{Authorize, SignIn, TokenStore, UserAgent};
use crate::trust::Trust;

/// How long the host's own tasks may take to end after the servers are gone.
const TASKS_END: Duration = Duration::from_secs(1);

/// Running MCP servers behind one set of names. Clones share the host; when the last one is
/// dropped without [`Host::shutdown`], all servers are killed at once.
#[derive(Clone, Debug)]
pub struct Host(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Arc<Registry>,
    tasks: Tasks,
    launcher: Arc<Launcher>,
    reloader: Arc<Reloader>,
    shutdown: OnceCell<ShutdownReport>,
}

/// What a host needs besides its configuration.
#[derive(Debug)]
pub struct HostBuilder {
    config: Config,
    supervisor: Option<Supervisor>,
    ledger: Option<PathBuf>,
    client: ClientInfo,
    environment: Option<Environment>,
    callbacks: Callbacks,
    sign_in: SignIn,
    events: Events,
    guard: Option<Guard>,
    watch: Option<Trust>,
    telemetry: Telemetry,
}

impl HostBuilder {
    /// Who looks after the process trees. Default: `innkeeper-shim` beside the running program if
    /// it is there, else process groups, which daemons of servers can leave.
    #[must_use]
    pub fn supervisor(mut self, supervisor: Supervisor) -> Self {
        self.supervisor = Some(supervisor);
        self
    }

    /// Where running servers are noted, so that the next host that is given the same directory
    /// ends what a killed one left. Default: nowhere.
    #[must_use]
    pub fn ledger(mut self, directory: impl Into<PathBuf>) -> Self {
        self.ledger = Some(directory.into());
        self
    }

    /// Who the host says it is. Default: `innkeeper` and its version.
    #[must_use]
    pub fn client_info(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.client = ClientInfo { name: name.into(), version: version.into() };
        self
    }

    /// What servers inherit from. Default: the environment the configuration was read against.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Who answers what servers ask of the application, such as sampling and elicitation. Servers
    /// are told of it in the handshake. Default: nobody; servers are refused.
    #[must_use]
    pub fn callback(self, answers: &Answers, callback: impl Callback) -> Self {
        let callback: Arc<dyn Callback> = Arc::new(callback);
        self.callbacks.set(answers, Some(&callback));
        self
    }

    /// Who shows a person the pages where to sign in at remote servers. It may take longer than a
    /// call does: it ends, the sign-in goes on, and the next one has its token. A start waits for it,
    /// six minutes at most, which count against none of its limits.
    /// Default: nobody; a server that wants it is unavailable.
    #[must_use]
    pub fn user_agent(mut self, agent: impl UserAgent) -> Self {
        self.sign_in.agent = Some(Arc::new(agent));
        self
    }

    /// Where tokens of remote servers are kept, in files that only their owner can read. Several
    /// hosts may share it. Default: nowhere; they end with the host.
    #[must_use]
    pub fn token_store(mut self, directory: impl Into<PathBuf>) -> Self {
        self.sign_in.directory = Some(directory.into());
        self
    }

    /// Where tokens of remote servers are kept in place of files, such as the system's keyring. In the
    /// directory of [`token_store`](Self::token_store), if there is one, several hosts then only
    /// take turns; without it, two that renew a token at once may lose it. Default: files.
    #[must_use]
    pub fn keep_tokens(mut self, store: impl TokenStore) -> Self {
        self.sign_in.store = Some(Arc::new(store));
        self
    }

    /// Who gives tokens for remote servers, in place of the OAuth client, the user agent and the
    /// token store.
    #[must_use]
    pub fn authorize(mut self, authorize: impl Authorize) -> Self {
        self.sign_in.authorize = Some(Arc::new(authorize));
        self
    }

    /// What the servers' tools were when they were pinned, and what is done with those that are
    /// not the same any more. Holds for the start, for every change of a list and every restart.
    /// Default: no pins.
    #[must_use]
    pub fn pins(mut self, lock: Lock, policy: PinPolicy) -> Self {
        self.guard = Some(Guard { lock, policy });
        self
    }

    /// Takes up what the configuration's files hold whenever that changes, as [`Host::reload`] does;
    /// what changed waits until it is started again. Nothing is started that `trust` does not let
    /// be: then [`Event::NotTrusted`] is told. Files that cannot be watched are told as
    /// [`Event::ReloadFailed`], and so is what cannot be used. A file of `envFile` is not watched.
    /// Default: nothing is watched.
    #[must_use]
    pub fn watch(mut self, trust: Trust) -> Self {
        self.watch = Some(trust);
        self
    }

    /// Where spans and metrics go, as OpenTelemetry has them. Default: nowhere, at no cost.
    #[must_use]
    pub fn telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// What happens from here on, the start included. A listener that lags loses the oldest.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.events.listen()
    }

    /// Whether everything the servers need on this machine is there; starts nothing.
    ///
    /// # Errors
    ///
    /// Every program that is missing and everything else that keeps a server from being launched.
    pub fn check(&self) -> Result<(), ConfigError> {
        let environment = self.environment.as_ref().unwrap_or(&self.config.environment);
        start::prepare(self.config.servers.values(), environment).map(drop)
    }

    /// Starts all servers, those others depend on first.
    ///
    /// # Errors
    ///
    /// A configuration that cannot be used, with every problem; or every required server that did
    /// not become ready, after everything was stopped. Dropping the future kills what was started.
    pub async fn start(self) -> Result<Host, StartError> {
        let Self { config, supervisor, ledger, client, environment, .. } = self;
        let Self { callbacks, sign_in, events, guard, watch, telemetry, .. } = self;
        // Before the start, so that what changes during it is seen after it.
        let watch = watch.map(|trust| (Watch::of(&config), trust));
        let environment = environment.unwrap_or_else(|| config.environment.clone());
        let servers = start::prepare(config.servers.values(), &environment)?;
        let servers = servers.into_iter().map(|settings| Arc::new(Server::new(settings)));
        let bare = config.host.allow_bare_names;
        let registry = Arc::new(Registry::new(servers, bare, events.clone(), guard));
        let tasks = Tasks::default();
        let ledger = match ledger {
            Some(directory) => open_ledger(directory).await,
            None => None,
        };
        let launcher = Launcher {
            supervisor: supervisor.unwrap_or_else(Supervisor::beside_this_program),
            ledger,
            client,
            limits: Limits::default(),
            start_timeout: config.host.start_timeout,
            install_timeout: config.host.install_timeout,
            callbacks,
            sign_in,
            events,
            memory: Arc::default(),
            telemetry,
            tasks: tasks.clone(),
        };
        let launcher = Arc::new(launcher);
        let reloader = Reloader {
            registry: registry.clone(),
            launcher: launcher.clone(),
            environment,
            host: config.host.clone(),
            config: ArcSwap::from_pointee(config.clone()),
            turn: Mutex::default(),
        };
        let (reloader, shutdown) = (Arc::new(reloader), OnceCell::new());
        let inner = Arc::new(Inner { registry, tasks, launcher, reloader, shutdown });
        // Before anything is started, so that dropping this future ends it.
        let host = Host(inner);
        let Inner { registry, launcher, .. } = &*host.0;
        start::start_all(registry, launcher, &config).await?;
        registry.open();
        host.watch(watch);
        Ok(host)
    }
}

/// A ledger that cannot be kept costs the sweep after a crash, not the start.
async fn open_ledger(directory: PathBuf) -> Option<Ledger> {
    // A panic is told by its hook.
    match tasks::blocking(move || Ledger::open(&directory)).await? {
        Ok((ledger, swept)) => {
            if swept.killed > 0 {
                tracing::warn!(ended = swept.killed, "ended what a killed host had left");
            }
            Some(ledger)
        }
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::error!(severity = "critical", error, "no ledger of running servers is kept");
            None
        }
    }
}

impl Host {
    /// Starts all servers of a configuration with everything at its default.
    ///
    /// # Errors
    ///
    /// As [`HostBuilder::start`].
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::builder(config).start().await
    }

    fn watch(&self, watch: Option<(Result<Watch, ConfigError>, Trust)>) {
        let Inner { reloader, tasks, .. } = &*self.0;
        match watch {
            Some((Ok(watch), trust)) => tasks.spawn(reloader.clone().watch(watch, trust)),
            Some((Err(error), _)) => reloader.failed(&error),
            None => {}
        }
    }

    /// A host that is not started yet.
    pub fn builder(config: Config) -> HostBuilder {
        HostBuilder {
            config,
            supervisor: None,
            ledger: None,
            client: ClientInfo::default(),
            environment: None,
            callbacks: Callbacks::default(),
            sign_in: SignIn::default(),
            events: Events::new(),
            guard: None,
            watch: None,
            telemetry: Telemetry::default(),
        }
    }

    /// The servers that take calls and all they offer, as of now; no await and no traffic.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.registry.catalog()
    }

    /// Calls the tool `{server}.{tool}` and gives its result as the server sent it.
    ///
    /// Dropping the future cancels the call at the server; an answer that comes later is dropped.
    ///
    /// # Errors
    ///
    /// See [`CallError`]; a tool that answers `isError` is a result, not an error.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: impl Into<Value>,
    ) -> Result<ToolResult, CallError> {
        self.call_tool_with(name, arguments, CallOptions::default()).await
    }

    /// Calls a tool with a time limit of its own or with progress.
    ///
    /// # Errors
    ///
    /// As [`Host::call_tool`].
    pub async fn call_tool_with(
        &self,
        name: &str,
        arguments: impl Into<Value>,
        options: CallOptions,
    ) -> Result<ToolResult, CallError> {
        call::tool(&self.catalog(), name, arguments.into(), options).await
    }

    /// Gets the prompt `{server}.{prompt}` as the server sent it, now or up to `cache.ttl` ago;
    /// [`CallOptions::fresh`] asks in any case. The same prompt asked for at the same time by
    /// several callers is one request. While the server is unavailable, what is kept is given
    /// however old it is, with `stale: true` and `ageSeconds` in its `_meta`.
    ///
    /// # Errors
    ///
    /// See [`CallError`]; a required argument that is missing is a validation error.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        call::prompt(&self.catalog(), name, arguments, options).await
    }

    /// Reads a resource from the server that lists its URI, or has a template for it, or is named;
    /// kept and shared as [`Host::get_prompt`] says.
    ///
    /// # Errors
    ///
    /// See [`CallError`]; a URI that several servers offer needs `server`.
    pub async fn read_resource(
        &self,
        uri: &str,
        server: Option<&str>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        call::resource(&self.catalog(), uri, server, options).await
    }

    /// Asks a server to tell of changes of a resource ([`Event::ResourceUpdated`]), until it is
    /// stopped or [`Host::unsubscribe_resource`] takes it back. At most 1,024 per server.
    ///
    /// # Errors
    ///
    /// As [`Host::read_resource`].
    pub async fn subscribe_resource(
        &self,
        uri: &str,
        server: Option<&str>,
        options: CallOptions,
    ) -> Result<(), CallError> {
        call::subscribe(&self.catalog(), uri, server, true, options).await
    }

    /// Takes [`Host::subscribe_resource`] back.
    ///
    /// # Errors
    ///
    /// As [`Host::read_resource`].
    pub async fn unsubscribe_resource(
        &self,
        uri: &str,
        server: Option<&str>,
        options: CallOptions,
    ) -> Result<(), CallError> {
        call::subscribe(&self.catalog(), uri, server, false, options).await
    }

    /// Asks a server what values an argument of a prompt or a template may have: the name and what
    /// is written of it so far, beside the arguments that are given already. Gives its result as it
    /// was sent.
    ///
    /// # Errors
    ///
    /// See [`CallError`]; a server that completes nothing answers with an error.
    pub async fn complete(
        &self,
        of: CompletionOf<'_>,
        argument: (&str, &str),
        given: &Map<String, Value>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        call::complete(&self.catalog(), of, argument, given, options).await
    }

    /// Has `callback` answer these requests of servers from now on; `None` has nobody answer.
    ///
    /// What servers were told in their handshake stays: one that was told of nothing asks nothing
    /// until it is started again.
    pub fn set_callback(&self, answers: &Answers, callback: Option<&Arc<dyn Callback>>) {
        self.0.launcher.callbacks.set(answers, callback);
    }

    /// Every server of the configuration with its state, also those that are not in the catalog.
    pub fn status(&self) -> IndexMap<Arc<str>, ServerStatus> {
        let servers = self.0.registry.servers().into_iter().map(|server| {
            let status = server.status();
            let running = status.running.as_ref();
            let told = ServerStatus {
                state: status.state,
                pid: running.and_then(|running| running.pid),
                isolation: running.and_then(|running| running.isolation),
                reason: status.lost.as_ref().map(ToString::to_string),
                last_success: server.meter.last_success().map(by_the_wall),
                in_flight: status
                    .shelf
                    .as_ref()
                    .map_or(0, |shelf| shelf.connection.session.in_flight()),
                stderr: running.map(|running| running.stderr.tail(4 << 10)).unwrap_or_default(),
                hidden: status.shelf.as_deref().map(hidden).unwrap_or_default(),
                pending_restart: status
                    .pending
                    .as_ref()
                    .map_or_else(Vec::new, |pending| pending.keys.clone()),
            };
            (server.name.clone(), told)
        });
        servers.collect()
    }

    /// The pins of every server that is ready now: what `mcp.lock` would hold. No traffic.
    pub fn pins(&self) -> Lock {
        self.0.registry.pins()
    }

    /// Counts and latencies of every server since the start.
    pub fn metrics(&self) -> IndexMap<Arc<str>, ServerMetrics> {
        let servers = self.0.registry.servers().into_iter().map(|server| {
            let mut told = server.meter.snapshot();
            if let Some(shelf) = &server.status().shelf {
                (told.cache_entries, told.cache_bytes) = shelf.connection.cache.size();
            }
            (server.name.clone(), told)
        });
        servers.collect()
    }

    /// The same and more as text for Prometheus (format 0.0.4), to be served as
    /// `text/plain; version=0.0.4`.
    pub fn prometheus(&self) -> String {
        let servers = self.0.registry.servers().into_iter().map(|server| {
            let status = server.status();
            let shelf = status.shelf.as_ref();
            prometheus::Sample {
                server: server.name.clone(),
                up: status.state == ServerState::Ready,
                restarts: status.falls.returns(),
                cache: shelf.map(|shelf| shelf.connection.cache.size()).unwrap_or_default(),
                counts: server.meter.counts(),
            }
        });
        prometheus::text(&servers.collect::<Vec<_>>())
    }

    /// What happens from here on. A listener that lags more than 1,024 events loses the oldest.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.registry.events().listen()
    }

    /// Reads the configuration from its files again and takes up what is different. New servers are
    /// started, those others depend on first; one that fails is unavailable. Those that are gone get
    /// no new calls, have a second for those under way, and are stopped. Those with the same settings
    /// are not touched, however the text has changed. Changed ones run on, and their status tells
    /// which settings wait until they are started again; `required`, `dependencies`, `timeout`,
    /// `initTimeout`, `shutdownTimeout`, `tools` and `restart` wait for nothing. Settings of the host
    /// need a new one. One reload at a time; dropping the future leaves it going on.
    ///
    /// # Errors
    ///
    /// See [`ReloadError`]: everything is as it was.
    pub async fn reload(&self) -> Result<ReloadReport, ReloadError> {
        self.reload_with(ReloadOptions::default()).await
    }

    /// Takes up a given configuration, or starts the servers that changed again at once; each is away
    /// only while it is started.
    ///
    /// # Errors
    ///
    /// As [`Host::reload`].
    pub async fn reload_with(&self, options: ReloadOptions) -> Result<ReloadReport, ReloadError> {
        let reloader = self.0.reloader.clone();
        let (done, result) = oneshot::channel();
        self.0.tasks.spawn(async move {
            // What the application asks for, it has decided on.
            let result = reloader.reload(options, &Trust::Everything).await;
            // Whoever asked for it may have stopped waiting.
            drop(done.send(result));
        });
        result.await.unwrap_or(Err(ReloadError::Shutdown))
    }

    /// Has the lists of a server read again, as if it had said that they changed; for one that may
    /// change them without a word. Ends at once: [`Event::CatalogChanged`] tells when they were
    /// read. Whether there is such a server and it takes calls.
    pub fn refresh_server(&self, name: &str) -> bool {
        let catalog = self.catalog();
        let shelf = catalog.server(name).and_then(|server| server.shelf.as_ref());
        shelf.is_some_and(|shelf| {
            shelf.connection.session.assume_changed();
            true
        })
    }

    /// Stops a server, whatever state it is in, and starts it again with the settings it had, or
    /// those that wait for that since a reload. Its calls under way fail, those to others go on. Ends
    /// within its `shutdownTimeout`, the host's `startTimeout` and two seconds, also where a person
    /// has to sign in: that goes on, and a later restart makes use of it. A second restart of the
    /// same server waits for the first. Dropping the future leaves the restart going on.
    ///
    /// # Errors
    ///
    /// See [`RestartError`]; a server that does not become ready again is unavailable.
    pub async fn restart_server(&self, name: &str) -> Result<(), RestartError> {
        let Inner { registry, launcher, tasks, .. } = &*self.0;
        let Some(server) = registry.server(name) else {
            return Err(RestartError::Unknown(name.into()));
        };
        let start = Start::of(registry, launcher, &server);
        let restart = start::restart(start, Wish::Asked);
        let (done, result) = oneshot::channel();
        // Whoever asked for it may have stopped waiting.
        tasks.spawn(async move { drop(done.send(restart.await)) });
        result.await.unwrap_or(Err(RestartError::Shutdown))
    }

    /// Refuses new calls, lets those under way finish for up to a second, then stops every server
    /// (dependents first) and waits until nothing is left of it. Ends within the longest
    /// `shutdownTimeout` and three seconds. A second call gives the same report; dropping the
    /// future leaves the rest to the next call or to the drop of the host.
    pub async fn shutdown(&self) -> ShutdownReport {
        let report = self.0.shutdown.get_or_init(|| async {
            let catalog = self.catalog();
            self.0.registry.close();
            // Calls that need longer fail as the servers stop.
            drop(timeout(DRAIN, catalog.idle()).await);
            // A reload ends as soon as it sees that.
            drop(timeout(TASKS_END, self.0.reloader.turn.lock()).await);
            let config = self.0.reloader.config.load_full();
            let report = shutdown::stop_all(&self.0.registry, &config).await;
            self.0.tasks.stop();
            // A task that does not end holds nothing of a server any more.
            drop(timeout(TASKS_END, self.0.tasks.ended()).await);
            report
        });
        report.await.clone()
    }

    /// Kills every server now; needs no runtime. [`Host::shutdown`] still tells how they ended.
    pub fn kill(&self) {
        self.0.kill();
    }
}

impl Inner {
    fn kill(&self) {
        // What is killed is not to be started again.
        self.registry.close();
        for server in self.registry.servers().into_iter().chain(self.registry.leaving()) {
            let status = server.status();
            let running = status.running.as_ref().and_then(|running| running.killer.as_ref());
            for killer in running.into_iter().chain(&status.launching) {
                killer.kill();
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.kill();
        self.tasks.stop();
    }
}

/// The tools that are kept out, with the reason.
fn hidden(shelf: &Shelf) -> Vec<(Box<str>, String)> {
    let told = |hidden: &Hidden| (hidden.tool.view.name.as_str().into(), hidden.reason.clone());
    shelf.hidden.iter().map(told).collect()
}

/// The time of day of a moment that is over.
fn by_the_wall(moment: Instant) -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(moment.elapsed()).unwrap_or(now)
}

/// One server as the host sees it.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// Where it is in its life.
    pub state: ServerState,
    /// The process id of the server itself, while it runs.
    pub pid: Option<u32>,
    /// What holds its process tree together, while it runs.
    pub isolation: Option<Isolation>,
    /// Why it is unavailable.
    pub reason: Option<String>,
    /// When a call last had a result that is not an error; moves with nothing else.
    pub last_success: Option<SystemTime>,
    /// Requests that wait for its answer.
    pub in_flight: usize,
    /// The last it wrote to stderr, escaped for display; at most 4 KiB.
    pub stderr: String,
    /// Tools it has that are not offered, with the reason.
    pub hidden: Vec<(Box<str>, String)>,
    /// Keys of its configuration that have changed and wait until it is started again.
    pub pending_restart: Vec<&'static str>,
}
