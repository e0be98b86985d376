//! Programs that die with this one: this program once more, which ties itself to its parent and then
//! becomes the other.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use tokio::process::Command;

/// The first argument that makes this program a leash.
const FLAG: &str = "__leash";

/// Who ties programs to this one.
#[derive(Clone, Debug)]
pub(crate) struct Leash(Option<PathBuf>);

impl Leash {
    /// This program, which has to call [`run_if_requested`] first of all.
    pub(crate) fn this_program() -> io::Result<Self> {
        Ok(Self(Some(std::env::current_exe()?)))
    }

    /// Nobody: what is started is killed when its handle is dropped, and only then.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// A command for `program`, out of reach of the terminal's signals. It is killed when its handle
    /// is dropped and, on Linux, when the thread that started it ends.
    #[expect(clippy::disallowed_methods, reason = "the one place where models start children")]
    pub(crate) fn command(&self, program: &OsStr) -> Command {
        let mut command = match &self.0 {
            Some(leash) if cfg!(target_os = "linux") => {
                let mut command = Command::new(leash);
                command.arg(FLAG).arg(std::process::id().to_string()).arg(program);
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

/// Becomes the program that a leash was asked for, and returns a code only if that fails.
pub(crate) fn run_if_requested(args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.skip(1);
    if args.next()? != FLAG {
        return None;
    }
    let code = match become_program(args) {
        Ok(never) => match never {},
        Err(error) => {
            // The words are for whoever reads the child's stderr; if nobody does, the code is left.
            drop(io::Write::write_all(&mut io::stderr(), format!("{error}\n").as_bytes()));
            ExitCode::FAILURE
        }
    };
    Some(code)
}

#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "becomes the program; starts no child")]
fn become_program(
    mut args: impl Iterator<Item = OsString>,
) -> io::Result<std::convert::Infallible> {
    use std::os::unix::process::CommandExt as _;

    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let parent = args.next().and_then(|id| id.to_str()?.parse().ok()).and_then(Pid::from_raw);
    let (Some(parent), Some(program)) = (parent, args.next()) else { return Err(invalid()) };
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before that.
    if getppid() != Some(parent) {
        return Err(io::ErrorKind::NotConnected.into());
    }
    Err(std::process::Command::new(program).args(args).exec())
}

#[cfg(not(target_os = "linux"))]
fn become_program(_args: impl Iterator<Item = OsString>) -> io::Result<std::convert::Infallible> {
    Err(io::ErrorKind::Unsupported.into())
}
