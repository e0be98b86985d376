//! The secrets that a run knows.

use innkeeper_golden::{KnownSecret, SecretPlace};
use innkeeper_host::Config;
use innkeeper_host::config::TransportConfig;

use crate::transport::Endpoint;

/// Returns what no recording of a run may contain: the key of the model, the credentials in its base
/// URL and in those of the servers, the values of `env` and `headers`, and the secrets of sign-ins.
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
            TransportConfig::Stdio { env, .. } => ("env", env),
            TransportConfig::Http { url, headers }
            | TransportConfig::Sse { url, headers }
            | TransportConfig::WebSocket { url, headers } => {
                secrets.extend(url_credentials("url", url.expose()));
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
