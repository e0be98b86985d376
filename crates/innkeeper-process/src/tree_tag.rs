//! The tag that identifies the processes of one tree.

use std::fmt::Write as _;

/// Environment variable that every process of a tree inherits, unless a process removes it.
#[cfg(unix)]
const TREE_VARIABLE: &str = "INNKEEPER_TREE";

/// Maximum number of bytes read of a process's environment: several times a usual environment.
#[cfg(target_os = "linux")]
const MAX_ENVIRONMENT_BYTES: u64 = 1 << 20;

/// Upper bound of a lock limit in a host without a limit.
#[cfg(target_os = "linux")]
const MAX_LOCK_LIMIT: u64 = 1 << 62;

/// Smallest upper bound from which a lock limit is unlikely to be drawn twice.
#[cfg(target_os = "linux")]
const MIN_LOCK_LIMIT: u64 = 1 << 40;

/// The tag of every process of one tree: a random environment variable and, on Linux, a random
/// hard limit `RLIMIT_LOCKS`.
///
/// The kernel has ignored `RLIMIT_LOCKS` since Linux 2.4.25. Each process inherits the limit, also
/// a daemon that leaves its session and empties its environment, and without privileges a process
/// cannot raise its hard limit again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeTag {
    variable: String,
    lock_limit: Option<u64>,
}

impl TreeTag {
    #[cfg(unix)]
    pub(crate) fn new() -> Self {
        Self { variable: format!("{:032x}", fastrand::u128(..)), lock_limit: new_lock_limit() }
    }

    /// Returns the variable for the environment of the server.
    #[cfg(unix)]
    pub(crate) fn variable(&self) -> (&'static str, &str) {
        (TREE_VARIABLE, &self.variable)
    }

    /// Returns the hard limit `RLIMIT_LOCKS` of the server; `None` where the limit is not usable.
    #[cfg(unix)]
    pub(crate) fn lock_limit(&self) -> Option<u64> {
        self.lock_limit
    }

    /// Returns the fields of a ledger entry.
    pub(crate) fn to_fields(&self) -> String {
        let mut fields = self.variable.clone();
        if let Some(limit) = self.lock_limit {
            // Writing to a string cannot fail.
            let _ = write!(fields, " {limit}");
        }
        fields
    }

    /// Parses the fields of a ledger entry. Returns `None` for a text that identifies no tree.
    pub(crate) fn from_fields<'a>(mut fields: impl Iterator<Item = &'a str>) -> Option<Self> {
        let variable = fields.next()?;
        if variable.len() != 32 || !variable.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let lock_limit = fields.next().map(str::parse).transpose().ok()?;
        Some(Self { variable: variable.to_owned(), lock_limit })
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn is_carried_by(&self, pid: rustix::process::Pid) -> bool {
        self.lock_limit.is_some_and(|limit| lock_limit_of(pid) == Some(limit))
            || self.is_in_environment(pid)
    }

    /// Returns whether the environment of a process of the current user contains the variable.
    #[cfg(target_os = "linux")]
    fn is_in_environment(&self, pid: rustix::process::Pid) -> bool {
        use std::io::Read;
        use std::os::unix::fs::MetadataExt;

        let Ok(file) = std::fs::File::open(format!("/proc/{pid}/environ")) else { return false };
        let own_uid = rustix::process::geteuid().as_raw();
        if !file.metadata().is_ok_and(|file| file.uid() == own_uid) {
            return false;
        }
        let mut environment = Vec::new();
        let variable = format!("{TREE_VARIABLE}={}", self.variable);
        file.take(MAX_ENVIRONMENT_BYTES).read_to_end(&mut environment).is_ok()
            && environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    }
}

/// Draws a limit below the limit of the host, which itself may be a process of a tree.
#[cfg(target_os = "linux")]
fn new_lock_limit() -> Option<u64> {
    let own = rustix::process::getrlimit(rustix::process::Resource::Locks).maximum;
    let upper = own.unwrap_or(MAX_LOCK_LIMIT).min(MAX_LOCK_LIMIT);
    (upper >= MIN_LOCK_LIMIT).then(|| fastrand::u64(upper / 2..upper))
}

#[cfg(all(unix, not(target_os = "linux")))]
fn new_lock_limit() -> Option<u64> {
    None
}

/// Returns the hard limit `RLIMIT_LOCKS` of a process, `None` without a limit. Every user can read
/// the limits of every process.
#[cfg(target_os = "linux")]
pub(crate) fn lock_limit_of(pid: rustix::process::Pid) -> Option<u64> {
    parse_lock_limit(&std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
}

#[cfg(target_os = "linux")]
fn parse_lock_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_back_from_its_fields_and_a_damaged_one_is_not() {
        for limit in [None, Some(u64::MAX)] {
            let tag = TreeTag { lock_limit: limit, ..TreeTag::new() };
            assert_eq!(TreeTag::from_fields(tag.to_fields().split(' ')), Some(tag));
        }
        let half = "0".repeat(31);
        for damaged in ["", "x", &half, &format!("{half}x"), &format!("{half}0 x")] {
            assert_eq!(TreeTag::from_fields(damaged.split(' ')), None, "{damaged:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_hard_limit_of_locks_is_read_from_the_limits_of_a_process() {
        let limits = "Max file size             unlimited            unlimited            bytes\n\
                      Max file locks            7                    9                    locks\n";
        assert_eq!(parse_lock_limit(limits), Some(9));
        let unlimited = "Max file locks            7                    unlimited    locks";
        assert_eq!(parse_lock_limit(unlimited), None);
        assert_eq!(parse_lock_limit(""), None);
    }
}
