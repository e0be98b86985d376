//! Lists the processes of a tree.

#[cfg(target_os = "linux")]
pub(crate) use innkeeper_supervisor::tree::{
    ProcessStat, all_processes, child_stats, descendants, running_children, start_time,
};

/// Returns `None`: this system does not report the start time of a process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn start_time(_pid: rustix::process::Pid) -> Option<u64> {
    None
}
