//! The gateway over HTTP: its clients, other commands and other replicas.

use std::time::Duration;

use innkeeper_gateway::{Gateway, GatewayListener, HttpAccess};
use innkeeper_host::{Host, ShutdownReport};
use tokio::net::TcpListener;
use tokio::sync::{SetOnce, mpsc};

use super::reload::Reloading;
use crate::attach::{self, AttachListener};
use crate::exit::CliError;
use crate::hosting::warn_leftovers;
use crate::output::Output;
use crate::service_manager::{ServiceNotifier, ServiceState};

/// A gateway over HTTP, with what it needs besides its servers.
pub(super) struct HttpSide {
    pub(super) listener: GatewayListener,
    pub(super) replica_listener: Option<TcpListener>,
    pub(super) access: HttpAccess,
    /// The sockets for other commands.
    pub(super) sockets: Option<mpsc::Receiver<Option<AttachListener>>>,
    pub(super) notifier: ServiceNotifier,
    /// What the gateway serves.
    pub(super) text: String,
}

impl HttpSide {
    /// Serves HTTP and other commands, and reloads, until `stop` is set.
    pub(super) async fn run(
        self,
        gateway: &Gateway,
        host: &Host,
        reloading: Reloading,
        stop: &SetOnce<()>,
        drain_time: Duration,
        output: &mut Output,
    ) -> Result<(), CliError> {
        let Self { listener, replica_listener, access, sockets, notifier, text } = self;
        let serving = async {
            let served =
                serve_http(gateway, listener, replica_listener, access, &notifier, stop, text)
                    .await;
            // HTTP also ends after an error; a second call finds the cell set.
            stop.set(()).ok();
            served
        };
        let attached = async {
            if let Some(sockets) = sockets {
                attach::serve(sockets, gateway, host, stop, drain_time).await;
            }
        };
        let reloading = reloading.run(gateway, host, stop, output);
        let ((reports, served), told, ()) = tokio::join!(serving, reloading, attached);
        for report in reports {
            warn_leftovers(&report, output)?;
        }
        served.and(Ok(told?))
    }
}

/// Tells the service manager when all required servers are ready, and before that, which is not.
async fn announce_ready(gateway: &Gateway, notifier: &ServiceNotifier, text: String) {
    if let Some(reason) = gateway.not_ready() {
        notifier.notify(&ServiceState::Waiting(reason));
    }
    gateway.ready().await;
    notifier.notify(&ServiceState::Ready(text));
}

/// Serves HTTP until `stop` is set. Returns also the reports of the private servers.
async fn serve_http(
    gateway: &Gateway,
    listener: GatewayListener,
    replica_listener: Option<TcpListener>,
    access: HttpAccess,
    notifier: &ServiceNotifier,
    stop: &SetOnce<()>,
    text: String,
) -> (Vec<ShutdownReport>, Result<(), CliError>) {
    let closing = async {
        tokio::select! {
            _ = stop.wait() => {}
            () = announce_ready(gateway, notifier, text) => {
                stop.wait().await;
            }
        }
        notifier.notify(&ServiceState::Stopping);
        gateway.close();
    };
    let serving_replicas = async {
        match replica_listener {
            Some(listener) => gateway.serve_replicas(listener).await,
            None => Ok(()),
        }
    };
    let serving = gateway.serve_http(listener, access);
    let (served, served_replicas, ()) = tokio::join!(serving, serving_replicas, closing);
    let reports = gateway.shut_down_private_servers().await;
    // Another replica may start these servers now.
    gateway.leave_replicas().await;
    let served = served
        .and(served_replicas)
        .map_err(|error| CliError::failure("cannot serve HTTP").with_source(error));
    (reports, served)
}
