//! The standard stream pipes between host and server.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe;

use crate::StdioPipes;

/// Requested capacity of stdin and stdout in bytes: larger pipes reduce context switches. Four
/// times the Linux default, so that 100 servers stay below the user limit of 16384 pipe pages,
/// beyond which all pipes of a user become slow.
const PIPE_SIZE: usize = 256 << 10;

pub(super) struct ServerPipeEnds {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// Opens the pipes; requires a runtime with I/O.
pub(super) fn open() -> io::Result<(StdioPipes, ServerPipeEnds)> {
    let (stdin, to_server) = io::pipe()?;
    let (from_server, stdout) = io::pipe()?;
    let (errors, stderr) = io::pipe()?;
    enlarge(&to_server);
    enlarge(&from_server);
    let pipes = StdioPipes {
        stdin: pipe::Sender::from_owned_fd(to_server.into())?,
        stdout: pipe::Receiver::from_owned_fd(from_server.into())?,
        stderr: pipe::Receiver::from_owned_fd(errors.into())?,
    };
    Ok((
        pipes,
        ServerPipeEnds { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into() },
    ))
}

/// Requests the larger capacity; a failure only costs speed.
#[cfg(target_os = "linux")]
fn enlarge(pipe: impl std::os::fd::AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_SIZE);
}

#[cfg(not(target_os = "linux"))]
fn enlarge(_pipe: impl std::os::fd::AsFd) {
    let _ = PIPE_SIZE;
}
