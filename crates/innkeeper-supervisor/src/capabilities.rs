//! The capabilities of a sandboxed server that runs as root.

use rustix::io;
use rustix::thread::{
    CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities,
};

/// Capabilities that programs of root use on what the sandbox allows: files of other users, other
/// identities, ports below 1024. Landlock restricts files, ports and signals of root too.
const ALLOWED: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_CHROOT);

/// Permanently removes the other capabilities from this process and the program that it executes,
/// which gains no privileges (`PR_SET_NO_NEW_PRIVS`). Has no effect on a process without
/// capabilities.
pub(super) fn drop_unneeded() -> io::Result<()> {
    let current = rustix::thread::capabilities(None)?;
    for capability in CapabilitySet::all().difference(ALLOWED).iter() {
        // Needs a capability itself, and fails for capabilities that the kernel does not know.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let allowed = |set: CapabilitySet| set.intersection(ALLOWED);
    let sets = CapabilitySets {
        effective: allowed(current.effective),
        permitted: allowed(current.permitted),
        inheritable: allowed(current.inheritable),
    };
    set_capabilities(None, sets)
}
