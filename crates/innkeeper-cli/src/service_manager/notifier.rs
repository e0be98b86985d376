//! Messages to the service manager about the state of this process.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServiceState {
    /// The reason why the service is not ready yet.
    Waiting(String),
    /// The service can serve clients, with a description.
    Ready(String),
    /// The service ends.
    Stopping,
}

impl ServiceState {
    /// Returns the message of a state. A line break in a text would start another assignment.
    fn message(&self) -> String {
        match self {
            Self::Waiting(reason) => format!("STATUS={}", single_line(reason)),
            Self::Ready(text) => format!("READY=1\nSTATUS={}", single_line(text)),
            Self::Stopping => "STOPPING=1".to_owned(),
        }
    }
}

fn single_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Sends messages to the socket that the service manager named. Default: sends nothing.
#[derive(Debug, Default)]
pub(crate) struct ServiceNotifier {
    /// The path of the socket, or `@` with an abstract name.
    address: Option<String>,
}

impl ServiceNotifier {
    pub(super) fn new(address: Option<&str>) -> Self {
        Self { address: address.filter(|address| !address.is_empty()).map(ToOwned::to_owned) }
    }

    /// Sends a state without waiting. A failure is logged.
    pub(crate) fn notify(&self, state: &ServiceState) {
        let Some(address) = &self.address else { return };
        if let Err(error) = send(address, state.message().as_bytes()) {
            tracing::warn!(%error, "the service manager got no message");
        }
    }
}

#[cfg(unix)]
fn send(address: &str, message: &[u8]) -> std::io::Result<()> {
    use std::os::unix::net::UnixDatagram;

    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    #[cfg(target_os = "linux")]
    if let Some(name) = address.strip_prefix('@') {
        use std::os::linux::net::SocketAddrExt as _;
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
        return socket.send_to_addr(message, &address).map(drop);
    }
    socket.send_to(message, address).map(drop)
}

#[cfg(not(unix))]
fn send(_: &str, _: &[u8]) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    use super::*;

    #[test]
    fn a_state_reaches_a_socket_with_a_path_or_an_abstract_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let path = path.to_str().unwrap();
        let name = format!("innkeeper-test-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&name).unwrap();
        let state = ServiceState::Ready("2 servers\nERRNO=1".to_owned());
        for (socket, address) in [
            (UnixDatagram::bind(path).unwrap(), path.to_owned()),
            (UnixDatagram::bind_addr(&abstract_address).unwrap(), format!("@{name}")),
        ] {
            ServiceNotifier::new(Some(&address)).notify(&state);
            socket.set_nonblocking(true).unwrap();
            let mut buffer = [0; 100];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1\nSTATUS=2 servers ERRNO=1");
        }
    }
}
