//! `serve`: offers all servers as one MCP server.

mod connections;
mod hangup;
mod http;
#[cfg(unix)]
mod joined;
mod questions;
mod reload;
mod replicas;
mod setting;
mod stdio;
mod store;
#[cfg(not(unix))]
mod unjoined;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_gateway::auth::{AuthSettings, Authenticator, ExposurePermissions, check_exposure};
use innkeeper_gateway::origin::{OriginCheck, OriginSettings};
use innkeeper_gateway::policy::ToolPolicy;
use innkeeper_gateway::rate_limits::RateLimits;
use innkeeper_gateway::{
    Bindings, ConsoleOptions, Gateway, GatewayBuilder, GatewayListener, GatewayOptions, HttpAccess,
    Principal,
};
use innkeeper_host::config::{NameStyle, ServeConfig, ServerConfig, Share, TransportConfig};
use innkeeper_host::{Config, Environment, Host, ServerState};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{SetOnce, mpsc};

use connections::{ConnectionSettings, shown_settings};
use http::HttpSide;
#[cfg(unix)]
use joined::Recorded;
use questions::pending_questions;
use reload::Reloading;
use replicas::ReplicaSettings;
use store::StoreSettings;
#[cfg(not(unix))]
use unjoined::Recorded;

use crate::attach::{self, AttachListener};
use crate::cli::{NamesArg, ServeArgs};
use crate::configuration::{LoadedConfig, config_for_server, load_config};
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::hosting::{
    HostOptions, HostPreparation, print_failed_servers, ready_servers, with_available_servers,
};
use crate::output::{Output, Style, escape_inline};
use crate::trust;

pub(super) async fn run(context: &mut CommandContext, args: &ServeArgs) -> Result<(), CliError> {
    if let Some(server) = &args.restart {
        return restart_server(context, server).await;
    }
    let Some(mut recorded) = Recorded::join(context, args).await? else { return Ok(()) };
    let LoadedConfig { mut config, mut files } = load_config(context)?;
    if let Some(server) = &args.server {
        config = config_for_server(&config, server)?;
    }
    recorded.configure(&config).await?;
    let handed_over = take_listener(context, args)?;
    let serve = settings(&config, args, handed_over.as_ref())?;
    let shared = SharedSettings::new(&context.environment, args.store.as_deref())?;
    if args.print_config {
        return print_settings(context, (&config, &serve, &shared), args);
    }
    let mut private = PrivateServerCounts::default();
    let mut options = GatewayOptions::from_config(&serve);
    let required = config.servers.iter().filter(|(_, server)| server.required);
    options.connection_servers = config.servers.keys().cloned().collect();
    options.required_servers = required.map(|(name, _)| name.clone()).collect();
    let drain_time = options.drain_timeout;
    let connections = shared.connections.prefix();
    let (max_connections, idle_session) = (options.max_sessions, options.idle_session);
    check_supported(&config, &serve, args)?;
    let has_replicas = shared.replicas.is_enabled() && !args.on_stdio;
    if !has_replicas {
        share_without_replicas(&mut config);
    }
    let mut reloading =
        Reloading::new(context, &config, files.to_approve.as_deref(), args, has_replicas)?;
    // A server that does not start must not take the others from the clients.
    config = config.with_optional_servers();
    let mut replica_listener = None;
    let builder = if args.on_stdio {
        GatewayBuilder::for_one_client(options).servers(&config)
    } else {
        // The host of all clients does not have the servers of a principal or a session.
        trust::ensure_trusted(context, &config, files.to_approve.as_deref())?;
        // The host of all clients does not ask, and does not warn, again.
        files.to_approve = None;
        context.output.secret_mask().add_config(&config);
        let preparation = HostPreparation::new(context, &files)?;
        let prepare = move |builder| preparation.apply(builder);
        let builder = GatewayBuilder::new(options)
            .policy(ToolPolicy::from_config(&serve))
            .bindings(Bindings::from_config(&serve))
            .rate_limits(RateLimits::from_config(&serve))
            .servers(&config)
            .private_servers(&config, prepare);
        let limits = (max_connections, idle_session);
        let (builder, listener) =
            shared.apply(builder, (&serve, limits), &mut context.output).await?;
        replica_listener = listener;
        private = PrivateServerCounts::new(&config);
        config = config.shared_by(Share::Process);
        builder
    };
    let access = access(&serve, args, &context.environment)?;
    // An address in use is an error before the servers start.
    let listener = match handed_over {
        _ if args.on_stdio => None,
        Some(handed_over) => Some(handed_over),
        None => Some(listen(serve.listen).await?),
    };
    let notifier = std::mem::take(&mut context.service_manager.notifier);
    let attach = if listener.is_some() {
        bind_socket(context, files.digest.as_deref(), &serve).await?
    } else {
        None
    };
    let sockets = attach.map(|(digest, listener)| {
        let (sender, listeners) = mpsc::channel(MAX_QUEUED_LISTENERS);
        // The queue is empty.
        sender.try_send(Some(listener)).ok();
        reloading.set_attach(digest, sender);
        listeners
    });
    let stop = Arc::new(SetOnce::new());
    let host_options = HostOptions {
        gateway: Some(builder.clone()),
        stop: Some(stop.clone()),
        ..HostOptions::default()
    };
    let operation = async |host: &Host, output: &mut Output| {
        print_failed_servers(host, output)?;
        print_starting_servers(host, output)?;
        let gateway = builder.build(host.clone());
        let drain = (&*stop, drain_time);
        let Some(listener) = listener else {
            return run_stdio(&gateway, host, recorded, reloading, drain, output).await;
        };
        let servers = describe_servers(ready_servers(host), private);
        let text = format!("serving {servers} on {}", describe_address(&listener)?);
        output.status(&text)?;
        output.status(&further_paths(&serve, connections.as_deref()))?;
        let http = HttpSide { listener, replica_listener, access, sockets, notifier, text };
        http.run(&gateway, host, reloading, drain, output).await
    };
    let loaded = LoadedConfig { config, files };
    with_available_servers(context, loaded, host_options, operation).await
}

