//! Tells whether the process that connected a Unix socket is confined.
//!
//! A socket has the user of the process that connected it, and a sandboxed server has the same user as
//! its host. What it cannot hide is `no_new_privs`: a sandbox without privileges needs the flag, each
//! child of the process inherits it, and nothing removes it. So a process with the flag counts as
//! confined, whoever set it. The flag of this process permits nothing: it may be the setting of a service
//! manager, and then a sandbox that started elsewhere would look the same.
//!
//! Filters of system calls that a privileged program installed come without the flag. They count if this
//! process has fewer of them.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use innkeeper_supervisor::system;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::net::UnixStream;

/// Why the process at the other end of a connection is not trusted like its user.
#[derive(Debug, thiserror::Error)]
pub enum ConfinedPeer {
    /// The process has the flag `no_new_privs`, as each process of a sandbox.
    #[error("it has `no_new_privs`, as the processes of a sandbox have")]
    NoNewPrivileges,
    /// More filters of system calls apply to the process than to this one.
    #[error("more of its system calls are filtered than of this process")]
    Filtered,
    /// The process has ended; another one may have its id.
    #[error("it has ended")]
    Ended,
    /// The confinement of the process is unknown.
    #[error("its confinement cannot be read: {0}")]
    Unknown(#[from] io::Error),
}

/// Returns an error if the process that connected a socket is confined, or may be. Reads a few lines of
/// `/proc`; does not wait.
///
/// The process that connected counts, not the one that has the connection now.
///
/// # Errors
///
/// The process is more confined than this one, has ended, or its state cannot be read.
pub fn check_unconfined(socket: &UnixStream) -> Result<(), ConfinedPeer> {
    let pid = socket.peer_cred()?.pid().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let process = match system::open_peer(socket.as_fd()) {
        // Before Linux 6.5. Between its connection and now, the process may have ended, and another one
        // may have its id.
        Err(Errno::NOPROTOOPT) => pidfd_open(pid, PidfdFlags::empty()),
        opened => opened,
    };
    let process = process.map_err(io::Error::from)?;
    let peer = Confinement::read(&pid.as_raw_nonzero().to_string())?;
    // As long as the process lives, no other one has its id.
    if has_ended(&process)? {
        return Err(ConfinedPeer::Ended);
    }
    peer.check(Confinement::read("self")?)
}

fn has_ended(process: &OwnedFd) -> io::Result<bool> {
    let mut descriptors = [PollFd::new(process, PollFlags::IN)];
    Ok(poll(&mut descriptors, Some(&Timespec::default()))? > 0)
}

/// The lines about confinement in the `status` of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Confinement {
    no_new_privileges: bool,
    /// 0: off, 1: strict, 2: filters. `None` if the kernel has no filters.
    seccomp_mode: Option<u32>,
    /// `None` before Linux 5.9.
    filters: Option<u32>,
}

impl Confinement {
    fn read(process: &str) -> io::Result<Self> {
        let status = std::fs::read_to_string(Path::new("/proc").join(process).join("status"))?;
        Self::parse(&status).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(status: &str) -> Option<Self> {
        let number = |key: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            value.map(|value| value.trim().parse::<u32>().ok())
        };
        let optional = |key: &str| number(key).map_or(Some(None), |value| value.map(Some));
        Some(Self {
            no_new_privileges: number("NoNewPrivs")?? != 0,
            seccomp_mode: optional("Seccomp")?,
            filters: optional("Seccomp_filters")?,
        })
    }

    fn check(self, own: Self) -> Result<(), ConfinedPeer> {
        if self.no_new_privileges {
            return Err(ConfinedPeer::NoNewPrivileges);
        }
        // The strict mode has the smaller number and allows less.
        let is_strict = self.seccomp_mode == Some(1);
        if is_strict || self.seccomp_mode > own.seccomp_mode || self.filters > own.filters {
            return Err(ConfinedPeer::Filtered);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream as StdUnixStream;
    use std::process::{Command, Stdio};

    use super::*;

    fn status(no_new_privileges: u32, mode: u32, filters: u32) -> Confinement {
        let text = format!(
            "Name:\tNoNewPrivs: 0\nNoNewPrivs:\t{no_new_privileges}\nSeccomp:\t{mode}\n\
             Seccomp_filters:\t{filters}\n"
        );
        Confinement::parse(&text).unwrap()
    }

    /// Attack: sandbox | a sandboxed server connects to a gateway that a service manager confines as
    /// much | the flag of the sandbox counts, not the difference | Confinement holds
    #[test]
    fn a_process_that_cannot_gain_privileges_is_confined_also_if_this_one_is() {
        for own in [status(0, 0, 0), status(1, 0, 0), status(1, 2, 9)] {
            for peer in [status(1, 0, 0), status(1, 2, 1), status(1, 2, 9)] {
                let checked = peer.check(own);
                assert!(matches!(checked, Err(ConfinedPeer::NoNewPrivileges)), "{checked:?}");
            }
        }
    }

    #[test]
    fn filters_count_if_this_process_has_fewer() {
        let checked = |peer: Confinement, own| peer.check(own).is_ok();
        assert!(checked(status(0, 0, 0), status(0, 0, 0)));
        assert!(checked(status(0, 0, 0), status(1, 2, 9)));
        assert!(checked(status(0, 2, 1), status(0, 2, 1)));
        assert!(!checked(status(0, 2, 1), status(0, 0, 0)));
        assert!(!checked(status(0, 2, 2), status(0, 2, 1)));
        assert!(!checked(status(0, 1, 0), status(0, 2, 1)));
    }

    #[test]
    fn a_status_without_the_flag_or_with_another_text_is_unknown() {
        let old = Confinement { no_new_privileges: true, ..Confinement::default() };
        assert_eq!(Confinement::parse("NoNewPrivs:\t1\n"), Some(old));
        for text in ["", "Seccomp:\t0\n", "NoNewPrivs:\tx\n", "NoNewPrivs:\t0\nSeccomp:\n"] {
            assert_eq!(Confinement::parse(text), None, "{text}");
        }
    }

    /// Attack: sandbox | a process connects, passes the connection on and ends, so that another process
    /// gets its id | an ended process is refused | Confinement holds
    #[expect(clippy::disallowed_methods, reason = "a child that ends at once")]
    #[tokio::test]
    async fn only_a_living_process_is_checked() {
        let (one, _other) = StdUnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        let own = UnixStream::from_std(one).unwrap();
        assert!(!has_ended(&system::open_peer(own.as_fd()).unwrap()).unwrap());
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        assert!(!has_ended(&process).unwrap());
        child.wait().unwrap();
        assert!(has_ended(&process).unwrap());
    }
}
