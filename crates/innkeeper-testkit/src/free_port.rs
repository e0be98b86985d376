//! A port for a server that cannot report its own.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Returns a loopback address with a port that no program uses now.
pub(crate) fn free_port() -> SocketAddr {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
    free.unwrap_or_else(|error| panic!("no free port: {error}"))
}
