//! The text of one host's ledger file.

use std::fmt::Write;

/// The processes a host may have noted at once: two for each server, and more servers than a
/// machine can run.
pub(super) const ENTRY_LIMIT: usize = 4096;

/// The longest file that is read in bytes; one at the entry limit has less than half of it.
pub(super) const PAGE_LIMIT: u64 = 512 << 10;

const TITLE: &str = "innkeeper-ledger 1";

/// What a noted process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The supervisor of a tree.
    Shim,
    /// The main process of a tree that has a supervisor.
    Server,
    /// The leader of a process group.
    Group,
}

/// One noted process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) kind: Kind,
    pub(super) pid: u32,
    pub(super) start: u64,
}

/// Where a host runs: its process ids mean nothing after a restart of the system, or in another
/// container that sees the same directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) boot: String,
    pub(super) namespace: String,
    /// 0 where the session was opened outside the container, so that it has no id in here.
    pub(super) session: u32,
}

impl Header {
    /// The running host's name and header; `None` where the system does not tell.
    #[cfg(target_os = "linux")]
    pub(super) fn of_this_host() -> Option<(String, Self)> {
        let own = crate::shim::tree::Stat::read(rustix::process::getpid())?;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
        // `getsid` of the library takes an id of 0 for impossible.
        let session = own.session.map_or(0, |leader| leader.as_raw_nonzero().get().unsigned_abs());
        let namespace = namespace.to_string_lossy().into_owned();
        let header = Self { boot: boot.trim().to_owned(), namespace, session };
        Some((format!("{}-{}", own.pid, own.start), header))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn of_this_host() -> Option<(String, Self)> {
        None
    }
}

/// The process a file is named after; `None` if it is no ledger file.
pub(super) fn host_of(file_name: &str) -> Option<(u32, u64)> {
    let mut parts = file_name.split(['-', '.']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

pub(super) fn write<'a>(header: &Header, entries: impl Iterator<Item = &'a Noted>) -> String {
    let Header { boot, namespace, session } = header;
    let mut page = format!("{TITLE}\n{boot} {namespace} {session}\n");
    for Noted { kind, pid, start } in entries {
        let kind = match kind {
            Kind::Shim => "shim",
            Kind::Server => "server",
            Kind::Group => "group",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(page, "{kind} {pid} {start}");
    }
    page
}

/// Reads a page; lines that are no entries are passed over, a page without header is none.
pub(super) fn read(page: &str) -> Option<(Header, Vec<Noted>)> {
    let mut lines = page.lines();
    let title = lines.next()? == TITLE;
    let mut words = lines.next().filter(|_| title)?.split(' ');
    let header = Header {
        boot: words.next()?.to_owned(),
        namespace: words.next()?.to_owned(),
        session: words.next()?.parse().ok()?,
    };
    Some((header, lines.filter_map(entry).take(ENTRY_LIMIT).collect()))
}

fn entry(line: &str) -> Option<Noted> {
    let mut words = line.split(' ');
    let kind = match words.next()? {
        "shim" => Kind::Shim,
        "server" => Kind::Server,
        "group" => Kind::Group,
        _ => return None,
    };
    Some(Noted { kind, pid: words.next()?.parse().ok()?, start: words.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header { boot: "b".to_owned(), namespace: "pid:[1]".to_owned(), session: 7 }
    }

    #[test]
    fn a_page_is_read_back_as_it_was_written() {
        let entries = [
            Noted { kind: Kind::Shim, pid: 11, start: 22 },
            Noted { kind: Kind::Server, pid: 12, start: 23 },
            Noted { kind: Kind::Group, pid: u32::MAX, start: u64::MAX },
        ];
        let page = write(&header(), entries.iter());
        assert_eq!(read(&page), Some((header(), entries.to_vec())));
        let longest = page.lines().map(str::len).max().unwrap() + 1;
        assert!((longest * ENTRY_LIMIT) as u64 <= PAGE_LIMIT);
    }

    #[test]
    fn garbage_is_passed_over() {
        for page in ["", "\n\n", "innkeeper-ledger 2\nb n 1\nshim 1 1", "innkeeper-ledger 1\nb n\n"]
        {
            assert_eq!(read(page), None, "{page:?}");
        }
        let page = write(&header(), [].iter()) + "shim\nshim x 1\nshim 1 -1\n\0\nshim 1 2\n";
        let (_, entries) = read(&page).unwrap();
        assert_eq!(entries, [Noted { kind: Kind::Shim, pid: 1, start: 2 }]);
    }

    #[test]
    fn only_a_ledger_file_is_named_after_a_process() {
        assert_eq!(host_of("12-34-0"), Some((12, 34)));
        assert_eq!(host_of("12-34-0.new"), Some((12, 34)));
        for other in ["", "README", "12", "x-1-0", ".12-34-0"] {
            assert_eq!(host_of(other), None, "{other}");
        }
    }
}
