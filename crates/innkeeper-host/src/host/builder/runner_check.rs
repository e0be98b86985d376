//! Checks the environment of servers: their package runners, and the variables that they miss.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use indexmap::IndexMap;
use innkeeper_config::{Environment, ServerConfig, TransportConfig};
use innkeeper_process::{Confinement, ProcessSpec, Supervisor, child_environment, run_to_end};
use serde::Serialize;
use tokio::time::timeout;

use super::HostBuilder;

/// Timeout of `--version`: a runner reads its settings and loads its code, and sends no request.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Variables that a shell sets for itself.
const SHELL_VARIABLES: [&str; 8] =
    ["_", "LS_COLORS", "OLDPWD", "PS1", "PS2", "PS4", "PWD", "SHLVL"];

/// The result of the start of a package runner with `--version`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerCheck {
    /// Command of the runner, such as `npx`.
    pub command: String,
    /// Servers that use the runner.
    pub servers: Vec<String>,
    /// First line of the output; untrusted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why the runner has no version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl HostBuilder {
    /// Starts each package runner of the servers once with `--version`, in the environment that a
    /// server inherits, for at most 10 s. [`HostBuilder::check`] reports a missing runner.
    ///
    /// Nothing that the configuration names is started except runners that are known by name and
    /// found in the `PATH` of the host, without the variables of `env`: the configuration needs no
    /// approval. Dropping the future kills the runner.
    pub async fn check_runners(&self) -> Vec<RunnerCheck> {
        let environment = self.inherited_environment();
        let supervisor = self.endpoints.supervisor.clone().unwrap_or_else(Supervisor::available);
        let mut users: IndexMap<&str, Vec<&ServerConfig>> = IndexMap::new();
        for server in self.config.servers.values() {
            if let TransportConfig::Stdio { command, .. } = &server.transport
                && innkeeper_process::is_package_runner(command.expose())
            {
                users.entry(command.expose()).or_default().push(server);
            }
        }
        let mut checks = Vec::with_capacity(users.len());
        for (command, servers) in users {
            let result = runner_version(command, servers[0], environment, &supervisor).await;
            let (version, problem) = match result {
                Ok(Some(version)) => (Some(version), None),
                // `check` reports the missing program.
                Ok(None) => continue,
                Err(problem) => (None, Some(problem)),
            };
            let servers = servers.iter().map(|server| server.name.clone()).collect();
            checks.push(RunnerCheck { command: command.to_owned(), servers, version, problem });
        }
        checks
    }

    /// Returns the names of the host's variables that each local server does not inherit, without
    /// the variables that a shell sets for itself.
    pub fn variables_not_inherited(&self) -> IndexMap<String, Vec<String>> {
        let environment = self.inherited_environment();
        let local = self.config.servers.values().filter_map(|server| match &server.transport {
            TransportConfig::Stdio { command, env, .. } => {
                let declared = env.keys().map(|name| (name.clone(), String::new())).collect();
                let inherited = server.confinement.inherit_env;
                let built = child_environment(environment, inherited, command.expose(), &declared);
                Some((server.name.clone(), missing_names(environment, &built.unwrap_or_default())))
            }
            TransportConfig::Http { .. }
            | TransportConfig::Sse { .. }
            | TransportConfig::WebSocket { .. }
            | TransportConfig::InProcess => None,
        });
        local.filter(|(_, missing)| !missing.is_empty()).collect()
    }
}

fn missing_names(parent: &Environment, built: &[(OsString, OsString)]) -> Vec<String> {
    let present: BTreeSet<&OsStr> = built.iter().map(|(name, _)| name.as_os_str()).collect();
    let names = parent.iter_os().map(|(name, _)| name);
    names
        .filter(|name| !present.contains(name))
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| !SHELL_VARIABLES.contains(&name.as_str()))
        .collect()
}

