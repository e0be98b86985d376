//! Connections in the files of a directory, for one gateway that is restarted.
//!
//! The connections are in memory as in [`MemoryStore`], and each change also replaces the file of its
//! connection before the change is answered. The changes take turns, and a turn is over when the file
//! is written, even if nobody waits for it any more: an older form never replaces a newer one. What a
//! failed disk did not take is written before the next change.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use ring::digest::{SHA256, digest};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::memory::{ConnectionRecord, MemoryStore};
use super::{
    ConnectionStore, Created, EXPIRED_TIME, EventCursor, Lookup, NextEvents, OpenedEvents,
    StoreOptions,
};
use crate::connections::lifecycle::{InvalidTransition, LifecycleMessage};
use crate::connections::state::{ConnectionId, ConnectionState};
use crate::store_error::{StoreError, StoreFuture};

/// The end of the names of the files with connections.
const FILE_EXTENSION: &str = "json";

/// The end of the names of files that are not complete.
const PARTIAL_EXTENSION: &str = "partial";

/// Time for a change with those before it: the disk of another machine can be away for long.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Keeps connections in memory and in the files of a directory that no other process uses. The
/// connections outlive the process.
#[derive(Debug)]
pub struct FileStore {
    memory: Arc<MemoryStore>,
    files: Arc<Mutex<Files>>,
}

#[derive(Debug)]
struct Files {
    directory: PathBuf,
    /// The connections whose files are not as they are in memory.
    unsaved: BTreeSet<ConnectionId>,
    /// Locked while the process uses the directory.
    _lock: File,
}

impl FileStore {
    /// Reads the connections of a directory, which is created if it is missing.
    ///
    /// # Errors
    ///
    /// The directory cannot be used, another process uses it, other users can read it, or a file in
    /// it is not a connection.
    pub async fn open(
        directory: impl Into<PathBuf>,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        let directory = directory.into();
        in_background(move || {
            let lock = lock_directory(&directory).map_err(|error| unusable(&directory, &error))?;
            let memory = Arc::new(MemoryStore::with_forgotten(options));
            let files = Files { directory, unsaved: BTreeSet::new(), _lock: lock };
            files.restore(&memory)?;
            Ok(Self { memory, files: Arc::new(Mutex::new(files)) })
        })
        .await
    }

    /// Changes a connection in memory and then in its file.
    async fn change<T: Send + 'static>(
        &self,
        id: ConnectionId,
        change: impl FnOnce(&MemoryStore) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let memory = self.memory.clone();
        let turn = async {
            let mut files = self.files.clone().lock_owned().await;
            in_background(move || {
                files.save(&memory)?;
                let value = change(&memory);
                files.unsaved.insert(id);
                files.save(&memory)?;
                Ok(value)
            })
            .await
        };
        timeout(CHANGE_TIMEOUT, turn)
            .await
            .map_err(|_| StoreError { reason: "the disk did not respond in time".to_owned() })?
    }
}

