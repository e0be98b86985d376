//! The secrets that a run knows.

use innkeeper_golden::{KnownSecret, SecretPlace};
use innkeeper_host::Config;
use innkeeper_host::config::{ExpandedValue, TransportConfig};

use crate::transport::Endpoint;

/// Variables that say where and as whom the user works. Their values are in ordinary texts.
const PUBLIC_VARIABLES: [&str; 14] = [
    "HOME",
    "PWD",
    "USER",
    "LOGNAME",
    "USERNAME",
    "PATH",
    "SHELL",
    "LANG",
    "TMPDIR",
    "cwd",
    "userHome",
    "workspaceFolder",
    "workspaceFolderBasename",
    "pathSeparator",
];

/// Returns what no recording of a run may contain: the key of the model, the credentials in its base
/// URL and in those of the servers, the values of `env` and `headers`, what variables stand for in
/// other values, and the secrets of sign-ins.
pub fn known_secrets(endpoint: Option<&Endpoint>, config: &Config) -> Vec<KnownSecret> {
    let mut secrets = Vec::new();
    if let Some(endpoint) = endpoint {
        let key = endpoint.key.iter().map(|key| secret("api-key", key.expose()));
        secrets.extend(key);
        let base_url = url_credentials("base-url", &endpoint.base_url).into_iter();
        secrets.extend(base_url.map(|known| KnownSecret { place: SecretPlace::BaseUrl, ..known }));
    }
    for server in config.servers.values() {
        let (kind, values) = match &server.transport {
            TransportConfig::Stdio { command, args, env, .. } => {
                secrets.extend(args.iter().chain([command]).flat_map(expanded_variables));
                ("env", env)
            }
            TransportConfig::Http { url, headers }
            | TransportConfig::Sse { url, headers }
            | TransportConfig::WebSocket { url, headers } => {
                secrets.extend(url_credentials("url", url.expose()));
                secrets.extend(expanded_variables(url));
                ("header", headers)
            }
            TransportConfig::InProcess => continue,
        };
        let values =
            values.iter().map(|(name, value)| secret(&format!("{kind}:{name}"), value.expose()));
        secrets.extend(values);
        let sign_in = server.oauth.iter().flat_map(|oauth| oauth.secrets());
        secrets.extend(sign_in.map(|value| secret("oauth", value.expose())));
    }
    secrets
}

fn secret(name: &str, value: &str) -> KnownSecret {
    KnownSecret { name: name.to_owned(), value: value.to_owned(), place: SecretPlace::Anywhere }
}

/// Returns the user, the password and the parameters of a URL.
fn url_credentials(kind: &str, url: &str) -> Vec<KnownSecret> {
    let Ok(url) = url::Url::parse(url) else { return Vec::new() };
    let user = Some(url.username()).filter(|user| !user.is_empty());
    let user = user.map(|user| secret(&format!("{kind}:user"), user));
    let password = url.password().map(|password| secret(&format!("{kind}:password"), password));
    let parameters = url.query_pairs().filter(|(_, value)| !value.is_empty());
    let parameters = parameters.map(|(name, value)| secret(&format!("{kind}:{name}"), &value));
    user.into_iter().chain(password).chain(parameters).collect()
}

/// Returns what the variables of a value stand for: the text between what stands before the first and
/// after the last one.
fn expanded_variables(value: &ExpandedValue) -> Option<KnownSecret> {
    let (before, rest) = value.source().split_once("${")?;
    let (names, after) = rest.rsplit_once('}')?;
    let name = names.split(['}', ':']).next().unwrap_or_default();
    let name = if name == "env" { names.trim_start_matches("env:") } else { name };
    let expanded = value.expose().strip_prefix(before)?.strip_suffix(after)?;
    let is_public = PUBLIC_VARIABLES.contains(&name) && !names.contains("${");
    (!is_public).then(|| secret(&format!("variable:{name}"), expanded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_variable_stands_for_is_known_unless_it_is_a_place_of_the_user() {
        let known = |value: &str, source: &str| {
            let found = expanded_variables(&ExpandedValue::new(value.to_owned(), source));
            found.map(|known| (known.name, known.value))
        };
        let found = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        assert_eq!(known("--pw=hunter2x", "--pw=${PW}"), found("variable:PW", "hunter2x"));
        assert_eq!(known("hunter2x", "${env:PW}"), found("variable:PW", "hunter2x"));
        assert_eq!(known("a-b", "${A}-${B:-b}"), found("variable:A", "a-b"));
        assert_eq!(known("/home/ada/data", "${HOME}/data"), None);
        assert_eq!(known("--verbose", "--verbose"), None);
    }
}