/// Returns the version of a runner, or the problem of its start; `None` if the runner is not
/// installed.
async fn runner_version(
    command: &str,
    server: &ServerConfig,
    environment: &Environment,
    supervisor: &Supervisor,
) -> Result<Option<String>, String> {
    let env =
        child_environment(environment, server.confinement.inherit_env, command, &IndexMap::new())
            .map_err(|error| error.to_string())?;
    // Settings of the current directory could load code.
    let directory = Path::new("/");
    let Ok(program) = innkeeper_process::resolve(command, &env, directory) else {
        return Ok(None);
    };
    let spec = ProcessSpec {
        command: command.to_owned(),
        program,
        args: vec!["--version".into()],
        env,
        cwd: cfg!(unix).then(|| PathBuf::from(directory)),
        confinement: Confinement::default(),
    };
    let output = timeout(VERSION_TIMEOUT, run_to_end(&spec, supervisor, None)).await;
    let output = output
        .map_err(|_| format!("timed out after {} s", VERSION_TIMEOUT.as_secs()))?
        .map_err(|error| error.to_string())?;
    if !output.exit_status.success() {
        let status = output.exit_status.to_string();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().rev().map(str::trim).find(|line| !line.is_empty());
        return Err(last.map_or(status.clone(), |line| format!("{status}: {line}")));
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    let first = stdout.lines().map(str::trim).find(|line| !line.is_empty());
    first.map(|version| Some(version.to_owned())).ok_or_else(|| "no output".to_owned())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use innkeeper_config::Config;
    use serde_json::{Value, json};

    use super::*;

    /// Creates a directory with a script under the name of a runner.
    fn runner(name: &str, script: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        directory
    }

    fn builder(servers: &Value, variables: &[(&str, &str)]) -> HostBuilder {
        let environment = Environment::from_pairs(variables.iter().copied());
        let file = json!({ "servers": servers });
        let config = Config::from_value(&file, "mcp.json", Path::new("/"), &environment).unwrap();
        HostBuilder::new(config).supervisor(Supervisor::Group)
    }

    async fn check(script: &str) -> Vec<RunnerCheck> {
        let directory = runner("uvx", script);
        let path = format!("{}:/usr/bin:/bin", directory.path().display());
        let servers = json!({
            "a": {"command": "uvx", "args": ["x"], "env": {"LD_PRELOAD": "/tmp/evil.so"}},
            "b": {"command": "uvx"}, "c": {"command": "./uvx"}, "d": {"command": "node"},
            "e": {"url": "http://a.example"},
        });
        let variables = [("PATH", &*path), ("UV_INDEX_URL", "https://a"), ("SECRET", "s")];
        builder(&servers, &variables).check_runners().await
    }

    #[tokio::test]
    async fn each_runner_is_started_once_in_the_environment_that_servers_inherit() {
        let script = "echo \"$1 $UV_INDEX_URL $SECRET $LD_PRELOAD $(pwd)\"";
        let checks = check(script).await;
        assert_eq!(
            checks,
            [RunnerCheck {
                command: "uvx".to_owned(),
                servers: vec!["a".to_owned(), "b".to_owned()],
                version: Some("--version https://a   /".to_owned()),
                problem: None,
            }]
        );
    }

    #[tokio::test]
    async fn a_runner_that_fails_has_the_last_line_of_its_stderr() {
        let checks = check("echo traceback >&2; echo 'no python' >&2; exit 4").await;
        assert_eq!(checks[0].problem.as_deref(), Some("exit code 4: no python"));
        let checks = check("exit 0").await;
        assert_eq!(checks[0].problem.as_deref(), Some("no output"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_runner_that_does_not_end_is_given_up_after_ten_seconds() {
        let checks = check("exec sleep 60").await;
        assert_eq!(checks[0].problem.as_deref(), Some("timed out after 10 s"));
    }

    #[tokio::test]
    async fn a_runner_that_is_not_installed_is_left_to_the_check_of_programs() {
        let builder = builder(&json!({"a": {"command": "npx"}}), &[("PATH", "/nowhere")]);
        assert_eq!(builder.check_runners().await, []);
        assert!(builder.check().is_err());
    }

    #[test]
    fn variables_that_a_server_does_not_inherit_are_named_without_those_of_the_shell() {
        let servers = json!({
            "a": {"command": "x", "env": {"TOKEN": "${TOKEN}"}},
            "b": {"command": "uvx"},
            "c": {"command": "x", "inheritEnv": true},
            "d": {"url": "http://a.example"},
        });
        let variables =
            ["HOME", "TOKEN", "AWS_REGION", "UV_INDEX_URL", "PWD", "SHLVL"].map(|name| (name, "x"));
        let missing = builder(&servers, &variables).variables_not_inherited();
        let expected = json!({"a": ["AWS_REGION", "UV_INDEX_URL"], "b": ["AWS_REGION", "TOKEN"]});
        assert_eq!(json!(missing), expected);
    }
}
