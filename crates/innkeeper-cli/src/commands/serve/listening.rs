//! Where a gateway listens.

use std::net::SocketAddr;

use innkeeper_gateway::{ConsoleOptions, GatewayListener};
use innkeeper_host::config::ServeConfig;
use tokio::net::TcpListener;

use crate::attach::AttachListener;
use crate::cli::ServeArgs;
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::output::Style;

/// Number of sockets for other commands that wait: a reload creates one.
pub(super) const MAX_QUEUED_LISTENERS: usize = 4;

/// Opens the socket for other commands with this configuration. A gateway whose tools have rates or
/// need approvals has no socket: commands with servers of their own have neither.
pub(super) async fn bind_socket(
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
pub(super) fn take_listener(
    context: &mut CommandContext,
    args: &ServeArgs,
) -> Result<Option<GatewayListener>, CliError> {
    let sockets = context.service_manager.sockets.take().filter(|_| !args.stdio.on_stdio);
    let Some(sockets) = sockets else { return Ok(None) };
    if args.listen.is_some() {
        let message =
            format!("`--listen` and a socket of the service manager{sockets} exclude each other");
        return Err(CliError::usage(message)
            .with_hint("remove `--listen`: the socket unit has the address"));
    }
    sockets.into_listener().map(Some)
}

pub(super) async fn listen(address: SocketAddr) -> Result<GatewayListener, CliError> {
    TcpListener::bind(address).await.map(GatewayListener::from).map_err(|error| {
        CliError::failure(format!("cannot listen on {address}"))
            .with_source(error)
            .with_hint("choose another address with `--listen`; port 0 selects a free port")
    })
}

/// Returns the address of a socket as clients use the address.
pub(super) fn describe_address(listener: &GatewayListener) -> Result<String, CliError> {
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
pub(super) fn further_paths(serve: &ServeConfig, connections: Option<&str>) -> String {
    let named = serve.endpoints.keys().map(|name| format!("/mcp/{name}"));
    let fixed = ["/sse", "/tools", "/openapi.json", "/metrics"].map(str::to_owned);
    let console = ConsoleOptions::from_config(serve).map(|_| "/console".to_owned());
    let paths = named.chain(fixed).chain(console).chain(connections.map(str::to_owned));
    format!("further paths: {}", paths.collect::<Vec<_>>().join(", "))
}
