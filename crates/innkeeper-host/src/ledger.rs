//! Which processes each host has started, on disk, so that the next host can end what a killed one
//! has left behind.
//!
//! One file for each host, named after its process. A process is named by its id and its start
//! time, and only ended if both still fit: an id alone may mean somebody else by now. Systems that
//! do not tell start times get no files.

mod page;
mod sweep;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use page::Kind;
use page::{ENTRY_LIMIT, Header, Noted};
pub(crate) use sweep::SweepReport;

/// Tells the ledgers of one process apart.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// The processes of this host, on disk; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Ledger(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// `None` where processes cannot be told apart.
    file: Option<(PathBuf, Header)>,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    next: u64,
    noted: BTreeMap<u64, Noted>,
}

impl Ledger {
    /// Opens the ledger in `dir`, which is made if it is missing, and ends what dead hosts have
    /// left. Blocks, for up to [`sweep::LIMIT`] if processes do not end.
    ///
    /// # Errors
    /// The directory cannot be made or read.
    pub(crate) fn open(dir: &Path) -> io::Result<(Self, SweepReport)> {
        make_private(dir)?;
        let report = sweep::sweep(dir, sweep::end())?;
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let file = Header::of_this_host()
            .map(|(host, header)| (dir.join(format!("{host}-{number}")), header));
        let ledger = Self(Arc::new(Shared { file, entries: Mutex::default() }));
        Ok((ledger, report))
    }

    /// Notes a process until the entry is dropped.
    ///
    /// # Errors
    /// The file cannot be written, or too many processes are noted.
    pub(crate) fn record(&self, kind: Kind, pid: u32) -> io::Result<Entry> {
        let mut entries = self.0.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.noted.len() >= ENTRY_LIMIT {
            return Err(io::Error::other("the ledger is full"));
        }
        let number = entries.next;
        entries.next += 1;
        if let Some(start) = sweep::start_time(pid) {
            entries.noted.insert(number, Noted { kind, pid, start });
            self.0.write(&entries)?;
        }
        Ok(Entry { ledger: Arc::clone(&self.0), number })
    }
}

impl Shared {
    /// Replaces the file in one step, or removes it when there is nothing to note.
    fn write(&self, entries: &Entries) -> io::Result<()> {
        let Some((path, header)) = &self.file else { return Ok(()) };
        if entries.noted.is_empty() {
            return fs::remove_file(path);
        }
        let new = path.with_extension("new");
        let mut file = create_private(&new)?;
        file.write_all(page::write(header, entries.noted.values()).as_bytes())?;
        fs::rename(&new, path)
    }
}

/// One noted process; dropping it takes the note away.
#[derive(Debug)]
pub(crate) struct Entry {
    ledger: Arc<Shared>,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut entries = self.ledger.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.noted.remove(&self.number).is_some()
            && let Err(error) = self.ledger.write(&entries)
        {
            tracing::warn!(%error, "ended process not taken out of the ledger");
        }
    }
}

/// Makes a directory that only its owner reads.
#[cfg(unix)]
pub(crate) fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Makes a directory.
#[cfg(not(unix))]
pub(crate) fn make_private(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

/// Makes an empty file that only its owner reads.
#[cfg(unix)]
pub(crate) fn create_private(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Makes an empty file.
#[cfg(not(unix))]
pub(crate) fn create_private(path: &Path) -> io::Result<fs::File> {
    fs::File::create(path)
}
