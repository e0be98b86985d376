//! The sockets on which a gateway accepts clients.

use std::io;
use std::net::IpAddr;

use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

use crate::auth::LoopbackPeer;
use crate::host_name::is_loopback;

/// A listening socket.
#[derive(Debug)]
pub enum GatewayListener {
    /// A TCP socket.
    Tcp(TcpListener),
    /// A Unix socket. The permissions of its file decide which users connect.
    #[cfg(unix)]
    Unix(UnixListener),
}

impl From<TcpListener> for GatewayListener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

#[cfg(unix)]
impl From<UnixListener> for GatewayListener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

/// The address from which a client has connected, as an extension of its requests: that of a proxy, if
/// there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

#[derive(Debug)]
pub(crate) enum ClientStream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl GatewayListener {
    /// Waits for the next client, and returns its stream with its address. Dropping the future loses
    /// no client.
    pub(crate) async fn accept(&self) -> io::Result<(ClientStream, Option<IpAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Small writes of event streams would wait for acknowledgements.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "TCP_NODELAY not set");
                }
                Ok((ClientStream::Tcp(stream), Some(peer.ip())))
            }
            #[cfg(unix)]
            Self::Unix(listener) => Ok((ClientStream::Unix(listener.accept().await?.0), None)),
        }
    }
}

impl ClientStream {
    /// Returns the other end of a connection to a loopback address.
    pub(crate) fn loopback_peer(&self) -> Option<LoopbackPeer> {
        match self {
            Self::Tcp(stream) => {
                let local = stream.local_addr().ok()?;
                let peer = stream.peer_addr().ok()?;
                is_loopback(peer.ip()).then(|| LoopbackPeer::new(local, peer))
            }
            #[cfg(unix)]
            Self::Unix(_) => None,
        }
    }
}
