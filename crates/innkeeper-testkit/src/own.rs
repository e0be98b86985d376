//! What the calling process holds: descriptors, threads, memory, children it has not waited for.

use std::fs;

use crate::census::all_stats;

/// How many file descriptors this process has open.
///
/// # Panics
///
/// When `/proc` cannot be read.
#[must_use]
pub fn open_fds() -> usize {
    // The listing's own descriptor is one of those listed.
    entries("/proc/self/fd") - 1
}

/// How many threads this process has.
///
/// # Panics
///
/// When `/proc` cannot be read.
#[must_use]
pub fn threads() -> usize {
    entries("/proc/self/task")
}

/// The resident memory of this process in KiB.
///
/// # Panics
///
/// When `/proc` cannot be read.
#[must_use]
pub fn rss_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a process reads its own status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok())
        .expect("the status has the resident size")
}

/// The children of this process that have ended and have not been waited for.
#[must_use]
pub fn zombie_children() -> Vec<u32> {
    let me = std::process::id();
    all_stats().filter(|stat| stat.parent == me && stat.is_zombie()).map(|stat| stat.pid).collect()
}

fn entries(directory: &str) -> usize {
    fs::read_dir(directory).expect("a process lists what it has").count()
}