/// Prints a line for each server that clients get later.
fn print_starting_servers(host: &Host, output: &mut Output) -> std::io::Result<()> {
    for (name, status) in host.status() {
        if status.state == ServerState::Starting {
            let text = "still starting; its items follow when it is ready";
            output.labelled_status(Style::Strong, &escape_inline(&name), text)?;
        }
    }
    Ok(())
}

/// Number of sockets for other commands that wait: a reload creates one.
const MAX_QUEUED_LISTENERS: usize = 4;

/// Restarts a server of the running gateway with this configuration.
async fn restart_server(context: &mut CommandContext, server: &str) -> Result<(), CliError> {
    let LoadedConfig { config, files } = load_config(context)?;
    config_for_server(&config, server)?;
    let restarted = match &files.digest {
        Some(digest) => attach::restart(&context.environment, digest, server).await,
        None => Err(std::io::ErrorKind::NotFound.into()),
    };
    match restarted {
        Ok(None) => Ok(context.output.status(&format!("server `{server}` restarted"))?),
        Ok(Some(problem)) => Err(CliError::failure(problem)),
        Err(error) => Err(CliError::failure("no `innkeeper serve` restarts this server")
            .with_source(error)
            .with_hint("start this command with the options and the directory of `innkeeper serve`")
            .with_hint("the page of the server in the console restarts it too")),
    }
}

