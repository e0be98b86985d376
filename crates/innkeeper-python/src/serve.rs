//! The gateway inside this process: all servers of a configuration as one MCP server over HTTP.
//!
//! It runs on the threads of the runtime, so the application's own thread and loop do not serve it.
//! The gateway has a host of its own. It ends with [`GatewayServer::close`], with its object, or with
//! the interpreter.

mod connection_lookup;
mod settings;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use innkeeper::config::{ServeConfig, Share, TransportConfig};
use innkeeper::lock::{Lock, PinPolicy};
use innkeeper::{Config as HostConfig, Environment, Host as LibraryHost, HostBuilder};
use innkeeper_gateway::auth::{AuthSettings, Authenticator, ExposurePermissions, check_exposure};
use innkeeper_gateway::connections::{
    CapabilityRegistry, ClientCapabilities, ConnectionAccess, ConnectionService,
};
use innkeeper_gateway::origin::{OriginCheck, OriginSettings};
use innkeeper_gateway::policy::ToolPolicy;
use innkeeper_gateway::rate_limits::RateLimits;
use innkeeper_gateway::{
    Bindings, ConsoleOptions, Gateway, GatewayBuilder, GatewayOptions, HttpAccess,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::failure::Failure;
use crate::host::RunningHost;
use crate::json::parameter_json;
use crate::operation::{Operation, Output};
use crate::runtime;
use settings::Settings;

/// A running gateway.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct GatewayServer(Arc<RunningGateway>);

struct RunningGateway {
    pid: u32,
    /// `None` only while the value is dropped.
    gateway: Option<Gateway>,
    address: SocketAddr,
    connections: Option<Connections>,
    /// `None` after the close.
    serving: Mutex<Option<JoinHandle<()>>>,
}

/// The connection service with the access to it.
struct Connections {
    service: ConnectionService,
    registry: CapabilityRegistry,
    access: ConnectionAccess,
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        let gateway = self.gateway.take();
        if self.pid == std::process::id() {
            // The task that serves stops the servers then.
            gateway.iter().for_each(Gateway::close);
        } else {
            // The servers are the parent's.
            std::mem::forget(gateway);
        }
    }
}

#[pymethods]
impl GatewayServer {
    /// Starts the servers of a configuration, and serves them over HTTP.
    #[staticmethod]
    #[pyo3(signature = (config, settings, lock))]
    fn start(
        config: &Config,
        settings: &Bound<'_, PyAny>,
        lock: Option<PathBuf>,
    ) -> PyResult<Operation> {
        let source = config.source();
        let settings = parameter_json(settings, "the settings")?;
        let settings: Settings = serde_json::from_str(settings.get())
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Operation::new(async move {
            let config = source.load().map_err(Failure::Config)?;
            let lock = lock.as_deref().map(read_lock).transpose()?;
            let running = Arc::new(start(config, settings, lock).await?);
            Ok(Output::Object(Box::new(|py| Ok(Py::new(py, Self(running))?.into_any()))))
        }))
    }

    /// The address on which the gateway listens.
    #[getter]
    fn address(&self) -> String {
        self.0.address.to_string()
    }

    /// The start of the paths of the connection service; `None` without the service.
    #[getter]
    fn connection_prefix(&self) -> Option<String> {
        let connections = self.0.connections.as_ref()?;
        Some(connections.service.options().prefix.to_string())
    }

    /// Accepts no more requests, finishes those in flight, and stops all servers. A child after `fork`
    /// leaves its parent's gateway alone.
    fn close(&self) -> Operation {
        let running = self.0.clone();
        Operation::new(async move {
            let Ok(gateway) = running.gateway() else { return Ok(Output::None) };
            gateway.close();
            let mut serving = running.serving.lock().await;
            if let Some(task) = &mut *serving {
                task.await.map_err(|error| Failure::Internal(error.to_string()))?;
                *serving = None;
            }
            Ok(Output::None)
        })
    }

    /// Finds the active connection of a request to the application, which has `feature` if that is
    /// given. The result is the connection, or the response to the request.
    #[pyo3(signature = (headers, feature))]
    fn find_connection(
        &self,
        headers: Vec<(Vec<u8>, Vec<u8>)>,
        feature: Option<String>,
    ) -> Operation {
        let running = self.0.clone();
        Operation::new(async move {
            running.gateway()?;
            connection_lookup::find(running.connections.as_ref(), headers, feature.as_deref()).await
        })
    }

    /// Returns whether a client with these capabilities has a feature that this server has.
    fn is_feature_enabled(&self, name: &str, capabilities: &Bound<'_, PyAny>) -> PyResult<bool> {
        let json = parameter_json(capabilities, "the capabilities")?;
        let capabilities: Result<ClientCapabilities, _> = serde_json::from_str(json.get());
        // Capabilities that cannot be read enable nothing.
        Ok(match (&self.0.connections, capabilities) {
            (Some(connections), Ok(capabilities)) => {
                connections.registry.is_feature_enabled(name, &capabilities)
            }
            (None, _) | (_, Err(_)) => false,
        })
    }
}

impl RunningGateway {
    fn gateway(&self) -> Result<&Gateway, Failure> {
        let is_own = self.pid == std::process::id();
        self.gateway.as_ref().filter(|_| is_own).ok_or(Failure::OtherProcess)
    }
}

