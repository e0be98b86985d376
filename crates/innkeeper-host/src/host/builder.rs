//! The builder of a host: options in addition to the configuration, then the start.

mod message_size;
mod runner_check;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use innkeeper_config::{Config, ConfigError, ConfigWatcher, Diagnostic, Environment};
use innkeeper_process::Supervisor;
use innkeeper_process::ledger::Ledger;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, OnceCell, broadcast};

use super::{Host, HostInner};
use crate::callback::{Callback, CallbackCapabilities, CallbackRegistry};
use crate::connection::handshake::ClientInfo;
use crate::connection::log_level::{LogLevel, LogLevels};
use crate::error::StartError;
use crate::event::{EventPublisher, HostEvent};
use crate::guard;
use crate::lock::{Lock, PinPolicy, PinVerifier};
use crate::own_files::OwnFiles;
use crate::registry::{self, Registry};
use crate::reload::Reloader;
use crate::remote_session::RemoteSession;
use crate::server::connector::{Connector, ConnectorSource, Connectors, ServerStream};
use crate::server::endpoint_opener::{EndpointOpener, SystemOpener};
use crate::server::launch::{Launcher, SilentServers, StartSlots};
use crate::server::{Server, endpoint_resolution};
use crate::session::{SessionDirectory, SessionLimits};
use crate::shutdown::AwaitedShutdowns;
use crate::start;
use crate::tasks::{self, BackgroundTasks};
use crate::telemetry::Telemetry;
use crate::text::display_safe;
use crate::transport::auth::{AuthManager, TokenProvider, TokenStore, UserAgent};
use crate::trust::TrustPolicy;

pub use runner_check::RunnerCheck;

/// The options of a host in addition to its configuration.
///
/// # Examples
///
/// ```no_run
/// use innkeeper_host::{Config, Host, Lock, PinPolicy, TrustPolicy};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut builder = Host::builder(Config::from_file("mcp.json")?)
///     .client_info("example-app", "1.0.0")
///     .watch(TrustPolicy::from_fn(|launch| launch.name == "files"));
/// if let Some(lock) = Lock::from_file("mcp.lock")? {
///     builder = builder.pins(lock, PinPolicy::Refuse);
/// }
/// let host = builder.start().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HostBuilder {
    config: Config,
    supervisor: Option<Supervisor>,
    ledger: Option<PathBuf>,
    handshake_notes: Option<PathBuf>,
    /// Maximum wait for servers that start; `None` for as long as the starts take.
    start_wait: Option<Duration>,
    client: ClientInfo,
    environment: Option<Environment>,
    callbacks: CallbackRegistry,
    log_levels: LogLevels,
    pings_unresponsive: bool,
    revives_servers: bool,
    auth: AuthManager,
    events: EventPublisher,
    pin_verifier: Option<PinVerifier>,
    watch: Option<TrustPolicy>,
    telemetry: Telemetry,
    /// Default: the processes and the network of the system.
    pub(crate) opener: Option<Arc<dyn EndpointOpener>>,
    pub(crate) limits: SessionLimits,
    connectors: Connectors,
    continued_sessions: HashMap<String, RemoteSession>,
    /// Default: as many as the configuration says.
    start_slots: Option<StartSlots>,
    leaves_stopped: bool,
    /// Files and directories that no sandbox may write.
    protected: Vec<PathBuf>,
}

