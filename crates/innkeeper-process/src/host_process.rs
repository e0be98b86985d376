//! Settings of the host's own process, which only an application changes.
//!
//! The library changes no global state by itself. An application calls these functions first in
//! `main`, after [`shim::run_if_requested`](crate::shim::run_if_requested).

use std::io;

/// Makes the process the parent of each orphan below it (`PR_SET_CHILD_SUBREAPER`).
///
/// If a supervisor is killed, the host then finds each process of the tree that is left, also a
/// process that removed every tag. The host terminates and reaps these processes. A program that
/// the application itself starts and that leaves its child behind makes the child a child of the
/// application: the host does not terminate such a child, and the application reaps it or leaves
/// it as a zombie until the application ends.
///
/// Has no effect on systems other than Linux.
///
/// # Errors
///
/// Returns the error of the system.
pub fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Hides the environment, the memory and the open files of the process from other processes of the
/// same user (`PR_SET_DUMPABLE`).
///
/// Servers receive a short environment, but a server without a sandbox can read the files in
/// `/proc` of its host, which contain the whole environment. After this call they belong to root,
/// and the process writes no core dump and accepts no debugger of its user. The process can still
/// read its own files in `/proc`, except `environ` and `mem`. A process with the capability
/// `CAP_SYS_PTRACE`, such as a server that runs as root, is not stopped.
///
/// Has no effect on systems other than Linux.
///
/// # Errors
///
/// Returns the error of the system.
pub fn hide() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}
