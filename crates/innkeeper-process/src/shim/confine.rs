//! Applies the mark of the tree, limits and a sandbox to itself, then executes the server.
//!
//! The shim executes this program in between because it is trusted, has one thread and supervises
//! nothing, and can therefore restrict itself.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::host_process;

use super::wire::{Confinement, LaunchStage, MAX_LAUNCH_BYTES, ShimReport, WireOsString};

/// Exit code if the server could not be executed and the reason could not be reported.
const EXEC_FAILED_EXIT_CODE: u8 = 126;

/// Becomes the server; returns only on failure. The arguments are the process id of the shim, the
/// file descriptor for the failure report, the file descriptor of the server's environment, the
/// limits as JSON, the program and its arguments.
pub(super) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(shim), Some(report), Some(env), Some(confinement), Some(program)) =
        (args.next(), args.next(), args.next(), args.next(), args.next())
    else {
        return ExitCode::from(2);
    };
    let shim = shim.to_str().and_then(|pid| pid.parse().ok());
    if shim.is_none_or(|shim| host_process::die_with_parent(shim).is_err()) {
        return ExitCode::from(2);
    }
    // Reopen the file: safe Rust cannot take ownership of a descriptor number.
    let report = report.to_str().and_then(|fd| open_fd(fd, File::options().write(true)).ok());
    let env = env.to_str().ok_or(io::ErrorKind::InvalidInput.into()).and_then(read_environment);
    close_fds::set_fds_cloexec(3, &[]);
    let server = env.map_err(|error| (LaunchStage::Confinement, errno(&error)));
    let Err((stage, errno)) =
        server.and_then(|env| exec_server(&confinement, &program, args, &env));
    let reported = report.is_some_and(|mut report| {
        report.write_all(ShimReport::Failed(stage, errno).to_line().as_bytes()).is_ok()
    });
    ExitCode::from(if reported { 2 } else { EXEC_FAILED_EXIT_CODE })
}

fn open_fd(fd: &str, options: &OpenOptions) -> io::Result<File> {
    let directory = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    options.open(format!("{directory}/{fd}"))
}

/// Reads the server's environment from the shim.
fn read_environment(fd: &str) -> io::Result<Vec<CString>> {
    // The open must not wait for a dead shim; the read waits for the shim's data.
    let unwaiting = OFlags::NONBLOCK.bits().cast_signed();
    let pipe = open_fd(fd, File::options().read(true).custom_flags(unwaiting))?;
    rustix::fs::fcntl_setfl(&pipe, OFlags::empty())?;
    let mut bytes = Vec::new();
    pipe.take(MAX_LAUNCH_BYTES as u64).read_to_end(&mut bytes)?;
    let pairs: Vec<(WireOsString, WireOsString)> = serde_json::from_slice(&bytes)?;
    let variables = pairs.into_iter().map(|(name, value)| (name.into(), value.into()));
    let variables: BTreeMap<OsString, OsString> = variables.collect();
    let variable = |(mut name, value): (OsString, OsString)| {
        name.push("=");
        name.push(value);
        CString::new(name.into_vec()).map_err(io::Error::from)
    };
    variables.into_iter().map(variable).collect()
}

/// Restricts this process and executes the server; working directory and streams are already set.
fn exec_server(
    confinement: &OsStr,
    program: &OsStr,
    args: impl Iterator<Item = OsString>,
    env: &[CString],
) -> Result<Infallible, (LaunchStage, i32)> {
    let invalid = (LaunchStage::Confinement, Errno::INVAL.raw_os_error());
    let confinement = confinement.to_str().ok_or(invalid)?;
    let confinement: Confinement = serde_json::from_str(confinement).map_err(|_| invalid)?;
    let argv = std::iter::once(program.to_owned()).chain(args);
    let argv: Result<Vec<_>, _> = argv.map(|arg| CString::new(arg.into_vec())).collect();
    let argv = argv.map_err(|_| invalid)?;
    let bounded = reset_sigpipe().and_then(|()| apply_sandbox(&confinement, program));
    let bounded = bounded.and_then(|()| apply_limits(&confinement));
    bounded.map_err(|error| (LaunchStage::Confinement, errno(&error)))?;
    match nix::unistd::execve(&argv[0], &argv, env) {
        Ok(never) => Ok(never),
        Err(error) => Err((LaunchStage::Program, error as i32)),
    }
}

/// Resets SIGPIPE: Rust programs ignore the signal, and the server would inherit that; it does not
/// inherit a handler.
fn reset_sigpipe() -> io::Result<()> {
    let unused = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGPIPE, unused).map(drop)
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())
}

/// Sets every limit; each process of the server has the limits separately.
fn apply_limits(confinement: &Confinement) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Some(mark) = confinement.lock_limit {
        lower_limit(Resource::Locks, mark, mark)?;
    }
    let Confinement { memory, cpu_seconds, open_files, file_size, lock_limit: _, sandbox } =
        confinement;
    let is_limited = [memory, cpu_seconds, open_files, file_size].into_iter().any(Option::is_some);
    if is_limited || sandbox.is_some() {
        // The server's memory must not be written to a core file that others can read.
        lower_limit(Resource::Core, 0, 0)?;
    }
    if let Some(files) = confinement.open_files {
        lower_limit(Resource::Nofile, files, files)?;
    }
    if let Some(size) = confinement.file_size {
        lower_limit(Resource::Fsize, size, size)?;
    }
    if let Some(seconds) = confinement.cpu_seconds {
        // SIGXCPU shows the reason; a process that ignores SIGXCPU is killed a second later.
        lower_limit(Resource::Cpu, seconds, seconds.saturating_add(1))?;
    }
    // Last, because the limit also applies to this process. `RLIMIT_AS` is not used: Node.js
    // reserves more address space than it ever uses, and does not start under a useful limit.
    if let Some(memory) = confinement.memory {
        lower_limit(Resource::Data, memory, memory)?;
    }
    Ok(())
}

/// Lowers a limit; never raises an existing lower limit.
fn lower_limit(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let had = getrlimit(resource);
    let least = |had: Option<u64>, requested| Some(had.map_or(requested, |had| had.min(requested)));
    let maximum = least(had.maximum, hard);
    let current = least(had.current, soft);
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}

#[cfg(target_os = "linux")]
fn apply_sandbox(confinement: &Confinement, program: &OsStr) -> io::Result<()> {
    let Some(sandbox) = &confinement.sandbox else { return Ok(()) };
    super::landlock::restrict(sandbox, program)?;
    super::capabilities::drop_unneeded()?;
    super::system_calls::restrict(!sandbox.write.is_empty())?;
    if sandbox.network { Ok(()) } else { super::sockets::deny_network() }
}

#[cfg(not(target_os = "linux"))]
fn apply_sandbox(bounds: &Confinement, _program: &OsStr) -> io::Result<()> {
    bounds.sandbox.as_ref().map_or(Ok(()), |_| Err(Errno::OPNOTSUPP.into()))
}
