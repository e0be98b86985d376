//! The listening socket that a service manager hands over.

use std::fmt;

use innkeeper_gateway::GatewayListener;
use innkeeper_host::Environment;

use super::{SOCKET_COUNT_VARIABLE, SOCKET_NAMES_VARIABLE, SOCKET_OWNER_VARIABLE};
use crate::exit::CliError;

pub(crate) struct HandedOverSockets {
    #[cfg(unix)]
    descriptors: listenfd::ListenFd,
    /// The names of the sockets for messages.
    names: String,
}

impl HandedOverSockets {
    /// Returns the sockets if the variables say that they are for this process.
    pub(super) fn take(environment: &Environment) -> Option<Self> {
        let count: usize = environment.get(SOCKET_COUNT_VARIABLE)?.parse().ok()?;
        let owner: u32 = environment.get(SOCKET_OWNER_VARIABLE)?.parse().ok()?;
        if count == 0 || owner != std::process::id() {
            return None;
        }
        Some(Self {
            #[cfg(unix)]
            descriptors: listenfd::ListenFd::from_env(),
            names: environment.get(SOCKET_NAMES_VARIABLE).unwrap_or_default().to_owned(),
        })
    }

    /// Returns the only socket.
    ///
    /// # Errors
    ///
    /// There are several sockets, or the socket is not a listening TCP or Unix socket.
    #[cfg(unix)]
    pub(crate) fn into_listener(mut self) -> Result<GatewayListener, CliError> {
        let names = self.to_string();
        let count = self.descriptors.len();
        if count != 1 {
            let message = format!("the service manager handed over {count} sockets{names}");
            return Err(CliError::usage(message).with_hint(
                "`serve` takes one socket: keep one `Listen…` line of the socket unit",
            ));
        }
        // An attempt that fails leaves the descriptor for the next one.
        let tcp = self.descriptors.take_tcp_listener(0).ok().flatten();
        if let Some(listener) = tcp.filter(is_listening) {
            listener.set_nonblocking(true)?;
            return Ok(tokio::net::TcpListener::from_std(listener)?.into());
        }
        let unix = self.descriptors.take_unix_listener(0).ok().flatten();
        if let Some(listener) = unix.filter(is_listening) {
            listener.set_nonblocking(true)?;
            return Ok(tokio::net::UnixListener::from_std(listener)?.into());
        }
        let message = format!(
            "the socket of the service manager{names} is not a listening TCP or Unix socket"
        );
        Err(CliError::usage(message)
            .with_hint("use `ListenStream=` and `Accept=no` in the socket unit"))
    }

    /// Fails: this system has no service manager that hands over sockets.
    #[cfg(not(unix))]
    pub(crate) fn into_listener(self) -> Result<GatewayListener, CliError> {
        let message =
            format!("this system does not support the sockets of a service manager{self}");
        Err(CliError::usage(message).with_hint("unset `LISTEN_FDS`"))
    }
}

impl fmt::Debug for HandedOverSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandedOverSockets").field("names", &self.names).finish_non_exhaustive()
    }
}

/// The names in parentheses, if there are names.
impl fmt::Display for HandedOverSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.names.is_empty() { Ok(()) } else { write!(f, " (`{}`)", self.names.escape_debug()) }
    }
}

/// Returns whether a socket accepts connections: a connected socket has the same type.
#[cfg(all(unix, not(target_vendor = "apple")))]
fn is_listening(socket: &impl std::os::fd::AsFd) -> bool {
    rustix::net::sockopt::socket_acceptconn(socket).unwrap_or(false)
}

/// Returns whether a socket is not connected: these systems do not tell whether it listens.
#[cfg(target_vendor = "apple")]
fn is_listening(socket: &impl std::os::fd::AsFd) -> bool {
    rustix::net::getpeername(socket).is_err()
}
