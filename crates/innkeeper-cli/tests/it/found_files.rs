//! Tests of the search for a configuration file: parents, repositories, the file of the user.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use innkeeper_testkit::{Fixture, fixture, mcp_json};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::innkeeper;

/// The home directory of a user.
struct Home {
    root: TempDir,
}

impl Home {
    /// Creates a home directory with these directories.
    fn with_directories(directories: &[&str]) -> Self {
        let home = Self { root: tempfile::tempdir().unwrap() };
        for directory in directories {
            std::fs::create_dir_all(home.path(directory)).unwrap();
        }
        home
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, file: &str, server: Fixture) {
        std::fs::create_dir_all(self.path(file).parent().unwrap()).unwrap();
        std::fs::write(self.path(file), mcp_json([server]).to_string()).unwrap();
    }

    fn run(&self, directory: &str, args: &[&str], code: i32) -> Output {
        let output = innkeeper(args, &self.path(directory))
            .env("HOME", self.root.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        output
    }

    fn files(&self, directory: &str) -> Value {
        let output = self.run(directory, &["check", "--json"], 0);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["files"].clone()
    }
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

const CALL: [&str; 3] = ["call", "one.echo", "message=hi"];

#[test]
fn the_nearest_file_is_used_and_named() {
    let home = Home::with_directories(&["repo/.git", "repo/a/b"]);
    home.write(".config/innkeeper/mcp.json", fixture("one"));
    let user_file = home.path(".config/innkeeper/mcp.json");
    assert_eq!(home.files("repo/a/b"), serde_json::json!([user_file]));
    home.write("repo/.mcp.json", fixture("one"));
    assert_eq!(home.files("repo/a/b"), serde_json::json!([home.path("repo/.mcp.json")]));
    home.write("repo/a/.vscode/mcp.json", fixture("one"));
    assert_eq!(home.files("repo/a/b"), serde_json::json!([home.path("repo/a/.vscode/mcp.json")]));
    home.write("repo/a/b/mcp.json", fixture("one"));
    assert_eq!(home.files("repo/a/b"), serde_json::json!(["mcp.json"]));
    let check = home.run("repo/a/b", &["check"], 0);
    assert_eq!(stderr(&check), "`mcp.json`: 1 server, no errors\n");
    let graph = home.run("repo/a/b", &["graph"], 0);
    assert_eq!(stderr(&graph), "configuration: `mcp.json`\n");
    let call = home.run("repo/a", &[&CALL[..], &["--trust", "--log-level", "info"]].concat(), 0);
    let line = "configuration file selected file=.vscode/mcp.json";
    assert!(stderr(&call).contains(line), "{}", stderr(&call));
}

/// Attack: files | a configuration file above the repository or the home directory | the file is
/// not used | Approval first
#[test]
fn a_file_above_the_repository_or_the_home_directory_is_not_found() {
    let home = Home::with_directories(&["outer/repo/.git", "outer/repo/a"]);
    home.write("outer/mcp.json", fixture("one"));
    home.write("mcp.json", fixture("one"));
    home.run("outer/repo/a", &["check"], 2);
    std::fs::create_dir(home.path("outer/plain")).unwrap();
    assert_eq!(home.files("outer/plain"), serde_json::json!([home.path("outer/mcp.json")]));
    std::fs::remove_file(home.path("outer/mcp.json")).unwrap();
    home.run("outer/plain", &["check"], 2);
}

/// Attack: files | the configuration file of a parent directory names a server | the server does
/// not start before the approval | Approval first
#[test]
fn one_approval_of_a_file_covers_all_directories_below_and_servers_run_beside_the_file() {
    let home = Home::with_directories(&["repo/.git", "repo/a/b"]);
    let server = fixture("one").journal(&home.path("journal"));
    home.write("repo/.mcp.json", server);
    let refused = home.run("repo/a/b", &CALL, 2);
    let file = home.path("repo/.mcp.json");
    let opening = format!("error: the servers of `{}` are not trusted\n", file.display());
    assert!(stderr(&refused).starts_with(&opening), "{}", stderr(&refused));
    assert!(!home.path("journal").exists(), "the server was started");
    home.run("repo/a/b", &[&CALL[..], &["--trust"]].concat(), 0);
    for directory in ["repo/a", "repo/a/b", "repo"] {
        home.run(directory, &CALL, 0);
    }
}

#[test]
fn a_relative_path_in_a_file_of_a_parent_starts_at_the_parent() {
    let home = Home::with_directories(&["repo/.git", "repo/a"]);
    let program = innkeeper_testkit::fixture_program();
    std::os::unix::fs::symlink(&program, home.path("repo/server")).unwrap();
    let text = r#"{"servers": {"one": {"command": "./server"}}}"#;
    std::fs::write(home.path("repo/mcp.json"), text).unwrap();
    home.run("repo/a", &[&CALL[..], &["--trust"]].concat(), 0);
}

#[test]
fn the_file_of_the_user_is_trusted() {
    let home = Home::with_directories(&["work"]);
    home.write(".config/innkeeper/mcp.json", fixture("one").env("NODE_OPTIONS", "-r x"));
    let called = home.run("work", &CALL, 0);
    assert_eq!(stderr(&called), "");
    home.write("etc/innkeeper/mcp.json", fixture("two"));
    let graph = innkeeper(&["graph"], &home.path("work"))
        .env("HOME", home.root.path())
        .env("XDG_CONFIG_HOME", home.path("etc"))
        .output()
        .unwrap();
    assert_eq!(graph.stdout, b"wave 1: two\n");
}

/// Attack: files | a clone contains the program of a relative command in the user's own file | the
/// program of the clone does not run | Approval first
#[test]
fn a_server_of_the_users_file_runs_beside_the_file_and_not_in_the_current_directory() {
    let home = Home::with_directories(&["clone", ".config/innkeeper"]);
    let program = innkeeper_testkit::fixture_program();
    let user_file = home.path(".config/innkeeper/mcp.json");
    std::fs::write(&user_file, r#"{"servers": {"one": {"command": "./server"}}}"#).unwrap();
    std::os::unix::fs::symlink(&program, home.path("clone/server")).unwrap();
    home.run("clone", &CALL, 2);
    std::os::unix::fs::symlink(&program, home.path(".config/innkeeper/server")).unwrap();
    home.run("clone", &CALL, 0);
}

#[test]
fn an_error_without_any_file_says_where_innkeeper_searched_and_what_to_do() {
    let output = crate::program::run(&["tools"], Path::new("/"));
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(stderr(&output));
}
