//! The seccomp filter of a sandbox without network, which restricts socket types.
//!
//! Landlock restricts only TCP. Without this filter, a server without network access could send
//! data by UDP.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule,
};

use super::system_calls::{self, CAN_FILTER};

const LOCAL_DOMAINS: [libc::c_int; 2] = [libc::AF_UNIX, libc::AF_NETLINK];

/// Compiles the filter that refuses other sockets; `None` if the architecture has no filters.
pub(super) fn compile_filter() -> Result<Option<BpfProgram>, BackendError> {
    if !CAN_FILTER {
        return Ok(None);
    }
    let rules = BTreeMap::from([(libc::SYS_socket, vec![other_domain()?])]);
    system_calls::compile(rules, libc::EACCES).map(Some)
}

fn other_domain() -> Result<SeccompRule, BackendError> {
    SeccompRule::new(
        LOCAL_DOMAINS
            .into_iter()
            .map(|local| {
                let domain = u64::from(local.unsigned_abs());
                SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, domain)
            })
            .collect::<Result<_, _>>()?,
    )
}
