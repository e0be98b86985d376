//! Child processes that die with this program: on Linux, this executable sets `PR_SET_PDEATHSIG`
//! and then executes the target program.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

#[cfg(target_os = "linux")]
use innkeeper_host::host_process;
use tokio::process::Command;

/// First argument that makes this executable an exec wrapper.
const EXEC_FLAG: &str = "__leash";

/// Starts programs that die with this process.
#[derive(Clone, Debug)]
pub(crate) struct ParentDeathLink(Option<PathBuf>);

impl ParentDeathLink {
    /// Uses this executable, whose `main` must call [`run_if_requested`] first.
    pub(crate) fn this_program() -> io::Result<Self> {
        Ok(Self(Some(std::env::current_exe()?)))
    }

    /// Uses no wrapper: a child process is killed only when its handle is dropped.
    #[cfg(test)]
    pub(crate) fn disabled() -> Self {
        Self(None)
    }

    /// Creates a command in a new process group, which gets no signals from the terminal. The
    /// process is killed when its handle is dropped and, on Linux, when the thread that started the
    /// process ends.
    #[expect(
        clippy::disallowed_methods,
        reason = "only this function starts child processes for models"
    )]
    pub(crate) fn command(&self, program: &OsStr) -> Command {
        let mut command = match &self.0 {
            Some(link) if cfg!(target_os = "linux") => {
                let mut command = Command::new(link);
                command.arg(EXEC_FLAG).arg(std::process::id().to_string()).arg(program);
                command
            }
            Some(_) | None => Command::new(program),
        };
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        command
    }
}

/// Executes the requested program, if any; returns an exit code only if that fails.
pub(crate) fn run_if_requested(args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.skip(1);
    if args.next()? != EXEC_FLAG {
        return None;
    }
    let code = match exec_program(args) {
        Ok(never) => match never {},
        Err(error) => {
            // The message is for the parent, which reads stderr; the exit code reports the failure
            // as well.
            let _ = io::Write::write_all(&mut io::stderr(), format!("{error}\n").as_bytes());
            ExitCode::FAILURE
        }
    };
    Some(code)
}

#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "becomes the program; starts no child")]
fn exec_program(mut args: impl Iterator<Item = OsString>) -> io::Result<std::convert::Infallible> {
    use std::os::unix::process::CommandExt as _;

    let parent = args.next().and_then(|id| id.to_str()?.parse().ok());
    let (Some(parent), Some(program)) = (parent, args.next()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    host_process::die_with_parent(parent)?;
    Err(std::process::Command::new(program).args(args).exec())
}

#[cfg(not(target_os = "linux"))]
fn exec_program(_args: impl Iterator<Item = OsString>) -> io::Result<std::convert::Infallible> {
    Err(io::ErrorKind::Unsupported.into())
}