fn read_lock(path: &Path) -> Result<Lock, Failure> {
    let lock = Lock::from_file(path).map_err(|error| Failure::Lock(error.to_string()))?;
    lock.ok_or_else(|| {
        Failure::Lock(format!("no file `{}`: write it with `innkeeper lock`", path.display()))
    })
}

async fn start(
    mut config: HostConfig,
    settings: Settings,
    lock: Option<Lock>,
) -> Result<RunningGateway, Failure> {
    let mut serve = config.serve.clone().unwrap_or_default();
    settings.apply(&mut serve)?;
    check_serve(&config, &serve, settings.allow_unauthenticated)?;
    let mut options = GatewayOptions::from_config(&serve);
    let required = config.servers.iter().filter(|(_, server)| server.required);
    options.required_servers = required.map(|(name, _)| name.clone()).collect();
    let max_connections = options.limits.max_sessions;
    // The process of this gateway is the only one of a server.
    let singletons =
        config.servers.values_mut().filter(|server| server.lifecycle.share == Share::Singleton);
    singletons.for_each(|server| server.lifecycle.share = Share::Process);
    // A server that does not start must not take the others from the clients.
    config = config.with_optional_servers();
    let service = settings.connection_service(max_connections).await?;
    let pinned = move |builder: HostBuilder| match &lock {
        Some(lock) => builder.pins(lock.clone(), PinPolicy::Refuse),
        None => builder,
    };
    let mut builder = GatewayBuilder::new(options)
        .policy(ToolPolicy::from_config(&serve))
        .bindings(Bindings::from_config(&serve))
        .rate_limits(RateLimits::from_config(&serve))
        .servers(&config)
        .private_servers(&config, pinned.clone());
    if let Some(console) = ConsoleOptions::from_config(&serve) {
        builder = builder.console(console);
    }
    if let Some((service, _)) = &service {
        builder = builder.connections(service.clone());
    }
    if let Some(questions) = settings.questions(&serve.approval).await? {
        builder = builder.questions(questions);
    }
    let access = Arc::new(http_access(&serve, settings.allow_unauthenticated)?);
    // An address in use is an error before the servers start.
    let listener = TcpListener::bind(serve.listen).await;
    let cannot = |error| Failure::Serve(format!("cannot listen on {}: {error}", serve.listen));
    let listener = listener.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let host_builder = builder.register(LibraryHost::builder(config.shared_by(Share::Process)));
    let host = pinned(host_builder).start().await.map_err(Failure::Start)?;
    let running_host = Arc::new(RunningHost::of(host.clone()));
    runtime::register(&running_host)?;
    let gateway = builder.build(host.clone());
    let connections = service.map(|(service, registry)| Connections {
        access: ConnectionAccess::new(service.clone(), access.clone()),
        service,
        registry,
    });
    let serving = run(gateway.clone(), host, running_host, listener, access);
    Ok(RunningGateway {
        pid: std::process::id(),
        gateway: Some(gateway),
        address,
        connections,
        serving: Mutex::new(Some(Handle::current().spawn(serving))),
    })
}

/// Serves until the gateway closes, then stops all servers. `_running` ends the host with the
/// interpreter.
async fn run(
    gateway: Gateway,
    host: LibraryHost,
    _running: Arc<RunningHost>,
    listener: TcpListener,
    access: Arc<HttpAccess>,
) {
    if let Err(error) = gateway.serve_http(listener, access).await {
        tracing::error!(%error, "gateway ended");
        gateway.close();
    }
    gateway.shut_down_private_servers().await;
    host.shutdown().await;
}

/// Refuses what the gateway must not or cannot serve.
fn check_serve(
    config: &HostConfig,
    serve: &ServeConfig,
    allow_unauthenticated: bool,
) -> Result<(), Failure> {
    let permissions = ExposurePermissions {
        configuration: serve.allow_unauthenticated,
        command_line: allow_unauthenticated,
    };
    check_exposure(serve.listen, serve.auth.is_configured(), permissions)
        .map_err(|error| Failure::Serve(error.to_string()))?;
    if serve.limits.memory.is_some() && !cfg!(target_os = "linux") {
        let message = "this system does not support `serve.limits.memory`";
        return Err(Failure::Serve(message.to_owned()));
    }
    let servers = config.servers.values();
    let processes =
        servers.filter(|server| matches!(server.transport, TransportConfig::Stdio { .. }));
    let count = processes.count();
    let maximum = serve.limits.processes;
    if count > usize::try_from(maximum).unwrap_or(usize::MAX) {
        return Err(Failure::Serve(format!(
            "the configuration has {count} servers with processes, and `serve.limits.processes` \
             permits {maximum}"
        )));
    }
    Ok(())
}

/// Returns who may send requests.
fn http_access(serve: &ServeConfig, allow_unauthenticated: bool) -> Result<HttpAccess, Failure> {
    let authenticator = if serve.auth.is_configured() {
        Authenticator::new(AuthSettings::from(&serve.auth), &Environment::from_process())
            .map_err(|error| Failure::Serve(format!("cannot authenticate clients: {error}")))?
    } else if serve.allow_unauthenticated && allow_unauthenticated {
        Authenticator::everyone()
    } else {
        Authenticator::local_user()
    };
    let origin = OriginCheck::new(serve.listen.ip(), OriginSettings::from(serve));
    Ok(HttpAccess { authenticator, origin })
}
