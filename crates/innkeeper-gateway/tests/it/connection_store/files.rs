//! What a store with files has beyond the contract: its connections outlive the process.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use futures_util::FutureExt as _;
use innkeeper_gateway::connections::store::{
    ConnectionStore, Created, FileStore, Lookup, OpenedEvents, StoreOptions,
};
use innkeeper_gateway::connections::{ConnectionLifecycleState, LifecycleMessage};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::stores::{advance, connection, next_messages, open, publish};

/// A directory for connections.
struct Directory(TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("state/connections")
    }

    async fn try_open(&self) -> Result<FileStore, String> {
        let opened = FileStore::open(self.path(), StoreOptions::default()).await;
        opened.map_err(|error| error.to_string())
    }

    async fn open(&self) -> FileStore {
        self.try_open().await.unwrap()
    }

    /// Returns the files of connections.
    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
    }
}

/// Changes the expiry in the file of a connection to a time before now.
fn expire(file: &Path, before: TimeDelta) {
    let mut record: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    record["expires"] = json!(Utc::now() - before);
    fs::write(file, record.to_string()).unwrap();
}

/// Proves: B-b2
#[tokio::test]
async fn connections_and_unread_events_outlive_the_process() {
    let directory = Directory::new();
    let store = directory.open().await;
    let created = connection(Some("ann"));
    let id = created.id;
    assert_eq!(store.create(&created).await.unwrap(), Created::Added);
    advance(&store, id, LifecycleMessage::Initialized).await;
    publish(&store, id, "read").await;
    let mut reader = open(&store, id, None).await;
    assert_eq!(next_messages(&store, &mut reader).await, [(1, "read".into())]);
    publish(&store, id, vec![0, 0xff]).await;
    assert!(store.set_session_data(id, "page", Some(json!(4))).await.unwrap());
    let before = store.find(id).await.unwrap();
    drop(store);

    let store = directory.open().await;
    assert_eq!(store.find(id).await.unwrap(), before);
    assert_eq!(store.create(&created).await.unwrap(), Created::AlreadyExists);
    assert_eq!(store.active().await.unwrap(), [id]);
    let mut reader = open(&store, id, Some(1)).await;
    assert_eq!(next_messages(&store, &mut reader).await, [(2, vec![0, 0xff].into())]);
    publish(&store, id, "next").await;
    assert_eq!(next_messages(&store, &mut reader).await, [(3, "next".into())]);
    advance(&store, id, LifecycleMessage::Shutdown).await;
    advance(&store, id, LifecycleMessage::Exit).await;
    drop(store);
    let Lookup::Found(ended) = directory.open().await.find(id).await.unwrap() else {
        panic!("the connection is lost");
    };
    assert_eq!(ended.state, ConnectionLifecycleState::Terminated);
}

#[tokio::test]
async fn a_connection_that_expired_while_no_gateway_ran_is_known_for_an_hour() {
    let directory = Directory::new();
    let id = {
        let store = directory.open().await;
        let created = connection(None);
        store.create(&created).await.unwrap();
        created.id
    };
    let [file] = &*directory.files() else { panic!("one file") };
    expire(file, TimeDelta::minutes(59));
    let store = directory.open().await;
    assert_eq!(store.touch(id, None).await.unwrap(), Lookup::Expired);
    assert_eq!(store.open_events(id, None).await.unwrap(), OpenedEvents::NotActive);
    drop(store);
    expire(file, TimeDelta::minutes(60));
    assert_eq!(directory.open().await.find(id).await.unwrap(), Lookup::Unknown);
    assert!(directory.files().is_empty());
}

/// Attack: remote | a client opens connections again and again, and lets them expire | their files go
/// with what the store knows of them | No unbounded memory
#[tokio::test(start_paused = true)]
async fn the_file_of_a_forgotten_connection_is_removed() {
    let directory = Directory::new();
    let store = directory.open().await;
    for _ in 0..3 {
        store.create(&connection(None)).await.unwrap();
    }
    tokio::time::advance(StoreOptions::default().expiry).await;
    assert_eq!(directory.files().len(), 3);
    tokio::time::advance(Duration::from_secs(60 * 60)).await;
    store.create(&connection(None)).await.unwrap();
    assert_eq!(directory.files().len(), 1);
}

