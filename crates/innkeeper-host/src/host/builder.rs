//! The builder of a host: options in addition to the configuration, then the start.

mod endpoints;
mod message_size;
mod runner_check;
mod sign_in;
mod start;

use std::sync::{Arc, Mutex as StdMutex};

use innkeeper_config::{Config, ConfigError, Diagnostic};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::broadcast;

use crate::callback::{Callback, CallbackCapabilities};
use crate::connection::handshake::ClientInfo;
use crate::connection::log_level::LogLevel;
use crate::event::HostEvent;
use crate::lock::{Lock, PinPolicy, PinVerifier};
use crate::own_files::OwnFiles;
use crate::server::connector::{Connector, ConnectorSource, ServerStream};
use crate::server::endpoint_resolution;
use crate::server::launch::ClientOptions;
use crate::session::HostContext;
use crate::telemetry::Telemetry;
use crate::transport::auth::AuthManager;
use crate::trust::TrustPolicy;

use endpoints::EndpointOptions;
pub use runner_check::RunnerCheck;
use start::StartOptions;

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
    pin_verifier: Option<PinVerifier>,
    watch: Option<TrustPolicy>,
    pub(crate) endpoints: EndpointOptions,
    start: StartOptions,
    pub(crate) client: ClientOptions,
    sign_in: AuthManager,
    host: HostContext,
}

impl HostBuilder {
    /// Creates a builder with default options.
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            pin_verifier: None,
            watch: None,
            endpoints: EndpointOptions::default(),
            start: StartOptions::default(),
            client: ClientOptions::default(),
            sign_in: AuthManager::default(),
            host: HostContext::default(),
        }
    }

    /// Sets the name and version of the client in the handshake. Default: `innkeeper` and its
    /// version.
    #[must_use]
    pub fn client_info(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.client.info = ClientInfo { name: name.into(), version: version.into() };
        self
    }

    /// Registers a callback for requests of servers, for example sampling and elicitation. The
    /// handshake declares the capabilities to the servers. Default: no callback; the host rejects
    /// such requests.
    #[must_use]
    pub fn callback(self, capabilities: &CallbackCapabilities, callback: impl Callback) -> Self {
        let callback: Arc<dyn Callback> = Arc::new(callback);
        self.host.callbacks.set(capabilities, Some(&callback));
        self
    }

    /// Sets the minimum level of the log messages of all servers, as [`Host::set_log_level`](crate::Host::set_log_level) does,
    /// from their start. A server that rejects the level starts anyway. Default: the host sends no
    /// level; a server of the legacy era then selects the level, and a server of the modern era
    /// sends no log messages.
    #[must_use]
    pub fn log_level(self, level: LogLevel) -> Self {
        self.client.log_levels.set_all(level);
        self
    }

    /// Sets whether timeouts make a server unavailable (`unavailableAfterTimeouts`) only if the server
    /// then does not respond to a `ping` either, in the modern era to `server/discover`, within its
    /// `timeout` and 5 s.
    /// With `true`, a slow call of one remote client does not take the server from the others. Default:
    /// `false`.
    #[must_use]
    pub fn ping_unresponsive(mut self, enabled: bool) -> Self {
        self.client.pings_unresponsive = enabled;
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
        self.client.revives_servers = enabled;
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
        self.endpoints.connectors.insert(name.into(), source);
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
        self.endpoints.connectors.insert(name.into(), ConnectorSource::Stream(stream));
        self
    }

    /// Reloads the configuration whenever its files change, as [`Host::reload`](crate::Host::reload) does.
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
        self.client.telemetry = telemetry;
        self
    }

    /// Subscribes to the events from now on, including the start. A receiver that lags more than
    /// 1,024 events loses the oldest events.
    pub fn events(&self) -> broadcast::Receiver<HostEvent> {
        self.host.events.subscribe()
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
        let environment = self.inherited_environment();
        let mut config = self.config.clone();
        self.endpoints.connectors.complete(&mut config)?;
        let servers = config.servers.values();
        let mut problems: Vec<Diagnostic> =
            config.invalid.values().flat_map(|server| server.problems.clone()).collect();
        let own_files = OwnFiles::new(&config, &self.protected());
        match endpoint_resolution::prepare(
            servers,
            environment,
            &self.endpoints.connectors,
            &own_files,
        ) {
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
}
