//! The small supervisor program inside of the library, and the file in memory from which it runs.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use rustix::fs::{Access, MemfdFlags, SealFlags};
use rustix::io::Errno;

/// The program; the build script of this crate builds it.
pub(crate) static PROGRAM: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/innkeeper-supervisor"));

/// Name of the file in `/proc/PID/exe`, and of the program in process lists.
const NAME: &CStr = c"innkeeper-shim";

/// The small supervisor program in a sealed file in memory. The file lasts as long as a clone of
/// this value.
#[derive(Clone, Debug)]
pub struct EmbeddedSupervisor(Arc<OwnedFd>);

impl EmbeddedSupervisor {
    /// Opens the file; fails where the system does not execute it.
    pub(super) fn open() -> io::Result<Self> {
        let file = create_file()?;
        write_all(&file, PROGRAM)?;
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals)?;
        let supervisor = Self(Arc::new(file));
        rustix::fs::access(supervisor.path(), Access::EXEC_OK)?;
        Ok(supervisor)
    }

    /// Returns the path of the file for this process and for a process that it starts.
    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }

    /// Returns the command that runs the program. The program reads no argument and no variable.
    #[expect(clippy::disallowed_methods, reason = "this is where a shim's process is made")]
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.path());
        command.arg0(NAME.to_str().unwrap_or_default()).env_clear();
        command
    }
}

/// Creates the file. A kernel before Linux 6.3 does not know that the file will be executed.
fn create_file() -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match rustix::fs::memfd_create(NAME, flags | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => rustix::fs::memfd_create(NAME, flags),
        created => created,
    }
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let count = rustix::io::retry_on_intr(|| rustix::io::write(file, bytes))?;
        bytes = &bytes[count..];
    }
    Ok(())
}

impl PartialEq for EmbeddedSupervisor {
    /// Every file has the same program.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for EmbeddedSupervisor {}
