//! Configurations for tests.

use std::path::Path;

use innkeeper_host::config::{Config, Environment, ServeConfig};
use serde_json::{Value, json};

/// Reads a `serve` object.
pub(crate) fn serve(serve: &Value) -> ServeConfig {
    let file = json!({"servers": {}, "serve": serve});
    let config = Config::from_value(&file, "mcp.json", Path::new("/"), &Environment::default());
    config.unwrap_or_else(|error| panic!("{error}")).serve.unwrap()
}
