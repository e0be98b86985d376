//! The launch of a server for a trust decision, with its fingerprint.

use std::path::{Path, PathBuf};

use innkeeper_config::{
    Config, ConfinementConfig, ExpandedValue, GuardModes, IdToken, InheritedEnvironment,
    OauthConfig, ResourceLimits, SandboxConfig, ServerConfig, TransportConfig, mentions_secret,
    redact_argument, redact_url,
};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::loader;
use crate::lock::{self, RunnerPackages};

/// The launch or address of a server, with everything that matters for a trust decision.
///
/// A string prints as written in the file; [`ExpandedValue::expose`] returns the expanded value.
/// Values of environment variables and headers are never shown.
#[derive(Clone, Debug)]
pub struct LaunchSpec {
    /// Name of the server.
    pub name: String,
    /// The program that is started.
    pub program: LaunchProgram,
    /// The remote server that is contacted.
    pub remote: RemoteTarget,
    /// Resource limits.
    pub limits: ResourceLimits,
    /// Sandbox.
    pub sandbox: Option<SandboxConfig>,
    /// What a package runner downloads.
    pub downloads: RunnerPackages,
    /// Guard modes of the server's traffic.
    pub guard: GuardModes,
    /// Hash of the launch; the fingerprint covers this hash and the guard modes.
    launch_hash: [u8; 32],
}

/// The program of a local server, with what it gets.
#[derive(Clone, Debug, Default)]
pub struct LaunchProgram {
    /// Program; `None` for a remote server and for a server in the process of the application.
    pub command: Option<ExpandedValue>,
    /// Arguments.
    pub args: Vec<ExpandedValue>,
    /// Working directory, if the file sets it.
    pub cwd: Option<ExpandedValue<PathBuf>>,
    /// Effective working directory, the base of relative paths in `command` and `args`: `cwd`,
    /// otherwise the working directory of the application. `None` if no program is started.
    pub directory: Option<PathBuf>,
    /// Names of the environment variables that are set.
    pub env: Vec<String>,
    /// Names of the environment variables that are removed.
    pub unset_env: Vec<String>,
    /// The variables of the host that the program inherits.
    pub inherit_env: InheritedEnvironment,
}

/// The address of a remote server, with the sources of its credentials.
#[derive(Clone, Debug, Default)]
pub struct RemoteTarget {
    /// URL; `None` for other servers.
    pub url: Option<ExpandedValue>,
    /// Names of the headers.
    pub headers: Vec<String>,
    /// Program with arguments that prints additional headers.
    pub headers_helper: Vec<ExpandedValue>,
    /// OAuth settings; secrets are not shown.
    pub oauth: Option<OauthConfig>,
}

impl LaunchSpec {
    /// Returns the launches of all servers of a configuration, in its order.
    pub fn all(config: &Config) -> Vec<Self> {
        let here = config.environment.current_dir();
        config.servers.values().map(|server| Self::for_server(server, here)).collect()
    }

    /// Creates the launch of a server; `here` is the working directory of the application.
    pub(crate) fn for_server(server: &ServerConfig, here: Option<&Path>) -> Self {
        let directory = working_directory(server, here);
        let launch_hash = hash_launch(server, directory.as_deref());
        let mut program = LaunchProgram {
            directory,
            inherit_env: server.confinement.inherit_env,
            ..LaunchProgram::default()
        };
        let mut remote = RemoteTarget {
            headers_helper: server.headers_helper.clone(),
            oauth: server.oauth.clone(),
            ..RemoteTarget::default()
        };
        match &server.transport {
            TransportConfig::Stdio { command, args, env, unset_env, cwd } => {
                program.command = Some(command.clone());
                program.args.clone_from(args);
                program.cwd.clone_from(cwd);
                program.env = env.keys().cloned().collect();
                program.unset_env.clone_from(unset_env);
            }
            TransportConfig::Http { url, headers }
            | TransportConfig::Sse { url, headers }
            | TransportConfig::WebSocket { url, headers } => {
                remote.url = Some(url.clone());
                remote.headers = headers.keys().cloned().collect();
            }
            // The application starts the server.
            TransportConfig::InProcess => {}
        }
        Self {
            name: server.name.clone(),
            program,
            remote,
            limits: server.confinement.limits,
            sandbox: server.confinement.sandbox.clone(),
            downloads: lock::fetched(&server.transport),
            guard: server.guard,
            launch_hash,
        }
    }

    /// Returns a SHA-256 in hexadecimal over the effective launch, including hidden values, for
    /// applications that store decisions.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new_with_prefix(self.launch_hash);
        hash.update(json!(self.guard).to_string());
        format!("{:x}", hash.finalize())
    }

    /// Returns whether an approval of `other` covers this launch: the launch is equal, and the
    /// guard is at least as strict.
    pub(crate) fn is_covered_by(&self, other: &Self) -> bool {
        self.launch_hash == other.launch_hash && self.guard.covers(other.guard)
    }
}

impl LaunchProgram {
    /// Returns the names of variables that load code or a command, which runs in place of or beside
    /// the program: `LD_PRELOAD`, `NODE_OPTIONS` and others.
    pub fn code_loading_variables(&self) -> impl Iterator<Item = &str> {
        self.env.iter().map(String::as_str).filter(|name| loader::is_code_loading(name))
    }

    /// Returns the expanded form of each argument, to be shown only to the user who decides.
    ///
    /// An entry is `None` if the argument has no variables, or if the argument or the option before
    /// it may hold a secret.
    pub fn arg_expansions(&self) -> Vec<Option<String>> {
        expansions(&self.args)
    }
}

impl RemoteTarget {
    /// Returns the expanded forms of the headers helper and its arguments, as in
    /// [`LaunchProgram::arg_expansions`].
    pub fn headers_helper_expansions(&self) -> Vec<Option<String>> {
        expansions(&self.headers_helper)
    }

