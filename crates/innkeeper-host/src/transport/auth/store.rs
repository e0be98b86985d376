//! The tokens of one server on disk: a file that only its owner reads, shared by processes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use super::record::Record;

/// How long another process may take to renew a token: as long as one request may.
const TURN: Duration = Duration::from_secs(30);

/// How often it is looked whether it is done.
const LOOK: Duration = Duration::from_millis(50);

/// The longest file that is read.
const FILE: u64 = 1 << 20;

/// Tells the new files of one process apart.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Where the record of one server at one address is kept.
#[derive(Debug)]
pub(super) struct Store {
    directory: PathBuf,
    /// Without an ending.
    name: String,
}

impl Store {
    pub(super) fn new(directory: &Path, server: &str, url: &str) -> Self {
        let hash = Sha256::digest(url.as_bytes());
        let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self { directory: directory.to_owned(), name: format!("{server}-{hash}") }
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.directory.join(format!("{}.{ending}", self.name))
    }

    /// The record, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub(super) fn load(&self) -> io::Result<Option<Record>> {
        let path = self.path("json");
        match fs::metadata(&path) {
            Ok(told) if told.len() > FILE => return Err(io::Error::other("the file is too long")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        // What the parser says may quote a token.
        let odd = |_| io::Error::other("the file holds no tokens");
        serde_json::from_slice(&fs::read(path)?).map(Some).map_err(odd)
    }

    /// Replaces the record in one step.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn save(&self, record: &Record) -> io::Result<()> {
        make_private(&self.directory)?;
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let new = self.path(&format!("{}-{number}.new", std::process::id()));
        let written = self.write(&new, record);
        if written.is_err() {
            drop(fs::remove_file(&new));
        }
        written
    }

    fn write(&self, new: &Path, record: &Record) -> io::Result<()> {
        let mut file = private().truncate(true).open(new)?;
        file.write_all(&serde_json::to_vec_pretty(record)?)?;
        file.sync_all()?;
        fs::rename(new, self.path("json"))
    }

    /// This process's turn to renew the token; it ends when the file is dropped.
    ///
    /// # Errors
    /// There is no lock to be had, or another process does not let go of it.
    pub(super) async fn turn(&self) -> io::Result<File> {
        make_private(&self.directory)?;
        let lock = private().open(self.path("lock"))?;
        let ends = Instant::now() + TURN;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) if Instant::now() < ends => sleep(LOOK).await,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A file that is made for its owner alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

fn make_private(directory: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
    }
    #[cfg(not(unix))]
    fs::create_dir_all(directory)
}
