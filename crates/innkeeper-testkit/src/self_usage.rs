//! Resources of the current process: descriptors, threads, memory, processor time, unreaped
//! children.

use std::fs;
use std::time::Duration;

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

/// Returns the processor time that this thread has used. The system updates the value every few
/// milliseconds.
///
/// # Panics
///
/// If the system does not record the time.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    let times = fs::read_to_string("/proc/thread-self/schedstat").expect("no times of the thread");
    let nanos = times.split(' ').next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanos.expect("the first field is the processor time"))
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
