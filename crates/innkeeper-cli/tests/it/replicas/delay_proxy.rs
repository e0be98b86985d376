//! A TCP proxy that delays all bytes, and can end its connections.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Maximum number of chunks under way on one connection.
const MAX_CHUNKS: usize = 1024;

/// A proxy on a loopback port. A drop ends the proxy and its connections.
#[derive(Debug)]
pub(super) struct DelayProxy {
    address: SocketAddr,
    delay: Arc<AtomicU64>,
    ends: Arc<Notify>,
    _serving: JoinSet<()>,
}

impl DelayProxy {
    /// Starts a proxy without a delay.
    pub(super) async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (address, delay) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
        let mut serving = JoinSet::new();
        let ends = Arc::new(Notify::new());
        let (connection_delay, connection_ends) = (delay.clone(), ends.clone());
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                // The client connects again when its connection ends.
                let Ok(server) = TcpStream::connect(server).await else { continue };
                drop((client.set_nodelay(true), server.set_nodelay(true)));
                let (client_read, client_write) = client.into_split();
                let (server_read, server_write) = server.into_split();
                let to_server = pass(client_read, server_write, connection_delay.clone());
                let to_client = pass(server_read, client_write, connection_delay.clone());
                let end = connection_ends.clone().notified_owned();
                connections.spawn(async move {
                    tokio::select! {
                        ((), ()) = async { tokio::join!(to_server, to_client) } => {}
                        () = end => {}
                    }
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { address, delay, ends, _serving: serving }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections; new ones are accepted.
    pub(super) fn end_connections(&self) {
        self.ends.notify_waiters();
    }

    /// Sets the delay of the bytes that arrive from now on, in each direction.
    pub(super) fn set_delay(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).unwrap();
        self.delay.store(millis, Ordering::Relaxed);
    }
}

/// Passes bytes on after the delay, until an end closes the connection.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Arc<AtomicU64>) {
    let (sender, mut receiver) = mpsc::channel::<(Instant, Vec<u8>)>(MAX_CHUNKS);
    let reading = async move {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            let due = Instant::now() + Duration::from_millis(delay.load(Ordering::Relaxed));
            if sender.send((due, buffer[..length].to_vec())).await.is_err() {
                return;
            }
        }
    };
    let writing = async move {
        while let Some((due, bytes)) = receiver.recv().await {
            sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
        // The other end sees the end.
        let _ = to.shutdown().await;
    };
    tokio::join!(reading, writing);
}