    /// Returns the expanded form of the URL, as in [`LaunchProgram::arg_expansions`].
    pub fn url_expansion(&self) -> Option<String> {
        self.url.as_ref().and_then(expansion)
    }
}

fn expansions(values: &[ExpandedValue]) -> Vec<Option<String>> {
    let before = std::iter::once(None).chain(values.iter().map(Some));
    let expanded = values.iter().zip(before).map(|(value, before)| {
        let option = before.map(ExpandedValue::as_written).filter(|text| text.starts_with('-'));
        expansion(value).filter(|_| !option.is_some_and(mentions_secret))
    });
    expanded.collect()
}

fn expansion(text: &ExpandedValue) -> Option<String> {
    let value = text.expose();
    let source_text = text.as_written();
    let is_address = value.contains("://");
    let displayed = if is_address { redact_url(value) } else { redact_argument(value, None) };
    (source_text.contains("${") && displayed != source_text && !mentions_secret(source_text))
        .then_some(displayed)
}

fn working_directory(server: &ServerConfig, here: Option<&Path>) -> Option<PathBuf> {
    let cwd = match &server.transport {
        TransportConfig::Stdio { cwd, .. } => cwd.as_ref().map(|cwd| cwd.expose().clone()),
        TransportConfig::InProcess => return None,
        TransportConfig::Http { .. }
        | TransportConfig::Sse { .. }
        | TransportConfig::WebSocket { .. }
            if server.headers_helper.is_empty() =>
        {
            return None;
        }
        TransportConfig::Http { .. }
        | TransportConfig::Sse { .. }
        | TransportConfig::WebSocket { .. } => None,
    };
    let directory = cwd.unwrap_or_else(|| here.unwrap_or(Path::new(".")).to_owned());
    Some(std::path::absolute(&directory).unwrap_or(directory))
}

/// Hashes the launch without the guard. A new key of a server must be handled here: either the key
/// is part of the launch, or the key cannot change the program or the URL.
fn hash_launch(server: &ServerConfig, directory: Option<&Path>) -> [u8; 32] {
    let ServerConfig {
        name,
        transport,
        confinement: ConfinementConfig { inherit_env, limits, sandbox },
        oauth,
        headers_helper,
        // Limits of time and number, and the tool filter, are not part of the launch.
        key: _,
        position: _,
        required: _,
        dependencies: _,
        lifecycle: _,
        calls: _,
        tools: _,
        // Handled separately, because a stricter guard needs no approval.
        guard: _,
        extra: _,
    } = server;
    let mut hash = Sha256::new();
    // The length and a letter for the kind make each part unambiguous.
    let mut add = |kind: u8, bytes: &[u8]| {
        hash.update([kind]);
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    add(b'n', name.as_bytes());
    add(b't', transport.kind().as_bytes());
    add(b'i', &[environment_code(*inherit_env)]);
    add_transport(transport, &mut add);
    // Relative paths name other programs in another directory.
    if let Some(directory) = directory {
        add(b'd', directory.as_os_str().as_encoded_bytes());
    }
    headers_helper.iter().for_each(|argument| add(b'p', argument.expose().as_bytes()));
    // Limits, sandbox and OAuth settings as written: the text contains neither secrets nor expanded
    // variables.
    let restrictions = json!([limits, sandbox, oauth]);
    add(b'b', restrictions.to_string().as_bytes());
    for secret in oauth.iter().flat_map(OauthConfig::secrets) {
        add(b's', secret.expose().as_bytes());
    }
    let texts = oauth.iter().flat_map(|oauth| {
        [&oauth.client_id, &oauth.issuer, &oauth.client_metadata_url, &oauth.redirect_uri]
    });
    let enterprise = oauth.iter().flat_map(|oauth| &oauth.enterprise);
    let enterprise_parts =
        enterprise.flat_map(|auth| [&auth.issuer, &auth.token_endpoint, &auth.client_id]);
    for text in texts.flatten().chain(enterprise_parts) {
        add(b'o', text.expose().as_bytes());
    }
    let enterprise = oauth.iter().flat_map(|oauth| &oauth.enterprise);
    for token in enterprise.map(|auth| &auth.id_token) {
        if let IdToken::File(file) = token {
            add(b'f', file.expose().as_os_str().as_encoded_bytes());
        }
    }
    hash.finalize().into()
}

/// Adds the parts of a transport, except for its kind and its working directory.
fn add_transport(transport: &TransportConfig, mut add: impl FnMut(u8, &[u8])) {
    match transport {
        TransportConfig::Stdio { command, args, env, unset_env, cwd: _ } => {
            add(b'c', command.expose().as_bytes());
            args.iter().for_each(|arg| add(b'a', arg.expose().as_bytes()));
            for (name, value) in env {
                add(b'v', name.as_bytes());
                add(b'=', value.expose().as_bytes());
            }
            unset_env.iter().for_each(|name| add(b'u', name.as_bytes()));
        }
        TransportConfig::Http { url, headers }
        | TransportConfig::Sse { url, headers }
        | TransportConfig::WebSocket { url, headers } => {
            add(b'l', url.expose().as_bytes());
            for (name, value) in headers {
                add(b'h', name.as_bytes());
                add(b'=', value.expose().as_bytes());
            }
        }
        TransportConfig::InProcess => {}
    }
}

/// Returns the byte of a setting in the hash of a launch; a stored approval contains the hash.
fn environment_code(inherited: InheritedEnvironment) -> u8 {
    match inherited {
        InheritedEnvironment::Standard => 0,
        InheritedEnvironment::Complete => 1,
        InheritedEnvironment::Strict => 2,
    }
}

#[cfg(test)]
mod tests;
