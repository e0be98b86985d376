//! Which processes belong to a tree, read from `/proc`; systems without it know groups only.

use rustix::process::Pid;

#[cfg(target_os = "linux")]
pub(crate) use linux::{Stat, each_descendant, every, has_children};

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::each_descendant;

/// Every process below `root`; see [`each_descendant`].
pub(crate) fn descendants(root: Pid) -> Vec<Pid> {
    let mut all = Vec::new();
    each_descendant(root, |pid| all.push(pid));
    all
}

/// When a process was started, in clock ticks since the system was; with its id this names a
/// process for as long as the system runs. `None` if it has ended, reaped or not, or this is not
/// known here.
pub(crate) fn start_time(pid: Pid) -> Option<u64> {
    #[cfg(target_os = "linux")]
    return Stat::read(pid).filter(|stat| !stat.zombie).map(|stat| stat.start);
    #[cfg(not(target_os = "linux"))]
    return elsewhere::start_time(pid);
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::path::Path;

    use rustix::process::Pid;

    /// What `/proc/PID/stat` says of a process.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Stat {
        pub(crate) pid: Pid,
        pub(crate) parent: Option<Pid>,
        pub(crate) group: Option<Pid>,
        pub(crate) session: Option<Pid>,
        /// Clock ticks since the system was started.
        pub(crate) start: u64,
        /// Where its stack begins; zero if that is not ours to know.
        pub(crate) stack: u64,
        /// Ended, and not yet waited for by its parent.
        pub(crate) zombie: bool,
    }

    impl Stat {
        pub(crate) fn read(pid: Pid) -> Option<Self> {
            Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
        }

        /// The name stands in parentheses and may itself hold any character, parentheses too.
        pub(super) fn parse(pid: Pid, stat: &str) -> Option<Self> {
            let (_, behind_name) = stat.rsplit_once(')')?;
            let fields: Vec<&str> = behind_name.split_ascii_whitespace().collect();
            let id =
                |index: usize| fields.get(index).and_then(|id| Pid::from_raw(id.parse().ok()?));
            Some(Self {
                pid,
                parent: id(1),
                group: id(2),
                session: id(3),
                start: fields.get(19)?.parse().ok()?,
                stack: fields.get(25).and_then(|stack| stack.parse().ok()).unwrap_or_default(),
                zombie: matches!(fields[0], "Z" | "X"),
            })
        }
    }

    /// Every process that can be seen.
    pub(crate) fn every() -> Vec<Stat> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries.flatten().filter_map(|entry| Stat::read(pid_of(&entry.file_name())?)).collect()
    }

    /// Calls `found` for every process below `root`, before it looks for the children of that one.
    /// Processes that are started or lose their parent meanwhile may be missing: whoever ends a
    /// tree asks again until none is left.
    pub(crate) fn each_descendant(root: Pid, mut found: impl FnMut(Pid)) {
        let Some(mut below) = children(root) else {
            return descendants_by_parent(root).into_iter().for_each(found);
        };
        while let Some(pid) = below.pop() {
            found(pid);
            below.extend(children(pid).unwrap_or_default());
        }
    }

    /// Whether a process has started another that still runs.
    pub(crate) fn has_children(pid: Pid) -> bool {
        match children(pid) {
            Some(children) => {
                children.into_iter().filter_map(Stat::read).any(|child| !child.zombie)
            }
            None => every().iter().any(|stat| stat.parent == Some(pid) && !stat.zombie),
        }
    }

    /// The children of all threads of a process; `None` if it is gone, or if this kernel was built
    /// without those lists.
    fn children(pid: Pid) -> Option<Vec<Pid>> {
        let mut found = Vec::new();
        for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
            let list = thread.path().join("children");
            match fs::read_to_string(&list) {
                Ok(pids) => found.extend(pids.split_ascii_whitespace().filter_map(parse)),
                Err(_) if Path::new("/proc/thread-self/children").exists() => {}
                Err(_) => return None,
            }
        }
        Some(found)
    }

    fn descendants_by_parent(root: Pid) -> Vec<Pid> {
        let every = every();
        let mut found: Vec<Pid> = Vec::new();
        let mut level = vec![root];
        while !level.is_empty() {
            level = every
                .iter()
                .filter(|stat| stat.parent.is_some_and(|parent| level.contains(&parent)))
                .map(|stat| stat.pid)
                .filter(|pid| !found.contains(pid))
                .collect();
            found.extend(&level);
        }
        found
    }

    fn pid_of(name: &std::ffi::OsStr) -> Option<Pid> {
        parse(name.to_str()?)
    }

    fn parse(pid: &str) -> Option<Pid> {
        Pid::from_raw(pid.parse().ok()?)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_process_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
            let pid = Pid::from_raw(42).unwrap();
            let line =
                "42 (a) R 1 (x) Z 7 40 39 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 98765 1 2 3 4 5 777 8";
            let stat = Stat::parse(pid, line).unwrap();
            assert_eq!(stat.parent, Pid::from_raw(7));
            assert_eq!(stat.group, Pid::from_raw(40));
            assert_eq!(stat.session, Pid::from_raw(39));
            assert_eq!((stat.start, stat.stack), (98_765, 777));
            assert!(stat.zombie);
        }

        #[test]
        fn both_ways_of_reading_the_tree_find_a_child_and_its_child() {
            let mut child = crate::server::process::tests::sh("sleep 60 & wait");
            let root = rustix::process::getpid();
            let shell = Pid::from_child(&child);
            // The shell needs a moment to start its own child.
            let sleeper = loop {
                if let Some(sleeper) = children(shell).unwrap_or_default().first() {
                    break *sleeper;
                }
                std::thread::yield_now();
            };
            for found in [super::super::descendants(root), descendants_by_parent(root)] {
                assert!(found.contains(&shell) && found.contains(&sleeper), "{found:?}");
            }
            assert!(has_children(shell));
            assert!(!has_children(sleeper));
            rustix::process::kill_process(sleeper, rustix::process::Signal::KILL).unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use rustix::process::Pid;

    pub(crate) fn each_descendant(_root: Pid, _found: impl FnMut(Pid)) {}

    pub(super) fn start_time(_pid: Pid) -> Option<u64> {
        None
    }
}
