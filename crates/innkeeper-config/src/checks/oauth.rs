//! OAuth settings of a remote server entry.

mod enterprise;

use crate::checks::entry_checker::EntryChecker;
use crate::form::raw;
use crate::secret::{ExpandedValue, Secret};
use crate::settings::server::{OauthConfig, OauthGrant};
use crate::text::key_location::{PathSegment, key_segment};

/// Returns the OAuth settings of an entry, or `None` after an error.
pub(crate) fn oauth(checker: &mut EntryChecker<'_>, typed: raw::Oauth) -> Option<OauthConfig> {
    if let (Some(_), Some(_)) = (&typed.enterprise, typed.grant) {
        checker.error(
            &[key_segment("oauth"), key_segment("grant")],
            "not allowed together with `enterprise`",
        );
        return None;
    }
    let enterprise = match typed.enterprise {
        Some(typed) => enterprise::enterprise(checker, typed).map(Some),
        None => Some(None),
    };
    let client_id = expand(checker, &key_path("clientId"), typed.client_id);
    let client_secret = expand(checker, &key_path("clientSecret"), typed.client_secret);
    let private_key = expand(checker, &key_path("privateKey"), typed.private_key);
    let issuer = expand(checker, &key_path("issuer"), typed.issuer);
    let client_metadata_url =
        expand(checker, &key_path("clientMetadataUrl"), typed.client_metadata_url);
    let redirect_uri = expand(checker, &key_path("redirectUri"), typed.redirect_uri);
    let oauth = OauthConfig {
        client_id: client_id?,
        client_secret: client_secret?.map(|secret| Secret::new(secret.expose())),
        private_key: private_key?.map(|key| Secret::new(key.expose())),
        issuer: issuer?,
        scopes: raw::strings(typed.scopes),
        client_metadata_url: client_metadata_url?,
        redirect_uri: redirect_uri?,
        enterprise: enterprise?,
        grant: match typed.grant {
            None | Some(raw::Grant::AuthorizationCode) => OauthGrant::AuthorizationCode,
            Some(raw::Grant::ClientCredentials) => OauthGrant::ClientCredentials,
        },
    };
    check(checker, &oauth).then_some(oauth)
}

/// Expands the variables of a value; the outer `None` follows an error.
fn expand(
    checker: &mut EntryChecker<'_>,
    path: &[PathSegment<'_>],
    source_text: Option<String>,
) -> Option<Option<ExpandedValue>> {
    let Some(source_text) = source_text else { return Some(None) };
    let replaced = checker.expand(path, &source_text)?;
    Some(Some(ExpandedValue::new(replaced.value, source_text)))
}

fn key_path(name: &'static str) -> [PathSegment<'static>; 2] {
    [key_segment("oauth"), key_segment(name)]
}

fn is_https_with_path(url: &str) -> bool {
    url.strip_prefix("https://").is_some_and(|rest| rest.contains('/'))
}

fn check(checker: &mut EntryChecker<'_>, oauth: &OauthConfig) -> bool {
    let mut complete = true;
    let mut wrong = |name: &'static str, message: &str| {
        checker.error(&key_path(name), message);
        complete = false;
    };
    if oauth.client_metadata_url.as_ref().is_some_and(|url| !is_https_with_path(url.expose())) {
        wrong("clientMetadataUrl", "expected `https://` with a path");
    }
    if oauth.client_secret.is_some() && oauth.client_id.is_none() {
        wrong("clientSecret", "needs a `clientId`");
    }
    if oauth.issuer.is_some() && oauth.client_id.is_none() {
        wrong("issuer", "needs a `clientId`");
    }
    let proof = oauth.client_secret.is_some() || oauth.private_key.is_some();
    let uses_client_credentials = oauth.grant == OauthGrant::ClientCredentials;
    if uses_client_credentials && !(oauth.client_id.is_some() && proof) {
        let needed =
            "`client_credentials` needs a `clientId` with a `clientSecret` or `privateKey`";
        wrong("grant", needed);
    }
    if oauth.private_key.is_some() && !uses_client_credentials {
        wrong("privateKey", "only for the grant `client_credentials`");
    }
    if oauth.enterprise.is_some() && oauth.client_id.is_none() {
        wrong(
            "enterprise",
            "needs a `clientId` registered at the server's own authorization server",
        );
    }
    complete
}
