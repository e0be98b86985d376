//! The variables of a replica.

use std::path::Path;

use innkeeper_testkit::{fixture, mcp_json};
use serde_json::{Value, json};

use super::cluster::SECRET;
use crate::program::innkeeper;

/// Names and values.
type Variables<'a> = &'a [(&'a str, &'a str)];

/// Runs `serve` with options and variables, and returns the exit code, stdout and stderr.
fn serve(
    directory: &Path,
    options: &[&str],
    variables: Variables<'_>,
) -> (Option<i32>, String, String) {
    let args = [&["serve", "--config", "mcp.json", "--listen", "127.0.0.1:0"], options].concat();
    let mut command = innkeeper(&args, directory);
    command.env("PATH", std::env::var_os("PATH").unwrap()).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.code(), stdout, stderr)
}

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let config = mcp_json([fixture("a")]).to_string();
    std::fs::write(directory.path().join("mcp.json"), config).unwrap();
    directory
}

#[test]
fn the_settings_of_a_replica_are_shown_without_the_secret() {
    let directory = directory();
    let variables = [
        ("MCP_REPLICA_LISTEN", "127.0.0.1:9090"),
        ("MCP_REPLICA_URL", "http://replica-0.example:9090"),
        ("MCP_REPLICA_SECRET", SECRET),
        ("MCP_LEASE_SECONDS", "7"),
    ];
    let (code, shown, stderr) = serve(directory.path(), &["--print-config"], &variables);
    assert_eq!((code, &*stderr), (Some(0), ""));
    assert!(!shown.contains(SECRET), "{shown}");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let from = |value: Value, source: &str| json!({ "value": value, "source": source });
    let expected = json!({
        "listen": from(json!("127.0.0.1:9090"), "MCP_REPLICA_LISTEN"),
        "url": from(json!("http://replica-0.example:9090"), "MCP_REPLICA_URL"),
        "secret": from(json!("***"), "MCP_REPLICA_SECRET"),
        "leaseSeconds": from(json!(7), "MCP_LEASE_SECONDS"),
    });
    assert_eq!(shown["replicas"], expected);
    let (_, shown, _) = serve(directory.path(), &["--print-config"], &[]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["replicas"]["leaseSeconds"], from(json!(10), "default"));
    assert_eq!(shown["replicas"]["listen"], Value::Null);
}

#[test]
fn a_wrong_variable_of_a_replica_is_named_before_anything_starts() {
    let directory = directory();
    let listen = ("MCP_REPLICA_LISTEN", "127.0.0.1:0");
    let secret = ("MCP_REPLICA_SECRET", SECRET);
    let redis = &["--store", "redis://127.0.0.1:1/0"][..];
    let cases: [(&[&str], Variables<'_>, &str); 10] = [
        (redis, &[("MCP_REPLICA_LISTEN", "9090")], "`MCP_REPLICA_LISTEN`"),
        (redis, &[listen, secret, ("MCP_REPLICA_URL", "replica:9090")], "`MCP_REPLICA_URL`"),
        (redis, &[listen, ("MCP_REPLICA_SECRET", "short")], "`MCP_REPLICA_SECRET`"),
        (redis, &[listen, secret, ("MCP_LEASE_SECONDS", "2")], "`MCP_LEASE_SECONDS`"),
        (redis, &[listen, secret, ("MCP_LEASE_SECONDS", "soon")], "`MCP_LEASE_SECONDS`"),
        (redis, &[listen], "`MCP_REPLICA_LISTEN` needs `MCP_REPLICA_SECRET`"),
        (redis, &[secret], "`MCP_REPLICA_SECRET` needs `MCP_REPLICA_LISTEN`"),
        (&["--store", "memory"], &[listen, secret], "share a Redis, which is not the store"),
        (&["--store", "file:state"], &[listen, secret], "share a Redis, which is not the store"),
        (redis, &[("MCP_REPLICA_LISTEN", "0.0.0.0:0"), secret], "`MCP_REPLICA_URL`"),
    ];
    for (options, variables, named) in cases {
        let (code, stdout, stderr) = serve(directory.path(), options, variables);
        assert_eq!((code, &*stdout), (Some(2), ""), "{variables:?}: {stderr}");
        assert!(stderr.contains(named) && !stderr.contains(SECRET), "{variables:?}: {stderr}");
    }
}
