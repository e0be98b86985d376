//! The user at the other end of a loopback connection.
//!
//! Without authentication, everyone who reaches the gateway is the local user. On Linux, the kernel
//! tells whose socket the other end is, so that no other user of the machine gets this far.

#[cfg(target_os = "linux")]
mod sock_diag;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::OnceCell;

/// The other end of a loopback connection. Clones share what is known about it.
#[derive(Clone, Debug)]
pub(crate) struct LoopbackPeer(Arc<Connection>);

#[derive(Debug)]
struct Connection {
    local: SocketAddr,
    peer: SocketAddr,
    is_own_user: OnceCell<bool>,
}

impl LoopbackPeer {
    /// `local` and `peer` are the addresses of a socket of the gateway.
    pub(crate) fn new(local: SocketAddr, peer: SocketAddr) -> Self {
        Self(Arc::new(Connection { local, peer, is_own_user: OnceCell::new() }))
    }

    /// Returns whether the other end is a socket of the gateway's user, or of root. Always true where
    /// the system doesn't tell.
    pub(crate) async fn is_own_user(&self) -> bool {
        *self.0.is_own_user.get_or_init(|| is_own_user(self.0.local, self.0.peer)).await
    }
}

#[cfg(not(target_os = "linux"))]
async fn is_own_user(_local: SocketAddr, _peer: SocketAddr) -> bool {
    true
}

#[cfg(target_os = "linux")]
async fn is_own_user(local: SocketAddr, peer: SocketAddr) -> bool {
    let user = match sock_diag::owner(peer, local) {
        Ok(owner) => Ok(owner.filter(|owner| owner.inode != 0).map(|owner| owner.user)),
        // A sandbox may refuse the question.
        Err(_) => {
            let found = tokio::task::spawn_blocking(move || linux::user(local, peer)).await;
            found.map_err(std::io::Error::other).flatten()
        }
    };
    let user = user.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot find the user of a loopback connection");
        None
    });
    user.is_some_and(|user| linux::may_connect(user, rustix::process::geteuid().as_raw()))
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::net::SocketAddr;

    use procfs::net::{TcpNetEntry, tcp, tcp6};

    /// Returns the user whose socket is the other end of a connection; `None` if a process has closed
    /// it already: the system names root as the user of such a socket.
    pub(super) fn user(local: SocketAddr, peer: SocketAddr) -> io::Result<Option<u32>> {
        let local = canonical(local);
        let peer = canonical(peer);
        let is_other_end = |entry: &TcpNetEntry| {
            canonical(entry.local_address) == peer && canonical(entry.remote_address) == local
        };
        let table = tcp().map_err(io::Error::other)?;
        let mut found = table.into_iter().find(is_other_end);
        if found.is_none() {
            // Without IPv6, the file is missing.
            found = tcp6().unwrap_or_default().into_iter().find(is_other_end);
        }
        Ok(found.filter(|entry| entry.inode != 0).map(|entry| entry.uid))
    }

    pub(super) fn may_connect(user: u32, gateway_user: u32) -> bool {
        user == gateway_user || user == 0
    }

    fn canonical(address: SocketAddr) -> (std::net::IpAddr, u16) {
        (address.ip().to_canonical(), address.port())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Attack: remote | another user of the machine connects to a gateway without authentication | the
    /// user of the other end is known, and only the gateway's own user and root are permitted |
    /// Isolation
    #[test]
    fn the_user_of_the_other_end_decides() {
        let own = rustix::process::geteuid().as_raw();
        for address in ["127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            // A machine without IPv6 has the first one only.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            let local = accepted.local_addr().unwrap();
            assert_eq!(linux::user(local, peer).unwrap(), Some(own), "{address}");
            let owner = sock_diag::owner(peer, local).unwrap();
            assert_eq!(owner.map(|owner| owner.user), Some(own), "{address}");
        }
        assert!(linux::may_connect(own, own) && linux::may_connect(0, 1000));
        assert!(!linux::may_connect(1001, 1000) && !linux::may_connect(65534, 0));
    }

    /// Attack: remote | another user closes the connection before the gateway looks | the request is
    /// refused: nobody's socket is not root's | Isolation
    #[tokio::test]
    async fn a_connection_that_is_closed_already_has_no_user() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _ = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, peer) = listener.accept().unwrap();
        let peer = LoopbackPeer::new(accepted.local_addr().unwrap(), peer);
        assert!(!peer.is_own_user().await);
    }
}
