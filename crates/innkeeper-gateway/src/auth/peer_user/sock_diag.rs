//! Asks the kernel about one TCP socket over netlink (`sock_diag(7)`).
//!
//! The kernel finds the socket by its addresses, at a cost that doesn't depend on the number of
//! connections. `/proc/net/tcp` lists all of them: with 256 clients that connect at once, reading it for
//! each took seconds.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// `SOCK_DIAG_BY_FAMILY`, the type of the request and of its answer.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST`.
const REQUEST_FLAG: u16 = 1;
/// `IPPROTO_TCP`.
const TCP: u8 = 6;
/// `TCP_LISTEN`. Without a connection at the addresses, the kernel returns the listener of the port.
const LISTEN_STATE: u8 = 10;

/// Bytes of `nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// Bytes of a request: the header and `inet_diag_req_v2`.
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
/// Places in the answer `inet_diag_msg`, behind the header.
const STATE_AT: usize = HEADER_BYTES + 1;
const ID_AT: usize = HEADER_BYTES + 4;
const USER_AT: usize = HEADER_BYTES + 64;
const INODE_AT: usize = HEADER_BYTES + 68;
/// Bytes of the ports and addresses in a socket's id.
const ADDRESS_BYTES: usize = 36;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SocketOwner {
    /// The user of the process that created the socket.
    pub(super) user: u32,
    /// 0 for a socket that its process has closed.
    pub(super) inode: u32,
}

/// Returns the owner of the connected socket with these addresses; `None` without such a socket.
///
/// # Errors
///
/// The kernel doesn't answer such questions.
pub(super) fn owner(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<SocketOwner>> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    let request = request(local, remote);
    send(&socket, &request, SendFlags::empty())?;
    let mut answer = [0; 1024];
    // The kernel has answered before `send` returns.
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::DONTWAIT)?;
    let answer = answer.get(..length).unwrap_or_default();
    if read_u16(answer, 4) != Some(SOCK_DIAG_BY_FAMILY) {
        // An error message: its first value is the negative error number.
        let error = read_u32(answer, HEADER_BYTES).map_or(0, |number| number.cast_signed());
        let error = io::Error::from_raw_os_error(-error);
        return if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) };
    }
    let id = ID_AT..ID_AT + ADDRESS_BYTES;
    let request_id = REQUEST_BYTES - 48..REQUEST_BYTES - 48 + ADDRESS_BYTES;
    let is_connection = answer.get(STATE_AT).is_some_and(|state| *state != LISTEN_STATE)
        && answer.get(id) == request.get(request_id);
    let owner = read_u32(answer, USER_AT).zip(read_u32(answer, INODE_AT));
    Ok(owner.filter(|_| is_connection).map(|(user, inode)| SocketOwner { user, inode }))
}

/// Returns the request for the socket with these addresses.
fn request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let family = if local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let mut request = Vec::with_capacity(REQUEST_BYTES);
    request.extend((REQUEST_BYTES as u32).to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(REQUEST_FLAG.to_ne_bytes());
    // The sequence number and the port of the sender.
    request.extend([0; 8]);
    request.extend([family.as_raw() as u8, TCP, 0, 0]);
    // In any state.
    request.extend(u32::MAX.to_ne_bytes());
    request.extend(local.port().to_be_bytes());
    request.extend(remote.port().to_be_bytes());
    for address in [local, remote] {
        let octets = match address.ip() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        request.extend(&octets);
        request.resize(request.len() + 16 - octets.len(), 0);
    }
    // On any interface, with any cookie.
    request.extend([0; 4]);
    request.extend([u8::MAX; 8]);
    request
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn only_the_connection_itself_is_found_and_no_listener_of_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).unwrap();
        let (accepted, peer) = listener.accept().unwrap();
        let found = owner(client.local_addr().unwrap(), address).unwrap().unwrap();
        assert_eq!(found.user, rustix::process::geteuid().as_raw());
        assert_ne!(found.inode, 0);
        assert_ne!(owner(address, peer).unwrap().unwrap().inode, found.inode);
        // The port of the listener has no connection from here.
        let elsewhere = SocketAddr::from(([127, 0, 0, 1], 1));
        assert_eq!(owner(address, elsewhere).unwrap(), None);
        drop((client, accepted));
    }
}
