//! What is watched, what counts as a change, and what does not.

use std::os::unix::fs::symlink;

use super::*;

/// How long a change may take to be seen, and no change is waited for.
const SOON: Duration = Duration::from_secs(10);
const A_WHILE: Duration = Duration::from_millis(800);

/// A directory whose path has no links in it.
fn scene() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    (directory, path)
}

fn watch(file: &Path) -> Watch {
    let files = vec![file.to_owned()];
    let seen = content(&files);
    Watch::begin(files, seen).unwrap()
}

#[test]
fn every_directory_with_a_link_on_the_way_is_among_those_to_watch() {
    let (_scene, at) = scene();
    for directory in ["v1", "conf", "store"] {
        std::fs::create_dir(at.join(directory)).unwrap();
    }
    std::fs::write(at.join("store/real.json"), "").unwrap();
    symlink("../store/real.json", at.join("v1/mcp.json")).unwrap();
    symlink("../v1", at.join("conf/..data")).unwrap();
    symlink("..data/mcp.json", at.join("conf/mcp.json")).unwrap();
    let found = directories(&at.join("conf/mcp.json"));
    let found: BTreeSet<_> =
        found.iter().map(|directory| directory.canonicalize().unwrap()).collect();
    assert_eq!(found, ["conf", "store", "v1"].map(|name| at.join(name)).into());
}

#[test]
fn a_ring_of_links_ends_and_what_is_not_there_is_waited_for_above() {
    let (_scene, at) = scene();
    symlink("b", at.join("a")).unwrap();
    symlink("a", at.join("b")).unwrap();
    assert_eq!(directories(&at.join("a")), [at.clone()].into());
    assert_eq!(directories(&at.join("none/deep/mcp.json")), [at].into());
}

#[test]
fn the_content_counts_and_so_does_that_there_is_none() {
    let (_scene, at) = scene();
    let (file, env) = (at.join("mcp.json"), at.join(".env"));
    let content = || content(std::slice::from_ref(&file)).unwrap();
    let mut seen = vec![content()];
    let mut changes = |expected: bool| {
        let now = content();
        assert_eq!(*seen.last().unwrap() != now, expected);
        seen.push(now);
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
    let (_scene, at) = scene();
    assert_eq!(content(&[at]), None);
}

#[tokio::test]
async fn a_file_that_is_touched_has_not_changed_and_one_that_is_replaced_has() {
    let (_scene, at) = scene();
    let file = at.join("mcp.json");
    std::fs::write(&file, "one").unwrap();
    let mut watch = watch(&file);
    std::fs::write(&file, "one").unwrap();
    assert!(timeout(A_WHILE, watch.changed()).await.is_err(), "it was only touched");
    std::fs::write(at.join("next"), "two").unwrap();
    std::fs::rename(at.join("next"), &file).unwrap();
    timeout(SOON, watch.changed()).await.unwrap();
    assert!(timeout(A_WHILE, watch.changed()).await.is_err(), "once is enough");
    std::fs::write(&file, "three").unwrap();
    timeout(SOON, watch.changed()).await.unwrap();
}

#[tokio::test]
async fn a_directory_of_a_file_may_be_taken_away_and_made_again() {
    let (_scene, at) = scene();
    let (directory, file) = (at.join("conf"), at.join("conf/mcp.json"));
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(&file, "one").unwrap();
    let mut watch = watch(&file);
    std::fs::remove_dir_all(&directory).unwrap();
    timeout(SOON, watch.changed()).await.unwrap();
    for content in ["two", "three"] {
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(&file, content).unwrap();
        timeout(SOON, watch.changed()).await.unwrap();
    }
}

#[tokio::test]
async fn what_was_written_between_reading_and_watching_is_a_change() {
    let (_scene, at) = scene();
    let file = at.join("mcp.json");
    let read = || {
        std::fs::write(&file, r#"{"servers": {}}"#).unwrap();
        Config::load(std::slice::from_ref(&file), &Environment::default()).unwrap()
    };
    let mut same = Watch::of(&read()).unwrap();
    assert!(timeout(A_WHILE, same.changed()).await.is_err(), "nothing was written");
    drop(same);
    let config = read();
    std::fs::write(&file, r#"{"servers": {"new": {"command": "new"}}}"#).unwrap();
    let mut watch = Watch::of(&config).unwrap();
    timeout(SOON, watch.changed()).await.unwrap();
}
