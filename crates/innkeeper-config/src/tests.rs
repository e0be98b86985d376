//! Tests of configuration loading through the public API.

mod dialects;
mod document;
mod expansion;
mod files;
mod limits;
mod literals;
mod messages;
mod partial;
mod properties;
mod schema;
mod secrets;
mod servers;

use std::path::Path;

use crate::Config;
use crate::diagnostic::ConfigError;
use crate::settings::server::{ServerConfig, TransportConfig};
use crate::variables::environment::Environment;

/// A directory that does not exist, so that the tests do not depend on this machine.
const MISSING_DIR: &str = "/nowhere/project";

fn load(text: &str) -> Result<Config, ConfigError> {
    load_with(text, &[])
}

fn load_with(text: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let environment = Environment::from_pairs(variables.iter().copied());
    Config::from_text(text, "mcp.json", Path::new(MISSING_DIR), &environment)
}

/// Loads one server with these keys.
fn server(keys: &str) -> Result<ServerConfig, ConfigError> {
    let config = load(&format!(r#"{{"servers": {{"fs": {{{keys}}}}}}}"#))?;
    Ok(config.servers["fs"].clone())
}

/// Returns the problems of a text, one line for each problem and each hint.
fn diagnostics(text: &str) -> String {
    diagnostics_with(text, &[])
}

fn diagnostics_with(text: &str, variables: &[(&str, &str)]) -> String {
    diagnostics_for(load_with(text, variables))
}

fn diagnostics_for(result: Result<Config, ConfigError>) -> String {
    let problems = match result {
        Ok(config) => config.warnings,
        Err(error) => error.0,
    };
    let lines = problems
        .iter()
        .flat_map(|problem| std::iter::once(problem.to_string()).chain(problem.hint_line()));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the problems of one server with these keys.
fn server_diagnostics(keys: &str) -> String {
    diagnostics(&format!(r#"{{"servers": {{"fs": {{{keys}}}}}}}"#))
}

fn args(server: &ServerConfig) -> Vec<&str> {
    match &server.transport {
        TransportConfig::Stdio { args, .. } => {
            args.iter().map(|arg| arg.expose().as_str()).collect()
        }
        other => panic!("not stdio: {other:?}"),
    }
}