/// Opens the socket for other commands with this configuration. A gateway whose tools have rates or
/// need approvals has no socket: commands with servers of their own have neither.
async fn bind_socket(
    context: &mut CommandContext,
    digest: Option<&str>,
    serve: &ServeConfig,
) -> Result<Option<(String, AttachListener)>, CliError> {
    let is_open = serve.rate.tools.is_empty() && !serve.approval.is_configured();
    let Some(digest) = digest.filter(|_| is_open) else {
        return Ok(None);
    };
    let problem = match AttachListener::bind(&context.environment, digest).await {
        Ok(Some(listener)) => return Ok(Some((digest.to_owned(), listener))),
        Ok(None) => return Ok(None),
        Err(error) => error,
    };
    let text = format!("other commands cannot use these servers: {problem}");
    context.output.labelled_status(Style::Note, "note", &text)?;
    Ok(None)
}

/// Returns the socket that the service manager hands over.
fn take_listener(
    context: &mut CommandContext,
    args: &ServeArgs,
) -> Result<Option<GatewayListener>, CliError> {
    let sockets = context.service_manager.sockets.take().filter(|_| !args.on_stdio);
    let Some(sockets) = sockets else { return Ok(None) };
    if args.listen.is_some() {
        let message =
            format!("`--listen` and a socket of the service manager{sockets} exclude each other");
        return Err(CliError::usage(message)
            .with_hint("remove `--listen`: the socket unit has the address"));
    }
    sockets.into_listener().map(Some)
}

/// Returns the settings of the configuration and the command line. A socket that the service manager
/// hands over has precedence over `serve.listen`, and the checks of the address apply to it.
fn settings(
    config: &Config,
    args: &ServeArgs,
    handed_over: Option<&GatewayListener>,
) -> Result<ServeConfig, CliError> {
    let mut serve = config.serve.clone().unwrap_or_default();
    if let Some(listen) = args.listen {
        serve.listen = listen;
    }
    match handed_over {
        Some(GatewayListener::Tcp(listener)) => serve.listen = listener.local_addr()?,
        // Like a loopback address, a Unix socket is reached from this machine only.
        #[cfg(unix)]
        Some(GatewayListener::Unix(_)) => serve.listen = (std::net::Ipv4Addr::LOCALHOST, 0).into(),
        None => {}
    }
    if let Some(names) = args.names {
        serve.names = match names {
            NamesArg::Prefixed => NameStyle::Prefixed,
            NamesArg::Flat => NameStyle::Flat,
        };
    }
    if args.on_stdio {
        return Ok(serve);
    }
    let permissions = ExposurePermissions {
        configuration: serve.allow_unauthenticated,
        command_line: args.allow_unauthenticated,
    };
    check_exposure(serve.listen, serve.auth.is_configured(), permissions).map_err(|error| {
        CliError::usage(error.to_string())
            .with_hint("set `serve.auth`, or listen on 127.0.0.1")
            .with_hint(
                "to serve everyone, set `serve.allowUnauthenticated` and pass \
                 `--allow-unauthenticated`",
            )
    })?;
    Ok(serve)
}

/// Returns who may send requests over HTTP.
fn access(
    serve: &ServeConfig,
    args: &ServeArgs,
    environment: &Environment,
) -> Result<HttpAccess, CliError> {
    let authenticator = if serve.auth.is_configured() {
        Authenticator::new(AuthSettings::from(&serve.auth), environment)
            .map_err(|error| CliError::usage("cannot authenticate clients").with_source(error))?
    } else if serve.allow_unauthenticated && args.allow_unauthenticated {
        Authenticator::everyone()
    } else {
        Authenticator::local_user()
    };
    let origin = OriginCheck::new(serve.listen.ip(), OriginSettings::from(serve));
    Ok(HttpAccess { authenticator, origin })
}

