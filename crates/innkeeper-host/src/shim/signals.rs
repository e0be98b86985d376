//! Signals to the shim, as sockets that become readable.
//!
//! Handlers, not ignored signals: executing the server resets a handler and would keep `SIG_IGN`.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// Where the shim hears of signals.
pub(super) struct Signals {
    /// Readable when a child has ended.
    pub(super) child: UnixStream,
    /// Readable when the shim was told to end.
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

    /// Forgets the wake-ups so far, so that the next one is noticed.
    pub(super) fn drain_child(&mut self) {
        let mut wakes = [0; 64];
        while matches!(self.child.read(&mut wakes), Ok(read) if read == wakes.len()) {}
    }
}
