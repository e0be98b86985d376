//! HTTP headers for authentication and retries.

use std::time::{Duration, SystemTime};

use innkeeper_host::config::Secret;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::client::HttpErrorSource;
use crate::provider::{LlmErrorKind, ProviderApi};

/// Returns the headers of a JSON request: `content-type`, then the additional headers of the API.
///
/// # Errors
///
/// A header has an invalid name or value.
pub(super) fn json_headers(
    additional: Vec<(&'static str, String)>,
) -> Result<HeaderMap, HttpErrorSource> {
    let mut headers = HeaderMap::new();
    headers.append(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in additional {
        headers.append(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
    }
    Ok(headers)
}

/// Adds the API key in the header of the API. A key that is not a valid header value is left out,
/// and the provider then reports a missing key.
pub(super) fn add_api_key(headers: &mut HeaderMap, api: ProviderApi, key: &Secret) {
    let (name, value) = match api {
        ProviderApi::OpenAiChat | ProviderApi::OpenAiResponses | ProviderApi::Ollama => {
            (AUTHORIZATION, format!("Bearer {}", key.expose()))
        }
        ProviderApi::Anthropic => (HeaderName::from_static("x-api-key"), key.expose().to_owned()),
        ProviderApi::GeminiGenerate | ProviderApi::GeminiInteractions => {
            (HeaderName::from_static("x-goog-api-key"), key.expose().to_owned())
        }
    };
    if let Ok(mut value) = HeaderValue::try_from(value) {
        value.set_sensitive(true);
        headers.append(name, value);
    }
}

/// The retry hints in the headers of an error response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RetryHints {
    should_retry: Option<bool>,
    retry_after: Option<Duration>,
}

/// Parses `x-should-retry`, `retry-after-ms` and `retry-after`. A date in `retry-after` is relative
/// to the `date` of the response, so that clock differences do not matter.
pub(super) fn parse_retry_hints(headers: &HeaderMap) -> RetryHints {
    let should_retry = match header_text(headers, "x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) | None => None,
    };
    let after = header_duration(headers, "retry-after-ms", 0.001)
        .or_else(|| header_duration(headers, "retry-after", 1.0))
        .or_else(|| {
            let date = header_date(headers, "date")?;
            header_date(headers, "retry-after")?.duration_since(date).ok()
        });
    RetryHints { should_retry, retry_after: after }
}

fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn header_duration(headers: &HeaderMap, name: &str, scale: f64) -> Option<Duration> {
    let number: f64 = header_text(headers, name)?.parse().ok()?;
    Duration::try_from_secs_f64(number * scale).ok()
}

fn header_date(headers: &HeaderMap, name: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(header_text(headers, name)?).ok()
}

impl RetryHints {
    /// Applies the hints to an error kind.
    pub(super) fn apply_to(self, kind: LlmErrorKind) -> LlmErrorKind {
        let repeats = match (self.should_retry, kind) {
            (
                Some(should_retry),
                LlmErrorKind::RetryLater { .. }
                | LlmErrorKind::InvalidRequest
                | LlmErrorKind::TimedOut,
            ) => should_retry,
            (_, kind) => kind.is_retryable(),
        };
        match (kind, repeats) {
            (LlmErrorKind::RetryLater { after }, true) => {
                LlmErrorKind::RetryLater { after: self.retry_after.or(after) }
            }
            (LlmErrorKind::InvalidRequest | LlmErrorKind::TimedOut, true)
                if self.should_retry.is_some() =>
            {
                LlmErrorKind::RetryLater { after: self.retry_after }
            }
            (LlmErrorKind::RetryLater { .. } | LlmErrorKind::TimedOut, false) => {
                LlmErrorKind::InvalidRequest
            }
            (kind, _) => kind,
        }
    }
}
