//! The seccomp filter of the sandbox, which restricts socket types.
//!
//! Landlock restricts only TCP. Without this filter, a server without network access could send
//! data by UDP.

use std::collections::BTreeMap;
use std::io;

use rustix::io::Errno;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// Whether the filter supports this CPU architecture.
pub(crate) const CAN_FILTER: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"));

/// Local socket domains: Unix sockets and netlink.
const LOCAL_DOMAINS: [libc::c_int; 2] = [libc::AF_UNIX, libc::AF_NETLINK];

/// Bit in the numbers of the x32 system calls, a second set on the same architecture.
const X32_SYSCALL_BIT: i64 = 0x4000_0000;

/// Permanently denies non-local sockets to this process, the program it executes and their
/// descendants.
pub(super) fn deny_network() -> io::Result<()> {
    if !CAN_FILTER {
        return Ok(());
    }
    let filter = build_filter().map_err(|_| io::Error::from(Errno::INVAL))?;
    seccompiler::apply_filter(&filter).map_err(|error| match error {
        Error::Prctl(error) | Error::Seccomp(error) => error,
        Error::EmptyFilter | Error::Backend(_) | Error::ThreadSync(_) => Errno::INVAL.into(),
    })
}

fn build_filter() -> Result<BpfProgram, BackendError> {
    let other = |local: libc::c_int| {
        let domain = u64::from(local.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, domain)
    };
    let socket = SeccompRule::new(LOCAL_DOMAINS.into_iter().map(other).collect::<Result<_, _>>()?)?;
    let mut rules = BTreeMap::new();
    for set in [0, X32_SYSCALL_BIT] {
        rules.insert(libc::SYS_socket | set, vec![socket.clone()]);
        // `io_uring` can open sockets without the `socket` system call.
        rules.insert(libc::SYS_io_uring_setup | set, Vec::new());
    }
    let refuse = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    let target = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, target)?.try_into()
}
