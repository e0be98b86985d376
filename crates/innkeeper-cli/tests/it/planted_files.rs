//! Commands in a directory with planted modules, programs and settings: none of them runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use innkeeper_testkit::{fixture, mcp_json};
use serde_json::json;

use crate::program::innkeeper;

/// Commands beside a configuration whose server needs a package runner; none starts the server.
const CHECKING_COMMANDS: [&[&str]; 8] = [
    &["check"],
    &["completions", "bash"],
    &["doctor"],
    &["import"],
    &["add", "second", "--", "npx", "-y", "another-package"],
    &["model", "fetch", "--dir", "models"],
    &["model", "list"],
    &["model", "serve", "--dir", "models"],
];

/// Commands that start the server of their configuration.
const STARTING_COMMANDS: [&[&str]; 6] = [
    &["tools", "--config", "fixture.json"],
    &["call", "one.echo", "message=x", "--config", "fixture.json"],
    &["why", "one.echo", "--config", "fixture.json"],
    &["lock", "--config", "fixture.json"],
    &["read", "fx://one/static", "--config", "fixture.json"],
    &["ask", "hello", "--provider", "local", "--config", "fixture.json"],
];

/// Writes a program or module that records its start.
fn plant(dir: &Path, name: &str, code: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, code).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Attack: files | the directory contains Python modules, programs, `node_modules`, `.npmrc` and
/// configuration files | no command runs the code | Approval first
#[test]
fn no_command_runs_code_of_the_current_directory_without_approval() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let marker = dir.join("executed").display().to_string();
    for module in ["pip", "zipfile", "tempfile", "shutil", "sitecustomize", "usercustomize"] {
        plant(dir, &format!("{module}.py"), &format!("open({marker:?}, 'a').write('{module} ')\n"));
    }
    let programs = ["python3", "npx", "npm", "node", "uvx", "git", "xdg-open", "llama-server"];
    let script = |name: &str| format!("#!/bin/sh\necho {name} >> {marker}\n");
    for program in programs {
        plant(dir, program, &script(program));
        plant(dir, &format!("node_modules/.bin/{program}"), &script(program));
        plant(dir, &format!("bin/{program}"), &script(program));
    }
    plant(
        dir,
        "lib/node_modules/npm/bin/npx-cli.js",
        &format!("require('fs').writeFileSync({marker:?}, 'npx-cli')\n"),
    );
    fs::write(dir.join(".npmrc"), format!("prefix={0}\nscript-shell={0}/npx\n", dir.display()))
        .unwrap();
    let servers = json!({ "packages": { "command": "npx", "args": ["-y", "no-such-package"] } });
    fs::write(dir.join("mcp.json"), json!({ "mcpServers": servers }).to_string()).unwrap();
    fs::write(dir.join("fixture.json"), mcp_json([fixture("one")]).to_string()).unwrap();
    for command in CHECKING_COMMANDS.iter().chain(&STARTING_COMMANDS) {
        let mut program = innkeeper(command, dir);
        #[expect(clippy::disallowed_methods, reason = "the programs of this machine")]
        let path = std::env::var("PATH").unwrap();
        // Only the first command that starts Python may look into relative directories.
        let path = if command[0] == "model" { format!(".:bin::{path}") } else { path };
        program.env("PATH", path).env("PYTHONPATH", dir).env("PIP_NO_INDEX", "1");
        let _ = program.stdin(std::process::Stdio::null()).output().unwrap();
        assert_eq!(fs::read_to_string(&marker).unwrap_or_default(), "", "{command:?}");
    }
}
