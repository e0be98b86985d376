//! Platforms without Unix sockets: each command starts its own servers.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use innkeeper_gateway::Gateway;
use innkeeper_host::{Config, Environment, Host};
use tokio::io::DuplexStream;
use tokio::sync::{SetOnce, mpsc};

use super::requested_item::RequestedItem;

/// A connection to a server of a running gateway.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) config: Config,
    pub(crate) server: String,
    pub(crate) stream: DuplexStream,
}

#[expect(clippy::unused_async, reason = "the signature on other platforms")]
pub(crate) async fn connect(
    _: &Environment,
    _: &str,
    _: &Config,
    _: RequestedItem,
) -> Option<Attached> {
    None
}

pub(crate) fn socket_directory(_: &Environment) -> Option<PathBuf> {
    None
}

/// The socket of a gateway.
#[derive(Debug)]
pub(crate) enum AttachListener {}

impl AttachListener {
    #[expect(clippy::unused_async, reason = "the signature on other platforms")]
    pub(crate) async fn bind(_: &Environment, _: &str) -> io::Result<Option<Self>> {
        Ok(None)
    }
}

pub(crate) async fn serve(
    _: mpsc::Receiver<Option<AttachListener>>,
    _: &Gateway,
    _: &Host,
    stop: &SetOnce<()>,
    _: Duration,
) {
    stop.wait().await;
}

#[expect(clippy::unused_async, reason = "the signature on other platforms")]
pub(crate) async fn restart(_: &Environment, _: &str, _: &str) -> io::Result<Option<String>> {
    Err(io::ErrorKind::Unsupported.into())
}
