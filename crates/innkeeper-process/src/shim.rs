//! The entry of a program that runs as the supervisor of one server's process tree.
//!
//! The supervisor itself is the crate `innkeeper-supervisor`. On the systems where the library
//! [contains](crate::Supervisor::embedded) a small program of that crate, no other program is
//! necessary; this entry is for other systems.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

/// First argument that makes a program run as the supervisor.
pub const FLAG: &str = "__shim";

/// Variables of the host that a shim receives. Other variables of the host may be secrets, which a
/// server could read in `/proc` until the shim hides itself.
///
/// `PATH` finds a program without a path, `LD_LIBRARY_PATH` its libraries, and a program that is
/// built for a measurement of the test coverage writes to `LLVM_PROFILE_FILE`.
#[cfg(unix)]
const SHIM_VARIABLES: &[&str] = &["PATH", "LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"];

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
/// Blocks until the server's whole tree is gone. Changes signals and settings of the process, so it
/// must not be called for any other purpose.
pub fn run_if_requested(args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.skip(1);
    (args.next()? == FLAG).then(run)
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
fn run() -> ExitCode {
    match innkeeper_supervisor::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(2),
    }
}

/// Fails on Windows, where job objects replace the supervisor.
#[cfg(not(unix))]
fn run() -> ExitCode {
    ExitCode::from(2)
}
