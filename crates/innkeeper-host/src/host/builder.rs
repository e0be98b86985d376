//! A host that is not started yet: what it needs besides its configuration, then its start.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, OnceCell, broadcast};

use super::{Host, Inner};
use crate::callback::{Answers, Callback, Callbacks};
use crate::config::{Config, ConfigError, Environment, Problem, Watch};
use crate::error::StartError;
use crate::event::{Event, Events};
use crate::guard;
use crate::ledger::Ledger;
use crate::lock::{Guard, Lock, PinPolicy};
use crate::registry::Registry;
use crate::reload::Reloader;
use crate::server::Server;
use crate::server::connect::ClientInfo;
use crate::server::launch::Launcher;
use crate::server::process::Supervisor;
use crate::server::session::Limits;
use crate::start;
use crate::tasks::{self, Tasks};
use crate::telemetry::Telemetry;
use crate::text::display_safe;
use crate::transport::auth::{Authorize, SignIn, TokenStore, UserAgent};
use crate::trust::Trust;

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
    /// With everything at its default.
    pub(super) fn of(config: Config) -> Self {
        Self {
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

    /// Whether everything the servers need on this machine is there; starts nothing. Gives a warning
    /// for each server that may be missing and whose program is.
    ///
    /// # Errors
    ///
    /// Every program that is missing and everything else that keeps a server from being launched,
    /// with those warnings.
    pub fn check(&self) -> Result<Vec<Problem>, ConfigError> {
        let environment = self.environment.as_ref().unwrap_or(&self.config.environment);
        let prepared = start::prepare(self.config.servers.values(), environment)?;
        let problems = prepared.iter().filter_map(|settings| settings.way.problem().cloned());
        Ok(problems.collect())
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
        guard::prepare(config.servers.values());
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

impl Host {
    fn watch(&self, watch: Option<(Result<Watch, ConfigError>, Trust)>) {
        let Inner { reloader, tasks, .. } = &*self.0;
        match watch {
            Some((Ok(watch), trust)) => tasks.spawn(reloader.clone().watch(watch, trust)),
            Some((Err(error), _)) => reloader.failed(&error),
            None => {}
        }
    }
}

/// A ledger that cannot be kept costs the sweep after a crash, not the start.
async fn open_ledger(directory: PathBuf) -> Option<Ledger> {
    let at = directory.clone();
    // A panic is told by its hook.
    match tasks::blocking(move || Ledger::open(&at)).await? {
        Ok((ledger, swept)) => {
            if swept.killed > 0 {
                tracing::warn!(ended = swept.killed, "ended what a killed host had left");
            }
            Some(ledger)
        }
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            let directory = display_safe(&directory.to_string_lossy()).into_owned();
            let said = "no ledger of running servers is kept";
            tracing::error!(severity = "critical", error, directory, "{said}");
            None
        }
    }
}
