//! The seccomp filter of a sandbox without network, which restricts socket types.
//!
//! Landlock restricts only TCP. Without this filter, a server without network access could send
//! data by UDP.

use std::collections::BTreeMap;
use std::io;

use rustix::io::Errno;
use seccompiler::{BackendError, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use super::system_calls::{self, CAN_FILTER};

/// Local socket domains: Unix sockets and netlink.
const LOCAL_DOMAINS: [libc::c_int; 2] = [libc::AF_UNIX, libc::AF_NETLINK];

/// Permanently denies non-local sockets to this process, the program it executes and their
/// descendants.
pub(super) fn deny_network() -> io::Result<()> {
    if !CAN_FILTER {
        return Ok(());
    }
    let rule = other_domain().map_err(|_| io::Error::from(Errno::INVAL))?;
    system_calls::apply(BTreeMap::from([(libc::SYS_socket, vec![rule])]), libc::EACCES)
}

fn other_domain() -> Result<SeccompRule, BackendError> {
    let other = |local: libc::c_int| {
        let domain = u64::from(local.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, domain)
    };
    SeccompRule::new(LOCAL_DOMAINS.into_iter().map(other).collect::<Result<_, _>>()?)
}
