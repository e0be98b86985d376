//! Test of the program: the quoted lines run as they are.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use innkeeper_testkit::fixture_program;
use serde_json::json;

/// A server that records its arguments.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/prompt/mcp-server.sh");

/// Runs the program in a directory.
#[expect(clippy::disallowed_methods, reason = "the test is about the program itself")]
fn run_in(directory: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_prompt-application")).current_dir(directory).output().unwrap()
}

/// Proves: P19
#[test]
fn the_usage_starts_the_server_with_its_arguments_and_asks_the_model() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir_all(path("path/to")).unwrap();
    symlink(SERVER, path("path/to/mcp-server")).unwrap();
    symlink(fixture_program(), path("path/to/fixture-server")).unwrap();
    // The fixture server reads its tools from the file; JSON is also YAML.
    let tool = json!({"name": "list_files", "inputSchema": {"type": "object"}});
    fs::write(path("tools.yaml"), json!({"tools": [tool]}).to_string()).unwrap();
    let output = run_in(directory.path());
    assert_eq!(fs::read_to_string(path("arguments")).unwrap(), "--tools tools.yaml\n");
    // The outcome depends on the Ollama server of this machine: a response, or an error of the
    // model. Every step before the request has succeeded.
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() || stderr.starts_with("Error: Llm("), "{stderr}");
    assert_eq!(output.status.success(), !output.stdout.is_empty(), "{stderr}");
}
