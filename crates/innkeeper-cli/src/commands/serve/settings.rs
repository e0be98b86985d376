//! The settings of a gateway, from the options and the configuration.

use std::time::Duration;

use innkeeper_gateway::auth::{AuthSettings, Authenticator, ExposurePermissions, check_exposure};
use innkeeper_gateway::origin::{OriginCheck, OriginSettings};
use innkeeper_gateway::{ConsoleOptions, GatewayBuilder, GatewayListener, HttpAccess};
use innkeeper_host::config::{NameStyle, ServeConfig, Share, TransportConfig};
use innkeeper_host::{Config, Environment};
use serde_json::json;
use tokio::net::TcpListener;

use super::connections::{ConnectionSettings, shown_settings};
use super::questions::pending_questions;
use super::replicas::ReplicaSettings;
use super::store::StoreSettings;
use crate::cli::{NamesArg, ServeArgs};
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::output::Output;

/// Returns the settings of the configuration and the command line. A socket that the service manager
/// hands over has precedence over `serve.listen`, and the checks of the address apply to it.
pub(super) fn settings(
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
    if args.stdio.on_stdio {
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
pub(super) fn access(
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
pub(super) fn check_supported(
    config: &Config,
    serve: &ServeConfig,
    args: &ServeArgs,
) -> Result<(), CliError> {
    if args.stdio.on_stdio && serve.approval.is_configured() {
        let failure = CliError::usage("nobody can answer the questions of `serve.approval`");
        return Err(failure.with_hint("serve HTTP, without `--stdio`, or remove the key"));
    }
    if serve.limits.memory.is_some() && !cfg!(target_os = "linux") {
        let failure = CliError::usage("this system does not support `serve.limits.memory`");
        return Err(failure.with_hint("remove the key, or set `limits.memory` of each server"));
    }
    // The servers of one client must fit.
    let count = config
        .servers
        .values()
        .filter(|server| matches!(server.transport, TransportConfig::Stdio { .. }))
        .count();
    let maximum = serve.limits.processes;
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
pub(super) fn share_without_replicas(config: &mut Config) {
    let singletons =
        config.servers.values_mut().filter(|server| server.lifecycle.share == Share::Singleton);
    singletons.for_each(|server| server.lifecycle.share = Share::Process);
}

/// The settings of what outlives the process.
pub(super) struct SharedSettings {
    store: StoreSettings,
    pub(super) connections: ConnectionSettings,
    pub(super) replicas: ReplicaSettings,
}

impl SharedSettings {
    /// Returns the settings. `store` is the value of `--store`.
    pub(super) fn new(environment: &Environment, store: Option<&str>) -> Result<Self, CliError> {
        Ok(Self {
            store: StoreSettings::new(environment, store)?,
            connections: ConnectionSettings::new(environment)?,
            replicas: ReplicaSettings::new(environment)?,
        })
    }

    /// Adds what the gateway offers beside MCP and the other replicas, if the settings have them. Waits
    /// for a store. Returns the listener for the other replicas, if there are any.
    pub(super) async fn apply(
        &self,
        mut builder: GatewayBuilder,
        serve: &ServeConfig,
        max_connections: usize,
        idle_session: Duration,
        output: &mut Output,
    ) -> Result<(GatewayBuilder, Option<TcpListener>), CliError> {
        let Self { store, connections, replicas } = self;
        let redis = store.redis()?;
        let redis = redis.as_ref();
        let replica = replicas.replica(idle_session, redis)?;
        if let Some(options) = ConsoleOptions::from_config(serve) {
            builder = builder.console(options);
        }
        if let Some(service) = connections.service(max_connections, store, redis, output).await? {
            builder = builder.connections(service);
        }
        if let Some(questions) = pending_questions(&serve.approval, store, redis, output).await? {
            builder = builder.questions(questions);
        }
        let Some(replica) = replica else { return Ok((builder, None)) };
        let (replicas, listener) = replica.join(store, output).await?;
        Ok((builder.replicas(replicas), Some(listener)))
    }
}

/// The numbers of servers that not all clients share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PrivateServerCounts {
    singleton: usize,
    principal: usize,
    session: usize,
}

impl PrivateServerCounts {
    pub(super) fn new(config: &Config) -> Self {
        let count = |share| {
            config.servers.values().filter(|server| server.lifecycle.share == share).count()
        };
        Self {
            singleton: count(Share::Singleton),
            principal: count(Share::Principal),
            session: count(Share::Session),
        }
    }
}

/// Returns the numbers of servers for the line that tells the user what is served.
pub(super) fn describe_servers(shared: usize, private: PrivateServerCounts) -> String {
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

pub(super) fn print_settings(
    context: &mut CommandContext,
    config: &Config,
    serve: &ServeConfig,
    shared: &SharedSettings,
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
            let idle = server.lifecycle.idle_timeout.map(|time| time.as_secs_f64());
            (name.clone(), json!({ "share": server.lifecycle.share, "idleTimeout": idle }))
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
