//! The secrets of a request, to mask them in error responses.

use innkeeper_config::Secret;
use reqwest::Response;
use reqwest::header::HeaderMap;

/// The secrets that a request carried.
#[derive(Clone, Default)]
pub(super) struct SentSecrets(Vec<Secret>);

impl SentSecrets {
    pub(super) fn new<'a>(secrets: impl IntoIterator<Item = &'a String>) -> Self {
        Self(secrets.into_iter().map(Secret::new).collect())
    }

    /// Attaches a secret to a response without a success status.
    pub(super) fn attach(response: &mut Response, secret: &Secret) {
        if !response.status().is_success() {
            let sent: &mut Self = response.extensions_mut().get_or_insert_default();
            sent.0.push(secret.clone());
        }
    }

    /// Attaches the sensitive headers to a response without a success status.
    pub(super) fn attach_headers(response: &mut Response, headers: &HeaderMap) {
        if response.status().is_success() {
            return;
        }
        for value in headers.values().filter(|value| value.is_sensitive()) {
            if let Ok(value) = value.to_str() {
                Self::attach(response, &Secret::new(value));
            }
        }
    }

    pub(super) fn from_response(response: &Response) -> Self {
        response.extensions().get().cloned().unwrap_or_default()
    }

    pub(super) fn mask(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| secret.mask_whole(secret.mask(text)))
    }
}