impl HostBuilder {
    /// Creates a builder with default options.
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            supervisor: None,
            ledger: None,
            handshake_notes: None,
            start_wait: None,
            client: ClientInfo::default(),
            environment: None,
            callbacks: CallbackRegistry::default(),
            log_levels: LogLevels::default(),
            pings_unresponsive: false,
            revives_servers: false,
            auth: AuthManager::default(),
            events: EventPublisher::new(),
            pin_verifier: None,
            watch: None,
            telemetry: Telemetry::default(),
            opener: None,
            limits: SessionLimits::default(),
            connectors: Connectors::default(),
            continued_sessions: HashMap::new(),
            start_slots: None,
            leaves_stopped: false,
            protected: Vec::new(),
        }
    }

    /// Sets the supervisor of the process trees. Default: [`Supervisor::available`], the program
    /// that the library contains. On systems where the library contains none, `innkeeper-shim` in
    /// the directory of the running program if the file exists, else process groups, which daemons
    /// of a server can leave.
    #[must_use]
    pub fn supervisor(mut self, supervisor: Supervisor) -> Self {
        self.supervisor = Some(supervisor);
        self
    }

    /// Sets the directory of the ledger of running servers. The next host with the same directory
    /// terminates the processes that a killed host left. Default: no ledger.
    #[must_use]
    pub fn ledger(mut self, directory: impl Into<PathBuf>) -> Self {
        self.ledger = Some(directory.into());
        self
    }

    /// Sets the longest time that [`start`](Self::start) waits for servers. After this time it returns a
    /// host whose slow servers go on starting: their state is
    /// [`ServerState::Starting`](crate::ServerState::Starting), and [`HostEvent::Ready`] and
    /// [`HostEvent::CatalogChanged`] follow. All servers are optional then, as with
    /// [`Config::with_optional_servers`]. Default: as long as the starts take.
    #[must_use]
    pub fn start_wait(mut self, limit: Duration) -> Self {
        self.start_wait = Some(limit);
        self
    }

    /// Sets the directory for notes about servers that do not answer `server/discover`. For a week,
    /// the next host with the same directory sends them `initialize` first, and does not wait 5 s.
    /// The notes contain nothing but hashes of commands with their arguments. Default: the notes
    /// exist only in memory, for restarts.
    #[must_use]
    pub fn handshake_notes(mut self, directory: impl Into<PathBuf>) -> Self {
        self.handshake_notes = Some(directory.into());
        self
    }

    /// Names files and directories of the application that no sandbox may write, whether they exist or
    /// not: a server whose `write` contains one of them, or a part of one, does not start. The files of the
    /// configuration, the lock, the [ledger](Self::ledger) and the [tokens](Self::token_directory) are
    /// protected without a call. Default: no others.
    #[must_use]
    pub fn protect(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.protected.extend(paths);
        self
    }

    /// Returns all files and directories that no sandbox may write, but for the configuration's own.
    fn protected(&self) -> Vec<PathBuf> {
        let own = self.ledger.iter().chain(&self.auth.token_directory);
        self.protected.iter().chain(own).cloned().collect()
    }

    /// Sets the name and version of the client in the handshake. Default: `innkeeper` and its
    /// version.
    #[must_use]
    pub fn client_info(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.client = ClientInfo { name: name.into(), version: version.into() };
        self
    }

    /// Sets the environment that servers inherit from. Default: the environment that the
    /// configuration was loaded with.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Registers a callback for requests of servers, for example sampling and elicitation. The
    /// handshake declares the capabilities to the servers. Default: no callback; the host rejects
    /// such requests.
    #[must_use]
    pub fn callback(self, capabilities: &CallbackCapabilities, callback: impl Callback) -> Self {
        let callback: Arc<dyn Callback> = Arc::new(callback);
        self.callbacks.set(capabilities, Some(&callback));
        self
    }

    /// Sets the minimum level of the log messages of all servers, as [`Host::set_log_level`] does,
    /// from their start. A server that rejects the level starts anyway. Default: the host sends no
    /// level; a server of the legacy era then selects the level, and a server of the modern era
    /// sends no log messages.
    #[must_use]
    pub fn log_level(self, level: LogLevel) -> Self {
        self.log_levels.set_all(level);
        self
    }

    /// Sets whether timeouts make a server unavailable (`unavailableAfterTimeouts`) only if the server
    /// then does not respond to a `ping` either, in the modern era to `server/discover`, within its
    /// `timeout` and 5 s.
    /// With `true`, a slow call of one remote client does not take the server from the others. Default:
    /// `false`.
    #[must_use]
    pub fn ping_unresponsive(mut self, enabled: bool) -> Self {
        self.pings_unresponsive = enabled;
        self
    }

    /// Sets whether the host brings back servers whose configuration has no `restart`: servers that
    /// end, that stay silent, and that do not start, unless the failure says that another start
    /// cannot help, for example because a variable is missing. A server that has an `idleTimeout` and
    /// ends is left to its next use.
    ///
    /// The delays between the attempts grow from 1 s to 30 s, without a maximum number. A silent
    /// server ([`UnavailableReason::Unresponsive`](crate::error::UnavailableReason::Unresponsive)) is
    /// restarted after another `timeout` without a response, at least 10 s and at most 60 s, when no
    /// call is in flight. With `true`, a `restart.onFailure` of the configuration applies to silent
    /// servers, too. Default: `false`.
    #[must_use]
    pub fn revive_servers(mut self, enabled: bool) -> Self {
        self.revives_servers = enabled;
        self
    }

    /// Sets the user agent, which opens the sign-in pages of remote servers for a person.
    ///
    /// A sign-in may take longer than a call: the call ends, the sign-in continues, and the next
    /// call uses the token. A start waits at most six minutes for a sign-in; this time does not
    /// count against the start limits. Default: no user agent; a server that requires a sign-in is
    /// unavailable.
    #[must_use]
    pub fn user_agent(mut self, agent: impl UserAgent) -> Self {
        self.auth.user_agent = Some(Arc::new(agent));
        self
    }

    /// Sets the directory for the tokens of remote servers. Only the owner can read the files.
    /// Several hosts may share the directory. Default: tokens exist only in memory.
    #[must_use]
    pub fn token_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.auth.token_directory = Some(directory.into());
        self
    }

    /// Sets a token store in place of files, for example the system's keyring.
    ///
    /// With a [`token_directory`](Self::token_directory), several hosts use the directory only for
    /// locks. Without one, two hosts that renew the same token at the same time may lose the token.
    /// Default: files.
    #[must_use]
    pub fn token_store(mut self, store: impl TokenStore) -> Self {
        self.auth.token_store = Some(Arc::new(store));
        self
    }

    /// Sets the provider of tokens for remote servers, in place of the OAuth client, the user agent
    /// and the token store.
    #[must_use]
    pub fn token_provider(mut self, provider: impl TokenProvider) -> Self {
        self.auth.token_provider = Some(Arc::new(provider));
        self
    }

    /// Sets the pins of the servers and the policy for items that differ from their pins. The
    /// policy applies to the start, to every change of a list and to every restart. Default: no
    /// pins.
    #[must_use]
    pub fn pins(mut self, lock: Lock, policy: PinPolicy) -> Self {
        self.pin_verifier = Some(PinVerifier { lock, policy });
        self
    }

    /// Adds a server that runs in the process of the application. The host calls the connector at
    /// each start of the server, so restarts and retries work as for other servers.
    ///
    /// The settings are those of the entry of the type `in-process` with this name, for example
    /// `{"type": "in-process", "dependencies": ["files"]}`. Without an entry, the server is
    /// required, and has the default settings. A second server with this name replaces the first.
    #[must_use]
    pub fn connector(mut self, name: impl Into<String>, connector: impl Connector) -> Self {
        let source = ConnectorSource::Connector(Box::new(connector));
        self.connectors.insert(name.into(), source);
        self
    }

    /// Adds a running server at the other end of a stream, for example of [`tokio::io::duplex`], or
    /// of a reader and a writer joined by [`tokio::io::join`]. See [`Self::connector`] for the
    /// settings of the server.
    ///
    /// The host can start the server once: a restart fails with
    /// [`ConnectorError::AlreadyUsed`](crate::error::ConnectorError::AlreadyUsed).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(serve: fn(tokio::io::DuplexStream)) -> Result<(), innkeeper_host::StartError> {
    /// use innkeeper_host::{Config, Host};
    ///
    /// let (stream, server_stream) = tokio::io::duplex(64 * 1024);
    /// serve(server_stream);
    /// let host = Host::builder(Config::default()).connect("greeter", stream).start().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn connect(
        mut self,
        name: impl Into<String>,
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
    ) -> Self {
        let stream = StdMutex::new(Some(ServerStream::new(stream)));
        self.connectors.insert(name.into(), ConnectorSource::Stream(stream));
        self
    }

    /// Continues a session of another host with a remote server ([`Host::remote_sessions`]), in place of the
    /// handshake of the first start. The server keeps what it knows of the session. The other host must no
    /// longer use the session.
    ///
    /// The host begins a session of its own if the server has another address or other configured headers
    /// than the session, or if the server forgot the session: [`RemoteSession::is_same`] tells. If the start fails, the
    /// session is not ended at the server. A session for an unknown server is ignored.
    #[must_use]
    pub fn continue_remote_session(
        mut self,
        server: impl Into<String>,
        session: RemoteSession,
    ) -> Self {
        self.continued_sessions.insert(server.into(), session);
        self
    }

    /// Sets the slots of servers that start at the same time, for hosts that share them. Default:
    /// `concurrentStarts` of the host's configuration.
    #[must_use]
    pub fn start_slots(mut self, slots: StartSlots) -> Self {
        self.start_slots = Some(slots);
        self
    }

    /// Leaves every server stopped, as after [`Host::stop_server`]: [`Host::restart_server`] starts a
    /// server, and does not wait for its dependencies. [`Self::start`] then runs no program. Default:
    /// all servers start.
    #[must_use]
    pub fn leave_stopped(mut self) -> Self {
        self.leaves_stopped = true;
        self
    }

    /// Reloads the configuration whenever its files change, as [`Host::reload`] does.
    ///
    /// A changed server keeps its settings until the next restart. The host starts nothing that
    /// `trust` does not allow, and publishes [`HostEvent::NotTrusted`] instead. For an invalid
    /// configuration and for files that the host cannot watch, the host publishes
    /// [`HostEvent::ReloadFailed`]. The host does not watch an `envFile`. Default: no watch.
    #[must_use]
    pub fn watch(mut self, trust: TrustPolicy) -> Self {
        self.watch = Some(trust);
        self
    }

    /// Sets the OpenTelemetry providers for spans and metrics. Default: none, at no cost.
    #[must_use]
    pub fn telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Subscribes to the events from now on, including the start. A receiver that lags more than
    /// 1,024 events loses the oldest events.
    pub fn events(&self) -> broadcast::Receiver<HostEvent> {
        self.events.subscribe()
    }

    /// Checks whether this machine has everything that the servers need, without a start. Returns a
    /// warning for each optional server that cannot start, for example because its program is
    /// missing.
    ///
    /// # Errors
    ///
    /// Returns every missing program and every other problem that prevents a launch, with the
    /// problems of the servers in [`Config::invalid`] and the warnings.
    pub fn check(&self) -> Result<Vec<Diagnostic>, ConfigError> {
        let environment = self.environment.as_ref().unwrap_or(&self.config.environment);
        let mut config = self.config.clone();
        self.connectors.complete(&mut config)?;
        let servers = config.servers.values();
        let mut problems: Vec<Diagnostic> =
            config.invalid.values().flat_map(|server| server.problems.clone()).collect();
        let own_files = OwnFiles::new(&config, &self.protected());
        match endpoint_resolution::prepare(servers, environment, &self.connectors, &own_files) {
            Ok(prepared) => problems.extend(
                prepared.iter().filter_map(|settings| settings.endpoint.diagnostic().cloned()),
            ),
            Err(ConfigError(other_problems)) => problems.extend(other_problems),
        }
        if problems.iter().any(Diagnostic::is_error) {
            return Err(ConfigError(problems));
        }
        Ok(problems)
    }

    /// Starts all servers in dependency order.
    ///
    /// A server in [`Config::invalid`] is unavailable, and the servers that depend on the server do
    /// not start.
    ///
    /// At most `concurrentStarts` servers (default: 8) start at the same time. The host's
    /// `startTimeout` (default: 60 s) limits the start of all servers together. The `initTimeout` of
    /// each server (default: 30 s) limits the start of that server. Neither includes the wait for
    /// other starts, a sign-in, or the installation of a package, which `installTimeout` (default: 5
    /// minutes) limits. Dropping the future kills the started servers.
    ///
    /// # Errors
    ///
    /// Returns all problems of an invalid configuration. If a required server does not become
    /// ready, stops all servers and returns every such server.
    pub async fn start(self) -> Result<Host, StartError> {
        let protected = self.protected();
        let Self { mut config, supervisor, ledger, client, environment, .. } = self;
        let Self { callbacks, log_levels, auth, events, pin_verifier, watch, telemetry, .. } = self;
        let Self { opener, limits, connectors, pings_unresponsive, revives_servers, .. } = self;
        let Self { mut continued_sessions, start_slots, leaves_stopped, .. } = self;
        let Self { handshake_notes, start_wait, .. } = self;
        if start_wait.is_some() {
            config = config.with_optional_servers();
        }
        // The watcher exists before the start, so a change during the start is detected.
        let watch = watch.map(|trust| (ConfigWatcher::new(&config), trust));
        let environment = environment.unwrap_or_else(|| config.environment.clone());
        connectors.complete(&mut config)?;
        let own_files = OwnFiles::new(&config, &protected);
        let servers = config.servers.values();
        let servers =
            endpoint_resolution::prepare_start(servers, &environment, &connectors, &own_files)?;
        guard::prepare(config.servers.values());
        let servers = servers.into_iter().map(|settings| {
            let server = Server::new(settings);
            server.status().continued_session = continued_sessions.remove(&*server.name);
            Arc::new(server)
        });
        let bare = config.host.allow_bare_names;
        let invalid = registry::invalid_servers(&config);
        let registry =
            Arc::new(Registry::new(servers, invalid, bare, events.clone(), pin_verifier));
        let tasks = BackgroundTasks::default();
        let ledger = match ledger {
            Some(directory) => open_ledger(directory).await,
            None => None,
        };
        let supervisor = supervisor.unwrap_or_else(Supervisor::available);
        let opener = opener
            .unwrap_or_else(|| Arc::new(SystemOpener { supervisor: supervisor.clone(), ledger }));
        let launcher = Launcher {
            supervisor,
            opener,
            client,
            limits,
            start_timeout: config.host.start_timeout,
            install_timeout: config.host.install_timeout,
            start_slots: start_slots
                .unwrap_or_else(|| StartSlots::new(config.host.concurrent_starts)),
            silent_servers: SilentServers::new(handshake_notes),
            callbacks,
            log_levels,
            pings_unresponsive,
            revives_servers,
            sign_in: auth,
            events,
            sessions: SessionDirectory::default(),
            secret_fingerprints: Arc::default(),
            telemetry,
            tasks: tasks.clone(),
        };
        let launcher = Arc::new(launcher);
        let reloader = Reloader {
            registry: registry.clone(),
            launcher: launcher.clone(),
            environment,
            connectors,
            protected,
            host: config.host.clone(),
            config: ArcSwap::from_pointee(config.clone()),
            reload_lock: Mutex::default(),
        };
        let reloader = Arc::new(reloader);
        let shutdown = OnceCell::new();
        let awaited_shutdowns = AwaitedShutdowns::default();
        let inner = HostInner { registry, tasks, launcher, reloader, shutdown, awaited_shutdowns };
        // The host exists before the first launch, so dropping this future kills the servers.
        let host = Host(Arc::new(inner));
        let HostInner { registry, launcher, .. } = &*host.0;
        if leaves_stopped {
            registry.leave_stopped();
        } else {
            match start_wait {
                Some(wait) => start::start_in_background(registry, launcher, &config, wait).await,
                None => start::start_all(registry, launcher, &config).await?,
            }
        }
        registry.open();
        host.watch(watch);
        Ok(host)
    }
}

impl Host {
    fn watch(&self, watch: Option<(Result<ConfigWatcher, ConfigError>, TrustPolicy)>) {
        let HostInner { reloader, tasks, .. } = &*self.0;
        match watch {
            Some((Ok(watch), trust)) => tasks.spawn(reloader.clone().watch(watch, trust)),
            Some((Err(error), _)) => reloader.report_failure(&error),
            None => {}
        }
    }
}

/// Opens the ledger. Without a ledger, the host cannot sweep after a crash, but can start.
async fn open_ledger(directory: PathBuf) -> Option<Ledger> {
    let at = directory.clone();
    // The panic hook reports a panic.
    match tasks::run_blocking(move || Ledger::open(&at)).await? {
        Ok((ledger, swept)) => {
            if swept.killed > 0 {
                tracing::warn!(ended = swept.killed, "processes of a killed host terminated");
            }
            Some(ledger)
        }
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            let directory = display_safe(&directory.to_string_lossy()).into_owned();
            let said = "cannot open the ledger of running servers";
            tracing::error!(severity = "critical", error, directory, "{said}");
            None
        }
    }
}
