//! The memory of process trees.

use std::collections::HashMap;

use super::ProcessContainment;

/// The processes of the system at one moment, with their parents and their memory.
#[derive(Debug, Default)]
pub struct ProcessTable {
    processes: HashMap<u32, ProcessRow>,
    children: HashMap<u32, Vec<u32>>,
}

#[derive(Clone, Copy, Debug)]
struct ProcessRow {
    parent: u32,
    resident_bytes: u64,
}

/// The processes of a server, its descendants included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Number of processes.
    pub processes: usize,
    /// Resident memory in bytes. Memory that several processes share counts for each of them.
    pub resident_bytes: u64,
}

impl ProcessTable {
    /// Reads the processes that the current process can see. Reads one file for each process, so
    /// that the call blocks for some milliseconds. Returns `None` on systems other than Linux.
    pub fn read() -> Option<Self> {
        #[cfg(target_os = "linux")]
        return Self::read_proc();
        #[cfg(not(target_os = "linux"))]
        return None;
    }

    #[cfg(target_os = "linux")]
    fn read_proc() -> Option<Self> {
        let mut table = Self::default();
        for entry in std::fs::read_dir("/proc").ok()?.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // The process may have ended.
            let file = entry.path().join("status");
            let Ok(status) = std::fs::read_to_string(file) else { continue };
            if let Some(row) = parse_status(&status) {
                table.children.entry(row.parent).or_default().push(pid);
                table.processes.insert(pid, row);
            }
        }
        Some(table)
    }

    /// Returns the processes of a server.
    ///
    /// The processes of a supervised tree are the descendants of the supervisor, without the
    /// supervisor; otherwise those of the server itself.
    pub fn server_usage(&self, server: u32, containment: ProcessContainment) -> ProcessUsage {
        let Some(row) = self.processes.get(&server) else { return ProcessUsage::default() };
        match containment {
            ProcessContainment::Tree => self.descendant_usage(row.parent, ProcessUsage::default()),
            ProcessContainment::Group | ProcessContainment::Job => {
                let own = ProcessUsage { processes: 1, resident_bytes: row.resident_bytes };
                self.descendant_usage(server, own)
            }
        }
    }

    fn descendant_usage(&self, ancestor: u32, mut total: ProcessUsage) -> ProcessUsage {
        let mut open = vec![ancestor];
        while let Some(pid) = open.pop() {
            for child in self.children.get(&pid).into_iter().flatten() {
                total.processes += 1;
                total.resident_bytes +=
                    self.processes.get(child).map_or(0, |row| row.resident_bytes);
                open.push(*child);
            }
        }
        total
    }
}

/// Parses `/proc/PID/status` (proc(5)). A process of the kernel has no memory of its own.
#[cfg(target_os = "linux")]
fn parse_status(status: &str) -> Option<ProcessRow> {
    let value = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    let parent = u32::try_from(value("PPid:")?).ok()?;
    let resident_bytes = value("VmRSS:").unwrap_or_default().saturating_mul(1 << 10);
    Some(ProcessRow { parent, resident_bytes })
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_tree_is_that_of_the_descendants_of_its_supervisor() {
        let rows = [(1, 0, 1), (10, 1, 2), (20, 10, 4), (21, 10, 8), (30, 21, 16), (40, 1, 32)];
        let mut table = ProcessTable::default();
        for (pid, parent, resident_bytes) in rows {
            table.processes.insert(pid, ProcessRow { parent, resident_bytes });
            table.children.entry(parent).or_default().push(pid);
        }
        let usage = |server, containment| {
            let usage = table.server_usage(server, containment);
            (usage.processes, usage.resident_bytes)
        };
        assert_eq!(usage(20, ProcessContainment::Tree), (3, 4 + 8 + 16));
        assert_eq!(usage(21, ProcessContainment::Group), (2, 8 + 16));
        assert_eq!(usage(99, ProcessContainment::Tree), (0, 0));
    }

    #[test]
    fn a_process_without_memory_has_a_row_and_a_damaged_file_has_none() {
        let row = parse_status("Name:\ta PPid: 3\nPPid:\t77\nVmRSS:\t      12 kB\n").unwrap();
        assert_eq!((row.parent, row.resident_bytes), (77, 12 << 10));
        let row = parse_status("Name:\tkthreadd\nPPid:\t0\n").unwrap();
        assert_eq!((row.parent, row.resident_bytes), (0, 0));
        assert!(parse_status("Name:\ta\nPPid:\t-1\n").is_none());
    }

    #[test]
    fn the_table_contains_the_memory_of_this_process() {
        let table = ProcessTable::read().unwrap();
        let own = table.server_usage(std::process::id(), ProcessContainment::Group);
        assert!(own.resident_bytes > 100 << 10, "{own:?}");
    }
}
