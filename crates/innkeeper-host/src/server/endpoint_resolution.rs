//! Resolves the endpoint of a server: its program with environment, its URL, or its connector.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use innkeeper_config::{
    ConfigError, Diagnostic, Environment, InheritedEnvironment, ServerConfig, Severity,
    TransportConfig,
};
use innkeeper_process::{Confinement, ProcessSpec};

use super::ServerSettings;
use super::connector::Connectors;
use super::launch::Endpoint;
use crate::audit::AuditEvent;
use crate::error::{ConnectorError, StartFailureReason};
use crate::own_files::OwnFiles;
use crate::transport::RemoteEndpoint;

/// The endpoint of a server, as far as known before its start.
#[derive(Clone, Debug)]
pub(crate) enum EndpointResolution {
    Found(Arc<Endpoint>),
    Missing(Arc<MissingProgram>),
    /// The application has no connector for an optional server.
    NoConnector(Arc<Diagnostic>),
    /// The settings of an optional server do not work on this machine.
    Unusable(Arc<Diagnostic>),
}

impl EndpointResolution {
    /// Returns the diagnostic for a missing program or connector, or for unusable settings.
    pub(crate) fn diagnostic(&self) -> Option<&Diagnostic> {
        match self {
            Self::Found(_) => None,
            Self::Missing(absent) => Some(&absent.diagnostic),
            Self::NoConnector(diagnostic) | Self::Unusable(diagnostic) => Some(diagnostic),
        }
    }

    /// Returns the endpoint; searches again for a missing program.
    pub(crate) fn endpoint(&self) -> Result<Arc<Endpoint>, StartFailureReason> {
        match self {
            Self::Found(found) => Ok(found.clone()),
            Self::Missing(absent) => {
                absent.resolve().map(|launch| Arc::new(Endpoint::Child(launch)))
            }
            Self::NoConnector(_) => Err(StartFailureReason::Connector(ConnectorError::Missing)),
            Self::Unusable(diagnostic) => {
                let Diagnostic { key, message, .. } = &**diagnostic;
                Err(StartFailureReason::Spawn(format!("{key}: {message}").into()))
            }
        }
    }
}

/// An optional server without its program; each start searches again.
#[derive(Debug)]
pub(crate) struct MissingProgram {
    /// Command after variable expansion.
    pub(crate) command: String,
    /// Directory for the resolution of a relative command.
    pub(crate) base_dir: PathBuf,
    /// Process to start; its `program` is not resolved yet.
    pub(crate) spec: ProcessSpec,
    /// Diagnostic reported before the first start.
    pub(crate) diagnostic: Diagnostic,
}

impl MissingProgram {
    fn resolve(&self) -> Result<ProcessSpec, StartFailureReason> {
        let Self { command, base_dir, spec, .. } = self;
        match innkeeper_process::resolve(command, &spec.env, base_dir) {
            Ok(program) => Ok(ProcessSpec { program, ..spec.clone() }),
            Err(error) => {
                Err(StartFailureReason::Spawn(error.with_command(&spec.command).to_string().into()))
            }
        }
    }
}

/// Resolves the program and builds the environment of every server before any starts (TR10.1,
/// TR8.3). A problem of an optional server is a warning: only this server does not start.
pub(crate) fn prepare<'c>(
    servers: impl IntoIterator<Item = &'c ServerConfig>,
    parent: &Environment,
    connectors: &Connectors,
    own_files: &OwnFiles,
) -> Result<Vec<ServerSettings>, ConfigError> {
    let mut prepared = Vec::new();
    let mut problems = Vec::new();
    for server in servers {
        match resolve_endpoint(server, parent, connectors, own_files) {
            Ok(server_endpoint) => {
                problems.extend(server_endpoint.diagnostic().cloned());
                prepared.push(ServerSettings {
                    config: Arc::new(server.clone()),
                    endpoint: server_endpoint,
                });
            }
            Err(problem) if server.required => problems.push(problem),
            Err(problem) => {
                let diagnostic = Diagnostic { severity: Severity::Warning, ..problem };
                problems.push(diagnostic.clone());
                let endpoint = EndpointResolution::Unusable(Arc::new(diagnostic));
                prepared.push(ServerSettings { config: Arc::new(server.clone()), endpoint });
            }
        }
    }
    if problems.iter().any(Diagnostic::is_error) {
        Err(ConfigError(problems))
    } else {
        Ok(prepared)
    }
}

