//! The supervisor of a server's process tree.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the supervisor program that this package builds.
const SHIM_PROGRAM: &str = "innkeeper-shim";

/// The way a server's process tree is supervised.
///
/// On Windows a job object supervises the processes, and this setting has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supervisor {
    /// A small process per server that terminates the server's whole tree on request, when the
    /// server exits, and when the host exits for any reason.
    Shim {
        /// Supervisor program: `innkeeper-shim`, or a program whose `main` first calls
        /// [`run_if_requested`](crate::shim::run_if_requested).
        program: PathBuf,
        /// Arguments that make the program run as a supervisor.
        args: Vec<OsString>,
    },
    /// A process group without an extra process. Descendants can leave the group, and the group
    /// survives if the host is killed.
    Group,
}

impl Supervisor {
    /// Returns a supervisor that runs the current executable, whose `main` must call
    /// [`run_if_requested`](crate::shim::run_if_requested) first.
    ///
    /// On Linux the supervisor stays the same program if the file is replaced.
    ///
    /// # Errors
    /// The path of the current executable cannot be determined, or the current process was itself
    /// started as a supervisor, because `main` does not call
    /// [`run_if_requested`](crate::shim::run_if_requested).
    pub fn this_program() -> io::Result<Self> {
        crate::shim::check_not_requested()?;
        let running = Path::new("/proc/self/exe");
        if cfg!(target_os = "linux") && running.exists() {
            return Ok(Self::executable(running));
        }
        Ok(Self::executable(std::env::current_exe()?))
    }

    /// Returns `innkeeper-shim` from the directory of the current executable if it exists, else
    /// [`Supervisor::Group`].
    pub fn beside_this_program() -> Self {
        let shim_path = std::env::current_exe().ok().and_then(|program| {
            let shim = program
                .with_file_name(SHIM_PROGRAM)
                .with_extension(std::env::consts::EXE_EXTENSION);
            shim.is_file().then_some(shim)
        });
        shim_path.map_or(Self::Group, Self::executable)
    }

    /// Returns a supervisor that runs the program at `path`, for example `innkeeper-shim`.
    pub fn executable(path: impl Into<PathBuf>) -> Self {
        Self::Shim { program: path.into(), args: vec![crate::shim::FLAG.into()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_the_file_that_runs() {
        let Ok(Supervisor::Shim { program, args }) = Supervisor::this_program() else {
            panic!("no shim")
        };
        let running = std::env::current_exe().unwrap().canonicalize().unwrap();
        assert_eq!(program.canonicalize().unwrap(), running);
        assert_eq!(args, [crate::shim::FLAG]);
    }
}
