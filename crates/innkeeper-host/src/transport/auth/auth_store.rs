//! The stored sign-in of one server, shared between processes.
//!
//! The store is a file that only the owner can read, or the application's `TokenStore`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use innkeeper_config::Secret;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use super::TokenStore;
use super::stored_auth::StoredAuth;

/// Timeout for the lock while another process renews a token: as long as one request.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval between two attempts to take the lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum file size in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The number of the next temporary file of this process.
static NEXT_FILE_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The store for the record of one server at one URL.
pub(super) struct AuthStore {
    backend: StoreBackend,
    /// The file name without an extension.
    file_stem: String,
}

enum StoreBackend {
    Directory(PathBuf),
    /// The application's store, with the directory for locks if there is one.
    Custom(Arc<dyn TokenStore>, Option<PathBuf>),
}

/// Maximum length of the name of a server in the name of a file, in bytes.
const MAX_FILE_NAME_BYTES: usize = 64;

/// Returns a name for a file from the name of a server, which may contain any visible characters. A
/// name that is not a file name as it is gets a digest, so that two servers have two files.
fn file_name(server: &str) -> String {
    let mut plain =
        server.replace(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')), "_");
    if plain == server {
        return plain;
    }
    plain.truncate(MAX_FILE_NAME_BYTES);
    format!("{plain}-{:.16x}", Sha256::digest(server.as_bytes()))
}

impl AuthStore {
    /// Creates a store, or returns `None` if tokens stay in memory.
    pub(super) fn new(
        directory: Option<&Path>,
        other: Option<&Arc<dyn TokenStore>>,
        server: &str,
        url: &str,
    ) -> Option<Self> {
        let backend = match (directory.map(Path::to_owned), other) {
            (directory, Some(other)) => StoreBackend::Custom(other.clone(), directory),
            (Some(directory), None) => StoreBackend::Directory(directory),
            (None, None) => return None,
        };
        let hash = format!("{:.16x}", Sha256::digest(url.as_bytes()));
        Some(Self { backend, file_stem: format!("{}-{hash}", file_name(server)) })
    }

    fn path(&self, directory: &Path, extension: &str) -> PathBuf {
        directory.join(format!("{}.{extension}", self.file_stem))
    }

    /// Loads the record, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the record is not readable or is invalid.
    pub(super) fn load(&self) -> io::Result<Option<StoredAuth>> {
        // The parser's error message may contain a token.
        let invalid = |_| io::Error::other("invalid token record");
        let directory = match &self.backend {
            StoreBackend::Directory(directory) => directory,
            StoreBackend::Custom(other, _) => {
                let stored = other.load(&self.file_stem)?;
                return stored
                    .map(|stored| serde_json::from_str(stored.expose()).map_err(invalid))
                    .transpose();
            }
        };
        let path = self.path(directory, "json");
        match fs::metadata(&path) {
            Ok(attributes) if attributes.len() > MAX_FILE_BYTES => {
                return Err(io::Error::other("file too large"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        serde_json::from_slice(&fs::read(path)?).map(Some).map_err(invalid)
    }

    /// Replaces the record atomically.
    ///
    /// # Errors
    ///
    /// Returns an error if the record cannot be written.
    pub(super) fn save(&self, record: &StoredAuth) -> io::Result<()> {
        let directory = match &self.backend {
            StoreBackend::Directory(directory) => directory,
            StoreBackend::Custom(other, _) => {
                let text = serde_json::to_string(record)?;
                return other.save(&self.file_stem, &Secret::new(text));
            }
        };
        create_private_dir(directory)?;
        let number = NEXT_FILE_NUMBER.fetch_add(1, Ordering::Relaxed);
        let new = self.path(directory, &format!("{}-{number}.new", std::process::id()));
        let result = write_record(&new, &self.path(directory, "json"), record);
        if result.is_err() {
            let _ = fs::remove_file(&new);
        }
        result
    }

    /// Locks the token renewal against other processes until the file is dropped. Returns `None`
    /// without a directory for locks.
    ///
    /// # Errors
    ///
    /// Returns an error if the lock fails or another process holds the lock for too long.
    pub(super) async fn lock(&self) -> io::Result<Option<File>> {
        let (StoreBackend::Directory(directory) | StoreBackend::Custom(_, Some(directory))) =
            &self.backend
        else {
            return Ok(None);
        };
        create_private_dir(directory)?;
        let lock = private_file_options().open(self.path(directory, "lock"))?;
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Some(lock)),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    sleep(LOCK_POLL_INTERVAL).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn write_record(new: &Path, path: &Path, record: &StoredAuth) -> io::Result<()> {
    let mut file = private_file_options().truncate(true).open(new)?;
    file.write_all(&serde_json::to_vec_pretty(record)?)?;
    file.sync_all()?;
    fs::rename(new, path)
}

/// Returns the options for a file that only the owner can access.
fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

fn create_private_dir(directory: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
    }
    #[cfg(not(unix))]
    fs::create_dir_all(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: data | the name of a server in a project's file is a path | the token stays in the
    /// directory for tokens | Foreign text stays text
    #[test]
    fn the_name_of_a_server_is_no_path_of_its_token() {
        for name in ["../../etc/x", "a/b", "/abs", "größe", "a b", "C:\\x"] {
            let file = file_name(name);
            assert!(!file.contains(['/', '\\', ':', ' ']) && file.is_ascii(), "{file}");
        }
        assert_ne!(file_name("a/b"), file_name("a b"));
        assert_eq!(file_name("plain.Name-1_x"), "plain.Name-1_x");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lock_that_another_store_holds_is_waited_for_within_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let store = || AuthStore::new(Some(directory.path()), None, "a", "http://a/mcp").unwrap();
        let held = store().lock().await.unwrap().unwrap();
        let started = Instant::now();
        let error = store().lock().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(started.elapsed(), LOCK_TIMEOUT);
        let release = async {
            sleep(LOCK_TIMEOUT / 2).await;
            drop(held);
        };
        let waiting = store();
        let (lock, ()) = tokio::join!(waiting.lock(), release);
        assert!(lock.unwrap().is_some());
    }

    /// Attack: files | a record of tokens is larger than the limit | the record is not read | No
    /// unbounded memory
    #[test]
    fn a_record_at_the_limit_is_read_and_a_larger_one_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let store = AuthStore::new(Some(directory.path()), None, "a", "http://a/mcp").unwrap();
        assert!(store.load().unwrap().is_none());
        let limit = usize::try_from(MAX_FILE_BYTES).unwrap();
        for (size, is_read) in [(limit - 1, true), (limit, true), (limit + 1, false)] {
            let record = format!("{{}}{}", " ".repeat(size - 2));
            fs::write(store.path(directory.path(), "json"), record).unwrap();
            assert_eq!(store.load().is_ok(), is_read, "{size} bytes");
        }
    }
}
