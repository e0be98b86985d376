//! How to sign in at a remote server, as far as a file says it.

mod enterprise;

use super::check::Checker;
use super::place::key;
use super::raw;
use super::secret::{Expanded, Secret};
use super::server::{Grant, Oauth};

/// The settings of an entry; `None` once an error has been told.
pub(super) fn oauth(checker: &mut Checker<'_>, typed: raw::Oauth) -> Option<Oauth> {
    if let (Some(_), Some(_)) = (&typed.enterprise, typed.grant) {
        checker.error(&[key("oauth"), key("grant")], "has no use beside `enterprise`");
        return None;
    }
    let enterprise = match typed.enterprise {
        Some(typed) => enterprise::enterprise(checker, typed).map(Some),
        None => Some(None),
    };
    let mut value = |name: &'static str, written: Option<String>| match written {
        None => Some(None),
        Some(written) => {
            let replaced = checker.expand(&[key("oauth"), key(name)], &written)?;
            Some(Some(Expanded::new(replaced.value, written)))
        }
    };
    let client_id = value("clientId", typed.client_id);
    let client_secret = value("clientSecret", typed.client_secret);
    let private_key = value("privateKey", typed.private_key);
    let issuer = value("issuer", typed.issuer);
    let client_metadata_url = value("clientMetadataUrl", typed.client_metadata_url);
    let redirect_uri = value("redirectUri", typed.redirect_uri);
    let oauth = Oauth {
        client_id: client_id?,
        client_secret: client_secret?.map(|secret| Secret::new(secret.expose())),
        private_key: private_key?.map(|key| Secret::new(key.expose())),
        issuer: issuer?,
        scopes: raw::texts(typed.scopes),
        client_metadata_url: client_metadata_url?,
        redirect_uri: redirect_uri?,
        enterprise: enterprise?,
        grant: match typed.grant {
            None | Some(raw::Grant::AuthorizationCode) => Grant::AuthorizationCode,
            Some(raw::Grant::ClientCredentials) => Grant::ClientCredentials,
        },
    };
    check(checker, &oauth).then_some(oauth)
}

fn check(checker: &mut Checker<'_>, oauth: &Oauth) -> bool {
    let mut whole = true;
    let mut wrong = |name: &'static str, message: &str| {
        checker.error(&[key("oauth"), key(name)], message);
        whole = false;
    };
    let https = |url: &Expanded| {
        url.expose().strip_prefix("https://").is_some_and(|rest| rest.contains('/'))
    };
    if oauth.client_metadata_url.as_ref().is_some_and(|url| !https(url)) {
        wrong("clientMetadataUrl", "expected `https://` with a path");
    }
    if oauth.client_secret.is_some() && oauth.client_id.is_none() {
        wrong("clientSecret", "has no `clientId` beside it");
    }
    if oauth.issuer.is_some() && oauth.client_id.is_none() {
        wrong("issuer", "has no `clientId` beside it");
    }
    let proof = oauth.client_secret.is_some() || oauth.private_key.is_some();
    let own = oauth.grant == Grant::ClientCredentials;
    if own && !(oauth.client_id.is_some() && proof) {
        let needed =
            "`client_credentials` needs a `clientId` with a `clientSecret` or `privateKey`";
        wrong("grant", needed);
    }
    if oauth.private_key.is_some() && !own {
        wrong("privateKey", "is for the grant `client_credentials`");
    }
    if oauth.enterprise.is_some() && oauth.client_id.is_none() {
        wrong(
            "enterprise",
            "needs the `clientId` that the server's own authorization server knows",
        );
    }
    whole
}
