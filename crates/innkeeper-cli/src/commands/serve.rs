//! `serve`: offers all servers as one MCP server.

mod connections;
mod hangup;
mod http;
#[cfg(unix)]
mod joined;
mod listening;
mod questions;
mod reload;
mod replicas;
mod setting;
mod settings;
mod stdio;
mod store;
#[cfg(not(unix))]
mod unjoined;

use std::sync::Arc;
use std::time::Duration;

use innkeeper_gateway::policy::ToolPolicy;
use innkeeper_gateway::rate_limits::RateLimits;
use innkeeper_gateway::{Bindings, Gateway, GatewayBuilder, GatewayOptions, Principal};
use innkeeper_host::config::Share;
use innkeeper_host::{Host, ServerState};
use tokio::sync::{SetOnce, mpsc};

use http::HttpSide;
#[cfg(unix)]
use joined::Recorded;
use reload::Reloading;
#[cfg(not(unix))]
use unjoined::Recorded;

use crate::attach::{self};
use crate::cli::ServeArgs;
use crate::configuration::{LoadedConfig, config_for_server, load_config};
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::hosting::{
    HostOptions, HostPreparation, print_failed_servers, ready_servers, with_available_servers,
};
use crate::output::{Output, Style, escape_inline};
use crate::trust;
use listening::{
    MAX_QUEUED_LISTENERS, bind_socket, describe_address, further_paths, listen, take_listener,
};
use settings::{
    PrivateServerCounts, SharedSettings, access, check_supported, describe_servers, print_settings,
    settings, share_without_replicas,
};

pub(super) async fn run(context: &mut CommandContext, args: &ServeArgs) -> Result<(), CliError> {
    if let Some(server) = &args.restart {
        return restart_server(context, server).await;
    }
    let Some(mut recorded) = Recorded::join(context, args).await? else { return Ok(()) };
    let LoadedConfig { mut config, mut files } = load_config(context)?;
    if let Some(server) = &args.stdio.server {
        config = config_for_server(&config, server)?;
    }
    recorded.configure(&config).await?;
    let handed_over = take_listener(context, args)?;
    let serve = settings(&config, args, handed_over.as_ref())?;
    let shared = SharedSettings::new(&context.environment, args.store.as_deref())?;
    if args.print_config {
        return print_settings(context, &config, &serve, &shared, args);
    }
    let mut private = PrivateServerCounts::default();
    let mut options = GatewayOptions::from_config(&serve);
    let required = config.servers.iter().filter(|(_, server)| server.required);
    options.connection_servers = config.servers.keys().cloned().collect();
    options.required_servers = required.map(|(name, _)| name.clone()).collect();
    let drain_time = options.drain_timeout;
    let connections = shared.connections.prefix();
    let max_connections = options.limits.max_sessions;
    let idle_session = options.idle_session;
    check_supported(&config, &serve, args)?;
    let has_replicas = shared.replicas.is_enabled() && !args.stdio.on_stdio;
    if !has_replicas {
        share_without_replicas(&mut config);
    }
    let mut reloading =
        Reloading::new(context, &config, files.to_approve.as_deref(), args, has_replicas)?;
    // A server that does not start must not take the others from the clients.
    config = config.with_optional_servers();
    let mut replica_listener = None;
    let builder = if args.stdio.on_stdio {
        GatewayBuilder::for_one_client(options).servers(&config)
    } else {
        // The host of all clients does not have the servers of a principal or a session.
        trust::ensure_trusted(context, &config, files.to_approve.as_deref())?;
        // The host of all clients does not ask, and does not warn, again.
        files.to_approve = None;
        context.output.secret_mask().add_config(&config);
        let preparation = HostPreparation::new(context, &files)?;
        let builder = GatewayBuilder::new(options)
            .policy(ToolPolicy::from_config(&serve))
            .bindings(Bindings::from_config(&serve))
            .rate_limits(RateLimits::from_config(&serve))
            .servers(&config)
            .private_servers(&config, move |builder| preparation.apply(builder));
        let output = &mut context.output;
        let (builder, listener) =
            shared.apply(builder, &serve, max_connections, idle_session, output).await?;
        replica_listener = listener;
        private = PrivateServerCounts::new(&config);
        config = config.shared_by(Share::Process);
        builder
    };
    let access = access(&serve, args, &context.environment)?;
    // An address in use is an error before the servers start.
    let listener = match handed_over {
        _ if args.stdio.on_stdio => None,
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
    let loaded = LoadedConfig { config, files };
    with_available_servers(context, loaded, host_options, async |host, output| {
        print_failed_servers(host, output)?;
        print_starting_servers(host, output)?;
        let gateway = builder.build(host.clone());
        let Some(listener) = listener else {
            return run_stdio(&gateway, host, recorded, reloading, &stop, drain_time, output).await;
        };
        let servers = describe_servers(ready_servers(host), private);
        let text = format!("serving {servers} on {}", describe_address(&listener)?);
        output.status(&text)?;
        output.status(&further_paths(&serve, connections.as_deref()))?;
        let http = HttpSide { listener, replica_listener, access, sockets, notifier, text };
        http.run(&gateway, host, reloading, &stop, drain_time, output).await
    })
    .await
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

async fn serve_stdio(
    gateway: &Gateway,
    recorded: Recorded,
    stop: &SetOnce<()>,
    drain_time: Duration,
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
    stop: &SetOnce<()>,
    drain_time: Duration,
    output: &mut Output,
) -> Result<(), CliError> {
    let serving = async {
        let served = serve_stdio(gateway, recorded, stop, drain_time).await;
        // A second call finds the cell set.
        stop.set(()).ok();
        served
    };
    let (served, told) = tokio::join!(serving, reloading.run(gateway, host, stop, output));
    served.and(Ok(told?))
}
