//! The supervisor of a server's process tree.

#[cfg(innkeeper_embedded_supervisor)]
mod embedded;
#[cfg(not(innkeeper_embedded_supervisor))]
mod not_embedded;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(innkeeper_embedded_supervisor)]
pub use embedded::EmbeddedSupervisor;
#[cfg(not(innkeeper_embedded_supervisor))]
pub use not_embedded::EmbeddedSupervisor;

#[cfg(all(test, innkeeper_embedded_supervisor))]
pub(crate) use embedded::PROGRAM;

/// Name of the supervisor program that this package builds.
const SHIM_PROGRAM: &str = "innkeeper-shim";

/// The way a server's process tree is supervised.
///
/// On Windows a job object supervises the processes, and this setting has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supervisor {
    /// A small process per server that terminates the server's whole tree on request, when the
    /// server exits, and when the host exits for any reason. The library contains the program.
    Embedded(EmbeddedSupervisor),
    /// The same with another program, for systems where the library contains none.
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
    /// Returns the supervisor that the library contains, from a file in memory.
    ///
    /// `None` on systems other than Linux on x86-64 and ARM64, and where the system executes no file
    /// in memory: without `/proc`, and with the setting `vm.memfd_noexec=2`.
    pub fn embedded() -> Option<Self> {
        EmbeddedSupervisor::open().ok().map(Self::Embedded)
    }

    /// Returns the best supervisor that needs no code in `main`: [`Supervisor::embedded`], else
    /// [`Supervisor::beside_this_program`].
    pub fn available() -> Self {
        Self::embedded().unwrap_or_else(Self::beside_this_program)
    }

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

    /// Returns `innkeeper-shim` from the directory of the current executable if it is an executable
    /// file, else [`Supervisor::Group`].
    pub fn beside_this_program() -> Self {
        std::env::current_exe().map_or(Self::Group, |program| Self::beside(&program))
    }

    fn beside(program: &Path) -> Self {
        let shim =
            program.with_file_name(SHIM_PROGRAM).with_extension(std::env::consts::EXE_EXTENSION);
        if shim.is_file() && is_executable(&shim) { Self::executable(shim) } else { Self::Group }
    }

    /// Returns a supervisor that runs the program at `path`, for example `innkeeper-shim`.
    pub fn executable(path: impl Into<PathBuf>) -> Self {
        Self::Shim { program: path.into(), args: vec![crate::shim::FLAG.into()] }
    }
}

/// Returns whether the current user may execute the file.
#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Returns true: files have no permission to execute.
#[cfg(not(unix))]
fn is_executable(_path: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_shim_beside_the_program_is_the_supervisor_only_if_the_file_is_executable() {
        use std::fs::{Permissions, create_dir, remove_file, set_permissions, write};
        use std::os::unix::fs::PermissionsExt;

        let dir = tempfile::tempdir().unwrap();
        let (program, shim) = (dir.path().join("app"), dir.path().join(SHIM_PROGRAM));
        assert_eq!(Supervisor::beside(&program), Supervisor::Group);
        write(&shim, "").unwrap();
        for (mode, expected) in [(0o644, Supervisor::Group), (0o755, Supervisor::executable(&shim))]
        {
            set_permissions(&shim, Permissions::from_mode(mode)).unwrap();
            assert_eq!(Supervisor::beside(&program), expected, "{mode:o}");
        }
        remove_file(&shim).unwrap();
        create_dir(&shim).unwrap();
        assert_eq!(Supervisor::beside(&program), Supervisor::Group);
    }

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
