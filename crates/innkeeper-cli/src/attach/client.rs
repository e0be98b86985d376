//! The side of a command.

use std::io;

use innkeeper_host::config::{ConfinementConfig, ServerConfig, TransportConfig};
use innkeeper_host::{Config, Environment};
use tokio::io::BufReader;
use tokio::net::UnixStream;

use super::directory::{check, is_same_user, socket_path};
use super::greeting::{self, Greeting, Restarted, Welcome};
use super::requested_item::RequestedItem;

/// A connection to a server of a running gateway.
#[derive(Debug)]
pub(crate) struct Attached {
    /// The configuration of a host that uses the connection.
    pub(crate) config: Config,
    pub(crate) server: String,
    pub(crate) stream: BufReader<UnixStream>,
}

/// Connects to the only server of a configuration. Returns `None` if no gateway with this digest
/// runs, if the gateway refuses a confined command, or if its server is not ready or does not have the
/// item: the command then starts its own server, which reports the problem.
pub(crate) async fn connect(
    environment: &Environment,
    digest: &str,
    config: &Config,
    item: RequestedItem,
) -> Option<Attached> {
    let mut servers = config.servers.values();
    let server =
        servers.next().filter(|_| servers.next().is_none() && config.invalid.is_empty())?;
    let socket = socket_path(environment, digest)?;
    check(&socket).ok()?;
    let stream = UnixStream::connect(&socket).await.ok().filter(is_same_user)?;
    let mut stream = BufReader::new(stream);
    let greeting = Greeting { server: server.name.clone(), item };
    let greeted = async {
        greeting::write(&mut stream, &greeting).await?;
        greeting::read(&mut stream).await
    };
    let welcome: Welcome = match greeted.await {
        Ok(welcome) => welcome,
        Err(error) => {
            tracing::info!(%error, "a running `innkeeper serve` refused the command");
            return None;
        }
    };
    if !welcome.ready {
        return None;
    }
    let name = server.name.clone();
    let server = connected_server(server);
    let mut config = config.clone();
    config.servers.insert(name.clone(), server);
    tracing::info!(server = name, "a running `innkeeper serve` has the server");
    Some(Attached { config, server: name, stream })
}

/// Restarts a server of the gateway with this digest. Returns why the server did not become ready
/// again, if it did not.
///
/// # Errors
///
/// No gateway with this digest runs, or it does not have the server.
pub(crate) async fn restart(
    environment: &Environment,
    digest: &str,
    server: &str,
) -> io::Result<Option<String>> {
    let socket = socket_path(environment, digest).ok_or(io::ErrorKind::NotFound)?;
    check(&socket)?;
    let stream = UnixStream::connect(&socket).await?;
    if !is_same_user(&stream) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut stream = BufReader::new(stream);
    let greeting = Greeting { server: server.to_owned(), item: RequestedItem::Process };
    greeting::write(&mut stream, &greeting).await?;
    let welcome: Welcome = greeting::read(&mut stream).await?;
    if !welcome.ready {
        return Err(io::Error::other("it does not have the server for all clients"));
    }
    let Restarted { problem } = greeting::read_line(&mut stream).await?;
    Ok(problem)
}

/// Returns the settings of a server at the other end of a connection: those of its process are the
/// gateway's.
fn connected_server(server: &ServerConfig) -> ServerConfig {
    let transport = TransportConfig::InProcess;
    ServerConfig {
        transport,
        confinement: ConfinementConfig {
            inherit_env: server.confinement.inherit_env,
            ..Default::default()
        },
        headers_helper: Vec::new(),
        oauth: None,
        ..server.clone()
    }
}
