//! The console in a browser: the keyboard, both colour schemes, two sizes, accessibility.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use innkeeper_testkit::{fixture, mcp_json};
use serde_json::{Value, json};

use crate::published_clients::{command, directory, script};
use crate::serve::{ADA_KEY, serve_in};

/// The SHA-256 hash of [`ADA_KEY`].
const ADA_SHA256: &str = "6623097f76884dfaf384bef6e857028f79a763e8ca4c36cdebc851a25d7d3a33";

/// Returns a directory of `target`, or another one for a developer.
fn installed(variable: &str, path: &str) -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(path);
    let set = std::env::var_os(variable);
    set.map_or_else(default, PathBuf::from)
}

/// Returns the program of the browser, and its libraries if it is not installed in the system.
fn chromium() -> (PathBuf, String) {
    let home = installed("INNKEEPER_TEST_CHROMIUM", "tools/chromium");
    let program = home.join("usr/lib/chromium/chromium");
    if !program.is_file() {
        return ("/usr/bin/chromium".into(), String::new());
    }
    let mut libraries = Vec::new();
    for dir in std::fs::read_dir(home.join("usr/lib")).unwrap() {
        let dir = dir.unwrap().path();
        libraries.extend([dir.join("pulseaudio").display().to_string(), dir.display().to_string()]);
    }
    (program, libraries.join(":"))
}

fn configuration() -> Value {
    let tools = json!([{ "name": "query", "description": "Searches the index.", "inputSchema": {
        "type": "object", "required": ["text", "order"], "properties": {
            "text": { "type": "string" },
            "limit": { "type": "integer", "description": "Maximum number of matches" },
            "order": { "enum": ["score", "date"] },
            "kinds": { "type": "array", "items": { "enum": ["page", "mail"] } },
            "filter": { "type": "object" },
        } } }]);
    let mut file = mcp_json([
        fixture("a").with("--tools", tools).with("--stderr", "<b>ready</b>"),
        fixture("b").with("--progress", 1_000).with("--progress-delay", 60),
        fixture("c")
            .with("--exit-at-start", 3)
            .config_key("required", false)
            .config_key("restart", "never"),
    ]);
    file["serve"] = json!({
        "auth": { "apiKeys": [{ "principal": "ada", "sha256": ADA_SHA256 }] },
        "console": { "operators": ["ada"] },
    });
    file
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test` runs it"]
fn an_operator_uses_the_console_with_the_keyboard_at_two_sizes_in_both_colour_schemes() {
    let directory = directory(&configuration());
    let gateway = serve_in(directory.path());
    let (program, libraries) = chromium();
    let mut browser = command("node");
    browser.arg(script("console.mjs")).arg(format!("http://{}/console", gateway.address));
    browser
        .arg(ADA_KEY)
        .arg(program)
        .arg(installed("INNKEEPER_TEST_BROWSER", "test-servers/browser"));
    browser.args(std::env::var_os("INNKEEPER_TEST_SCREENSHOTS"));
    let output = browser.env("LD_LIBRARY_PATH", libraries).stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{stderr}"));
    assert_eq!(seen["violations"], json!([]), "{seen}");
    assert_eq!(seen["problems"], json!([]), "{seen}");
    assert_eq!((&seen["flows"], &seen["pages"]), (&json!(3), &json!(40)), "{seen}");
    assert_eq!(gateway.terminate(), Some(143));
}
