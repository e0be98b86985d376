//! Tests of stored trust decisions.

use innkeeper_config::{Config, Environment};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// A project with a configuration file, and the directory of the decisions.
struct TestProject {
    project: TempDir,
    state: TempDir,
}

impl TestProject {
    fn new() -> Self {
        let test_project =
            Self { project: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() };
        fs::write(test_project.file(), "{}").unwrap();
        test_project
    }

    fn file(&self) -> PathBuf {
        self.project.path().join("mcp.json")
    }

    fn open(&self) -> TrustDecisions {
        TrustDecisions::open(&self.state.path().join("trust"), &self.file()).unwrap()
    }

    /// Returns the names of the undecided servers, as another process reads them.
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
    let test_project = TestProject::new();
    let two = json!({"one": {"command": "a", "env": {"K": "1"}}, "two": {"command": "b"}});
    assert_eq!(test_project.undecided(&two), ["one", "two"]);
    test_project.open().approve(&launches(&two)).unwrap();
    assert!(test_project.undecided(&two).is_empty());
    let mut changed = two.clone();
    changed["one"]["env"]["K"] = json!("2");
    changed["two"]["timeout"] = json!(3);
    assert_eq!(test_project.undecided(&changed), ["one"]);
    test_project.open().approve(&launches(&json!({"one": changed["one"]}))).unwrap();
    assert!(test_project.undecided(&changed).is_empty());
    assert_eq!(test_project.undecided(&two), ["one"], "the last decision counts");
    let renamed = json!({"three": two["two"]});
    assert_eq!(test_project.undecided(&renamed), ["three"]);
}

/// Attack: files | another file or a link has the server of an approved file | the launch is not
/// approved | Approval first
#[test]
fn a_decision_on_one_file_is_none_on_another_nor_on_a_link_to_it() {
    let test_project = TestProject::new();
    let one = json!({"one": {"command": "a"}});
    test_project.open().approve(&launches(&one)).unwrap();
    let other = test_project.project.path().join("other.json");
    fs::write(&other, "{}").unwrap();
    let directory = test_project.state.path().join("trust");
    let decisions_for = |file: &Path| TrustDecisions::open(&directory, file).unwrap();
    assert_eq!(decisions_for(&other).undecided(launches(&one)).len(), 1);
    fs::remove_file(&other).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(test_project.file(), &other).unwrap();
        assert_eq!(decisions_for(&other).undecided(launches(&one)).len(), 1);
        let around = tempfile::tempdir().unwrap();
        let link = around.path().join("link");
        std::os::unix::fs::symlink(test_project.project.path(), &link).unwrap();
        let same = decisions_for(&link.join("mcp.json"));
        assert!(same.undecided(launches(&one)).is_empty(), "the same folder by another name");
    }
    let missing = TrustDecisions::open(&directory, &test_project.project.path().join("none.json"));
    assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
}

/// Attack: files | the file with the approvals is damaged | no launch is approved | Approval first
#[test]
fn an_invalid_decision_file_holds_no_decision_and_is_replaced() {
    let test_project = TestProject::new();
    let one = json!({"one": {"command": "a"}});
    test_project.open().approve(&launches(&one)).unwrap();
    let page =
        fs::read_dir(test_project.state.path().join("trust")).unwrap().next().unwrap().unwrap();
    for text in ["", "{", r#"{"version": 2, "file": "", "servers": {}}"#] {
        fs::write(page.path(), text).unwrap();
        assert_eq!(test_project.undecided(&one), ["one"], "{text}");
    }
    test_project.open().approve(&launches(&one)).unwrap();
    assert!(test_project.undecided(&one).is_empty());
}

/// Attack: files | the file with the approvals is a pipe | the host does not wait, and no launch is
/// approved | No unbounded wait
#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_decision_file_is_not_waited_for_and_is_replaced() {
    let test_project = TestProject::new();
    let one = json!({"one": {"command": "a"}});
    let mut decisions = test_project.open();
    create_private_dir(decisions.path.parent().unwrap()).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &decisions.path, kind, mode, 0).unwrap();
    assert_eq!(test_project.undecided(&one), ["one"]);
    decisions.approve(&launches(&one)).unwrap();
    assert!(test_project.undecided(&one).is_empty());
}

#[test]
fn a_decision_file_holds_the_maximum_of_servers_and_is_reset_with_one_more() {
    let test_project = TestProject::new();
    let mut decisions = test_project.open();
    let one = launches(&json!({"one": {"command": "a"}}));
    decisions.approve(&one).unwrap();
    let some = |count: usize| {
        let launch = |number: usize| {
            let mut launch = one[0].clone();
            launch.name = number.to_string();
            launch
        };
        (0..count).map(launch).collect::<Vec<_>>()
    };
    decisions.approve(&some(MAX_SERVERS - 1)).unwrap();
    assert_eq!(decisions.contents.servers.len(), MAX_SERVERS);
    decisions.approve(&some(1)).unwrap();
    assert_eq!(decisions.contents.servers.len(), 1);
    assert!(fs::metadata(&decisions.path).unwrap().len() < MAX_DECISION_FILE_BYTES);
}

/// Attack: files | other users read or write the stored approvals | only the owner has access to
/// directory and file | Approval first
#[cfg(unix)]
#[test]
fn only_the_owner_can_read_what_was_decided() {
    use std::os::unix::fs::PermissionsExt;

    let test_project = TestProject::new();
    let mut decisions = test_project.open();
    decisions.approve(&launches(&json!({"one": {"command": "a"}}))).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&decisions.path), 0o600);
    assert_eq!(mode(decisions.path.parent().unwrap()), 0o700);
}

#[test]
fn the_settings_of_the_gateway_are_approved_until_one_of_them_changes() {
    let test_project = TestProject::new();
    let gateway = |serve: Value| {
        let file = json!({ "servers": {"one": {"command": "a"}}, "serve": serve });
        let config =
            Config::from_value(&file, "test", Path::new("/"), &Environment::default()).unwrap();
        GatewaySpec::from_config(&config)
    };
    assert_eq!(gateway(json!({})), None, "the defaults open nothing");
    let key = |character: &str| {
        let key = json!({"principal": "ada", "sha256": character.repeat(64)});
        gateway(json!({"listen": "0.0.0.0:7300", "auth": {"apiKeys": [key]}})).unwrap()
    };
    let spec = key("a");
    assert_eq!(spec.settings.keys().collect::<Vec<_>>(), ["listen", "auth"]);
    assert!(!json!(spec.settings).to_string().contains("aaaa"), "{:?}", spec.settings);
    assert!(!test_project.open().is_approved(&spec));
    test_project.open().approve_gateway(&spec).unwrap();
    test_project.open().approve(&launches(&json!({"one": {"command": "a"}}))).unwrap();
    assert!(test_project.open().is_approved(&spec));
    for other in [key("b"), gateway(json!({"allowedOrigins": ["https://a.example"]})).unwrap()] {
        assert!(!test_project.open().is_approved(&other));
    }
}
