//! Lists the processes of a tree from `/proc`.

use alloc::vec::Vec;
use core::mem::MaybeUninit;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Access, CWD, Mode, OFlags, RawDir};
use rustix::process::Pid;

use crate::text::FixedText;

/// The contents of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// Process id.
    pub pid: Pid,
    /// Process id of the parent.
    pub parent: Option<Pid>,
    /// Process group.
    pub group: Option<Pid>,
    /// Session.
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

/// Maximum size of a line of `/proc/PID/stat` in bytes: 52 numbers and a name of 64 bytes.
const MAX_STAT_BYTES: usize = 2 << 10;

/// Maximum length of a path below `/proc` in bytes.
const MAX_PATH_BYTES: usize = 64;

/// Size in bytes of a buffer for entries of a directory, and for the ids of children.
const READ_BYTES: usize = 4 << 10;

impl ProcessStat {
    /// Reads the state of a process; `None` if the process is gone.
    pub fn read(pid: Pid) -> Option<Self> {
        let file = open(CWD, format_args!("/proc/{pid}/stat"), OFlags::empty())?;
        let mut line = [0; MAX_STAT_BYTES];
        let mut length = 0;
        while let Some(space) = line.get_mut(length..).filter(|space| !space.is_empty()) {
            match rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut *space)).ok()? {
                0 => break,
                count => length += count,
            }
        }
        Self::parse(pid, line.get(..length)?)
    }

    /// Parses a line. The name is in parentheses and may contain any byte, including parentheses.
    fn parse(pid: Pid, line: &[u8]) -> Option<Self> {
        /// Position of the fields after the state and before each of the other fields.
        const FLAGS_AFTER_SESSION: usize = 2;
        const START_TIME_AFTER_FLAGS: usize = 12;
        const STACK_AFTER_START_TIME: usize = 5;
        let name_end = line.iter().rposition(|byte| *byte == b')')?;
        let mut fields = str::from_utf8(line.get(name_end + 1..)?).ok()?.split_ascii_whitespace();
        let zombie = matches!(fields.next()?, "Z" | "X");
        // The kernel writes -1 for the group and the session of a process that ends.
        let parent = parse_pid(fields.next()?);
        let group = parse_pid(fields.next()?);
        let session = parse_pid(fields.next()?);
        let flags: u64 = fields.nth(FLAGS_AFTER_SESSION)?.parse().ok()?;
        let start_time = fields.nth(START_TIME_AFTER_FLAGS)?.parse().ok()?;
        let stack_start = fields.nth(STACK_AFTER_START_TIME).and_then(|stack| stack.parse().ok());
        Some(Self {
            pid,
            parent,
            group,
            session,
            start_time,
            stack_start: stack_start.unwrap_or_default(),
            exiting: zombie || flags & EXITING_FLAG != 0,
            zombie,
        })
    }
}

/// Returns every visible process.
pub fn all_processes() -> Vec<ProcessStat> {
    let mut processes = Vec::new();
    if let Some(directory) = open(CWD, format_args!("/proc"), OFlags::DIRECTORY) {
        for_each_number(&directory, |pid| processes.extend(ProcessStat::read(pid)));
    }
    processes
}

/// Calls the closure for every descendant of `root`, before it lists the children of that
/// descendant. Processes that start or lose their parent meanwhile may be missing: a caller that
/// terminates a tree repeats the call until no process remains.
pub fn for_each_descendant(root: Pid, mut visit: impl FnMut(Pid)) {
    let Some(mut below) = children(root) else {
        return descendants_by_parent(root).into_iter().for_each(visit);
    };
    while let Some(pid) = below.pop() {
        visit(pid);
        below.extend(children(pid).unwrap_or_default());
    }
}

/// Returns every descendant of `root`; see [`for_each_descendant`].
pub fn descendants(root: Pid) -> Vec<Pid> {
    let mut all = Vec::new();
    for_each_descendant(root, |pid| all.push(pid));
    all
}

/// Returns the start time of a process in clock ticks since boot; with the id it identifies a
/// process until a reboot. `None` if the process has exited, reaped or not.
pub fn start_time(pid: Pid) -> Option<u64> {
    ProcessStat::read(pid).filter(|stat| !stat.zombie).map(|stat| stat.start_time)
}

/// Returns the children of a process, also the children that have exited.
pub fn child_stats(pid: Pid) -> Vec<ProcessStat> {
    let mut stats = match children(pid) {
        Some(children) => children.into_iter().filter_map(ProcessStat::read).collect(),
        None => all_processes(),
    };
    stats.retain(|stat| stat.parent == Some(pid));
    stats
}

/// Returns the children of a process that have not exited.
pub fn running_children(pid: Pid) -> Vec<Pid> {
    let running = child_stats(pid).into_iter().filter(|stat| !stat.zombie);
    running.map(|stat| stat.pid).collect()
}

/// Returns the children of all threads of a process; `None` if the process is gone or the kernel
/// does not provide the lists.
fn children(pid: Pid) -> Option<Vec<Pid>> {
    let tasks = open(CWD, format_args!("/proc/{pid}/task"), OFlags::DIRECTORY)?;
    let mut child_pids = Vec::new();
    let mut is_listed = true;
    for_each_number(&tasks, |thread| {
        match open(&tasks, format_args!("{thread}/children"), OFlags::empty()) {
            Some(list) => read_pids(&list, &mut child_pids),
            None => is_listed = is_listed && has_lists(),
        }
    });
    is_listed.then_some(child_pids)
}

