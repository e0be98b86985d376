//! The part of the sandbox that paths and ports do not reach: which kinds of sockets there are.
//!
//! Landlock knows TCP. Without this, a server without network could send out by UDP what it read.

use std::collections::BTreeMap;
use std::io;

use rustix::io::Errno;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// Whether sockets can be refused on this kind of processor.
pub(crate) const FILTERED: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"));

/// Sockets that do not leave the machine: those of files, and questions to the kernel.
const LOCAL: [libc::c_int; 2] = [libc::AF_UNIX, libc::AF_NETLINK];

/// A second set of system calls of the same processor, under numbers with this bit.
const X32: i64 = 0x4000_0000;

/// Refuses every socket but local ones, to this process and what it becomes and starts, for good.
pub(super) fn refuse() -> io::Result<()> {
    if !FILTERED {
        return Ok(());
    }
    let filter = filter().map_err(|_| io::Error::from(Errno::INVAL))?;
    seccompiler::apply_filter(&filter).map_err(|error| match error {
        Error::Prctl(error) | Error::Seccomp(error) => error,
        Error::EmptyFilter | Error::Backend(_) | Error::ThreadSync(_) => Errno::INVAL.into(),
    })
}

fn filter() -> Result<BpfProgram, BackendError> {
    let other = |local: libc::c_int| {
        let domain = u64::from(local.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, domain)
    };
    let socket = SeccompRule::new(LOCAL.into_iter().map(other).collect::<Result<_, _>>()?)?;
    let mut rules = BTreeMap::new();
    for set in [0, X32] {
        rules.insert(libc::SYS_socket | set, vec![socket.clone()]);
        // It opens sockets without that call.
        rules.insert(libc::SYS_io_uring_setup | set, Vec::new());
    }
    let refuse = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    let target = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, target)?.try_into()
}