/// Refuses settings that the gateway does not have: ignored, they would permit what the configuration
/// limits.
fn check_supported(config: &Config, serve: &ServeConfig, args: &ServeArgs) -> Result<(), CliError> {
    if args.on_stdio && serve.approval.is_configured() {
        let failure = CliError::usage("nobody can answer the questions of `serve.approval`");
        return Err(failure.with_hint("serve HTTP, without `--stdio`, or remove the key"));
    }
    if serve.limits.memory.is_some() && !cfg!(target_os = "linux") {
        let failure = CliError::usage("this system does not support `serve.limits.memory`");
        return Err(failure.with_hint("remove the key, or set `limits.memory` of each server"));
    }
    // The servers of one client must fit.
    let has_process =
        |server: &&ServerConfig| matches!(server.transport, TransportConfig::Stdio { .. });
    let (count, maximum) =
        (config.servers.values().filter(has_process).count(), serve.limits.processes);
    if count > usize::try_from(maximum).unwrap_or(usize::MAX) {
        return Err(CliError::usage(format!(
            "the configuration has {count} servers with processes, and `serve.limits.processes` \
             permits {maximum}"
        ))
        .with_hint("raise `serve.limits.processes`, or disable servers"));
    }
    Ok(())
}

/// Without other replicas, the process of this one is the only one of a server.
fn share_without_replicas(config: &mut Config) {
    let singletons = config.servers.values_mut().filter(|server| server.share == Share::Singleton);
    singletons.for_each(|server| server.share = Share::Process);
}

/// The settings of what outlives the process.
struct SharedSettings {
    store: StoreSettings,
    connections: ConnectionSettings,
    replicas: ReplicaSettings,
}

impl SharedSettings {
    /// Returns the settings. `store` is the value of `--store`.
    fn new(environment: &Environment, store: Option<&str>) -> Result<Self, CliError> {
        Ok(Self {
            store: StoreSettings::new(environment, store)?,
            connections: ConnectionSettings::new(environment)?,
            replicas: ReplicaSettings::new(environment)?,
        })
    }

    /// Adds what the gateway offers beside MCP and the other replicas, if the settings have them. Waits
    /// for a store. Returns the listener for the other replicas, if there are any.
    async fn apply(
        &self,
        mut builder: GatewayBuilder,
        (serve, (max_connections, idle_session)): (&ServeConfig, (usize, Duration)),
        output: &mut Output,
    ) -> Result<(GatewayBuilder, Option<TcpListener>), CliError> {
        let redis = self.store.redis()?;
        let store = (&self.store, redis.as_ref());
        let replica = self.replicas.replica(idle_session, redis.as_ref())?;
        if let Some(options) = ConsoleOptions::from_config(serve) {
            builder = builder.console(options);
        }
        if let Some(service) = self.connections.service(max_connections, store, output).await? {
            builder = builder.connections(service);
        }
        if let Some(questions) = pending_questions(&serve.approval, store, output).await? {
            builder = builder.questions(questions);
        }
        let Some(replica) = replica else { return Ok((builder, None)) };
        let (replicas, listener) = replica.join(&self.store, output).await?;
        Ok((builder.replicas(replicas), Some(listener)))
    }
}

/// The numbers of servers that not all clients share.
#[derive(Clone, Copy, Debug, Default)]
struct PrivateServerCounts {
    singleton: usize,
    principal: usize,
    session: usize,
}

impl PrivateServerCounts {
    fn new(config: &Config) -> Self {
        let count = |share| config.servers.values().filter(|server| server.share == share).count();
        Self {
            singleton: count(Share::Singleton),
            principal: count(Share::Principal),
            session: count(Share::Session),
        }
    }
}

