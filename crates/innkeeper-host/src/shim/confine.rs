//! The program that takes limits and a sandbox upon itself and then becomes the server.
//!
//! One more execution stands between shim and server: it is still a program of ours, with one
//! thread and nobody to look after, and so may restrict itself.

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

use super::wire::{Bounds, LAUNCH_LIMIT, Os, Part, Report};

/// The exit code when the server could not be executed, if there is nobody to tell why.
const NOT_EXECUTED: u8 = 126;

/// Becomes the server; returns only if that fails. The arguments are the descriptor to report a
/// failure on, the one to read the server's environment from, the bounds as JSON, the program and
/// its arguments.
pub(super) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(report), Some(env), Some(bounds), Some(program)) =
        (args.next(), args.next(), args.next(), args.next())
    else {
        return ExitCode::from(2);
    };
    // Opened anew: a number alone gives no right to the file behind it.
    let report = report.to_str().and_then(|fd| open(fd, File::options().write(true)).ok());
    let env = env.to_str().ok_or(io::ErrorKind::InvalidInput.into()).and_then(environment);
    close_fds::set_fds_cloexec(3, &[]);
    let server = env.map_err(|error| (Part::Bounds, errno(&error)));
    let Err((part, errno)) = server.and_then(|env| become_server(&bounds, &program, args, &env));
    let told = report.is_some_and(|mut report| {
        report.write_all(Report::Failed(part, errno).line().as_bytes()).is_ok()
    });
    ExitCode::from(if told { 2 } else { NOT_EXECUTED })
}

fn open(fd: &str, options: &OpenOptions) -> io::Result<File> {
    let directory = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    options.open(format!("{directory}/{fd}"))
}

/// The server's environment, as the shim gives it.
fn environment(fd: &str) -> io::Result<Vec<CString>> {
    // Without a wait for a shim that is gone; what it writes is waited for.
    let unwaiting = OFlags::NONBLOCK.bits().cast_signed();
    let pipe = open(fd, File::options().read(true).custom_flags(unwaiting))?;
    rustix::fs::fcntl_setfl(&pipe, OFlags::empty())?;
    let mut given = Vec::new();
    pipe.take(LAUNCH_LIMIT as u64).read_to_end(&mut given)?;
    let given: Vec<(Os, Os)> = serde_json::from_slice(&given)?;
    let given = given.into_iter().map(|(name, value)| (name.into(), value.into()));
    let given: BTreeMap<OsString, OsString> = given.collect();
    let variable = |(mut name, value): (OsString, OsString)| {
        name.push("=");
        name.push(value);
        CString::new(name.into_vec()).map_err(io::Error::from)
    };
    given.into_iter().map(variable).collect()
}

/// The directory is the server's already, and so are its streams.
fn become_server(
    bounds: &OsStr,
    program: &OsStr,
    args: impl Iterator<Item = OsString>,
    env: &[CString],
) -> Result<Infallible, (Part, i32)> {
    let invalid = (Part::Bounds, Errno::INVAL.raw_os_error());
    let bounds = bounds.to_str().ok_or(invalid)?;
    let bounds: Bounds = serde_json::from_str(bounds).map_err(|_| invalid)?;
    let argv = std::iter::once(program.to_owned()).chain(args);
    let argv: Result<Vec<_>, _> = argv.map(|arg| CString::new(arg.into_vec())).collect();
    let argv = argv.map_err(|_| invalid)?;
    let bounded = heed_closed_pipes().and_then(|()| restrict(&bounds, program));
    let bounded = bounded.and_then(|()| limit(&bounds));
    bounded.map_err(|error| (Part::Bounds, errno(&error)))?;
    match nix::unistd::execve(&argv[0], &argv, env) {
        Ok(never) => Ok(never),
        Err(error) => Err((Part::Program, error as i32)),
    }
}

/// Programs in Rust ignore this signal, which the server would inherit; a handler it does not.
fn heed_closed_pipes() -> io::Result<()> {
    let unused = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGPIPE, unused).map(drop)
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())
}

/// Sets every limit; each process that the server starts has them for itself.
fn limit(bounds: &Bounds) -> io::Result<()> {
    // What a server keeps in memory is not for a file that anybody may find.
    lower(Resource::Core, 0, 0)?;
    if let Some(files) = bounds.open_files {
        lower(Resource::Nofile, files, files)?;
    }
    if let Some(size) = bounds.file_size {
        lower(Resource::Fsize, size, size)?;
    }
    if let Some(seconds) = bounds.cpu_seconds {
        // The signal that tells why comes first; who ignores it is killed a second later.
        lower(Resource::Cpu, seconds, seconds.saturating_add(1))?;
    }
    // Last, since it holds for us too. Not the address space: Node.js reserves more of it than
    // it ever uses, and does not start under a limit that would be of use.
    if let Some(memory) = bounds.memory {
        lower(Resource::Data, memory, memory)?;
    }
    Ok(())
}

/// Never raises a limit that holds already.
fn lower(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let had = getrlimit(resource);
    let least = |had: Option<u64>, wanted| Some(had.map_or(wanted, |had| had.min(wanted)));
    let maximum = least(had.maximum, hard);
    let current = least(had.current, soft);
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}

#[cfg(target_os = "linux")]
fn restrict(bounds: &Bounds, program: &OsStr) -> io::Result<()> {
    let Some(sandbox) = &bounds.sandbox else { return Ok(()) };
    super::landlock::restrict(sandbox, program)?;
    if sandbox.network { Ok(()) } else { super::sockets::refuse() }
}

#[cfg(not(target_os = "linux"))]
fn restrict(bounds: &Bounds, _program: &OsStr) -> io::Result<()> {
    bounds.sandbox.as_ref().map_or(Ok(()), |_| Err(Errno::OPNOTSUPP.into()))
}