/// Does the same as [`prepare`] before a start: writes each server whose problem prevents the start
/// to the audit log.
pub(crate) fn prepare_start<'c>(
    servers: impl IntoIterator<Item = &'c ServerConfig>,
    parent: &Environment,
    connectors: &Connectors,
    own_files: &OwnFiles,
) -> Result<Vec<ServerSettings>, ConfigError> {
    let servers: Vec<_> = servers.into_iter().collect();
    let prepared = prepare(servers.iter().copied(), parent, connectors, own_files);
    if prepared.is_err() {
        for server in servers.into_iter().filter(|server| server.required) {
            let problem = match resolve_endpoint(server, parent, connectors, own_files) {
                Ok(endpoint) => endpoint.diagnostic().filter(|problem| problem.is_error()).cloned(),
                Err(problem) => Some(problem),
            };
            if let Some(problem) = problem {
                let error = ConfigError(vec![problem]);
                AuditEvent::StartFailed { required: true, error: &error }.emit(&server.name);
            }
        }
    }
    prepared
}

fn resolve_endpoint(
    server: &ServerConfig,
    parent: &Environment,
    connectors: &Connectors,
    own_files: &OwnFiles,
) -> Result<EndpointResolution, Diagnostic> {
    let problem = |key: &str, message: String, hint: Option<String>| Diagnostic {
        severity: Severity::Error,
        source: server.position.source.to_string(),
        line: server.position.line,
        column: server.position.column,
        key: format!("servers.{}.{key}", server.name),
        message,
        hint,
    };
    if let Some(remote) = RemoteEndpoint::from_config(&server.transport, parent) {
        let remote = remote.map_err(|(key, message)| problem(key, message, None))?;
        let helper = resolve_headers_helper(server, parent);
        let helper = helper.map_err(|message| problem("headersHelper", message, None))?;
        return Ok(EndpointResolution::Found(Arc::new(Endpoint::Remote(
            remote.with_helper(helper),
        ))));
    }
    if server.transport == TransportConfig::InProcess {
        if let Some(source) = connectors.get(&server.name) {
            let endpoint = Arc::new(Endpoint::InProcess(source.clone()));
            return Ok(EndpointResolution::Found(endpoint));
        }
        let hint = "call `HostBuilder::connector` with this name, or disable the server".to_owned();
        let problem = problem("type", ConnectorError::Missing.to_string(), Some(hint));
        if server.required {
            return Err(problem);
        }
        let diagnostic = Diagnostic { severity: Severity::Warning, ..problem };
        return Ok(EndpointResolution::NoConnector(Arc::new(diagnostic)));
    }
    let TransportConfig::Stdio { command, args, env, unset_env, cwd } = &server.transport else {
        return Err(problem("type", "unsupported server type".to_owned(), None));
    };
    if let Some(problem) = own_files.problem(server, parent) {
        return Err(problem);
    }
    let declared = env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
    let env = innkeeper_process::child_environment(
        parent,
        server.confinement.inherit_env,
        command.expose(),
        &declared.collect(),
    );
    let mut env = env.map_err(|error| problem("env", error.to_string(), None))?;
    env.retain(|(name, _)| !unset_env.iter().any(|unset| name == unset.as_str()));
    let cwd = cwd.as_ref().map(|cwd| cwd.expose().as_path());
    let base_dir = cwd.or(parent.current_dir()).unwrap_or(Path::new(".")).to_owned();
    // The program is resolved and started in the same directory. The current directory is
    // inherited, because it may not be possible to enter it again.
    let is_current = std::env::current_dir().is_ok_and(|is_current| is_current == base_dir);
    let cwd = cwd.map(Path::to_owned).or_else(|| (!is_current).then(|| base_dir.clone()));
    let resolved = innkeeper_process::resolve(command.expose(), &env, &base_dir).map_err(|error| {
        let message = error.with_command(command.as_written()).to_string();
        problem("command", message, Some("install the command, or give its full path".to_owned()))
    });
    let args = args.iter().map(|arg| arg.expose().into()).collect();
    let server_confinement =
        Confinement::new(server.confinement.limits, server.confinement.sandbox.as_ref(), &base_dir);
    let launch = |program| {
        let command = command.as_written().into();
        ProcessSpec { command, program, args, env, cwd, confinement: server_confinement }
    };
    match resolved {
        Ok(program) => Ok(EndpointResolution::Found(Arc::new(Endpoint::Child(launch(program))))),
        Err(problem) if server.required => Err(problem),
        Err(problem) => {
            let diagnostic = Diagnostic { severity: Severity::Warning, ..problem };
            let command = command.expose().clone();
            let spec = launch(PathBuf::new());
            Ok(EndpointResolution::Missing(Arc::new(MissingProgram {
                command,
                base_dir,
                spec,
                diagnostic,
            })))
        }
    }
}

