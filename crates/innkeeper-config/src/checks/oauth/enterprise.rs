//! Enterprise identity provider settings of a remote server entry.

use url::Url;

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
    let mut value = |name: &'static str, source_text: Option<String>| match source_text {
        None => Some(None),
        Some(source_text) => {
            let replaced = checker.expand(&key_path(name), &source_text)?;
            Some(Some(ExpandedValue::new(replaced.value, source_text)))
        }
    };
    let issuer = value("issuer", typed.issuer);
    let token_endpoint = value("tokenEndpoint", typed.token_endpoint);
    let client_id = value("clientId", typed.client_id);
    let client_secret = value("clientSecret", typed.client_secret);
    let token = value("idToken", typed.id_token);
    let file = value("idTokenFile", typed.id_token_file);
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
    let mut needed = |name: &'static str, value: Option<ExpandedValue>| {
        if value.is_none() {
            checker.error(&key_path(name)[..2], format!("needs `{name}`"));
        }
        value
    };
    let issuer = needed("issuer", issuer);
    let endpoint = needed("tokenEndpoint", endpoint);
    let client_id = needed("clientId", client_id);
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
