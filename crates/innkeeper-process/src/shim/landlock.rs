//! The Landlock sandbox: restricts file and network access of a server.

use std::error::Error;
use std::ffi::OsStr;
use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use rustix::io::Errno;

use super::wire::{Sandbox, WireOsString};

/// Newest ABI version whose rights are requested; an older kernel applies the rights it supports.
const NEWEST_ABI: ABI = ABI::V7;

/// Minimum ABI version for any sandbox.
const REQUIRED_ABI: ABI = ABI::V1;

/// Paths that nearly every program needs and that hold no secrets: programs, libraries and loader
/// configuration, certificates, name resolution, time zones and system information. Process
/// information in `/proc` is not included, see [`PROC_DIR`].
const READABLE_PATHS: &[&str] = &[
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

/// Directory where programs read information about themselves. The kernel hides environment, memory
/// and files of processes outside the sandbox, but not every environment if the server runs as
/// root.
const PROC_DIR: &str = "/proc";

/// Devices that store nothing.
const WRITABLE_PATHS: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];

/// Returns whether this kernel can restrict network connections.
pub(crate) fn restricts_network() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let handled = ruleset.handle_access(AccessNet::from_all(NEWEST_ABI));
    handled.and_then(Ruleset::create).is_ok()
}

/// Permanently restricts this process, the program it executes and their descendants.
pub(super) fn restrict(sandbox: &Sandbox, program: &OsStr) -> io::Result<()> {
    apply_ruleset(sandbox, program).map_err(|error| {
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

/// Applies the rules. Missing paths are skipped: access is denied unless allowed.
fn apply_ruleset(sandbox: &Sandbox, program: &OsStr) -> Result<(), RulesetError> {
    let all = AccessFs::from_all(NEWEST_ABI);
    let read = AccessFs::from_read(NEWEST_ABI);
    // A device node gives root the content of the device, such as a disk.
    let write = all & !(AccessFs::MakeBlock | AccessFs::MakeChar);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED_ABI))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::Signal)?;
    if !sandbox.network {
        rules = rules
            .handle_access(AccessNet::from_all(NEWEST_ABI))?
            .scope(Scope::AbstractUnixSocket)?;
    }
    let to_os_strings =
        |paths: &[WireOsString]| paths.iter().map(|path| path.to_os_string()).collect::<Vec<_>>();
    let processes = (!rustix::process::geteuid().is_root()).then_some(PROC_DIR);
    rules
        .create()?
        .add_rules(path_beneath_rules(READABLE_PATHS, read))?
        .add_rules(path_beneath_rules(processes, read))?
        .add_rules(path_beneath_rules([program], read))?
        .add_rules(path_beneath_rules(to_os_strings(&sandbox.read), read))?
        .add_rules(path_beneath_rules(WRITABLE_PATHS, write))?
        .add_rules(path_beneath_rules(to_os_strings(&sandbox.write), write))?
        .restrict_self()?;
    Ok(())
}
