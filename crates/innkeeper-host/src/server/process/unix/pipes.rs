//! The three pipes between host and server.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe;

use crate::server::process::Pipes;

/// The size asked for on stdin and stdout in bytes: larger messages pass without a change of
/// process. Four times what Linux gives, so that 100 servers stay within the pages an ordinary
/// user may have in pipes (16384), beyond which all of a user's pipes get slow.
const PIPE_SIZE: usize = 256 << 10;

/// The server's ends.
pub(super) struct Ends {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// Opens the pipes; needs a runtime with I/O.
pub(super) fn open() -> io::Result<(Pipes, Ends)> {
    let (stdin, to_server) = io::pipe()?;
    let (from_server, stdout) = io::pipe()?;
    let (errors, stderr) = io::pipe()?;
    enlarge(&to_server);
    enlarge(&from_server);
    let pipes = Pipes {
        stdin: pipe::Sender::from_owned_fd(to_server.into())?,
        stdout: pipe::Receiver::from_owned_fd(from_server.into())?,
        stderr: pipe::Receiver::from_owned_fd(errors.into())?,
    };
    Ok((pipes, Ends { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into() }))
}

/// A refusal costs speed and nothing else.
#[cfg(target_os = "linux")]
fn enlarge(pipe: impl std::os::fd::AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_SIZE);
}

#[cfg(not(target_os = "linux"))]
fn enlarge(_pipe: impl std::os::fd::AsFd) {
    let _ = PIPE_SIZE;
}
