//! Takes the launch from the host and starts the server.

use std::ffi::OsString;
use std::io::{self, IoSliceMut, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::{Errno, FdFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::process::Pid;

use super::CONFINE;
use super::wire::{Confine, LAUNCH_LIMIT, Os, Part, REPORT_LIMIT, Report, Start};

/// The bytes taken by the first read; nearly every launch fits.
const FIRST_READ: usize = 64 << 10;

/// The variables of a server; of two with one name the last one counts.
type Environment = Vec<(Os, Os)>;

/// A launch as it came from the host.
pub(super) struct Received {
    pub(super) start: Start,
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// Waits for the launch; `None` if the host went away first.
pub(super) fn receive(control: &UnixStream) -> io::Result<Option<Received>> {
    let mut bytes = vec![0; FIRST_READ];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [IoSliceMut::new(&mut bytes)];
    let read = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(control, slices, &mut ancillary, close_on_exec())
    })?
    .bytes;
    if read == 0 {
        return Ok(None);
    }
    bytes.truncate(read);
    let fds = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let mut fds = fds.flatten();
    let mut next = || -> io::Result<OwnedFd> {
        let fd = fds.next().ok_or(io::ErrorKind::InvalidData)?;
        rustix::io::fcntl_setfd(&fd, FdFlags::CLOEXEC)?;
        Ok(fd)
    };
    let (stdin, stdout, stderr) = (next()?, next()?, next()?);
    let start = serde_json::from_slice(&rest(control, bytes)?)?;
    Ok(Some(Received { start, stdin, stdout, stderr }))
}

/// The whole launch without its length, of which `first` holds the beginning.
fn rest(mut control: &UnixStream, mut first: Vec<u8>) -> io::Result<Vec<u8>> {
    while first.len() < 4 {
        let mut byte = [0];
        control.read_exact(&mut byte)?;
        first.push(byte[0]);
    }
    let mut body = first.split_off(4);
    let length = first.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    if length > LAUNCH_LIMIT || body.len() > length {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let had = body.len();
    body.resize(length, 0);
    control.read_exact(&mut body[had..])?;
    Ok(body)
}

#[cfg(target_os = "linux")]
fn close_on_exec() -> RecvFlags {
    RecvFlags::CMSG_CLOEXEC
}

#[cfg(not(target_os = "linux"))]
fn close_on_exec() -> RecvFlags {
    RecvFlags::empty()
}

/// Starts the server in a process group of its own and closes the shim's ends of its streams.
pub(super) fn start(received: Received) -> Result<Pid, (Part, i32)> {
    let Received { start, stdin, stdout, stderr } = received;
    let cwd = start.cwd.map(OsString::from);
    let (mut command, confining) = match start.confine {
        None => (free(start.program, start.args, start.env), None),
        Some(confine) => {
            let confined = confined(confine, start.program, start.args, start.env);
            let (command, told) = confined.map_err(|error| (Part::Bounds, errno(&error)))?;
            (command, Some(told))
        }
    };
    command
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr))
        .process_group(0);
    if let Some(cwd) = &cwd {
        command.current_dir(cwd);
    }
    let mut child = command.spawn().map_err(|error| {
        let usable = cwd.is_none_or(|cwd| Path::new(&cwd).join(".").metadata().is_ok());
        let part = if usable { Part::Program } else { Part::Directory };
        (part, errno(&error))
    })?;
    if let Some(Confining { told, tell, env, mut give, environment }) = confining {
        drop((tell, env));
        let environment = serde_json::to_vec(&environment);
        // One that ended before it had read all says why.
        drop(environment.map(|environment| give.write_all(&environment)));
        drop(give);
        if let Some(failure) = failure(told) {
            drop(child.wait());
            return Err(failure);
        }
    }
    // The child is waited for with every other process of the tree, not through this handle.
    Ok(Pid::from_child(&child))
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())
}

#[expect(clippy::disallowed_methods, reason = "this is where a server's process is made")]
fn program(program: Os, args: Vec<Os>) -> Command {
    let mut command = Command::new(OsString::from(program));
    command.args(args.into_iter().map(OsString::from));
    command
}

/// The server itself.
fn free(server: Os, args: Vec<Os>, env: Environment) -> Command {
    let mut command = program(server, args);
    let env = env.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    command.env_clear().envs(env);
    command
}

/// A process that confines itself before it becomes the server.
struct Confining {
    /// What it says before that: nothing if it succeeds.
    told: PipeReader,
    /// Its end, open across its execution and closed by the server's.
    tell: OwnedFd,
    /// Its end of the pipe that the server's environment comes by.
    env: OwnedFd,
    give: PipeWriter,
    environment: Environment,
}

/// The program that confines itself, in front of the server's own. Its environment is empty, since
/// the server's may name code to load, and nothing confines that program yet.
fn confined(
    confine: Confine,
    server: Os,
    args: Vec<Os>,
    environment: Environment,
) -> io::Result<(Command, Confining)> {
    let (told, tell) = io::pipe()?;
    let (env, give) = io::pipe()?;
    let (tell, env) = (OwnedFd::from(tell), OwnedFd::from(env));
    for inherited in [&tell, &env] {
        rustix::io::fcntl_setfd(inherited, FdFlags::empty())?;
    }
    let by_name = !confine.program.to_os_string().as_bytes().contains(&b'/');
    let mut command = program(confine.program, confine.args);
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH").filter(|_| by_name) {
        // It is looked for where the host has found it.
        command.env("PATH", path);
    }
    command
        .arg(CONFINE)
        .arg(tell.as_raw_fd().to_string())
        .arg(env.as_raw_fd().to_string())
        .arg(serde_json::to_string(&confine.bounds)?)
        .arg(OsString::from(server))
        .args(args.into_iter().map(OsString::from));
    Ok((command, Confining { told, tell, env, give, environment }))
}

/// Waits until the server runs, or until it is known why it does not.
fn failure(told: PipeReader) -> Option<(Part, i32)> {
    let mut line = String::new();
    told.take(REPORT_LIMIT as u64).read_to_string(&mut line).ok()?;
    match Report::parse(line.strip_suffix('\n')?)? {
        Report::Failed(part, errno) => Some((part, errno)),
        Report::Started(_) | Report::TooMany | Report::Exited(_) | Report::Gone => None,
    }
}
