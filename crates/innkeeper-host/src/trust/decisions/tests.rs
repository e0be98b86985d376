//! What counts as decided, and what does not.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::config::{Config, Environment};

/// A project with a configuration file, and the directory where decisions are kept.
struct Scene {
    project: TempDir,
    state: TempDir,
}

impl Scene {
    fn new() -> Self {
        let scene =
            Self { project: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() };
        fs::write(scene.file(), "{}").unwrap();
        scene
    }

    fn file(&self) -> PathBuf {
        self.project.path().join("mcp.json")
    }

    fn open(&self) -> Decisions {
        Decisions::open(&self.state.path().join("trust"), &self.file()).unwrap()
    }

    /// The names of those nobody has decided on, as another process finds them.
    fn undecided(&self, servers: &Value) -> Vec<String> {
        let undecided = self.open().undecided(launches(servers));
        undecided.into_iter().map(|launch| launch.name).collect()
    }
}

fn launches(servers: &Value) -> Vec<LaunchSpec> {
    let file = json!({ "servers": servers });
    let config =
        Config::from_value(&file, "mcp.json", Path::new("/"), &Environment::default()).unwrap();
    LaunchSpec::all(&config)
}

#[test]
fn a_decision_is_kept_for_the_launch_it_was_made_on_and_for_no_other() {
    let scene = Scene::new();
    let two = json!({"one": {"command": "a", "env": {"K": "1"}}, "two": {"command": "b"}});
    assert_eq!(scene.undecided(&two), ["one", "two"]);
    scene.open().decide(&launches(&two)).unwrap();
    assert!(scene.undecided(&two).is_empty());
    let mut changed = two.clone();
    changed["one"]["env"]["K"] = json!("2");
    changed["two"]["timeout"] = json!(3);
    assert_eq!(scene.undecided(&changed), ["one"]);
    scene.open().decide(&launches(&json!({"one": changed["one"]}))).unwrap();
    assert!(scene.undecided(&changed).is_empty());
    assert_eq!(scene.undecided(&two), ["one"], "the last decision counts");
    let renamed = json!({"three": two["two"]});
    assert_eq!(scene.undecided(&renamed), ["three"]);
}

#[test]
fn a_decision_on_one_file_is_none_on_another_nor_on_a_link_to_it() {
    let scene = Scene::new();
    let one = json!({"one": {"command": "a"}});
    scene.open().decide(&launches(&one)).unwrap();
    let other = scene.project.path().join("other.json");
    fs::write(&other, "{}").unwrap();
    let directory = scene.state.path().join("trust");
    let about = |file: &Path| Decisions::open(&directory, file).unwrap();
    assert_eq!(about(&other).undecided(launches(&one)).len(), 1);
    fs::remove_file(&other).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(scene.file(), &other).unwrap();
        assert_eq!(about(&other).undecided(launches(&one)).len(), 1);
        let around = tempfile::tempdir().unwrap();
        let folder = around.path().join("link");
        std::os::unix::fs::symlink(scene.project.path(), &folder).unwrap();
        let same = about(&folder.join("mcp.json"));
        assert!(same.undecided(launches(&one)).is_empty(), "the same folder by another name");
    }
    let missing = Decisions::open(&directory, &scene.project.path().join("none.json"));
    assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_page_that_cannot_be_understood_holds_no_decision_and_is_replaced() {
    let scene = Scene::new();
    let one = json!({"one": {"command": "a"}});
    scene.open().decide(&launches(&one)).unwrap();
    let page = fs::read_dir(scene.state.path().join("trust")).unwrap().next().unwrap().unwrap();
    for text in ["", "{", r#"{"version": 2, "file": "", "servers": {}}"#] {
        fs::write(page.path(), text).unwrap();
        assert_eq!(scene.undecided(&one), ["one"], "{text}");
    }
    scene.open().decide(&launches(&one)).unwrap();
    assert!(scene.undecided(&one).is_empty());
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_page_is_not_waited_for_and_is_replaced() {
    let scene = Scene::new();
    let one = json!({"one": {"command": "a"}});
    let mut decisions = scene.open();
    make_private(decisions.place.parent().unwrap()).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &decisions.place, kind, mode, 0).unwrap();
    assert_eq!(scene.undecided(&one), ["one"]);
    decisions.decide(&launches(&one)).unwrap();
    assert!(scene.undecided(&one).is_empty());
}

#[test]
fn a_page_holds_so_many_servers_and_begins_anew_with_one_more() {
    let scene = Scene::new();
    let mut decisions = scene.open();
    let one = launches(&json!({"one": {"command": "a"}}));
    decisions.decide(&one).unwrap();
    let some = |count: usize| {
        let launch = |number: usize| {
            let mut launch = one[0].clone();
            launch.name = number.to_string();
            launch
        };
        (0..count).map(launch).collect::<Vec<_>>()
    };
    decisions.decide(&some(MOST_SERVERS - 1)).unwrap();
    assert_eq!(decisions.page.servers.len(), MOST_SERVERS);
    decisions.decide(&some(1)).unwrap();
    assert_eq!(decisions.page.servers.len(), 1);
    assert!(fs::metadata(&decisions.place).unwrap().len() < MAX_PAGE_BYTES);
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_what_was_decided() {
    use std::os::unix::fs::PermissionsExt;

    let scene = Scene::new();
    let mut decisions = scene.open();
    decisions.decide(&launches(&json!({"one": {"command": "a"}}))).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&decisions.place), 0o600);
    assert_eq!(mode(decisions.place.parent().unwrap()), 0o700);
}
