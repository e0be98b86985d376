//! Resources of the current process: descriptors, threads, memory, unreaped children.

use std::fs;

use crate::processes::all_stats;

/// Returns the number of open file descriptors of this process.
///
/// # Panics
///
/// If `/proc` cannot be read.
#[must_use]
pub fn open_fds() -> usize {
    // The list includes the descriptor of the listing itself.
    count_dir_entries("/proc/self/fd") - 1
}

/// Returns the number of threads of this process.
///
/// # Panics
///
/// If `/proc` cannot be read.
#[must_use]
pub fn thread_count() -> usize {
    count_dir_entries("/proc/self/task")
}

/// Returns the resident memory of this process in KiB.
///
/// # Panics
///
/// If `/proc` cannot be read.
#[must_use]
pub fn rss_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("cannot read the process status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok())
        .expect("the process status has no resident size")
}

/// Returns the children of this process that have exited and are not reaped.
#[must_use]
pub fn zombie_children() -> Vec<u32> {
    let me = std::process::id();
    all_stats()
        .filter(|stat| stat.parent_pid == me && stat.is_zombie())
        .map(|stat| stat.pid)
        .collect()
}

fn count_dir_entries(directory: &str) -> usize {
    fs::read_dir(directory).expect("cannot list a directory of `/proc`").count()
}
