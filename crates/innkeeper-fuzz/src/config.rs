//! Fuzz target: reads a configuration file. Errors have positions, and variable values never appear
//! in the output.

use std::path::Path;

use innkeeper_host::config::{Config, Environment};

/// A value of a variable, long enough that no input contains the value by chance.
const CANARY: &str = "canary-7d0c41f9e2b8";

/// Reads the input as a configuration file.
pub fn config(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if text.contains(CANARY) {
        return;
    }
    let environment = Environment::from_pairs([("A", CANARY), ("HOME", "/canary-7d0c41f9e2b8")]);
    let read = Config::from_text(text, "mcp.json", Path::new("/nowhere"), &environment);
    let printed = match &read {
        Ok(config) => {
            assert_eq!(config.waves().iter().map(Vec::len).sum::<usize>(), config.servers.len());
            assert!(config.warnings.iter().all(|warning| !warning.is_error()));
            format!(
                "{config:?} {}",
                serde_json::to_string(config).expect("serializable configuration")
            )
        }
        Err(error) => {
            assert!(error.errors().next().is_some(), "rejected without an error");
            format!("{error} {error:?}")
        }
    };
    assert!(!printed.contains(CANARY), "{printed}");
}
