//! Tests of watched directories and of detected changes.

use std::os::unix::fs::symlink;

use super::*;

/// Maximum time until a change is detected; tests without a change do not wait.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(10);
const NO_CHANGE_WAIT: Duration = Duration::from_millis(800);

/// Creates a directory whose path has no links.
fn test_dir() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    (directory, path)
}

fn watch(file: &Path) -> ConfigWatcher {
    let files = vec![file.to_owned()];
    let hash = content_hash(&files);
    ConfigWatcher::watch_files(files, hash).unwrap()
}

#[test]
fn every_directory_with_a_link_on_the_way_is_among_those_to_watch() {
    let (_scene, at) = test_dir();
    for directory in ["v1", "conf", "store"] {
        std::fs::create_dir(at.join(directory)).unwrap();
    }
    std::fs::write(at.join("store/real.json"), "").unwrap();
    symlink("../store/real.json", at.join("v1/mcp.json")).unwrap();
    symlink("../v1", at.join("conf/..data")).unwrap();
    symlink("..data/mcp.json", at.join("conf/mcp.json")).unwrap();
    let directories = directories_to_watch(&at.join("conf/mcp.json"));
    let directories: BTreeSet<_> =
        directories.iter().map(|directory| directory.canonicalize().unwrap()).collect();
    assert_eq!(directories, ["conf", "store", "v1"].map(|name| at.join(name)).into());
}

#[test]
fn a_ring_of_links_ends_and_what_is_not_there_is_waited_for_above() {
    let (_scene, at) = test_dir();
    symlink("b", at.join("a")).unwrap();
    symlink("a", at.join("b")).unwrap();
    assert_eq!(directories_to_watch(&at.join("a")), [at.clone()].into());
    assert_eq!(directories_to_watch(&at.join("none/deep/mcp.json")), [at].into());
}

#[test]
fn the_content_counts_and_so_does_that_there_is_none() {
    let (_scene, at) = test_dir();
    let (file, env) = (at.join("mcp.json"), at.join(".env"));
    let content = || content_hash(std::slice::from_ref(&file)).unwrap();
    let mut contents = vec![content()];
    let mut changes = |expected: bool| {
        let now = content();
        assert_eq!(*contents.last().unwrap() != now, expected);
        contents.push(now);
    };
    std::fs::write(&file, "").unwrap();
    changes(true);
    std::fs::write(&file, "").unwrap();
    changes(false);
    std::fs::write(&env, "A=1").unwrap();
    changes(true);
    std::fs::write(&file, "A=1").unwrap();
    changes(true);
    std::fs::remove_file(&env).unwrap();
    changes(true);
}

#[test]
fn what_is_no_file_is_not_read() {
    let (_scene, at) = test_dir();
    assert_eq!(content_hash(&[at]), None);
}

#[tokio::test]
async fn a_file_that_is_touched_has_not_changed_and_one_that_is_replaced_has() {
    let (_scene, at) = test_dir();
    let file = at.join("mcp.json");
    std::fs::write(&file, "one").unwrap();
    let mut watch = watch(&file);
    std::fs::write(&file, "one").unwrap();
    assert!(timeout(NO_CHANGE_WAIT, watch.changed()).await.is_err(), "it was only touched");
    std::fs::write(at.join("next"), "two").unwrap();
    std::fs::rename(at.join("next"), &file).unwrap();
    timeout(CHANGE_TIMEOUT, watch.changed()).await.unwrap();
    assert!(timeout(NO_CHANGE_WAIT, watch.changed()).await.is_err(), "once is enough");
    std::fs::write(&file, "three").unwrap();
    timeout(CHANGE_TIMEOUT, watch.changed()).await.unwrap();
}

#[tokio::test]
async fn a_directory_of_a_file_may_be_taken_away_and_made_again() {
    let (_scene, at) = test_dir();
    let (directory, file) = (at.join("conf"), at.join("conf/mcp.json"));
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(&file, "one").unwrap();
    let mut watch = watch(&file);
    std::fs::remove_dir_all(&directory).unwrap();
    timeout(CHANGE_TIMEOUT, watch.changed()).await.unwrap();
    for content in ["two", "three"] {
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(&file, content).unwrap();
        timeout(CHANGE_TIMEOUT, watch.changed()).await.unwrap();
    }
}

#[tokio::test]
async fn what_was_written_between_reading_and_watching_is_a_change() {
    let (_scene, at) = test_dir();
    let file = at.join("mcp.json");
    let read = || {
        std::fs::write(&file, r#"{"servers": {}}"#).unwrap();
        Config::load(std::slice::from_ref(&file), &crate::Environment::default()).unwrap()
    };
    let mut same = ConfigWatcher::new(&read()).unwrap();
    assert!(timeout(NO_CHANGE_WAIT, same.changed()).await.is_err(), "nothing was written");
    drop(same);
    let config = read();
    std::fs::write(&file, r#"{"servers": {"new": {"command": "new"}}}"#).unwrap();
    let mut watch = ConfigWatcher::new(&config).unwrap();
    timeout(CHANGE_TIMEOUT, watch.changed()).await.unwrap();
}
