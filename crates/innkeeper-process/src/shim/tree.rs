//! Lists the processes of a tree from `/proc`.

use rustix::process::Pid;

#[cfg(target_os = "linux")]
pub(crate) use linux::{
    ProcessStat, all_processes, child_stats, for_each_descendant, running_children,
};

#[cfg(not(target_os = "linux"))]
pub use unsupported::for_each_descendant;

/// Returns every descendant of `root`; see [`for_each_descendant`].
pub(crate) fn descendants(root: Pid) -> Vec<Pid> {
    let mut all = Vec::new();
    for_each_descendant(root, |pid| all.push(pid));
    all
}

/// Returns the start time of a process in clock ticks since boot; with the id it identifies a
/// process until a reboot. `None` if the process has exited, reaped or not, or if the system does
/// not report the time.
pub(crate) fn start_time(pid: Pid) -> Option<u64> {
    #[cfg(target_os = "linux")]
    return ProcessStat::read(pid).filter(|stat| !stat.zombie).map(|stat| stat.start_time);
    #[cfg(not(target_os = "linux"))]
    return unsupported::start_time(pid);
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::path::Path;

    use rustix::process::Pid;

    /// The contents of `/proc/PID/stat`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct ProcessStat {
        pub pid: Pid,
        pub parent: Option<Pid>,
        pub group: Option<Pid>,
        pub session: Option<Pid>,
        /// Clock ticks since boot.
        pub start_time: u64,
        /// Start address of the stack; zero without permission.
        pub stack_start: u64,
        /// Whether the process has begun to exit; a zombie too.
        pub exiting: bool,
        /// Whether the process has exited and is not reaped yet.
        pub zombie: bool,
    }

    /// `PF_EXITING` of the kernel's flags of a process.
    const EXITING_FLAG: u64 = 0x4;

    impl ProcessStat {
        pub(crate) fn read(pid: Pid) -> Option<Self> {
            Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
        }

        /// Parses a line. The name is in parentheses and may contain any character, including
        /// parentheses.
        pub(super) fn parse(pid: Pid, stat: &str) -> Option<Self> {
            let (_, behind_name) = stat.rsplit_once(')')?;
            let fields: Vec<&str> = behind_name.split_ascii_whitespace().collect();
            // The kernel writes -1 for the group and the session of a process that ends.
            let id = |index: usize| parse_pid(fields.get(index)?);
            let zombie = matches!(fields[0], "Z" | "X");
            let flags: u64 = fields.get(6)?.parse().ok()?;
            Some(Self {
                pid,
                parent: id(1),
                group: id(2),
                session: id(3),
                start_time: fields.get(19)?.parse().ok()?,
                stack_start: fields
                    .get(25)
                    .and_then(|stack| stack.parse().ok())
                    .unwrap_or_default(),
                exiting: zombie || flags & EXITING_FLAG != 0,
                zombie,
            })
        }
    }

    /// Returns every visible process.
    pub(crate) fn all_processes() -> Vec<ProcessStat> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries
            .flatten()
            .filter_map(|entry| ProcessStat::read(pid_from_name(&entry.file_name())?))
            .collect()
    }

    /// Calls the closure for every descendant of `root`, before it lists the children of that
    /// descendant. Processes that start or lose their parent meanwhile may be missing: a caller
    /// that terminates a tree repeats the call until no process remains.
    pub(crate) fn for_each_descendant(root: Pid, mut visit: impl FnMut(Pid)) {
        let Some(mut below) = children(root) else {
            return descendants_by_parent(root).into_iter().for_each(visit);
        };
        while let Some(pid) = below.pop() {
            visit(pid);
            below.extend(children(pid).unwrap_or_default());
        }
    }

    /// Returns the children of a process, also the children that have exited.
    pub(crate) fn child_stats(pid: Pid) -> Vec<ProcessStat> {
        let mut stats = match children(pid) {
            Some(children) => children.into_iter().filter_map(ProcessStat::read).collect(),
            None => all_processes(),
        };
        stats.retain(|stat| stat.parent == Some(pid));
        stats
    }

    /// Returns the children of a process that have not exited.
    pub(crate) fn running_children(pid: Pid) -> Vec<Pid> {
        let running = child_stats(pid).into_iter().filter(|stat| !stat.zombie);
        running.map(|stat| stat.pid).collect()
    }

    /// Returns the children of all threads of a process; `None` if the process is gone or the
    /// kernel does not provide the lists.
    fn children(pid: Pid) -> Option<Vec<Pid>> {
        let mut child_pids = Vec::new();
        for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
            let list = thread.path().join("children");
            match fs::read_to_string(&list) {
                Ok(pids) => child_pids.extend(pids.split_ascii_whitespace().filter_map(parse_pid)),
                Err(_) if Path::new("/proc/thread-self/children").exists() => {}
                Err(_) => return None,
            }
        }
        Some(child_pids)
    }

    fn descendants_by_parent(root: Pid) -> Vec<Pid> {
        let every = all_processes();
        let mut descendants_found: Vec<Pid> = Vec::new();
        let mut level = vec![root];
        while !level.is_empty() {
            level = every
                .iter()
                .filter(|stat| stat.parent.is_some_and(|parent| level.contains(&parent)))
                .map(|stat| stat.pid)
                .filter(|pid| !descendants_found.contains(pid))
                .collect();
            descendants_found.extend(&level);
        }
        descendants_found
    }

    fn pid_from_name(name: &std::ffi::OsStr) -> Option<Pid> {
        parse_pid(name.to_str()?)
    }

    fn parse_pid(pid: &str) -> Option<Pid> {
        Pid::from_raw(pid.parse().ok().filter(|pid| *pid > 0)?)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_process_that_ends_has_neither_group_nor_session() {
            let pid = Pid::from_raw(42).unwrap();
            let line = "42 (a) X 0 -1 -1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 98765 1 2 3 4 5 777 8";
            let stat = ProcessStat::parse(pid, line).unwrap();
            assert_eq!((stat.parent, stat.group, stat.session), (None, None, None));
            assert!(stat.zombie && stat.exiting);
        }

        #[test]
        fn a_process_that_has_begun_to_exit_is_no_zombie_yet() {
            let pid = Pid::from_raw(42).unwrap();
            let line = |flags: u64| {
                format!(
                    "42 (a) R 7 40 39 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 98765 1 2 3 4 5 7 8"
                )
            };
            let stat = |flags| ProcessStat::parse(pid, &line(flags)).unwrap();
            // The flags of a process that forked and has not called exec, and of one that exits.
            assert!(!stat(0x0040_0040).exiting);
            assert!(stat(0x0040_0044).exiting && !stat(0x0040_0044).zombie);
        }

        /// Attack: processes | the name of a process imitates the fields of `/proc/PID/stat` | the
        /// true parent, session and start time are read | No orphan
        #[test]
        fn a_process_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
            let pid = Pid::from_raw(42).unwrap();
            let line =
                "42 (a) R 1 (x) Z 7 40 39 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 98765 1 2 3 4 5 777 8";
            let stat = ProcessStat::parse(pid, line).unwrap();
            assert_eq!(stat.parent, Pid::from_raw(7));
            assert_eq!(stat.group, Pid::from_raw(40));
            assert_eq!(stat.session, Pid::from_raw(39));
            assert_eq!((stat.start_time, stat.stack_start), (98_765, 777));
            assert!(stat.zombie);
        }

        #[test]
        fn both_ways_of_reading_the_tree_find_a_child_and_its_child() {
            let mut child = crate::tests::shell("sleep 60 & wait");
            let root = rustix::process::getpid();
            let shell = Pid::from_child(&child);
            // The shell needs a moment to start its child.
            let sleeper = loop {
                if let Some(sleeper) = children(shell).unwrap_or_default().first() {
                    break *sleeper;
                }
                std::thread::yield_now();
            };
            for descendants_found in [super::super::descendants(root), descendants_by_parent(root)]
            {
                assert!(
                    descendants_found.contains(&shell) && descendants_found.contains(&sleeper),
                    "{descendants_found:?}"
                );
            }
            assert_eq!(running_children(shell), [sleeper]);
            assert_eq!(running_children(sleeper), []);
            rustix::process::kill_process(sleeper, rustix::process::Signal::KILL).unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod unsupported {
    use rustix::process::Pid;

    pub fn for_each_descendant(_root: Pid, _found: impl FnMut(Pid)) {}

    pub(super) fn start_time(_pid: Pid) -> Option<u64> {
        None
    }
}
