//! Delivers signals to the shim through sockets that become readable.
//!
//! The shim installs handlers and does not ignore signals: executing the server resets a handler,
//! but would keep `SIG_IGN`.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// The sockets that report signals.
pub(super) struct Signals {
    /// Readable after a child has exited.
    pub(super) child: UnixStream,
    /// Readable after a termination signal.
    pub(super) stop: UnixStream,
}

impl Signals {
    pub(super) fn install() -> io::Result<Self> {
        let (child, wake) = UnixStream::pair()?;
        pipe::register(SIGCHLD, wake)?;
        let (stop, wake) = UnixStream::pair()?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            pipe::register(signal, wake.try_clone()?)?;
        }
        child.set_nonblocking(true)?;
        stop.set_nonblocking(true)?;
        Ok(Self { child, stop })
    }

    /// Drains pending wake-ups, so that the next wake-up is noticed.
    pub(super) fn drain_child(&mut self) {
        let mut wakes = [0; 64];
        while matches!(self.child.read(&mut wakes), Ok(read) if read == wakes.len()) {}
    }
}
