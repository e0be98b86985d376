//! Receives the launch from the host and starts the server.

use alloc::vec::Vec;
use core::mem::MaybeUninit;

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{self, Errno, IoSliceMut};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::process::{Pid, WaitOptions};

use crate::confine::confine;
use crate::launch_request::{LaunchRequest, MAX_LAUNCH_BYTES, PREFIX_BYTES};
use crate::signals::Signals;
use crate::system::{Forked, ProgramVectors, exit, fork, open_pipe};
use crate::wire::LaunchStage;

/// Exit code of a process that did not become the server.
const NOT_STARTED_EXIT_CODE: i32 = 126;

/// Bytes of a failure report in the pipe between the new process and the supervisor: the stage and
/// the error number.
const FAILURE_BYTES: usize = 5;

#[derive(Debug)]
pub(crate) struct ReceivedLaunch {
    /// The launch without its length prefix.
    pub(crate) body: Vec<u8>,
    pub(crate) streams: ServerStreams,
}

/// The server's ends of its standard streams.
#[derive(Debug)]
pub(crate) struct ServerStreams {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// The failed stage with its error number.
pub(crate) type LaunchFailure = (LaunchStage, Errno);

/// Waits for the launch; `None` if the host exits first.
pub(crate) fn receive(control: BorrowedFd<'_>) -> io::Result<Option<ReceivedLaunch>> {
    let mut prefix = [0; PREFIX_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = io::retry_on_intr(|| {
        let slices = &mut [IoSliceMut::new(&mut prefix)];
        rustix::net::recvmsg(control, slices, &mut ancillary, receive_flags())
    })?
    .bytes;
    if received == 0 {
        return Ok(None);
    }
    let descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let mut descriptors = descriptors.flatten();
    let mut next = || -> io::Result<OwnedFd> {
        let descriptor = descriptors.next().ok_or(Errno::BADMSG)?;
        io::fcntl_setfd(&descriptor, io::FdFlags::CLOEXEC)?;
        Ok(descriptor)
    };
    let streams = ServerStreams { stdin: next()?, stdout: next()?, stderr: next()? };
    read_exact(control, prefix.get_mut(received..).unwrap_or_default())?;
    let length = u32::from_le_bytes(prefix) as usize;
    if length > MAX_LAUNCH_BYTES {
        return Err(Errno::MSGSIZE);
    }
    let mut body = alloc::vec![0; length];
    read_exact(control, &mut body)?;
    Ok(Some(ReceivedLaunch { body, streams }))
}

fn receive_flags() -> RecvFlags {
    #[cfg(target_os = "linux")]
    return RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    RecvFlags::empty()
}

fn read_exact(file: BorrowedFd<'_>, mut space: &mut [u8]) -> io::Result<()> {
    while !space.is_empty() {
        match io::retry_on_intr(|| io::read(file, &mut *space))? {
            0 => return Err(Errno::PIPE),
            count => space = space.get_mut(count..).unwrap_or_default(),
        }
    }
    Ok(())
}

/// Starts the server in its own process group, and closes the supervisor's copies of its streams.
#[expect(unsafe_code, reason = "`fork`")]
pub(crate) fn start(
    launch: &LaunchRequest<'_>,
    streams: ServerStreams,
) -> Result<Pid, LaunchFailure> {
    let vectors = ProgramVectors::new(&launch.arguments, &launch.environment)
        .ok_or((LaunchStage::Program, Errno::INVAL))?;
    let at_start = |error| (LaunchStage::Program, error);
    let (report_reader, report_writer) = open_pipe().map_err(at_start)?;
    let supervisor = rustix::process::getpid();
    // SAFETY: the supervisor has one thread, and the child allocates nothing.
    match unsafe { fork() }.map_err(at_start)? {
        Forked::Child => {
            let failure = become_server(launch, &vectors, &streams, supervisor);
            report_failure(&report_writer, failure);
            exit(NOT_STARTED_EXIT_CODE)
        }
        Forked::Parent(main_pid) => {
            drop((report_writer, streams));
            match read_failure(&report_reader) {
                None => Ok(main_pid),
                Some(failure) => {
                    let _ = io::retry_on_intr(|| {
                        rustix::process::waitpid(Some(main_pid), WaitOptions::empty())
                    });
                    Err(failure)
                }
            }
        }
    }
}

/// Restricts this process and executes the server; returns only on failure.
fn become_server(
    launch: &LaunchRequest<'_>,
    vectors: &ProgramVectors<'_>,
    streams: &ServerStreams,
    supervisor: Pid,
) -> LaunchFailure {
    let prepared = die_with_supervisor(supervisor)
        .and_then(|()| Signals::restore())
        .and_then(|()| rustix::process::setpgid(None, None))
        .and_then(|()| rustix::stdio::dup2_stdin(&streams.stdin))
        .and_then(|()| rustix::stdio::dup2_stdout(&streams.stdout))
        .and_then(|()| rustix::stdio::dup2_stderr(&streams.stderr));
    if let Err(error) = prepared {
        return (LaunchStage::Program, error);
    }
    if !launch.directory.is_empty()
        && let Err(error) = rustix::process::chdir(launch.directory)
    {
        return (LaunchStage::WorkingDirectory, error);
    }
    match confine(launch) {
        Ok(()) => (LaunchStage::Program, vectors.execute()),
        Err(error) => (LaunchStage::Confinement, error),
    }
}

/// Lets the kernel kill this process with SIGKILL when the supervisor ends, also after the process
/// executes the server.
#[cfg(target_os = "linux")]
fn die_with_supervisor(supervisor: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // The supervisor may have ended before the call.
    if rustix::process::getppid() == Some(supervisor) { Ok(()) } else { Err(Errno::SRCH) }
}

#[cfg(not(target_os = "linux"))]
fn die_with_supervisor(_supervisor: Pid) -> io::Result<()> {
    Ok(())
}

/// Reports a failure to the supervisor, which waits for it.
fn report_failure(report: &OwnedFd, (stage, error): LaunchFailure) {
    let stage = match stage {
        LaunchStage::Program => b'P',
        LaunchStage::WorkingDirectory => b'D',
        LaunchStage::Confinement => b'C',
    };
    let [a, b, c, d] = error.raw_os_error().to_ne_bytes();
    let _ = io::retry_on_intr(|| io::write(report, &[stage, a, b, c, d]));
}

/// Waits until the server runs, or a failure is reported.
fn read_failure(report: &OwnedFd) -> Option<LaunchFailure> {
    let mut bytes = [0; FAILURE_BYTES];
    read_exact(rustix::fd::AsFd::as_fd(report), &mut bytes).ok()?;
    let [stage, error @ ..] = bytes;
    let stage = match stage {
        b'D' => LaunchStage::WorkingDirectory,
        b'C' => LaunchStage::Confinement,
        _ => LaunchStage::Program,
    };
    Some((stage, Errno::from_raw_os_error(i32::from_ne_bytes(error))))
}
