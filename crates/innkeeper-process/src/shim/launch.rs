//! Receives the launch from the host and starts the server.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSliceMut, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::{Errno, FdFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::process::Pid;

use super::wire::{
    ConfineCommand, LaunchRequest, LaunchStage, MAX_LAUNCH_BYTES, MAX_REPORT_BYTES, ShimReport,
    WireOsString,
};
use super::{CONFINE_FLAG, FLAG};

/// Size of the first read in bytes; nearly every launch fits.
const FIRST_READ_BYTES: usize = 64 << 10;

/// The environment variables of a server; the last variable of a name takes precedence.
type EnvVars = Vec<(WireOsString, WireOsString)>;

/// A launch received from the host.
pub(super) struct ReceivedLaunch {
    pub(super) request: LaunchRequest,
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// Waits for the launch; `None` if the host exits first.
pub(super) fn receive(control: &UnixStream) -> io::Result<Option<ReceivedLaunch>> {
    let mut bytes = vec![0; FIRST_READ_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [IoSliceMut::new(&mut bytes)];
    let read = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(control, slices, &mut ancillary, recv_flags())
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
    let request = serde_json::from_slice(&read_rest(control, bytes)?)?;
    Ok(Some(ReceivedLaunch { request, stdin, stdout, stderr }))
}

/// Returns the complete launch without its length prefix; `first` contains its start.
fn read_rest(mut control: &UnixStream, mut first: Vec<u8>) -> io::Result<Vec<u8>> {
    while first.len() < 4 {
        let mut byte = [0];
        control.read_exact(&mut byte)?;
        first.push(byte[0]);
    }
    let mut body = first.split_off(4);
    let length = first.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    if length > MAX_LAUNCH_BYTES || body.len() > length {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let had = body.len();
    body.resize(length, 0);
    control.read_exact(&mut body[had..])?;
    Ok(body)
}

#[cfg(target_os = "linux")]
fn recv_flags() -> RecvFlags {
    RecvFlags::CMSG_CLOEXEC
}

#[cfg(not(target_os = "linux"))]
fn recv_flags() -> RecvFlags {
    RecvFlags::empty()
}

/// Starts the server in its own process group and closes the shim's copies of its pipe ends.
pub(super) fn start(received: ReceivedLaunch) -> Result<Pid, (LaunchStage, i32)> {
    let ReceivedLaunch { request, stdin, stdout, stderr } = received;
    let cwd = request.cwd.map(OsString::from);
    let (mut command, confining) = match request.confine {
        None => (unconfined_command(request.program, request.args, request.env), None),
        Some(confine) => {
            let confined = confined_command(confine, request.program, request.args, request.env);
            let (command, told) =
                confined.map_err(|error| (LaunchStage::Confinement, errno(&error)))?;
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
        let stage = if usable { LaunchStage::Program } else { LaunchStage::WorkingDirectory };
        (stage, errno(&error))
    })?;
    if let Some(ConfiningChild {
        report_reader,
        report_writer,
        environment_reader,
        environment_writer: mut give,
        environment,
    }) = confining
    {
        drop((report_writer, environment_reader));
        let environment = serde_json::to_vec(&environment);
        // A process that exits before it reads all of the environment reports the reason.
        drop(environment.map(|environment| give.write_all(&environment)));
        drop(give);
        if let Some(failure) = wait_for_failure(report_reader) {
            drop(child.wait());
            return Err(failure);
        }
    }
    // The shim reaps the child with all other processes of the tree, without this handle.
    Ok(Pid::from_child(&child))
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())
}

#[expect(clippy::disallowed_methods, reason = "this is where a server's process is made")]
fn new_command(program: WireOsString, args: Vec<WireOsString>) -> Command {
    let mut command = Command::new(OsString::from(program));
    command.args(args.into_iter().map(OsString::from));
    command
}

/// Returns the command of the server itself.
fn unconfined_command(server: WireOsString, args: Vec<WireOsString>, env: EnvVars) -> Command {
    let mut command = new_command(server, args);
    let env = env.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    command.env_clear().envs(env);
    command
}

/// Returns the command that runs this program again.
fn confining_program(program: WireOsString, args: Vec<WireOsString>) -> Command {
    let running = Path::new("/proc/self/exe");
    let own_args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if cfg!(target_os = "linux") && own_args == [FLAG] && running.exists() {
        // The same program if its file is replaced or another program started the shim.
        return new_command(running.as_os_str().into(), vec![OsStr::new(FLAG).into()]);
    }
    new_command(program, args)
}

/// A process that confines itself before it becomes the server.
struct ConfiningChild {
    /// Reads the failure report; empty on success.
    report_reader: PipeReader,
    /// The child's end, open until the child executes the server.
    report_writer: OwnedFd,
    /// The child's end of the pipe with the server's environment.
    environment_reader: OwnedFd,
    environment_writer: PipeWriter,
    environment: EnvVars,
}

/// Returns the command that confines itself and executes the server. Its environment is empty,
/// apart
/// from variables of the host, because the server's environment can load code, and this process is
/// not confined yet.
fn confined_command(
    confine: ConfineCommand,
    server: WireOsString,
    args: Vec<WireOsString>,
    environment: EnvVars,
) -> io::Result<(Command, ConfiningChild)> {
    let (reader, writer) = io::pipe()?;
    let (env, environment_writer) = io::pipe()?;
    let (writer, environment_reader) = (OwnedFd::from(writer), OwnedFd::from(env));
    for inherited in [&writer, &environment_reader] {
        rustix::io::fcntl_setfd(inherited, FdFlags::empty())?;
    }
    let mut command = confining_program(confine.program, confine.args);
    command.env_clear().envs(super::environment());
    command
        .arg(CONFINE_FLAG)
        .arg(std::process::id().to_string())
        .arg(writer.as_raw_fd().to_string())
        .arg(environment_reader.as_raw_fd().to_string())
        .arg(serde_json::to_string(&confine.confinement)?)
        .arg(OsString::from(server))
        .args(args.into_iter().map(OsString::from));
    Ok((
        command,
        ConfiningChild {
            report_reader: reader,
            report_writer: writer,
            environment_reader,
            environment_writer,
            environment,
        },
    ))
}

/// Waits until the server runs or a failure is reported.
fn wait_for_failure(report_reader: PipeReader) -> Option<(LaunchStage, i32)> {
    let mut line = String::new();
    report_reader.take(MAX_REPORT_BYTES as u64).read_to_string(&mut line).ok()?;
    match ShimReport::parse(line.strip_suffix('\n')?)? {
        ShimReport::Failed(stage, errno) => Some((stage, errno)),
        ShimReport::Started(_)
        | ShimReport::TooManyProcesses
        | ShimReport::Exited(_)
        | ShimReport::Gone => None,
    }
}
