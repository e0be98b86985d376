//! Enterprise identity provider settings of a remote server entry.

use url::Url;

use super::expand;
use crate::checks::entry_checker::EntryChecker;
use crate::form::raw;
use crate::secret::{ExpandedValue, Secret};
use crate::settings::server::{EnterpriseConfig, IdToken};
use crate::text::key_location::{PathSegment, key_segment};

/// Returns the identity provider of an entry, or `None` after an error.
pub(super) fn enterprise(
    checker: &mut EntryChecker<'_>,
    typed: raw::Enterprise,
) -> Option<EnterpriseConfig> {
    let issuer = expand(checker, &key_path("issuer"), typed.issuer);
    let token_endpoint = expand(checker, &key_path("tokenEndpoint"), typed.token_endpoint);
    let client_id = expand(checker, &key_path("clientId"), typed.client_id);
    let client_secret = expand(checker, &key_path("clientSecret"), typed.client_secret);
    let token = expand(checker, &key_path("idToken"), typed.id_token);
    let file = expand(checker, &key_path("idTokenFile"), typed.id_token_file);
    let issuer = issuer?;
    let endpoint = token_endpoint?;
    let client_id = client_id?;
    let client_secret = client_secret?;
    let token = token?;
    let file = file?;
    let id_token = match (token, file) {
        (Some(token), None) => Some(IdToken::Value(Secret::new(token.expose()))),
        (None, Some(file)) => {
            let path = checker.scope.resolve(file.expose());
            Some(IdToken::File(ExpandedValue::new(path, file.as_written())))
        }
        (Some(_), Some(_)) => {
            checker.error(
                &key_path("idToken"),
                "not allowed together with `idTokenFile`; remove one of the two keys",
            );
            None
        }
        (None, None) => {
            checker.error(&key_path("idToken")[..2], "needs an `idToken` or an `idTokenFile`");
            None
        }
    };
    let issuer = needed(checker, "issuer", issuer);
    let endpoint = needed(checker, "tokenEndpoint", endpoint);
    let client_id = needed(checker, "clientId", client_id);
    let token_endpoint = endpoint?;
    if !is_encrypted_or_local(token_endpoint.expose()) {
        let message = "expected `https://`, or `http://` on this machine";
        checker.error(&key_path("tokenEndpoint"), message);
        return None;
    }
    let client_secret = client_secret.map(|secret| Secret::new(secret.expose()));
    let issuer = issuer?;
    let client_id = client_id?;
    let id_token = id_token?;
    Some(EnterpriseConfig { issuer, token_endpoint, client_id, client_secret, id_token })
}

/// Reports a missing value.
fn needed(
    checker: &mut EntryChecker<'_>,
    name: &'static str,
    value: Option<ExpandedValue>,
) -> Option<ExpandedValue> {
    if value.is_none() {
        checker.error(&key_path(name)[..2], format!("needs `{name}`"));
    }
    value
}

fn key_path(name: &'static str) -> [PathSegment<'static>; 3] {
    [key_segment("oauth"), key_segment("enterprise"), key_segment(name)]
}

/// Returns whether traffic to the URL is encrypted or stays on this machine.
fn is_encrypted_or_local(address: &str) -> bool {
    let Ok(url) = Url::parse(address) else { return false };
    let host = url.host_str().unwrap_or_default();
    let here = ["localhost", "127.0.0.1", "[::1]"].contains(&host);
    !host.is_empty() && (url.scheme() == "https" || (url.scheme() == "http" && here))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_token_goes_to_https_or_to_this_machine_only() {
        for address in ["https://i.example/t", "http://localhost:1/t", "http://[::1]/t"] {
            assert!(is_encrypted_or_local(address), "{address}");
        }
        for address in ["http://i.example/t", "ftp://localhost/t", "ws://127.0.0.1/t", "localhost"]
        {
            assert!(!is_encrypted_or_local(address), "{address}");
        }
    }
}
