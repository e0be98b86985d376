//! What is kept about signing in at one server: the token, whom it was given to, and for what.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rmcp::transport::auth::StoredCredentials;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::Secret;
use crate::transport::sent::Sent;

/// How long before its end a token is renewed; one that is shorter than twice that, half-way.
const EARLY: Duration = Duration::from_secs(60);

/// A client as an authorization server knows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Client {
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<String>,
    pub(super) redirect_uri: String,
}

/// A token and what belongs to it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Token {
    access: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh: Option<String>,
    /// In seconds of the Unix epoch; absent where the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    /// From when on it is to be renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renew: Option<u64>,
    /// The authorization server that gave it; it is shown to no other.
    pub(super) issuer: String,
    pub(super) client: Client,
    granted: Vec<String>,
}

/// What is kept about one server.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Record {
    /// For the person who finds the file.
    pub(super) server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<Token>,
    /// The scopes that were asked for so far; the next sign-in asks for them again.
    pub(super) requested: Vec<String>,
    /// The clients that were registered, by authorization server.
    pub(super) clients: BTreeMap<String, Client>,
    /// The authorization server at which a client of the configuration was first used, by client.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) homes: BTreeMap<String, String>,
}

impl Token {
    /// The token in the answer of an authorization server.
    pub(super) fn of(
        answer: &impl Serialize,
        issuer: &str,
        client: Client,
        requested: &[String],
    ) -> Option<Self> {
        let answer = serde_json::to_value(answer).ok()?;
        let text = |key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
        let lasts = answer.get("expires_in").and_then(Value::as_u64);
        let granted = match text("scope") {
            Some(scope) => scope.split_whitespace().map(str::to_owned).collect(),
            None => requested.to_vec(),
        };
        Some(Self {
            access: text("access_token")?,
            refresh: text("refresh_token"),
            expires: lasts.map(|lasts| now().saturating_add(lasts)),
            renew: lasts
                .map(|lasts| now().saturating_add(lasts - (lasts / 2).min(EARLY.as_secs()))),
            issuer: issuer.to_owned(),
            client,
            granted,
        })
    }

    /// The same in the form that the library renews.
    pub(super) fn stored(&self) -> Option<StoredCredentials> {
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

    /// What a renewal sends.
    pub(super) fn secrets(&self) -> Sent {
        Sent::of([&self.access].into_iter().chain(&self.refresh).chain(&self.client.secret))
    }

    pub(super) fn is(&self, token: Option<&Secret>) -> bool {
        token.is_some_and(|token| token.expose() == self.access)
    }

    pub(super) fn can_be_renewed(&self) -> bool {
        self.refresh.is_some()
    }

    /// The authorization server has said that it will not renew it.
    pub(super) fn not_renewed(&mut self) {
        self.refresh = None;
    }

    /// Whether it can be used without a thought of its end.
    pub(super) fn is_fresh(&self) -> bool {
        self.renew.is_none_or(|due| now() < due)
    }

    /// Whether it can still be used.
    pub(super) fn lasts(&self) -> bool {
        self.expires.is_none_or(|end| now() < end)
    }
}

/// The seconds of the Unix epoch: tokens outlive processes.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