/// Returns the numbers of servers for the line that tells the user what is served.
fn describe_servers(shared: usize, private: PrivateServerCounts) -> String {
    let servers =
        |count| if count == 1 { "1 server".to_owned() } else { format!("{count} servers") };
    let PrivateServerCounts { singleton, principal, session } = private;
    let parts = [
        (shared > 0 || singleton + principal + session == 0).then(|| servers(shared)),
        (singleton > 0).then(|| format!("{} for all replicas", servers(singleton))),
        (principal > 0).then(|| format!("{} for each principal", servers(principal))),
        (session > 0).then(|| format!("{} for each session", servers(session))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn print_settings(
    context: &mut CommandContext,
    (config, serve, shared): (&Config, &ServeConfig, &SharedSettings),
    args: &ServeArgs,
) -> Result<(), CliError> {
    // The keys that an option replaced.
    let options =
        [("listen", "--listen", args.listen.is_some()), ("names", "--names", args.names.is_some())];
    let options: serde_json::Map<_, _> = options
        .into_iter()
        .filter(|(_, _, is_set)| *is_set)
        .map(|(key, option, _)| (key.to_owned(), option.into()))
        .collect();
    let servers: serde_json::Map<_, _> = config
        .servers
        .iter()
        .map(|(name, server)| {
            let idle = server.idle_timeout.map(|time| time.as_secs_f64());
            (name.clone(), json!({ "share": server.share, "idleTimeout": idle }))
        })
        .collect();
    let settings = json!({
        "serve": serve,
        "options": options,
        "servers": servers,
        "connections": shown_settings(&shared.connections, &shared.store),
        "replicas": shared.replicas.json(),
    });
    Ok(context.output.print_json(&settings)?)
}

async fn listen(address: SocketAddr) -> Result<GatewayListener, CliError> {
    TcpListener::bind(address).await.map(GatewayListener::from).map_err(|error| {
        CliError::failure(format!("cannot listen on {address}"))
            .with_source(error)
            .with_hint("choose another address with `--listen`; port 0 selects a free port")
    })
}

/// Returns the address of a socket as clients use the address.
fn describe_address(listener: &GatewayListener) -> Result<String, CliError> {
    Ok(match listener {
        GatewayListener::Tcp(listener) => format!("http://{}/mcp", listener.local_addr()?),
        #[cfg(unix)]
        GatewayListener::Unix(listener) => {
            let address = listener.local_addr()?;
            let path = address.as_pathname().map(|path| path.display().to_string());
            format!("the Unix socket {}", path.unwrap_or_else(|| "without a path".to_owned()))
        }
    })
}

/// Returns the paths other than `/mcp`.
fn further_paths(serve: &ServeConfig, connections: Option<&str>) -> String {
    let named = serve.endpoints.keys().map(|name| format!("/mcp/{name}"));
    let fixed = ["/sse", "/tools", "/openapi.json", "/metrics"].map(str::to_owned);
    let console = ConsoleOptions::from_config(serve).map(|_| "/console".to_owned());
    let paths = named.chain(fixed).chain(console).chain(connections.map(str::to_owned));
    format!("further paths: {}", paths.collect::<Vec<_>>().join(", "))
}

async fn serve_stdio(
    gateway: &Gateway,
    recorded: Recorded,
    (stop, drain_time): (&SetOnce<()>, Duration),
) -> Result<(), CliError> {
    let stdin = stdio::stdin()?;
    let (stdout, flushed) = stdio::stdout()?;
    let (lines, stdin, stdout) = recorded.pass(stdin, stdout);
    let serving = gateway.serve_connection(Principal::local_user(), stdin, stdout);
    let closing = async {
        stop.wait().await;
        gateway.close();
        // A client that does not read its responses cannot delay the end.
        tokio::time::sleep(drain_time).await;
    };
    let served = tokio::select! {
        biased;
        served = serving => served,
        () = closing => Ok(()),
    };
    gateway.close();
    lines.finish().await;
    flushed.wait().await;
    served.map_err(|error| {
        CliError::failure("the connection of the client failed").with_source(error)
    })
}

/// Serves one client on stdin and stdout, and reloads, until `stop` is set.
async fn run_stdio(
    gateway: &Gateway,
    host: &Host,
    recorded: Recorded,
    reloading: Reloading,
    (stop, drain_time): (&SetOnce<()>, Duration),
    output: &mut Output,
) -> Result<(), CliError> {
    let serving = async {
        let served = serve_stdio(gateway, recorded, (stop, drain_time)).await;
        // A second call finds the cell set.
        stop.set(()).ok();
        served
    };
    let (served, told) = tokio::join!(serving, reloading.run(gateway, host, stop, output));
    served.and(Ok(told?))
}
