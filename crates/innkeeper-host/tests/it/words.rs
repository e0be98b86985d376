//! What errors say, and the paths of the machine that they never say.

use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use innkeeper_host::{Config, ConfigError, Environment, HostBuilder, Supervisor};
use innkeeper_testkit::{Journal, fx_program};
use serde_json::{Value, json};

use crate::setup::{PATIENCE, Scene, builder, chain};

/// Part of every path in these tests: whatever shows it shows a path.
const CANARY: &str = "canary-in-every-path";

/// Longer than Linux lets an argument be (128 KiB).
const TOO_LONG: usize = 200 << 10;

/// A home, a working directory and a search path that all have the canary in their names.
struct House {
    root: PathBuf,
    environment: Environment,
}

impl House {
    fn build(scene: &Scene) -> Self {
        let root = scene.path(CANARY);
        for room in ["home", "work", "bin", "bin/rooms"] {
            fs::create_dir_all(root.join(room)).unwrap();
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
            ("FX", fx_program().display().to_string()),
            ("LONG", "x".repeat(TOO_LONG)),
        ]);
        let environment = environment.with_current_dir(root.join("work"));
        Self { root, environment }
    }

    /// A host of one server with this entry.
    fn host(&self, entry: &Value) -> Result<HostBuilder, ConfigError> {
        let file = json!({"servers": {"one": entry}});
        Config::from_value(&file, "mcp.json", &self.root, &self.environment).map(builder)
    }
}

/// Fails if the error or one of its causes shows a path, or does not say what is expected.
fn assert_words(error: &dyn Error, expected: &str) {
    let messages = chain(error);
    assert!(messages[0].contains(expected), "{messages:?} without `{expected}`");
    for message in &messages {
        assert!(!message.contains(CANARY), "a path is shown: {message}");
        let program = fx_program();
        let directory = program.parent().and_then(Path::to_str).unwrap();
        assert!(!message.contains(directory), "a path is shown: {message}");
    }
}

/// Proves: TR10.3
#[tokio::test]
async fn no_error_of_a_start_shows_where_things_are_on_this_machine() {
    let scene = Scene::new();
    let house = House::build(&scene);
    let fx = |args: &[&str]| json!({"command": "${FX}", "args": args, "initTimeout": 0.5});
    let cases = [
        (json!({"command": "missing"}), "`missing` was not found in the PATH"),
        (json!({"command": "./missing"}), "`./missing` was not found"),
        (json!({"command": "${ROOT}/missing"}), "`${ROOT}/missing` was not found"),
        (json!({"command": "~/missing"}), "`~/missing` was not found"),
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
            "longer than 131072 bytes with its variables put in",
        ),
        (json!({"command": "${FX}", "env": {"A-B": "${ROOT}"}}), "servers.one.env"),
        (json!({"command": "${FX}", "args": ["${HOME}", "${NOT_SET}"]}), "servers.one.args[1]"),
        (fx(&["--exit-at-start", "3"]), "exit code 3"),
        (fx(&["--hang-init"]), "not ready within 0.5 s"),
        (fx(&["--wrong-init"]), "broke the protocol"),
        (fx(&["--init-error", "-32603"]), "refused `initialize`"),
        (fx(&["--revision", "1999-01-01"]), "it speaks revision `1999-01-01`"),
        (fx(&["--wrong-list"]), "broke the protocol"),
    ];
    for (entry, expected) in cases {
        match house.host(&entry) {
            Ok(host) => assert_words(&host.start().await.unwrap_err(), expected),
            Err(error) => assert_words(&error, expected),
        }
    }
    let supervisor = Supervisor::executable(house.root.join("no-shim"));
    let host = house.host(&fx(&[])).unwrap().supervisor(supervisor);
    assert_words(&host.start().await.unwrap_err(), "supervisor of command `${FX}`");
}

/// Proves: TR10.3
#[tokio::test]
async fn no_error_of_a_running_host_shows_where_things_are_on_this_machine() {
    let scene = Scene::new();
    let house = House::build(&scene);
    let journal = house.root.join("journal");
    let entry = json!({
        "command": "${FX}",
        "args": ["--crash-after", "2", "--name", "one", "--journal", "${ROOT}/journal"],
        "cwd": "${ROOT}",
    });
    let host = house.host(&entry).unwrap().ledger(house.root.join("bin/plain/ledger"));
    let host = host.start().await.unwrap();
    let echo = json!({"message": "hi"});
    assert_words(&host.call_tool("two.echo", echo.clone()).await.unwrap_err(), "no known server");
    assert_words(&host.call_tool("one.ecco", echo.clone()).await.unwrap_err(), "no tool `ecco`");
    assert_words(&host.call_tool("one.echo", json!({})).await.unwrap_err(), "do not fit");
    host.call_tool("one.echo", echo.clone()).await.unwrap();
    assert_words(&host.call_tool("one.echo", echo.clone()).await.unwrap_err(), "exit code 3");
    assert_words(&host.call_tool("one.echo", echo.clone()).await.unwrap_err(), "unavailable");
    Journal::until(&journal, PATIENCE, |journal| !journal.events("exit").is_empty()).await;
    let reason = host.status()["one"].reason.clone().unwrap();
    assert!(!reason.contains(CANARY), "{reason}");
    host.shutdown().await;
    assert_words(&host.call_tool("one.echo", echo).await.unwrap_err(), "shutting down");
}
