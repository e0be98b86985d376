//! Records the processes of each host on disk for later cleanup.
//!
//! The next host terminates what a killed host left running. Each host has one file, named after
//! its process. An entry names a process by its id and its start time, and a process is terminated
//! only if both match, because the system reuses ids. The entry of a shim has the tag of the tree:
//! if the shim died with its host, the tag identifies what is left. Systems without start times get
//! no files.

mod ledger_file;
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

pub use ledger_file::ProcessKind;
use ledger_file::{HostHeader, MAX_ENTRIES, ProcessRecord};

use crate::tree_tag::TreeTag;
pub use sweep::SweepReport;

static LEDGER_COUNT: AtomicU64 = AtomicU64::new(0);

/// The on-disk record of this host's processes; clones share it.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<LedgerState>);

#[derive(Debug)]
struct LedgerState {
    /// `None` where the system does not report process start times.
    file: Option<(PathBuf, HostHeader)>,
    entries: Mutex<LedgerEntries>,
}

#[derive(Debug, Default)]
struct LedgerEntries {
    next_id: u64,
    records: BTreeMap<u64, ProcessRecord>,
}

impl Ledger {
    /// Opens the ledger in `dir`, creates the directory if needed, and terminates processes of dead
    /// hosts. Blocks for at most five seconds while processes terminate.
    ///
    /// # Errors
    /// The directory cannot be created or read.
    pub fn open(dir: &Path) -> io::Result<(Self, SweepReport)> {
        create_private_dir(dir)?;
        let report = sweep::sweep(dir, sweep::deadline())?;
        let number = LEDGER_COUNT.fetch_add(1, Ordering::Relaxed);
        let file = HostHeader::for_current_host()
            .map(|(host, header)| (dir.join(format!("{host}-{number}")), header));
        let ledger = Self(Arc::new(LedgerState { file, entries: Mutex::default() }));
        Ok((ledger, report))
    }

    /// Records a process until the returned entry is dropped; `tag` identifies each process of the
    /// tree below the process.
    ///
    /// # Errors
    /// The file cannot be written, or the ledger is full.
    pub fn record(
        &self,
        kind: ProcessKind,
        pid: u32,
        tag: Option<TreeTag>,
    ) -> io::Result<LedgerEntry> {
        let mut entries = self.0.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.records.len() >= MAX_ENTRIES {
            return Err(io::Error::other("the ledger is full"));
        }
        let id = entries.next_id;
        entries.next_id += 1;
        if let Some(start) = sweep::start_time(pid) {
            entries.records.insert(id, ProcessRecord { kind, pid, start_time: start, tag });
            self.0.write(&entries)?;
        }
        Ok(LedgerEntry { ledger: Arc::clone(&self.0), id })
    }
}

impl LedgerState {
    /// Replaces the file atomically, or removes the file when no process is recorded.
    fn write(&self, entries: &LedgerEntries) -> io::Result<()> {
        let Some((path, header)) = &self.file else { return Ok(()) };
        if entries.records.is_empty() {
            return fs::remove_file(path);
        }
        let new = path.with_extension("new");
        let mut file = create_private_file(&new)?;
        file.write_all(ledger_file::format_file(header, entries.records.values()).as_bytes())?;
        fs::rename(&new, path)
    }
}

/// A recorded process; dropping the entry removes the record.
#[derive(Debug)]
pub struct LedgerEntry {
    ledger: Arc<LedgerState>,
    id: u64,
}

impl Drop for LedgerEntry {
    fn drop(&mut self) {
        let mut entries = self.ledger.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.records.remove(&self.id).is_some()
            && let Err(error) = self.ledger.write(&entries)
        {
            tracing::warn!(%error, "ended process not removed from the ledger");
        }
    }
}

/// Creates a directory that only its owner can read.
///
/// # Errors
///
/// Returns the error of the system.
#[cfg(unix)]
pub fn create_private_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Creates a directory.
///
/// # Errors
///
/// Returns the error of the system.
#[cfg(not(unix))]
pub fn create_private_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

/// Creates an empty file that only its owner can read.
///
/// # Errors
///
/// Returns the error of the system.
#[cfg(unix)]
pub fn create_private_file(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Creates an empty file.
///
/// # Errors
///
/// Returns the error of the system.
#[cfg(not(unix))]
pub fn create_private_file(path: &Path) -> io::Result<fs::File> {
    fs::File::create(path)
}
