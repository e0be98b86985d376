//! The configuration room as its users see it.

mod dialects;
mod document;
mod expansion;
mod files;
mod limits;
mod messages;
mod properties;
mod schema;
mod secrets;
mod servers;

use std::path::Path;

use super::{Config, ConfigError, Environment, ServerConfig, TransportConfig};

/// A directory that is not there, so that nothing of this machine can take part.
const NOWHERE: &str = "/nowhere/project";

fn load(text: &str) -> Result<Config, ConfigError> {
    load_with(text, &[])
}

fn load_with(text: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let environment = Environment::from_pairs(variables.iter().copied());
    Config::from_text(text, "mcp.json", Path::new(NOWHERE), &environment)
}

/// One server with these keys.
fn server(keys: &str) -> Result<ServerConfig, ConfigError> {
    let config = load(&format!(r#"{{"servers": {{"fs": {{{keys}}}}}}}"#))?;
    Ok(config.servers["fs"].clone())
}

/// Everything that is told about a text, one line for each problem and each hint.
fn told(text: &str) -> String {
    told_with(text, &[])
}

fn told_with(text: &str, variables: &[(&str, &str)]) -> String {
    told_of(load_with(text, variables))
}

fn told_of(result: Result<Config, ConfigError>) -> String {
    let problems = match result {
        Ok(config) => config.warnings,
        Err(error) => error.0,
    };
    let lines = problems
        .iter()
        .flat_map(|problem| std::iter::once(problem.to_string()).chain(problem.hint_line()));
    lines.collect::<Vec<_>>().join("\n")
}

/// Everything that is told about one server with these keys.
fn told_of_server(keys: &str) -> String {
    told(&format!(r#"{{"servers": {{"fs": {{{keys}}}}}}}"#))
}

fn args(server: &ServerConfig) -> Vec<&str> {
    match &server.transport {
        TransportConfig::Stdio { args, .. } => {
            args.iter().map(|arg| arg.expose().as_str()).collect()
        }
        other => panic!("not stdio: {other:?}"),
    }
}
