//! The Landlock rules of a sandbox, which restrict the file and network access of a server.

use std::path::Path;

use innkeeper_supervisor::launch_request::HandledRights;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope,
};

/// Versions of Landlock whose rights are requested; an older kernel applies the rights that it
/// supports, and a kernel without Landlock starts no sandboxed server.
const VERSIONS: [ABI; 7] = [ABI::V1, ABI::V2, ABI::V3, ABI::V4, ABI::V5, ABI::V6, NEWEST_VERSION];

const NEWEST_VERSION: ABI = ABI::V7;

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
pub(super) fn restricts_network() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let handled = ruleset.handle_access(AccessNet::from_all(NEWEST_VERSION));
    handled.and_then(Ruleset::create).is_ok()
}

/// Returns the rights that a kernel handles, by version of Landlock. Everything that is handled is
/// refused unless a rule permits it.
pub(super) fn handled_rights(network: bool) -> Vec<HandledRights> {
    VERSIONS.iter().map(|version| handled_rights_of(*version, network)).collect()
}

fn handled_rights_of(version: ABI, network: bool) -> HandledRights {
    let files = AccessFs::from_all(version).bits();
    let scopes = Scope::from_all(version);
    if network {
        return HandledRights { files, network: 0, scopes: (scopes & Scope::Signal).bits() };
    }
    HandledRights { files, network: AccessNet::from_all(version).bits(), scopes: scopes.bits() }
}

/// Returns the rights that apply to a file.
pub(super) fn file_rights() -> u64 {
    AccessFs::from_file(NEWEST_VERSION).bits()
}

/// Returns the permitted paths of every sandbox, with their rights, and whether root is excepted.
pub(super) fn default_paths<'p>() -> impl Iterator<Item = (&'p Path, u64, bool)> {
    let readable = READABLE_PATHS.iter().map(|path| (Path::new(*path), read_rights(), false));
    let writable = WRITABLE_PATHS.iter().map(|path| (Path::new(*path), write_rights(), false));
    readable.chain([(Path::new(PROC_DIR), read_rights(), true)]).chain(writable)
}

/// Returns the rights on a path that a server may read.
pub(super) fn read_rights() -> u64 {
    AccessFs::from_read(NEWEST_VERSION).bits()
}

/// Returns the rights on a path that a server may write.
pub(super) fn write_rights() -> u64 {
    // A device node gives root the content of the device, such as a disk.
    (AccessFs::from_all(NEWEST_VERSION) & !(AccessFs::MakeBlock | AccessFs::MakeChar)).bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_handles_its_own_rights_and_those_of_the_versions_before() {
        for network in [false, true] {
            let rights = handled_rights(network);
            assert_eq!(rights.len(), 7);
            for pair in rights.windows(2) {
                let (older, newer) = (pair[0], pair[1]);
                assert_eq!(older.files & !newer.files, 0);
                assert_eq!(older.network & !newer.network, 0);
                assert_eq!(older.scopes & !newer.scopes, 0);
            }
            // Truncation since version 3, connections since version 4, signals since version 6.
            assert_ne!(rights[2].files, rights[1].files);
            assert_eq!((rights[2].network, rights[4].scopes), (0, 0));
            assert_eq!(rights[3].network != 0, !network);
            assert_ne!(rights[5].scopes, 0);
        }
        let scopes = |network| handled_rights(network)[6].scopes;
        assert_ne!(scopes(true), scopes(false), "abstract sockets are part of the network");
    }

    #[test]
    fn no_sandbox_permits_device_nodes() {
        let nodes = (AccessFs::MakeBlock | AccessFs::MakeChar).bits();
        assert!(default_paths().all(|(_, rights, _)| rights & nodes == 0));
        assert_eq!(write_rights() & nodes, 0);
    }
}
