//! The sandbox: which files and addresses the kernel lets a server reach.

use std::error::Error;
use std::ffi::OsStr;
use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use rustix::io::Errno;

use super::wire::{Os, Sandbox};

/// The newest version whose rights are asked for; an older kernel gives what it has.
const NEWEST: ABI = ABI::V7;

/// Without these rights there is no sandbox at all.
const OLDEST: ABI = ABI::V1;

/// What hardly any program runs without and what holds no secrets: programs and libraries, how the
/// loader finds them, certificates, names and time, and what the system says of itself. What `/proc`
/// says of processes is not among it, see [`PROCESSES`].
const READ: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/dev/random",
    "/dev/urandom",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel",
    "/proc/sys/vm",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];

/// Where programs look at themselves. The kernel keeps environment, memory and files of processes
/// outside of the sandbox from those inside, but not every environment from root's.
const PROCESSES: &str = "/proc";

/// Devices that keep nothing.
const WRITE: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];

/// Whether this kernel can keep a process from connecting.
pub(crate) fn restricts_network() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let handled = ruleset.handle_access(AccessNet::from_all(NEWEST));
    handled.and_then(Ruleset::create).is_ok()
}

/// Restricts this process, and what it becomes and starts, for good.
pub(super) fn restrict(sandbox: &Sandbox, program: &OsStr) -> io::Result<()> {
    apply(sandbox, program).map_err(|error| {
        let mut cause: Option<&dyn Error> = Some(&error);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<io::Error>()
                && let Some(errno) = error.raw_os_error()
            {
                return io::Error::from_raw_os_error(errno);
            }
            cause = error.source();
        }
        Errno::OPNOTSUPP.into()
    })
}

/// Paths that do not exist are passed over: what is not allowed is forbidden.
fn apply(sandbox: &Sandbox, program: &OsStr) -> Result<(), RulesetError> {
    let all = AccessFs::from_all(NEWEST);
    let read = AccessFs::from_read(NEWEST);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(OLDEST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::Signal)?;
    if !sandbox.network {
        rules =
            rules.handle_access(AccessNet::from_all(NEWEST))?.scope(Scope::AbstractUnixSocket)?;
    }
    let own = |paths: &[Os]| paths.iter().map(|path| path.to_os_string()).collect::<Vec<_>>();
    let processes = (!rustix::process::geteuid().is_root()).then_some(PROCESSES);
    rules
        .create()?
        .add_rules(path_beneath_rules(READ, read))?
        .add_rules(path_beneath_rules(processes, read))?
        .add_rules(path_beneath_rules([program], read))?
        .add_rules(path_beneath_rules(own(&sandbox.read), read))?
        .add_rules(path_beneath_rules(WRITE, all))?
        .add_rules(path_beneath_rules(own(&sandbox.write), all))?
        .restrict_self()?;
    Ok(())
}
