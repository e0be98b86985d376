//! The text format of a host's ledger file.

use std::fmt::Write;

use crate::tree_tag::TreeTag;

/// Maximum number of processes in a ledger: two per server allow more servers than a machine can
/// run.
pub(super) const MAX_ENTRIES: usize = 4096;

/// Maximum size of a ledger file in bytes; a file with [`MAX_ENTRIES`] entries needs less than
/// half.
pub(super) const MAX_LEDGER_BYTES: u64 = 512 << 10;

const FORMAT_LINE: &str = "innkeeper-ledger 1";

/// The role of a recorded process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessKind {
    /// The supervisor of a process tree.
    Shim,
    /// The main process of a supervised tree.
    Server,
    /// The leader of a process group.
    Group,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProcessRecord {
    pub(super) kind: ProcessKind,
    pub(super) pid: u32,
    pub(super) start_time: u64,
    /// Tag of every process of the tree; the entry of a shim has one.
    pub(super) tag: Option<TreeTag>,
}

/// The environment of a host. Process ids are meaningless after a reboot, or in another container
/// that shares the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostHeader {
    pub(super) boot_id: String,
    pub(super) pid_namespace: String,
    /// Session id; 0 if the session was created outside the container and has no id inside.
    pub(super) session: u32,
}

impl HostHeader {
    /// Returns the file name and header of the running host; `None` if the system does not provide
    /// them.
    #[cfg(target_os = "linux")]
    pub(super) fn for_current_host() -> Option<(String, Self)> {
        let own_stat = crate::tree::ProcessStat::read(rustix::process::getpid())?;
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
        // `getsid` of `rustix` does not support an id of 0.
        let session =
            own_stat.session.map_or(0, |leader| leader.as_raw_nonzero().get().unsigned_abs());
        let pid_namespace = namespace.to_string_lossy().into_owned();
        let header = Self { boot_id: boot_id.trim().to_owned(), pid_namespace, session };
        Some((format!("{}-{}", own_stat.pid, own_stat.start_time), header))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn for_current_host() -> Option<(String, Self)> {
        None
    }
}

/// Returns the process id and start time in a file name; `None` if the file is not a ledger file.
pub(super) fn parse_file_name(file_name: &str) -> Option<(u32, u64)> {
    let mut parts = file_name.split(['-', '.']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

pub(super) fn format_file<'a>(
    header: &HostHeader,
    entries: impl Iterator<Item = &'a ProcessRecord>,
) -> String {
    let HostHeader { boot_id, pid_namespace, session } = header;
    let mut page = format!("{FORMAT_LINE}\n{boot_id} {pid_namespace} {session}\n");
    for ProcessRecord { kind, pid, start_time, tag } in entries {
        let kind = match kind {
            ProcessKind::Shim => "shim",
            ProcessKind::Server => "server",
            ProcessKind::Group => "group",
        };
        // Writing to a string cannot fail.
        let _ = match tag {
            Some(tag) => writeln!(page, "{kind} {pid} {start_time} {}", tag.to_fields()),
            None => writeln!(page, "{kind} {pid} {start_time}"),
        };
    }
    page
}

/// Parses a ledger file. Skips malformed entries; returns `None` without a valid header.
pub(super) fn parse_file(page: &str) -> Option<(HostHeader, Vec<ProcessRecord>)> {
    let mut lines = page.lines();
    let title = lines.next()? == FORMAT_LINE;
    let mut fields = lines.next().filter(|_| title)?.split(' ');
    let header = HostHeader {
        boot_id: fields.next()?.to_owned(),
        pid_namespace: fields.next()?.to_owned(),
        session: fields.next()?.parse().ok()?,
    };
    Some((header, lines.filter_map(parse_record).take(MAX_ENTRIES).collect()))
}

fn parse_record(line: &str) -> Option<ProcessRecord> {
    let mut fields = line.split(' ');
    let kind = match fields.next()? {
        "shim" => ProcessKind::Shim,
        "server" => ProcessKind::Server,
        "group" => ProcessKind::Group,
        _ => return None,
    };
    Some(ProcessRecord {
        kind,
        pid: fields.next()?.parse().ok()?,
        start_time: fields.next()?.parse().ok()?,
        tag: TreeTag::from_fields(fields),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> HostHeader {
        HostHeader { boot_id: "b".to_owned(), pid_namespace: "pid:[1]".to_owned(), session: 7 }
    }

    fn record(kind: ProcessKind, pid: u32, start_time: u64, tag: Option<TreeTag>) -> ProcessRecord {
        ProcessRecord { kind, pid, start_time, tag }
    }

    #[test]
    fn a_ledger_file_is_read_back_as_it_was_written() {
        let tag = TreeTag::from_fields(
            ["0123456789abcdef0123456789abcdef", "18446744073709551615"].into_iter(),
        );
        assert!(tag.is_some());
        let entries = [
            record(ProcessKind::Shim, 11, 22, tag.clone()),
            record(ProcessKind::Server, 12, 23, None),
            record(ProcessKind::Server, u32::MAX, u64::MAX, tag),
        ];
        let page = format_file(&header(), entries.iter());
        assert_eq!(parse_file(&page), Some((header(), entries.to_vec())));
        let longest = page.lines().map(str::len).max().unwrap() + 1;
        assert!((longest * MAX_ENTRIES) as u64 <= MAX_LEDGER_BYTES);
    }

    #[test]
    fn invalid_lines_are_ignored() {
        for page in ["", "\n\n", "innkeeper-ledger 2\nb n 1\nshim 1 1", "innkeeper-ledger 1\nb n\n"]
        {
            assert_eq!(parse_file(page), None, "{page:?}");
        }
        let page =
            format_file(&header(), [].iter()) + "shim\nshim x 1\nshim 1 -1\n\0\nshim 1 2 x\n";
        let (_, entries) = parse_file(&page).unwrap();
        assert_eq!(entries, [record(ProcessKind::Shim, 1, 2, None)]);
    }

    #[test]
    fn only_a_ledger_file_is_named_after_a_process() {
        assert_eq!(parse_file_name("12-34-0"), Some((12, 34)));
        assert_eq!(parse_file_name("12-34-0.new"), Some((12, 34)));
        for other in ["", "README", "12", "x-1-0", ".12-34-0"] {
            assert_eq!(parse_file_name(other), None, "{other}");
        }
    }
}
