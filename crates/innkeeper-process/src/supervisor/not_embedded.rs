//! A library without the small supervisor program, for systems other than Linux on x86-64 and ARM64.

use std::convert::Infallible;
use std::io;
#[cfg(unix)]
use std::process::Command;

/// The small supervisor program, which this library does not contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedSupervisor(Infallible);

impl EmbeddedSupervisor {
    /// Fails: the library does not contain the program.
    pub(super) fn open() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the command that runs the program.
    #[cfg(unix)]
    pub(crate) fn command(&self) -> Command {
        match self.0 {}
    }
}
