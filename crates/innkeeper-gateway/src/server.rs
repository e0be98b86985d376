//! The HTTP server: accepts connections within limits.

mod address_limit;
mod connection_places;
mod connection_watch;
mod max_connections;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::auth::LoopbackPeer;
use crate::listener::{ClientStream, GatewayListener, PeerAddress};
use crate::metrics::ClosedConnection;
use crate::options::GatewayOptions;
use crate::state::GatewayState;
use crate::tasks::GatewayTasks;
use address_limit::AddressLimit;
pub(crate) use connection_places::ConnectionPlaces;
use connection_places::PrincipalLimit;
use connection_watch::{ConnectionWatch, Stall};
use max_connections::max_connections;

/// Minimum of the buffer of the library for the head of a request.
const MIN_HEAD_BYTES: usize = 8 << 10;

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 100;

/// Maximum number of concurrent requests on a connection of HTTP/2.
const MAX_CONCURRENT_STREAMS: u32 = 256;

/// Maximum number of bytes of one HTTP/2 response that wait for the client to read.
const MAX_STREAM_BUFFER_BYTES: usize = 64 << 10;

/// Interval of pings on a connection of HTTP/2; a connection without an answer ends.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Time for a connection without progress to say that it ends.
const FAREWELL_TIME: Duration = Duration::from_secs(1);

/// Time for the first request of a new connection when the gateway closes: its client has connected
/// to send it.
const FIRST_REQUEST_TIME: Duration = Duration::from_secs(1);

/// Delay after a failed accept, for example without free file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Serves HTTP until the gateway closes; then waits for the requests in flight. Each remote address has at
/// most `max_per_address` open connections. Connections above the maximum wait in the queue of the system.
pub(crate) async fn serve(
    gateway: &Arc<GatewayState>,
    router: Router,
    listener: GatewayListener,
    max_per_address: usize,
) -> io::Result<()> {
    let options = &gateway.options;
    let maximum = max_connections(options);
    let server = Arc::new(Server {
        builder: builder(options),
        routes: TowerToHyperService::new(router),
        progress_time: options.limits.request_time,
        principals: PrincipalLimit::new(maximum),
    });
    let connections = GatewayTasks::default();
    let permits = Arc::new(Semaphore::new(maximum));
    let addresses = AddressLimit::new(max_per_address);
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
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "connection not accepted");
                sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        let Some(admitted) = addresses.admit(peer) else {
            tracing::info!(?peer, "connection closed: too many of this address");
            gateway.traffic.metrics.count_closed_connection(ClosedConnection::AddressLimit);
            continue;
        };
        let server = server.clone();
        let gateway = gateway.clone();
        connections.spawn(async move {
            let _open = (permit, admitted, gateway.traffic.metrics.open_connection());
            let peer = Peer { address: peer.map(PeerAddress), local: stream.loopback_peer() };
            let closing = gateway.drained();
            let stall = match stream {
                ClientStream::Tcp(stream) => server.serve_connection(stream, peer, closing).await,
                #[cfg(unix)]
                ClientStream::Unix(stream) => server.serve_connection(stream, peer, closing).await,
            };
            match stall {
                Some(Stall::Idle) => {
                    gateway.traffic.metrics.count_closed_connection(ClosedConnection::Idle);
                }
                Some(Stall::Unread) => {
                    gateway.traffic.metrics.count_closed_connection(ClosedConnection::Unread);
                }
                None => {}
            }
        });
    }
    drop(listener);
    let _ = timeout(gateway.options.drain_timeout, connections.join()).await;
    Ok(())
}

fn builder(options: &GatewayOptions) -> auto::Builder<TokioExecutor> {
    let head_bytes = options.limits.max_head_bytes.max(MIN_HEAD_BYTES);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(options.limits.request_time)
        .max_buf_size(head_bytes)
        .max_headers(MAX_HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(head_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
        .max_send_buf_size(MAX_STREAM_BUFFER_BYTES)
        .keep_alive_interval(PING_INTERVAL);
    builder
}

/// The other end of a connection.
#[derive(Default)]
struct Peer {
    /// `None` for a Unix socket.
    address: Option<PeerAddress>,
    local: Option<LoopbackPeer>,
}

/// What all connections share.
struct Server {
    builder: auto::Builder<TokioExecutor>,
    routes: TowerToHyperService<Router>,
    /// Maximum time without progress.
    progress_time: Duration,
    principals: Arc<PrincipalLimit>,
}

impl Server {
    /// Serves one client until the client or the gateway closes, or until the connection makes no
    /// progress. Returns why the connection made no progress.
    async fn serve_connection(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        peer: Peer,
        closing: impl Future<Output = ()>,
    ) -> Option<Stall> {
        let watch = ConnectionWatch::new(self.progress_time);
        let places = ConnectionPlaces::new(&self.principals);
        let service = service_fn(|mut request: Request<Incoming>| {
            if let Some(address) = peer.address {
                request.extensions_mut().insert(address);
            }
            if let Some(local) = &peer.local {
                request.extensions_mut().insert(local.clone());
            }
            request.extensions_mut().insert(places.clone());
            let watched = watch.start_request();
            let responding = self.routes.call(request);
            async move { responding.await.map(|response| watched.response(response)) }
        });
        let mut connection = pin!(self.builder.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => Some(ended),
            () = closing => {
                let first_request = timeout(FIRST_REQUEST_TIME, watch.first_request());
                tokio::select! {
                    biased;
                    ended = connection.as_mut() => Some(ended),
                    _ = first_request => {
                        // The owner of the task bounds the time.
                        connection.as_mut().graceful_shutdown();
                        Some(connection.await)
                    }
                }
            }
            () = places.refused() => {
                connection.as_mut().graceful_shutdown();
                // The response of the refused request; there is no other.
                timeout(FAREWELL_TIME, connection).await.ok()
            }
            stall = watch.stalled() => {
                tracing::info!(reason = %stall, "connection of a client ended");
                connection.as_mut().graceful_shutdown();
                drop(timeout(FAREWELL_TIME, connection).await);
                return Some(stall);
            }
        };
        let error = ended?.err()?;
        tracing::debug!(error, "connection ended");
        // The library has the same time for the head of a request.
        let is_timeout = error.downcast_ref().is_some_and(hyper::Error::is_timeout);
        is_timeout.then_some(Stall::Idle)
    }
}

#[cfg(test)]
mod tests;
