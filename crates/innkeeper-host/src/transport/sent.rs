//! The secrets that a request carried, kept with an answer that is no success: its words may repeat them.

use reqwest::Response;
use reqwest::header::HeaderMap;

use crate::config::Secret;

/// What was sent and is not to be told.
#[derive(Clone, Default)]
pub(super) struct Sent(Vec<Secret>);

impl Sent {
    pub(super) fn of<'a>(secrets: impl IntoIterator<Item = &'a String>) -> Self {
        Self(secrets.into_iter().map(Secret::new).collect())
    }

    /// Keeps a secret with an answer that is none to be read as a success.
    pub(super) fn note(response: &mut Response, secret: &Secret) {
        if !response.status().is_success() {
            let sent: &mut Self = response.extensions_mut().get_or_insert_default();
            sent.0.push(secret.clone());
        }
    }

    /// The same of each header that is secret.
    pub(super) fn note_headers(response: &mut Response, headers: &HeaderMap) {
        if response.status().is_success() {
            return;
        }
        for value in headers.values().filter(|value| value.is_sensitive()) {
            if let Ok(value) = value.to_str() {
                Self::note(response, &Secret::new(value));
            }
        }
    }

    /// What the request had that led to this answer.
    pub(super) fn with(response: &Response) -> Self {
        response.extensions().get().cloned().unwrap_or_default()
    }

    pub(super) fn mask(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| secret.mask(text))
    }
}
