//! The tokens of one server, shared by processes: a file that only its owner reads, or a place of
//! the application's.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use super::TokenStore;
use super::record::Record;
use crate::config::Secret;

/// How long another process may take to renew a token: as long as one request may.
const TURN: Duration = Duration::from_secs(30);

/// How often it is looked whether it is done.
const LOOK: Duration = Duration::from_millis(50);

/// The longest file that is read.
const FILE: u64 = 1 << 20;

/// Tells the new files of one process apart.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Where the record of one server at one address is kept.
pub(super) struct Store {
    place: Place,
    /// Of files, without an ending.
    name: String,
}

enum Place {
    Directory(PathBuf),
    /// With the directory where processes take turns, if there is one.
    Other(Arc<dyn TokenStore>, Option<PathBuf>),
}

impl Store {
    /// `None` where nothing is to be kept.
    pub(super) fn new(
        directory: Option<&Path>,
        other: Option<&Arc<dyn TokenStore>>,
        server: &str,
        url: &str,
    ) -> Option<Self> {
        let place = match (directory.map(Path::to_owned), other) {
            (directory, Some(other)) => Place::Other(other.clone(), directory),
            (Some(directory), None) => Place::Directory(directory),
            (None, None) => return None,
        };
        let hash = Sha256::digest(url.as_bytes());
        let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Some(Self { place, name: format!("{server}-{hash}") })
    }

    fn path(&self, directory: &Path, ending: &str) -> PathBuf {
        directory.join(format!("{}.{ending}", self.name))
    }

    /// The record, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub(super) fn load(&self) -> io::Result<Option<Record>> {
        // What the parser says may quote a token.
        let odd = |_| io::Error::other("what is kept holds no tokens");
        let directory = match &self.place {
            Place::Directory(directory) => directory,
            Place::Other(other, _) => {
                let kept = other.load(&self.name)?;
                return kept
                    .map(|kept| serde_json::from_str(kept.expose()).map_err(odd))
                    .transpose();
            }
        };
        let path = self.path(directory, "json");
        match fs::metadata(&path) {
            Ok(told) if told.len() > FILE => return Err(io::Error::other("the file is too long")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        serde_json::from_slice(&fs::read(path)?).map(Some).map_err(odd)
    }

    /// Replaces the record in one step.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn save(&self, record: &Record) -> io::Result<()> {
        let directory = match &self.place {
            Place::Directory(directory) => directory,
            Place::Other(other, _) => {
                let text = serde_json::to_string(record)?;
                return other.save(&self.name, &Secret::new(text));
            }
        };
        make_private(directory)?;
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let new = self.path(directory, &format!("{}-{number}.new", std::process::id()));
        let written = write(&new, &self.path(directory, "json"), record);
        if written.is_err() {
            drop(fs::remove_file(&new));
        }
        written
    }

    /// This process's turn to renew the token; it ends when the file is dropped. `None` where
    /// processes have no way to take turns.
    ///
    /// # Errors
    /// There is no lock to be had, or another process does not let go of it.
    pub(super) async fn turn(&self) -> io::Result<Option<File>> {
        let (Place::Directory(directory) | Place::Other(_, Some(directory))) = &self.place else {
            return Ok(None);
        };
        make_private(directory)?;
        let lock = private().open(self.path(directory, "lock"))?;
        let ends = Instant::now() + TURN;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Some(lock)),
                Err(TryLockError::WouldBlock) if Instant::now() < ends => sleep(LOOK).await,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn write(new: &Path, path: &Path, record: &Record) -> io::Result<()> {
    let mut file = private().truncate(true).open(new)?;
    file.write_all(&serde_json::to_vec_pretty(record)?)?;
    file.sync_all()?;
    fs::rename(new, path)
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
