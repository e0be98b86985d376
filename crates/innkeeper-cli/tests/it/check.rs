//! The command `check`.

#[cfg(target_os = "linux")]
use serde_json::json;

use crate::program::{innkeeper, run};

/// Proves: FR1.7, TR8.2
#[test]
fn check_prints_every_diagnostic_with_its_position_and_starts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let text = "{\n  \"servers\": {\n    \"fs\": {\n      \"command\": \"npx\",\n      \
                \"args\": [\"-y\", 7]\n    },\n    \"db\": { \"comand\": \"x\" }\n  }\n}\n";
    std::fs::write(dir.path().join("mcp.json"), text).unwrap();
    let output = run(&["check"], dir.path());
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout), @"
    mcp.json:5:22 servers.fs.args[1]: expected string
    mcp.json:7:11 servers.db: has neither `command` nor `url`
    mcp.json:7:13 servers.db.comand: unknown key (warning)
        hint: did you mean `command`?
    ");
}

/// Proves: FR1.1, FR1.2
#[test]
fn a_file_of_vs_code_is_correct_and_no_value_of_a_variable_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{
      // .vscode/mcp.json
      "inputs": [{"type": "promptString", "id": "key", "description": "A key", "password": true}],
      "servers": {
        "local": {
          "type": "stdio", "command": "npx", "args": ["-y", "some-server@1.0.0", "--key=${env:KEY}"],
          "cwd": "${workspaceFolder}", "env": {"TOKEN": "${KEY}"}
        },
        "remote": {
          "type": "http", "url": "https://api.example.com/mcp?key=${KEY}",
          "headers": {"Authorization": "Bearer ${KEY}"},
        },
        "loose": {"command": "npx", "args": ["-y", "server-of-${KEY}"]},
      },
    }"#;
    std::fs::create_dir(dir.path().join(".vscode")).unwrap();
    std::fs::write(dir.path().join(".vscode/mcp.json"), text).unwrap();
    for format in [&[][..], &["--json"], &["--log-level", "debug"]] {
        let output = innkeeper(&[&["check"], format].concat(), dir.path())
            .env("KEY", "canary-5f1e")
            .output()
            .unwrap();
        let all = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert_eq!(output.status.code(), Some(0), "{all:?}");
        // A warning quotes the package as it is written.
        let all = all.concat();
        assert!(all.contains("server-of-${KEY}") && !all.contains("canary-5f1e"), "{all}");
    }
    let output = run(&["check"], dir.path());
    let problems = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2));
    for key in ["local.args[2]", "local.env.TOKEN", "remote.url", "remote.headers.Authorization"] {
        assert!(problems.contains(&format!("servers.{key}: ")), "{key}: {problems}");
    }
}

/// Attack: sandbox | a server whose workspace holds the configuration and the lock may write the
/// workspace | the server does not start, and `check` names the file | Confinement holds
#[test]
#[cfg(target_os = "linux")]
fn a_server_that_may_write_its_configuration_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = innkeeper_testkit::fixture_program();
    let server = |sandbox| json!({ "command": fixture, "sandbox": sandbox });
    let servers = json!({ "open": server(json!({ "write": ["."] })), "closed": server(json!({})) });
    let text = json!({ "servers": servers }).to_string();
    std::fs::write(dir.path().join("mcp.json"), text).unwrap();

    let output = run(&["check"], dir.path());
    let problems = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2), "{problems}");
    let reason = "servers.open.sandbox.write: `.` lets the server write `mcp.json` and `mcp.lock`";
    assert!(problems.contains(reason), "{problems}");
    assert!(!problems.contains("servers.closed.sandbox"), "{problems}");

    let output = run(&["tools"], dir.path());
    let [tools, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(errors.contains(reason), "{errors}");
    assert!(tools.contains("closed.echo") && !tools.contains("open.echo"), "{tools}");
}

/// Attack: sandbox | a server with the home directory in `write` creates the configuration of the user,
/// changes approvals, or writes the `envFile` of another server | the server does not start, and `check`
/// names the file | Confinement holds
#[test]
#[cfg(target_os = "linux")]
fn a_server_that_may_write_what_later_commands_trust_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["home/data", "project", "run"] {
        std::fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    std::fs::write(dir.path().join("run/x.env"), "A=1\n").unwrap();
    let fixture = innkeeper_testkit::fixture_program();
    let server = |write: &str| json!({ "command": fixture, "sandbox": { "write": [write] } });
    let servers = json!({
        "home": server("../home"), "run": server("../run"), "data": server("../home/data"),
        "free": { "command": fixture, "envFile": "../run/x.env" },
    });
    let file = dir.path().join("project/mcp.json");
    std::fs::write(&file, json!({ "servers": servers }).to_string()).unwrap();
    let run = |command| {
        let mut program = innkeeper(&[command], &dir.path().join("project"));
        let output = program.env("HOME", dir.path().join("home")).output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let home = format!(
        "servers.home.sandbox.write: `../home` lets the server write \
         `{}/home/.config/innkeeper/mcp.json`",
        dir.path().display()
    );
    let run_file = "servers.run.sandbox.write: `../run` lets the server write `../run/x.env`, the \
                    `envFile` of server `free`";
    let [problems, _] = run("check");
    assert!(problems.contains(&home) && problems.contains(run_file), "{problems}");
    assert!(!problems.contains("servers.data.sandbox"), "{problems}");
    let [tools, errors] = run("tools");
    assert!(errors.contains(&home) && errors.contains(run_file), "{errors}");
    for (name, starts) in [("home", false), ("run", false), ("data", true), ("free", true)] {
        assert_eq!(tools.contains(&format!("{name}.echo")), starts, "{name}: {tools}");
    }
}