/// Resolves the program that prints headers for a remote server; it gets the default environment
/// and the server's name.
fn resolve_headers_helper(
    server: &ServerConfig,
    parent: &Environment,
) -> Result<Option<ProcessSpec>, String> {
    let Some((program, args)) = server.headers_helper.split_first() else { return Ok(None) };
    let variables = [("INNKEEPER_SERVER".to_owned(), server.name.clone())];
    let env = innkeeper_process::child_environment(
        parent,
        InheritedEnvironment::Standard,
        program.expose(),
        &variables.into(),
    );
    let env = env.map_err(|error| error.to_string())?;
    let from = parent.current_dir().unwrap_or(Path::new("."));
    let resolved = innkeeper_process::resolve(program.expose(), &env, from);
    let resolved =
        resolved.map_err(|error| error.with_command(program.as_written()).to_string())?;
    let command = program.as_written().into();
    let cwd = parent.current_dir().map(Path::to_owned);
    let args = args.iter().map(|arg| arg.expose().into()).collect();
    let limits = Confinement::default();
    Ok(Some(ProcessSpec { command, program: resolved, args, env, cwd, confinement: limits }))
}

#[cfg(test)]
mod tests {
    use innkeeper_config::Config;
    use serde_json::json;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_program_has_the_environment_without_the_variables_that_its_entry_removes() {
        let parent = Environment::from_pairs([("PATH", "/bin"), ("ONE", "1"), ("TWO", "2")]);
        let entry = json!({"command": "sh", "inheritEnv": true, "env": {"ONE": null, "K": "v"}});
        let file = json!({"servers": {"one": entry}});
        let config = Config::from_value(&file, "mcp.json", Path::new("/"), &parent).unwrap();
        let resolved = resolve_endpoint(
            &config.servers["one"],
            &parent,
            &Connectors::default(),
            &OwnFiles::default(),
        );
        let Ok(EndpointResolution::Found(endpoint)) = resolved else { panic!("not found") };
        let Endpoint::Child(spec) = &*endpoint else { panic!("{endpoint:?}") };
        assert_eq!(
            ["ONE", "TWO", "K"].map(|name| {
                let variable = spec.env.iter().find(|(key, _)| key == name)?;
                variable.1.to_str().map(str::to_owned)
            }),
            [None, Some("2".into()), Some("v".into())]
        );
    }
}