impl Files {
    /// Adds the connections of the files to the memory.
    fn restore(&self, memory: &MemoryStore) -> Result<(), StoreError> {
        let entries =
            fs::read_dir(&self.directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        for entry in entries.map_err(|error| unusable(&self.directory, &error))? {
            let path = entry.path();
            let restored = match path.extension().and_then(|extension| extension.to_str()) {
                Some(FILE_EXTENSION) => self.restore_file(memory, &path),
                Some(PARTIAL_EXTENSION) => remove(&path),
                _ => Ok(()),
            };
            restored.map_err(|error| unusable(&path, &error))?;
        }
        Ok(())
    }

    fn restore_file(&self, memory: &MemoryStore, path: &Path) -> io::Result<()> {
        let record: ConnectionRecord = serde_json::from_slice(&fs::read(path)?)
            .map_err(|error| broken(&format!("not a connection: {error}")))?;
        if self.path(record.connection.id) != path {
            return Err(broken("the name of the file is not the name for its connection"));
        }
        if (Utc::now() - record.expires).to_std().is_ok_and(|past| past >= EXPIRED_TIME) {
            return remove(path);
        }
        memory.restore(record).map_err(|error| broken(&format!("an event is not Base64: {error}")))
    }

    /// Writes the unsaved connections, and removes the files of those that the memory forgot.
    fn save(&mut self, memory: &MemoryStore) -> Result<(), StoreError> {
        self.unsaved.extend(memory.take_forgotten());
        while let Some(id) = self.unsaved.first().copied() {
            let path = self.path(id);
            let saved = match memory.record(id) {
                Lookup::Found(record) => replace(&path, &record),
                // The file says until when the connection was usable.
                Lookup::Expired => Ok(()),
                Lookup::Unknown => remove(&path),
            };
            saved.map_err(|error| unusable(&path, &error))?;
            self.unsaved.remove(&id);
        }
        Ok(())
    }

    /// Returns the file of a connection. Its name says nothing about the id, which is a secret.
    fn path(&self, id: ConnectionId) -> PathBuf {
        let hash = digest(&SHA256, id.to_string().as_bytes());
        self.directory.join(hex::encode(&hash.as_ref()[..16])).with_extension(FILE_EXTENSION)
    }
}

fn broken(problem: &str) -> io::Error {
    let hint = "correct the file, or remove it to end its connection";
    io::Error::new(io::ErrorKind::InvalidData, format!("{problem}; {hint}"))
}

/// Returns the locked directory, which only the user can read: whoever reads it can use the
/// connections.
fn lock_directory(directory: &Path) -> io::Result<File> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)?;
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::mode(&fs::metadata(directory)?) & 0o077 != 0 {
        return Err(io::Error::other("other users can read the directory; run `chmod 700` on it"));
    }
    let lock = create_private(&directory.join("lock"))?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::Error::other("another gateway uses the directory"),
        TryLockError::Error(error) => error,
    })?;
    Ok(lock)
}

/// Replaces a file: after a failure or a loss of power it has the old or the new content.
fn replace(path: &Path, record: &ConnectionRecord) -> io::Result<()> {
    let partial = path.with_extension(PARTIAL_EXTENSION);
    let mut file = create_private(&partial)?;
    file.write_all(&serde_json::to_vec(record)?)?;
    file.sync_all()?;
    fs::rename(&partial, path)
}

fn create_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn unusable(path: &Path, error: &io::Error) -> StoreError {
    StoreError { reason: format!("`{}`: {error}", path.display()) }
}

/// Runs work with files on a thread where it delays nobody. The work goes on if the future is dropped.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    spawn_blocking(work).await.map_err(|_| StoreError {
        reason: "the gateway ended the work with its files".to_owned(),
    })?
}

impl ConnectionStore for FileStore {
    fn create<'a>(&'a self, connection: &'a ConnectionState) -> StoreFuture<'a, Created> {
        let connection = connection.clone();
        Box::pin(self.change(connection.id, move |memory| memory.create_now(&connection)))
    }

    fn find(&self, id: ConnectionId) -> StoreFuture<'_, Lookup<ConnectionState>> {
        self.memory.find(id)
    }

    fn touch<'a>(
        &'a self,
        id: ConnectionId,
        user: Option<&'a str>,
    ) -> StoreFuture<'a, Lookup<ConnectionState>> {
        let user = user.map(str::to_owned);
        Box::pin(self.change(id, move |memory| memory.touch_now(id, user.as_deref())))
    }

    fn advance(
        &self,
        id: ConnectionId,
        message: LifecycleMessage,
    ) -> StoreFuture<'_, Lookup<Result<ConnectionState, InvalidTransition>>> {
        Box::pin(self.change(id, move |memory| memory.advance_now(id, message)))
    }

    fn set_session_data<'a>(
        &'a self,
        id: ConnectionId,
        key: &'a str,
        value: Option<Value>,
    ) -> StoreFuture<'a, bool> {
        let key = key.to_owned();
        Box::pin(self.change(id, move |memory| memory.set_now(id, &key, value)))
    }

    fn active(&self) -> StoreFuture<'_, Vec<ConnectionId>> {
        self.memory.active()
    }

    fn publish(&self, id: ConnectionId, message: Bytes) -> StoreFuture<'_, bool> {
        Box::pin(self.change(id, move |memory| memory.publish_now(id, message)))
    }

    fn open_events(
        &self,
        id: ConnectionId,
        after: Option<u64>,
    ) -> StoreFuture<'_, OpenedEvents<EventCursor>> {
        self.memory.open_events(id, after)
    }

    fn next_events<'a>(&'a self, cursor: &'a mut EventCursor) -> StoreFuture<'a, NextEvents> {
        self.memory.next_events(cursor)
    }
}
