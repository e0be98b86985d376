//! Error messages name the problem and contain no path of the machine.

use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use innkeeper_host::{Config, ConfigError, Environment, HostBuilder, Supervisor};
use innkeeper_testkit::{Journal, fixture_program};
use serde_json::{Value, json};

use crate::setup::{TEST_TIMEOUT, TestEnv, builder, error_chain};

/// Part of every path in these tests, so that a test finds any path in a message.
const CANARY: &str = "canary-in-every-path";

/// More than the maximum length of an argument on Linux (128 KiB).
const TOO_LONG: usize = 200 << 10;

/// A home directory, a working directory and a search path whose names contain the canary.
struct CanaryPaths {
    root: PathBuf,
    environment: Environment,
}

impl CanaryPaths {
    fn create(test_env: &TestEnv) -> Self {
        let root = test_env.path(CANARY);
        for dir in ["home", "work", "bin", "bin/rooms"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        let program = |name: &str, text: &str, mode: u32| {
            let path = root.join("bin").join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        program("plain", "#!/bin/sh\n", 0o644);
        program("orphan", &format!("#!/nowhere/{CANARY}/sh\n"), 0o755);
        program("garbage", "\u{7f}not a program", 0o755);
        let path = |below: &str| root.join(below).display().to_string();
        let environment = Environment::from_pairs([
            ("HOME", path("home")),
            ("PATH", path("bin")),
            ("ROOT", path("")),
            ("FX", fixture_program().display().to_string()),
            ("LONG", "x".repeat(TOO_LONG)),
        ]);
        let environment = environment.with_current_dir(root.join("work"));
        Self { root, environment }
    }

    /// Builds a host with one server from a configuration entry.
    fn host_builder(&self, entry: &Value) -> Result<HostBuilder, ConfigError> {
        let file = json!({"servers": {"one": entry}});
        Config::from_value(&file, "mcp.json", &self.root, &self.environment).map(builder)
    }
}

/// Panics if the error or one of its causes contains a path or lacks the expected text.
fn assert_message(error: &dyn Error, expected: &str) {
    let messages = error_chain(error);
    assert!(messages[0].contains(expected), "{messages:?} without `{expected}`");
    for message in &messages {
        assert!(!message.contains(CANARY), "a path is shown: {message}");
        let program = fixture_program();
        let directory = program.parent().and_then(Path::to_str).unwrap();
        assert!(!message.contains(directory), "a path is shown: {message}");
    }
}

/// Proves: TR10.3
#[tokio::test]
async fn no_error_of_a_start_shows_where_things_are_on_this_machine() {
    let test_env = TestEnv::new();
    let paths = CanaryPaths::create(&test_env);
    let fixture = |args: &[&str]| json!({"command": "${FX}", "args": args, "initTimeout": 0.5});
    let cases = [
        (json!({"command": "missing"}), "`missing` was not found in the PATH"),
        (json!({"command": "./missing"}), "`./missing` was not found"),
        (json!({"command": "${ROOT}/missing"}), "`${ROOT}/missing` was not found"),
        (json!({"command": "~/missing"}), "`~` stays literal"),
        (json!({"command": "plain"}), "`plain` is not executable"),
        (json!({"command": "${ROOT}/bin/rooms"}), "`${ROOT}/bin/rooms` is a directory"),
        (json!({"command": "orphan"}), "`orphan` is a script whose interpreter was not found"),
        (json!({"command": "garbage"}), "`garbage` is not a program"),
        (
            json!({"command": "${FX}", "cwd": "${ROOT}/gone"}),
            "working directory of command `${FX}`",
        ),
        (
            json!({"command": "${FX}", "args": ["x".repeat(200_000)]}),
            "environment of command `${FX}` are too",
        ),
        (
            json!({"command": "${FX}", "args": ["${LONG}"]}),
            "longer than 131072 bytes after expansion",
        ),
        (json!({"command": "${FX}", "env": {"A-B": "${ROOT}"}}), "servers.one.env"),
        (json!({"command": "${FX}", "envFile": "${ROOT}/gone"}), "servers.one.envFile"),
        (json!({"command": "${FX}", "envFile": "../gone"}), "servers.one.envFile"),
        (json!({"url": "unix://${ROOT}/gone"}), "server `one`"),
        (json!({"url": "http://127.0.0.1:1/", "headersHelper": ["gone"]}), "`gone`"),
        (json!({"command": "${FX}", "args": ["${HOME}", "${NOT_SET}"]}), "servers.one.args[1]"),
        (fixture(&["--exit-at-start", "3"]), "exit code 3"),
        (fixture(&["--hang-init"]), "not ready within 0.5 s"),
        (fixture(&["--wrong-init"]), "invalid response to `initialize`"),
        (fixture(&["--init-error", "-32603"]), "error response to `initialize`"),
        (fixture(&["--revision", "1999-01-01"]), "revision `1999-01-01`"),
        (fixture(&["--wrong-list"]), "could not list its tools: invalid response to `tools/list`"),
    ];
    for (entry, expected) in cases {
        match paths.host_builder(&entry) {
            Ok(host) => assert_message(&host.start().await.unwrap_err(), expected),
            Err(error) => assert_message(&error, expected),
        }
    }
    let supervisor = Supervisor::executable(paths.root.join("no-shim"));
    let host = paths.host_builder(&fixture(&[])).unwrap().supervisor(supervisor);
    assert_message(&host.start().await.unwrap_err(), "supervisor of command `${FX}`");
}

/// Proves: TR10.3
#[tokio::test]
async fn no_error_of_a_running_host_shows_where_things_are_on_this_machine() {
    let test_env = TestEnv::new();
    let paths = CanaryPaths::create(&test_env);
    let journal = paths.root.join("journal");
    let entry = json!({
        "command": "${FX}",
        "args": ["--crash-after", "2", "--name", "one", "--journal", "${ROOT}/journal"],
        "cwd": "${ROOT}",
    });
    let host = paths.host_builder(&entry).unwrap().ledger(paths.root.join("bin/plain/ledger"));
    let host = host.start().await.unwrap();
    let echo = json!({"message": "hi"});
    assert_message(&host.call_tool("two.echo", echo.clone()).await.unwrap_err(), "no server for");
    assert_message(&host.call_tool("one.ecco", echo.clone()).await.unwrap_err(), "no tool `ecco`");
    assert_message(&host.call_tool("one.echo", json!({})).await.unwrap_err(), "invalid arguments");
    host.call_tool("one.echo", echo.clone()).await.unwrap();
    assert_message(&host.call_tool("one.echo", echo.clone()).await.unwrap_err(), "exit code 3");
    assert_message(&host.call_tool("one.echo", echo.clone()).await.unwrap_err(), "unavailable");
    Journal::wait_for(&journal, TEST_TIMEOUT, |journal| !journal.events("exit").is_empty()).await;
    let reason = host.status()["one"].reason.clone().unwrap();
    assert!(!reason.contains(CANARY), "{reason}");
    host.shutdown().await;
    assert_message(
        &host.call_tool("one.echo", echo).await.unwrap_err(),
        "the host stopped the server",
    );
}

/// Proves: TR10.3
#[tokio::test]
async fn no_error_of_a_reload_or_a_restart_shows_where_things_are_on_this_machine() {
    let test_env = TestEnv::new();
    let paths = CanaryPaths::create(&test_env);
    let file = paths.root.join("mcp.json");
    let write = |entry: Value| {
        fs::write(&file, json!({"servers": {"one": entry}}).to_string()).unwrap();
    };
    write(json!({"command": "${FX}"}));
    let config = Config::load(std::slice::from_ref(&file), &paths.environment).unwrap();
    let host = builder(config).start().await.unwrap();
    assert_message(&host.restart_server("nobody").await.unwrap_err(), "`nobody`");
    for (entry, expected) in [
        (json!({"command": "${FX}", "cwd": "${ROOT}/gone"}), "working directory"),
        (json!({"command": "${FX}", "args": ["--exit-at-start", "3"]}), "exit code 3"),
    ] {
        write(entry);
        host.reload().await.unwrap();
        assert_message(&host.restart_server("one").await.unwrap_err(), expected);
    }
    host.shutdown().await;
}
