//! Settings of an application's own process, which only the application changes.
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

/// Kills all processes below this one, orphans included if [`adopt_orphans`] was called before. Blocks
/// until they are gone, at most half a second. For a program that ends and has started other programs
/// only.
///
/// Has no effect on systems other than Linux.
pub fn kill_descendants() {
    #[cfg(target_os = "linux")]
    crate::sweep::kill_descendants();
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

/// Lets the kernel kill the process with SIGKILL when its parent ends (`PR_SET_PDEATHSIG`), also
/// after the process executes another program. For a small process that then executes a program,
/// not for the process of the application. The parent is the thread that started the process.
///
/// Has no effect on systems other than Linux.
///
/// # Errors
///
/// The parent is not the process with this id, because the parent has ended before
/// ([`NotConnected`](io::ErrorKind::NotConnected)), or the system returns an error.
#[cfg_attr(
    not(target_os = "linux"),
    expect(unused_variables, clippy::unnecessary_wraps, reason = "Linux only")
)]
pub fn die_with_parent(parent_id: u32) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before the call.
        let parent = i32::try_from(parent_id).ok().and_then(Pid::from_raw);
        if parent.is_none() || getppid() != parent {
            return Err(io::ErrorKind::NotConnected.into());
        }
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_another_parent_gets_the_error_for_an_ended_parent() {
        let own = std::process::id();
        for wrong in [own, 0, u32::MAX] {
            let error = die_with_parent(wrong).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotConnected, "{wrong}");
        }
        rustix::process::set_parent_process_death_signal(None).unwrap();
    }
}
