//! The list of published servers, and their configuration.

use std::path::Path;

use serde_json::{Value, json};

use super::leftovers::RunMarker;
use crate::TaskResult;

const LIST: &str = include_str!("../../published_servers/servers.toml");

/// The runner of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackageRunner {
    Npx,
    Uvx,
}

/// A tool and its arguments.
#[derive(Clone, Debug)]
pub(super) struct ToolCall {
    pub(super) tool: String,
    pub(super) arguments: Value,
}

/// A published server.
#[derive(Clone, Debug)]
pub(super) struct PublishedServer {
    pub(super) name: String,
    pub(super) runner: PackageRunner,
    /// The package with its version.
    pub(super) package: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    call: Option<ToolCall>,
}

/// Reads the list, reduced to the given names; no name means all servers.
///
/// # Errors
///
/// A name is not in the list, or the list is invalid.
pub(super) fn read(names: &[&str]) -> TaskResult<Vec<PublishedServer>> {
    let table: toml::Table = LIST.parse().map_err(|error| format!("`servers.toml`: {error}"))?;
    let entries = table.get("server").and_then(toml::Value::as_array);
    let entries = entries.ok_or("`servers.toml` has no `server`")?;
    let servers: Vec<PublishedServer> = entries.iter().map(parse).collect::<Result<_, _>>()?;
    if let Some(unknown) =
        names.iter().find(|name| servers.iter().all(|server| server.name != **name))
    {
        return Err(format!("`servers.toml` has no server `{unknown}`"));
    }
    Ok(servers
        .into_iter()
        .filter(|server| names.is_empty() || names.contains(&server.name.as_str()))
        .collect())
}

fn parse(entry: &toml::Value) -> TaskResult<PublishedServer> {
    let text = |key: &str| entry.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    let required =
        |key: &str| text(key).ok_or_else(|| format!("`servers.toml`: no `{key}` in `{entry}`"));
    let args = entry.get("args").and_then(toml::Value::as_array).into_iter().flatten();
    let env = entry.get("env").and_then(toml::Value::as_table).into_iter().flatten();
    let arguments = text("arguments").unwrap_or_else(|| "{}".to_owned());
    let arguments = serde_json::from_str(&arguments)
        .map_err(|error| format!("`servers.toml`: `arguments` in `{entry}`: {error}"))?;
    Ok(PublishedServer {
        name: required("name")?,
        runner: match required("runner")?.as_str() {
            "npx" => PackageRunner::Npx,
            "uvx" => PackageRunner::Uvx,
            other => return Err(format!("`servers.toml`: unknown runner `{other}`")),
        },
        package: required("package")?,
        args: args.filter_map(toml::Value::as_str).map(str::to_owned).collect(),
        env: env
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect(),
        call: text("tool").map(|tool| ToolCall { tool, arguments }),
    })
}

impl PublishedServer {
    /// Returns the call of the server. `{dir}` in arguments is the working directory.
    pub(super) fn call(&self, dir: &Path) -> Option<ToolCall> {
        let call = self.call.as_ref()?;
        let text = call.arguments.to_string().replace("{dir}", &dir.display().to_string());
        Some(ToolCall { tool: call.tool.clone(), arguments: serde_json::from_str(&text).ok()? })
    }

    /// Returns a configuration with this server. `{dir}` in arguments and variables is the working
    /// directory.
    pub(super) fn config(&self, dir: &Path, caches: &Path, marker: &RunMarker) -> Value {
        let place = dir.display().to_string();
        let fill = |text: &str| text.replace("{dir}", &place);
        let (command, mut args) = match self.runner {
            PackageRunner::Npx => ("npx", vec!["-y".to_owned(), self.package.clone()]),
            PackageRunner::Uvx => ("uvx", vec![self.package.clone()]),
        };
        args.extend(self.args.iter().map(|argument| fill(argument)));
        let mut env = json!({
            "npm_config_cache": caches.join("npm").display().to_string(),
            "UV_CACHE_DIR": caches.join("uv").display().to_string(),
        });
        env[marker.variable()] = json!(marker.value());
        for (name, value) in &self.env {
            env[name] = json!(fill(value));
        }
        let entry = json!({ "command": command, "args": args, "env": env });
        json!({ "mcpServers": { &self.name: entry } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_at_least_45_servers_with_exact_versions_and_different_names() {
        let servers = read(&[]).unwrap();
        assert!(servers.len() >= 45, "{}", servers.len());
        for server in &servers {
            let version = server.package.rsplit_once('@').map_or("", |(_, version)| version);
            assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{}", server.package);
            assert_eq!(servers.iter().filter(|other| other.name == server.name).count(), 1);
        }
        assert!(servers.iter().any(|server| server.runner == PackageRunner::Uvx));
    }

    #[test]
    fn ci_starts_eight_servers_of_the_list_at_the_same_versions() {
        let packages: serde_json::Value =
            serde_json::from_str(include_str!("../../servers/package.json")).unwrap();
        let npm = packages["dependencies"].as_object().unwrap().iter();
        let npm = npm.map(|(name, version)| format!("{name}@{}", version.as_str().unwrap()));
        let python = include_str!("../../servers/requirements.txt").lines();
        let started: Vec<String> = npm.chain(python.map(|line| line.replace("==", "@"))).collect();
        let servers = read(&[]).unwrap();
        let both = servers.iter().filter(|server| started.contains(&server.package));
        assert_eq!(both.count(), 8);
    }

    #[test]
    fn only_the_named_servers_are_read_and_an_unknown_name_is_an_error() {
        assert_eq!(read(&["everything"]).unwrap().len(), 1);
        assert!(read(&["nothing"]).unwrap_err().contains("`nothing`"));
    }
}