#[tokio::test]
async fn a_broken_file_is_an_error_that_names_the_file() {
    let directory = Directory::new();
    let store = directory.open().await;
    store.create(&connection(None)).await.unwrap();
    drop(store);
    let [file] = &*directory.files() else { panic!("one file") };
    let shown = file.display().to_string();
    let whole = fs::read_to_string(file).unwrap();
    for broken in [
        "",
        &whole[..whole.len() / 2],
        "{}",
        &whole.replace("\"events\":[]", "\"events\":[[1,\"?\"]]"),
    ] {
        fs::write(file, broken).unwrap();
        let error = directory.try_open().await.unwrap_err();
        assert!(error.contains(&format!("`{shown}`: ")), "{error}");
        assert!(error.ends_with("correct the file, or remove it to end its connection"), "{error}");
        assert_eq!(fs::read_to_string(file).unwrap(), broken, "the file stays as it is");
    }
    // A copy of a connection under another name is none.
    fs::write(file, &whole).unwrap();
    fs::write(file.with_file_name("copy.json"), &whole).unwrap();
    let error = directory.try_open().await.unwrap_err();
    assert!(error.contains("copy.json`: the name of the file"), "{error}");
    fs::remove_file(file.with_file_name("copy.json")).unwrap();
    // What a killed process did not finish is no connection.
    fs::write(file.with_extension("partial"), "{").unwrap();
    directory.open().await;
    assert!(!file.with_extension("partial").exists());
}

#[tokio::test]
async fn one_gateway_uses_a_directory_at_a_time() {
    let directory = Directory::new();
    let store = directory.open().await;
    let error = directory.try_open().await.unwrap_err();
    assert!(error.contains("another gateway uses the directory"), "{error}");
    drop(store);
    directory.open().await;
}

/// Attack: files | another user of the machine reads the directory of connections, of which an id is
/// enough to use one | only the owner can, and a directory for others is refused | Secrets stay with their owner
#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_connections() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let directory = Directory::new();
    let store = directory.open().await;
    let created = connection(None);
    store.create(&created).await.unwrap();
    let [file] = &*directory.files() else { panic!("one file") };
    assert_eq!((mode(&directory.path()), mode(file)), (0o700, 0o600));
    assert!(!file.display().to_string().contains(&created.id.to_string()));
    drop(store);
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o750)).unwrap();
    let error = directory.try_open().await.unwrap_err();
    assert!(error.contains("run `chmod 700`"), "{error}");
}

#[tokio::test]
async fn what_a_failed_disk_did_not_take_is_written_before_the_next_change() {
    let directory = Directory::new();
    let store = directory.open().await;
    let (first, second) = (connection(None), connection(None));
    store.create(&first).await.unwrap();
    let away = directory.path().with_extension("away");
    fs::rename(directory.path(), &away).unwrap();
    for _ in 0..2 {
        let error = store.advance(first.id, LifecycleMessage::Initialized).await.unwrap_err();
        assert!(error.to_string().contains(&*directory.path().display().to_string()), "{error}");
    }
    assert!(store.create(&second).await.is_err());
    fs::rename(&away, directory.path()).unwrap();
    assert_eq!(store.create(&second).await.unwrap(), Created::Added);
    drop(store);
    assert_eq!(directory.open().await.active().await.unwrap(), [first.id]);
}

#[tokio::test]
async fn a_change_whose_caller_has_left_is_in_the_file_too() {
    let directory = Directory::new();
    let store = directory.open().await;
    let created = connection(None);
    store.create(&created).await.unwrap();
    let mut left = store.advance(created.id, LifecycleMessage::Initialized);
    // The first poll starts the change, and nobody waits for its end.
    (&mut left).now_or_never();
    drop(left);
    let other = connection(None);
    store.create(&other).await.unwrap();
    drop(store);
    assert_eq!(directory.open().await.active().await.unwrap(), [created.id]);
}
