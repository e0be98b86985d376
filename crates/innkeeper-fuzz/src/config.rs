//! Whatever a file holds, reading it ends with a configuration or with errors that have a place,
//! and nothing that a variable holds is ever printed.

use std::path::Path;

use innkeeper_host::config::{Config, Environment};

/// Long and odd enough that no input holds it by chance.
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
                serde_json::to_string(config).expect("a configuration can be written")
            )
        }
        Err(error) => {
            assert!(error.errors().next().is_some(), "refused without a reason");
            format!("{error} {error:?}")
        }
    };
    assert!(!printed.contains(CANARY), "{printed}");
}
