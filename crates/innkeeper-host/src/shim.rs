//! The supervisor of one server's process tree: the program that runs between host and server.
//!
//! It starts the server, adopts every descendant that loses its parent, and ends all of them when
//! the host asks, when the server's main process exits, and when the host is gone.

#[cfg(unix)]
mod confine;
#[cfg(target_os = "linux")]
pub(crate) mod landlock;
#[cfg(unix)]
mod launch;
#[cfg(unix)]
mod signals;
#[cfg(target_os = "linux")]
pub(crate) mod sockets;
#[cfg(unix)]
mod supervise;
#[cfg(unix)]
pub(crate) mod tree;
#[cfg(unix)]
pub(crate) mod wire;

use std::ffi::OsString;
use std::process::ExitCode;

/// The first argument that makes a program the supervisor.
pub const FLAG: &str = "__shim";

/// The argument behind [`FLAG`] that makes a program take limits and a sandbox upon itself and then
/// become the server. The supervisor starts itself so, for servers that have any.
const CONFINE: &str = "__confine";

/// Becomes the supervisor if the program was started as one, and returns its exit code then.
///
/// An application that uses itself as supervisor calls this before anything else in `main`, with
/// `std::env::args_os()`, and returns the code if there is one:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     if let Some(code) = innkeeper_host::shim::run_if_requested(std::env::args_os()) {
///         return code;
///     }
///     ExitCode::SUCCESS
/// }
/// ```
///
/// Blocks until the server's whole tree is gone, or becomes the server if that has limits. Installs
/// signal handlers, which is why it must not be called for any other purpose.
pub fn run_if_requested(args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.skip(1);
    (args.next()? == FLAG).then(|| run(args))
}

#[cfg(unix)]
fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    if args.next().is_some_and(|role| role == CONFINE) {
        return confine::run(args);
    }
    match supervise::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(2),
    }
}

/// Job objects do this work on Windows; there is nothing to supervise.
#[cfg(not(unix))]
fn run(_args: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::from(2)
}
