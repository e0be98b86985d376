//! The commands of the project's pages, run as they stand there.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use innkeeper_testkit::shell_blocks;
use serde_json::json;

/// Runs every `sh` block in a directory with the servers `files` and `notes`, without a terminal.
#[test]
#[expect(clippy::disallowed_methods, reason = "the shell runs the commands as a reader would")]
fn every_command_of_a_shell_block_exits_with_0() {
    let program = Path::new(env!("CARGO_BIN_EXE_innkeeper"));
    let mut path = vec![program.parent().unwrap().to_owned()];
    path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let path = env::join_paths(path).unwrap();
    let blocks = shell_blocks("sh");
    assert!(blocks.len() > 10, "only {} blocks", blocks.len());
    for block in blocks {
        let dir = sample_directory(program);
        let output = Command::new("sh")
            .args(["-e", "-c", &block.text])
            .current_dir(dir.path())
            .env_clear()
            .env("PATH", &path)
            .env("HOME", dir.path())
            // A reader has a terminal and says yes.
            .env("INNKEEPER_TRUST", "found")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {}\n{stderr}", block.location, block.text);
    }
}

/// A directory with the sample configuration that the pages assume.
fn sample_directory(program: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let files = dir.path().join("files");
    fs::create_dir(&files).unwrap();
    for (name, text) in [
        ("notes.md", "The bridge is closed until Friday.\n"),
        ("cellar.md", "Twelve casks of cider stand on the left.\n"),
        ("harbour.md", "The ferry leaves at seven.\n"),
    ] {
        fs::write(files.join(name), text).unwrap();
    }
    let notes = dir.path().join("notes.jsonl");
    let config = json!({
        "servers": {
            "files": { "command": program, "args": ["__server", "files", files] },
            "notes": { "command": program, "args": ["__server", "notes", notes] },
        },
    });
    fs::write(dir.path().join("mcp.json"), config.to_string()).unwrap();
    dir
}
