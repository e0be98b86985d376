//! Who vouches for a user, as far as a file says it.

use reqwest::Url;

use super::super::check::Checker;
use super::super::place::key;
use super::super::raw;
use super::super::secret::{Expanded, Secret};
use super::super::server::{Enterprise, IdToken};

/// The identity provider of an entry; `None` once an error has been told.
pub(super) fn enterprise(checker: &mut Checker<'_>, typed: raw::Enterprise) -> Option<Enterprise> {
    let step = |name: &'static str| [key("oauth"), key("enterprise"), key(name)];
    let mut value = |name: &'static str, written: Option<String>| match written {
        None => Some(None),
        Some(written) => {
            let replaced = checker.expand(&step(name), &written)?;
            Some(Some(Expanded::new(replaced.value, written)))
        }
    };
    let issuer = value("issuer", typed.issuer);
    let token_endpoint = value("tokenEndpoint", typed.token_endpoint);
    let client_id = value("clientId", typed.client_id);
    let client_secret = value("clientSecret", typed.client_secret);
    let token = value("idToken", typed.id_token);
    let file = value("idTokenFile", typed.id_token_file);
    let (issuer, endpoint, client_id) = (issuer?, token_endpoint?, client_id?);
    let (client_secret, token, file) = (client_secret?, token?, file?);
    let id_token = match (token, file) {
        (Some(token), None) => Some(IdToken::Value(Secret::new(token.expose()))),
        (None, Some(file)) => {
            let path = checker.surroundings.resolve(file.expose());
            Some(IdToken::File(Expanded::new(path, file.as_written())))
        }
        (Some(_), Some(_)) => {
            checker.error(&step("idToken"), "stands beside `idTokenFile`; remove one of them");
            None
        }
        (None, None) => {
            checker.error(&step("idToken")[..2], "needs an `idToken` or an `idTokenFile`");
            None
        }
    };
    let mut needed = |name: &'static str, value: Option<Expanded>| {
        if value.is_none() {
            checker.error(&step(name)[..2], format!("needs `{name}`"));
        }
        value
    };
    let issuer = needed("issuer", issuer);
    let endpoint = needed("tokenEndpoint", endpoint);
    let client_id = needed("clientId", client_id);
    let token_endpoint = endpoint?;
    if !is_private_way(token_endpoint.expose()) {
        let message = "expected `https://`, or `http://` on this machine";
        checker.error(&step("tokenEndpoint"), message);
        return None;
    }
    let client_secret = client_secret.map(|secret| Secret::new(secret.expose()));
    let (issuer, client_id, id_token) = (issuer?, client_id?, id_token?);
    Some(Enterprise { issuer, token_endpoint, client_id, client_secret, id_token })
}

/// Whether nobody reads what goes to an address on its way there.
fn is_private_way(address: &str) -> bool {
    let Ok(url) = Url::parse(address) else { return false };
    let host = url.host_str().unwrap_or_default();
    let here = ["localhost", "127.0.0.1", "[::1]"].contains(&host);
    !host.is_empty() && (url.scheme() == "https" || (url.scheme() == "http" && here))
}
