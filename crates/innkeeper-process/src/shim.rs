//! The supervisor program of one server's process tree, between host and server.
//!
//! The shim starts the server, adopts every orphaned descendant, and terminates all of them on
//! request of the host, when the server's main process exits, and when the host is gone.

#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(unix)]
mod confine;
#[cfg(target_os = "linux")]
pub(crate) mod landlock;
#[cfg(unix)]
mod launch;
#[cfg(unix)]
mod signals;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(unix)]
mod supervise;
#[cfg(target_os = "linux")]
pub(crate) mod system_calls;
#[cfg(unix)]
pub(crate) mod tree;
#[cfg(unix)]
pub(crate) mod wire;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

/// First argument that makes a program run as the supervisor.
pub const FLAG: &str = "__shim";

/// Argument after [`FLAG`] that makes a program apply limits and a sandbox to itself and then
/// become the server. The supervisor starts itself with this flag for servers with limits or a
/// sandbox.
#[cfg(unix)]
const CONFINE_FLAG: &str = "__confine";

/// Variables of the host that a shim and a confining process receive. Other variables of the host may be secrets, which a
/// server could read in `/proc` until the shim hides itself.
///
/// `PATH` finds a program without a path, `LD_LIBRARY_PATH` its libraries, and a program that is
/// built for a measurement of the test coverage writes to `LLVM_PROFILE_FILE`.
#[cfg(unix)]
const SHIM_VARIABLES: &[&str] = &["PATH", "LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"];

/// Returns the variables of this process for a shim or a confining process.
#[cfg(unix)]
pub(crate) fn environment() -> impl Iterator<Item = (&'static str, OsString)> {
    SHIM_VARIABLES.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)))
}

/// Runs the supervisor if the program was started as one, and returns its exit code.
///
/// An application that is its own supervisor calls this function first in `main`, with
/// `std::env::args_os()`, and returns the code if there is one:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     if let Some(code) = innkeeper_process::shim::run_if_requested(std::env::args_os()) {
///         return code;
///     }
///     ExitCode::SUCCESS
/// }
/// ```
///
/// Blocks until the server's whole tree is gone, or becomes the server if the server has limits.
/// Installs signal handlers, so it must not be called for any other purpose.
pub fn run_if_requested(args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.skip(1);
    (args.next()? == FLAG).then(|| run(args))
}

/// Fails in a process that was started as a supervisor and runs the application instead. Such a
/// process must not start supervisors, because each of them would run the application again.
pub(crate) fn check_not_requested() -> io::Result<()> {
    if std::env::args_os().nth(1).is_some_and(|arg| arg == FLAG) {
        let message = "this process was started as a supervisor: call `run_if_requested` first in \
                       `main`";
        return Err(io::Error::other(message));
    }
    Ok(())
}

#[cfg(unix)]
fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    if args.next().is_some_and(|role| role == CONFINE_FLAG) {
        return confine::run(args);
    }
    match supervise::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(2),
    }
}

/// Fails on Windows, where job objects replace the supervisor.
#[cfg(not(unix))]
fn run(_args: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::from(2)
}