/// Returns whether the kernel lists children (`CONFIG_PROC_CHILDREN`).
fn has_lists() -> bool {
    rustix::fs::access("/proc/thread-self/children", Access::EXISTS).is_ok()
}

fn descendants_by_parent(root: Pid) -> Vec<Pid> {
    let every = all_processes();
    let mut descendants_found: Vec<Pid> = Vec::new();
    let mut level = alloc::vec![root];
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

fn open(directory: impl AsFd, path: core::fmt::Arguments<'_>, flags: OFlags) -> Option<OwnedFd> {
    let path = FixedText::<MAX_PATH_BYTES>::format(path)?;
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, path.as_str(), flags, Mode::empty()).ok()
}

/// Calls the closure for every open file descriptor of this process, except standard input.
pub(crate) fn for_each_descriptor(mut visit: impl FnMut(i32)) {
    if let Some(directory) = open(CWD, format_args!("/proc/self/fd"), OFlags::DIRECTORY) {
        for_each_number(&directory, |number| visit(number.as_raw_nonzero().get()));
    }
}

/// Calls the closure for every entry of a directory whose name is a number.
fn for_each_number(directory: &OwnedFd, mut visit: impl FnMut(Pid)) {
    let mut buffer = [MaybeUninit::uninit(); READ_BYTES];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        entry.file_name().to_str().ok().and_then(parse_pid).into_iter().for_each(&mut visit);
    }
}

/// Appends the numbers of a file to a list.
fn read_pids(file: &OwnedFd, pids: &mut Vec<Pid>) {
    let mut buffer = [0; READ_BYTES];
    // A number can begin in one part of the file and end in the next part.
    let mut number = 0_i32;
    while let Ok(count @ 1..) = rustix::io::retry_on_intr(|| rustix::io::read(file, &mut buffer)) {
        for byte in buffer.get(..count).unwrap_or_default() {
            if byte.is_ascii_digit() {
                number = number.saturating_mul(10).saturating_add((byte - b'0').into());
            } else if number > 0 {
                pids.extend(Pid::from_raw(number));
                number = 0;
            }
        }
    }
    pids.extend(Pid::from_raw(number));
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
        let line = b"42 (a) X 0 -1 -1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 98765 1 2 3 4 5 777 8";
        let stat = ProcessStat::parse(pid, line).unwrap();
        assert_eq!((stat.parent, stat.group, stat.session), (None, None, None));
        assert!(stat.zombie && stat.exiting);
    }

    #[test]
    fn a_process_that_has_begun_to_exit_is_no_zombie_yet() {
        let pid = Pid::from_raw(42).unwrap();
        let line = |flags: u64| {
            format!("42 (a) R 7 40 39 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 98765 1 2 3 4 5 7 8")
        };
        let stat = |flags| ProcessStat::parse(pid, line(flags).as_bytes()).unwrap();
        // The flags of a process that forked and has not called exec, and of one that exits.
        assert!(!stat(0x0040_0040).exiting);
        assert!(stat(0x0040_0044).exiting && !stat(0x0040_0044).zombie);
    }

    /// Attack: processes | the name of a process imitates the fields of `/proc/PID/stat`, or is no
    /// text | the true parent, session and start time are read | No orphan
    #[test]
    fn a_process_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let pid = Pid::from_raw(42).unwrap();
        let line =
            b"42 (a) R 1 (\xff) Z 7 40 39 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 98765 1 2 3 4 5 777 8";
        let stat = ProcessStat::parse(pid, line).unwrap();
        assert_eq!(stat.parent, Pid::from_raw(7));
        assert_eq!(stat.group, Pid::from_raw(40));
        assert_eq!(stat.session, Pid::from_raw(39));
        assert_eq!((stat.start_time, stat.stack_start), (98_765, 777));
        assert!(stat.zombie);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a process that the module does not track")]
    fn both_ways_of_reading_the_tree_find_a_child_and_its_child() {
        let mut child =
            std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let root = rustix::process::getpid();
        let shell = Pid::from_child(&child);
        // The shell needs a moment to start its child.
        let sleeper = loop {
            if let Some(sleeper) = children(shell).unwrap_or_default().first() {
                break *sleeper;
            }
            std::thread::yield_now();
        };
        for descendants_found in [descendants(root), descendants_by_parent(root)] {
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

    #[test]
    fn an_open_file_is_found_among_the_descriptors_and_a_closed_one_is_not() {
        use std::os::fd::AsRawFd;
        let is_found = |number: i32| {
            let mut found = false;
            for_each_descriptor(|descriptor| found |= descriptor == number);
            found
        };
        // No other test of this binary opens so many files.
        let file = rustix::io::fcntl_dupfd_cloexec(tempfile::tempfile().unwrap(), 900).unwrap();
        let number = file.as_raw_fd();
        assert!(is_found(number));
        drop(file);
        assert!(!is_found(number));
    }

    #[test]
    fn a_list_of_children_longer_than_one_read_is_read_whole() {
        use std::io::{Seek, Write};
        let mut file = tempfile::tempfile().unwrap();
        let numbers: Vec<i32> = (1_000_001..1_003_000).collect();
        for number in &numbers {
            write!(file, "{number} ").unwrap();
        }
        file.rewind().unwrap();
        let mut pids = Vec::new();
        read_pids(&file.into(), &mut pids);
        let read: Vec<i32> = pids.into_iter().map(|pid| pid.as_raw_nonzero().get()).collect();
        assert_eq!(read, numbers);
    }
}
