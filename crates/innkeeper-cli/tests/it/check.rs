//! The command `check`.

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
