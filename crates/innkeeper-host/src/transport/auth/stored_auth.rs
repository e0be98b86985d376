//! The stored sign-in of one server: token, clients and scopes.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use innkeeper_config::Secret;
use rmcp::transport::auth::StoredCredentials;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::transport::sent_secrets::SentSecrets;

/// Time between renewal and expiry of a token. A token with a lifetime below twice this value is
/// renewed half-way.
const RENEWAL_LEAD: Duration = Duration::from_secs(60);

/// A client that is registered at an authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RegisteredClient {
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<String>,
    pub(super) redirect_uri: String,
}

/// A token with its issuer, client and scopes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredToken {
    access: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh: Option<String>,
    /// The expiry in seconds since the Unix epoch; absent if the response has no lifetime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    /// The time of renewal in seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renew: Option<u64>,
    /// The authorization server that issued the token. The token is sent to no other.
    pub(super) issuer: String,
    pub(super) client: RegisteredClient,
    granted: Vec<String>,
}

/// The stored sign-in of one server.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StoredAuth {
    /// The name of the server, for a person who reads the file.
    pub(super) server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<StoredToken>,
    /// The scopes of all previous requests. The next sign-in requests the scopes again.
    pub(super) requested: Vec<String>,
    /// The registered clients by authorization server.
    pub(super) clients: BTreeMap<String, RegisteredClient>,
    /// The first authorization server of each configured client, by client id.
    #[serde(rename = "homes", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) client_issuers: BTreeMap<String, String>,
}

impl StoredToken {
    /// Creates a token from the response of an authorization server.
    pub(super) fn from_response(
        response: &impl Serialize,
        issuer: &str,
        client: RegisteredClient,
        requested: &[String],
    ) -> Option<Self> {
        let response = serde_json::to_value(response).ok()?;
        let text = |key: &str| response.get(key).and_then(Value::as_str).map(str::to_owned);
        let lasts = response.get("expires_in").and_then(Value::as_u64);
        let granted = match text("scope") {
            Some(scope) => scope.split_whitespace().map(str::to_owned).collect(),
            None => requested.to_vec(),
        };
        Some(Self {
            access: text("access_token")?,
            refresh: text("refresh_token"),
            expires: lasts.map(|lasts| unix_now().saturating_add(lasts)),
            renew: lasts.map(|lasts| {
                unix_now().saturating_add(lasts - (lasts / 2).min(RENEWAL_LEAD.as_secs()))
            }),
            issuer: issuer.to_owned(),
            client,
            granted,
        })
    }

    /// Returns the token in the format of the library, for a renewal.
    pub(super) fn to_credentials(&self) -> Option<StoredCredentials> {
        let stored = json!({
            "client_id": self.client.id,
            "token_response": {
                "access_token": self.access,
                "token_type": "bearer",
                "refresh_token": self.refresh,
            },
            "granted_scopes": self.granted,
            "issuer": self.issuer,
        });
        serde_json::from_value(stored).ok()
    }

    pub(super) fn access(&self) -> Secret {
        Secret::new(self.access.clone())
    }

    pub(super) fn granted(&self) -> &[String] {
        &self.granted
    }

    /// Returns the secrets that a renewal sends.
    pub(super) fn sent_secrets(&self) -> SentSecrets {
        SentSecrets::new([&self.access].into_iter().chain(&self.refresh).chain(&self.client.secret))
    }

    pub(super) fn matches(&self, token: Option<&Secret>) -> bool {
        token.is_some_and(|token| token.expose() == self.access)
    }

    pub(super) fn is_renewable(&self) -> bool {
        self.refresh.is_some()
    }

    /// Removes the refresh token after the authorization server rejected it.
    pub(super) fn discard_refresh_token(&mut self) {
        self.refresh = None;
    }

    /// Returns whether the token needs no renewal.
    pub(super) fn is_fresh(&self) -> bool {
        self.renew.is_none_or(|due| unix_now() < due)
    }

    /// Returns whether the token has not expired.
    pub(super) fn is_valid(&self) -> bool {
        self.expires.is_none_or(|expires_at| unix_now() < expires_at)
    }
}

/// Returns the current time in seconds since the Unix epoch. Tokens outlive processes.
fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(response: &Value) -> StoredToken {
        let client = RegisteredClient { id: "us".into(), secret: None, redirect_uri: "".into() };
        StoredToken::from_response(response, "i", client, &[]).unwrap()
    }

    #[test]
    fn a_token_is_valid_before_its_expiry_and_is_renewed_a_minute_or_half_its_time_before() {
        for (lifetime, fresh_for) in [(0, 0), (1, 1), (100, 50), (120, 60), (3600, 3540)] {
            let earliest = unix_now();
            let token = token(&json!({"access_token": "t", "expires_in": lifetime}));
            let start = earliest..=unix_now();
            assert!(start.contains(&(token.expires.unwrap() - lifetime)), "{lifetime}");
            assert!(start.contains(&(token.renew.unwrap() - fresh_for)), "{lifetime}");
        }
        let ended = token(&json!({"access_token": "t", "expires_in": 0}));
        assert!(!ended.is_valid() && !ended.is_fresh());
        let due = StoredToken { expires: Some(unix_now() + 3600), ..ended };
        assert!(due.is_valid() && !due.is_fresh());
        let unlimited = token(&json!({"access_token": "t"}));
        assert!(unlimited.is_valid() && unlimited.is_fresh());
        assert!(StoredToken { renew: Some(unix_now() + 3600), ..unlimited }.is_fresh());
    }

    #[test]
    fn the_tokens_and_the_secret_of_the_client_are_masked_in_a_response_to_a_renewal() {
        let mut token = token(&json!({"access_token": "access-1", "refresh_token": "refresh-2"}));
        token.client.secret = Some("secret-3".into());
        let text = token.sent_secrets().mask("access-1, refresh-2, secret-3: invalid".to_owned());
        for secret in ["access-1", "refresh-2", "secret-3"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(text.ends_with(": invalid"), "{text}");
    }
}
