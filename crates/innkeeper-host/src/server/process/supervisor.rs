//! Who looks after a server's process tree: a supervising program, or the host with a group.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// The supervisor that is built with this library.
const SHIM: &str = "innkeeper-shim";

/// How to run the supervisor of a server's process tree.
///
/// On Windows a job object does the work, and this has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supervisor {
    /// One small process beside each server, which ends the server's whole tree when told to, when
    /// the server exits, and when the host is gone for whatever reason.
    Shim {
        /// The program: `innkeeper-shim`, or one whose `main` calls
        /// [`run_if_requested`](crate::shim::run_if_requested) first.
        program: PathBuf,
        /// What makes that program the supervisor.
        args: Vec<OsString>,
    },
    /// No extra process: the server gets a process group, which does not hold descendants that
    /// leave it and is not ended when the host is killed.
    Group,
}

impl Supervisor {
    /// The running program itself, if its `main` calls
    /// [`run_if_requested`](crate::shim::run_if_requested) before anything else.
    ///
    /// On Linux this stays the same program when its file is replaced by a newer one.
    ///
    /// # Errors
    /// The path of the running program cannot be determined.
    pub fn this_program() -> io::Result<Self> {
        let running = Path::new("/proc/self/exe");
        if cfg!(target_os = "linux") && running.exists() {
            return Ok(Self::executable(running));
        }
        Ok(Self::executable(std::env::current_exe()?))
    }

    /// `innkeeper-shim` in the directory of the running program if it is there, else
    /// [`Supervisor::Group`].
    pub fn beside_this_program() -> Self {
        let found = std::env::current_exe().ok().and_then(|program| {
            let shim = program.with_file_name(SHIM).with_extension(std::env::consts::EXE_EXTENSION);
            shim.is_file().then_some(shim)
        });
        found.map_or(Self::Group, Self::executable)
    }

    /// The program at `path`, `innkeeper-shim` for example.
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
