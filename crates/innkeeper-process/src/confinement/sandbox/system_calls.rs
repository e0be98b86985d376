//! The seccomp filters of every sandbox, for what Landlock does not restrict.
//!
//! Landlock restricts paths, signals and the access to the memory of processes. It does not restrict
//! other effects on the processes of the user, objects that are no files, and the attributes of
//! files.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// Whether the filters support this CPU architecture.
pub(super) const CAN_FILTER: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"));

/// Bit in the numbers of the x32 system calls, a second set on the same architecture.
const X32_SYSCALL_BIT: i64 = 0x4000_0000;

/// System calls that `libc` does not name on each architecture; their numbers are the same on all.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

/// Shared memory, semaphores and queues without a path, keys, and `io_uring`, whose operations no
/// filter sees.
const PATHLESS_CALLS: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_io_uring_setup,
];

/// Changes of the owner, the permissions and the times of a file. A filter does not see the path: a
/// server with a writable path needs these calls.
const FILE_CALLS: &[i64] = &[
    libc::SYS_fchown,
    libc::SYS_fchownat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// `S_ISUID` and `S_ISGID`: another user who executes such a file has the rights of this one.
const SET_ID_BITS: u64 = 0o6000;

/// The calls that set the mode of a file, with the position of the mode among their arguments. A
/// directory never gets these bits from `mkdir`.
const MODE_CALLS: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
];

/// The calls that set the mode of a file if their flags create it, with the position of the flags.
const OPEN_CALLS: &[(i64, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// `O_CREAT`, and the bit of its own that `O_TMPFILE` has.
const CREATING_FLAGS: [u64; 2] = [0o100, 0o20_000_000];

/// Calls whose arguments are behind a pointer, where no filter sees a mode or a namespace. Programs
/// use `clone` and `openat` without them.
const MISSING_CALLS: &[i64] = &[libc::SYS_clone3, libc::SYS_openat2];

/// In a user namespace, a process has all capabilities, and reaches parts of the kernel that are
/// closed otherwise.
const CLONE_NEWUSER: u64 = 0x1000_0000;

/// Changes of the extended attributes and the flags of a file.
const ATTRIBUTE_CALLS: &[i64] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];

/// `ioctl` requests that change the flags of a file: `FS_IOC_SETFLAGS`, `FS_IOC_FSSETXATTR`.
const ATTRIBUTE_REQUESTS: [u64; 2] = [0x4008_6602, 0x401c_5820];

/// `PRIO_USER` and `IOPRIO_WHO_USER`: all processes of a user.
const PRIO_USER: u64 = 2;
const IOPRIO_WHO_USER: u64 = 3;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Compiles the filters. `writes` says whether the sandbox has a path that the server may write.
pub(super) fn compile_filters(writes: bool) -> Result<Vec<BpfProgram>, BackendError> {
    if !CAN_FILTER {
        return Ok(Vec::new());
    }
    // Programs that copy files ignore the second error, as on a file system without attributes.
    Ok(vec![
        compile(refused_calls(writes)?, libc::EPERM)?,
        compile(attribute_calls()?, libc::EOPNOTSUPP)?,
        compile(MISSING_CALLS.iter().map(|call| (*call, Vec::new())).collect(), libc::ENOSYS)?,
    ])
}

/// Compiles a filter that refuses the calls of these rules with an error.
pub(super) fn compile(mut rules: Rules, error: libc::c_int) -> Result<BpfProgram, BackendError> {
    if cfg!(target_arch = "x86_64") {
        let x32: Vec<_> =
            rules.iter().map(|(call, rules)| (call | X32_SYSCALL_BIT, rules.clone())).collect();
        rules.extend(x32);
    }
    let refuse = SeccompAction::Errno(error.unsigned_abs());
    let target = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, target)?.try_into()
}

fn refused_calls(writes: bool) -> Result<Rules, BackendError> {
    let is_process = |argument| condition(argument, SeccompCmpOp::Ne, 0);
    let is = |argument, value| condition(argument, SeccompCmpOp::Eq, value);
    let mut rules = Rules::new();
    // A process identifies itself by 0; other numbers can be other processes.
    let new_limit = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![is_process(0)?, new_limit])?]);
    for (call, user) in
        [(libc::SYS_setpriority, PRIO_USER), (libc::SYS_ioprio_set, IOPRIO_WHO_USER)]
    {
        let other = SeccompRule::new(vec![is_process(1)?])?;
        rules.insert(call, vec![other, SeccompRule::new(vec![is(0, user)?])?]);
    }
    for call in [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
    ] {
        rules.insert(call, vec![SeccompRule::new(vec![is_process(0)?])?]);
    }
    // `NETLINK_ROUTE`, protocol 0, lists the addresses of the machine.
    let netlink = [is(0, libc::AF_NETLINK.unsigned_abs().into())?, is_process(2)?];
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(netlink.to_vec())?]);
    for (call, mode) in MODE_CALLS {
        rules.insert(*call, set_id_rules(*mode, None)?);
    }
    for (call, flags) in OPEN_CALLS {
        let of_flags = CREATING_FLAGS
            .into_iter()
            .map(|flag| set_id_rules(flags + 1, Some(&masked(*flags, flag, flag)?)))
            .collect::<Result<Vec<_>, _>>()?;
        rules.insert(*call, of_flags.concat());
    }
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        let new_user = masked(0, CLONE_NEWUSER, CLONE_NEWUSER)?;
        rules.insert(call, vec![SeccompRule::new(vec![new_user])?]);
    }
    rules.insert(libc::SYS_setns, Vec::new());
    let file_calls = if writes { &[][..] } else { FILE_CALLS };
    let calls = PATHLESS_CALLS.iter().chain(file_calls);
    rules.extend(calls.map(|call| (*call, Vec::new())));
    Ok(rules)
}

/// Returns the rules for a mode with one of the bits, or with both.
fn set_id_rules(
    mode: u8,
    condition: Option<&SeccompCondition>,
) -> Result<Vec<SeccompRule>, BackendError> {
    let bits = [0o2000, 0o4000, SET_ID_BITS];
    let rules = bits.into_iter().map(|bits| {
        let has_bits = masked(mode, SET_ID_BITS, bits)?;
        SeccompRule::new(condition.cloned().into_iter().chain([has_bits]).collect())
    });
    rules.collect()
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, BackendError> {
    condition(argument, SeccompCmpOp::MaskedEq(mask), value)
}

fn attribute_calls() -> Result<Rules, BackendError> {
    let mut rules: Rules = ATTRIBUTE_CALLS.iter().map(|call| (*call, Vec::new())).collect();
    let requests = ATTRIBUTE_REQUESTS
        .into_iter()
        .map(|request| SeccompRule::new(vec![condition(1, SeccompCmpOp::Eq, request)?]))
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, requests);
    Ok(rules)
}

fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}
