//! The HTTP server: accepts connections within limits.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::gateway::GatewayInner;
use crate::tasks::GatewayTasks;

/// Maximum number of open connections; more wait in the queue of the system.
const MAX_CONNECTIONS: usize = 10_000;

/// Minimum of the buffer of the library for the head of a request.
const MIN_HEAD_BYTES: usize = 8 << 10;

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 100;

/// Delay after a failed accept, for example without free file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Serves HTTP until the gateway closes; then waits for the requests in flight.
pub(crate) async fn serve(
    gateway: &Arc<GatewayInner>,
    router: Router,
    listener: TcpListener,
) -> io::Result<()> {
    let head_bytes = gateway.options.max_head_bytes.max(MIN_HEAD_BYTES);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(gateway.options.request_time)
        .max_buf_size(head_bytes)
        .max_headers(MAX_HEADERS);
    let header_list = u32::try_from(head_bytes).unwrap_or(u32::MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(header_list)
        .max_concurrent_streams(256)
        .keep_alive_interval(Duration::from_secs(30));
    let graceful = GracefulShutdown::new();
    let connections = GatewayTasks::default();
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let permit = permits.clone().acquire_owned().await.ok();
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            biased;
            () = gateway.drained() => break,
            accepted = accepted => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "connection not accepted");
                sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        // Small writes of event streams would wait for acknowledgements.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY not set");
        }
        let service = TowerToHyperService::new(router.clone());
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = graceful.watch(connection);
        connections.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error, "connection ended");
            }
            drop(permit);
        });
    }
    drop(listener);
    drop(timeout(gateway.options.drain_timeout, graceful.shutdown()).await);
    connections.abort();
    Ok(())
}
