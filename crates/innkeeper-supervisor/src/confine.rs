//! Applies the limits and the sandbox of a server to the process that becomes the server.

use rustix::io;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::launch_request::{LaunchRequest, Limits, Sandbox};

/// Restricts this process and everything that it starts.
pub(crate) fn confine(launch: &LaunchRequest<'_>) -> io::Result<()> {
    if let Some(sandbox) = &launch.sandbox {
        apply_sandbox(sandbox)?;
    }
    apply_limits(&launch.limits)
}

/// Sets every limit; each process of the server has the limits separately.
fn apply_limits(limits: &Limits) -> io::Result<()> {
    let Limits { locks, core, open_files, file_size, cpu_seconds, memory } = *limits;
    #[cfg(target_os = "linux")]
    lower_limit(Resource::Locks, locks, locks)?;
    #[cfg(not(target_os = "linux"))]
    let _ = locks;
    lower_limit(Resource::Core, core, core)?;
    lower_limit(Resource::Nofile, open_files, open_files)?;
    lower_limit(Resource::Fsize, file_size, file_size)?;
    // SIGXCPU shows the reason; a process that ignores SIGXCPU is killed a second later.
    let cpu_end = cpu_seconds.map(|seconds| seconds.saturating_add(1));
    lower_limit(Resource::Cpu, cpu_seconds, cpu_end)?;
    // Last, because the limit also applies to this process. `RLIMIT_AS` is not used: Node.js
    // reserves more address space than it ever uses, and does not start under a useful limit.
    lower_limit(Resource::Data, memory, memory)
}

/// Lowers a limit, if there is one; never raises an existing lower limit.
fn lower_limit(resource: Resource, soft: Option<u64>, hard: Option<u64>) -> io::Result<()> {
    let (Some(soft), Some(hard)) = (soft, hard) else { return Ok(()) };
    let had = getrlimit(resource);
    let least = |had: Option<u64>, requested| Some(had.map_or(requested, |had| had.min(requested)));
    let maximum = least(had.maximum, hard);
    let current = least(had.current, soft);
    setrlimit(resource, Rlimit { current, maximum })
}

#[cfg(target_os = "linux")]
fn apply_sandbox(sandbox: &Sandbox<'_>) -> io::Result<()> {
    crate::landlock::restrict(sandbox)?;
    crate::capabilities::drop_unneeded()?;
    sandbox.filters.iter().try_for_each(|filter| crate::system::install_filter(filter))
}

#[cfg(not(target_os = "linux"))]
fn apply_sandbox(_sandbox: &Sandbox<'_>) -> io::Result<()> {
    Err(io::Errno::OPNOTSUPP)
}
