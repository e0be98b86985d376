//! The digest of a configuration.

use innkeeper_host::config::{InheritedEnvironment, TransportConfig};
use innkeeper_host::{Config, LaunchSpec, inherited_environment};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::ConfigSource;

/// Number of hexadecimal digits of the digest in the name of a socket: paths of sockets are short.
const DIGEST_DIGITS: usize = 32;

/// Variables that each shell sets anew, and that change no program.
const SHELL_VARIABLES: [&str; 3] = ["_", "OLDPWD", "SHLVL"];

/// Returns the digest of all that decides how the servers of a configuration run: the files with
/// their contents, the settings and the launch of each server with its secrets, and the variables
/// that the servers inherit. `None` for a configuration without a file.
pub(crate) fn configuration_digest(source: &ConfigSource, config: &Config) -> Option<String> {
    if source.files().is_empty() {
        return None;
    }
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    };
    add(env!("CARGO_PKG_VERSION").as_bytes());
    for file in source.files() {
        let file = file.canonicalize().ok()?;
        add(file.as_os_str().as_encoded_bytes());
        add(&std::fs::read(&file).ok()?);
    }
    add(json!([config.host, config.invalid, config.disabled]).to_string().as_bytes());
    for (server, launch) in config.servers.values().zip(LaunchSpec::all(config)) {
        add(json!(server).to_string().as_bytes());
        add(launch.fingerprint().as_bytes());
        let command = match &server.transport {
            TransportConfig::Stdio { command, .. } => command.expose().as_str(),
            _ => "",
        };
        let inherits_all = server.confinement.inherit_env == InheritedEnvironment::Complete;
        let variables = if inherits_all {
            let all = config.environment.iter_os();
            all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        } else {
            inherited_environment(&config.environment, command)
        };
        for (name, value) in variables {
            if !SHELL_VARIABLES.iter().any(|shell| name == *shell) {
                add(name.as_encoded_bytes());
                add(value.as_encoded_bytes());
            }
        }
    }
    Some(format!("{:.DIGEST_DIGITS$x}", hash.finalize()))
}
