//! Converts HTTP error responses and connection errors to request errors.

use std::error::Error;
use std::io;
use std::time::{Duration, SystemTime};

use innkeeper_protocol::{ErrorObject, RequestId, skim};
use reqwest::Response;
use reqwest::header::{DATE, HeaderMap, LOCATION, RETRY_AFTER};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::error::{ConnectFailureKind, ProtocolError, UnavailableReason};
use crate::session::RequestError;
use crate::text::display_safe;
use crate::transport::sent_secrets::SentSecrets;

/// Maximum number of bytes of an error body to read.
const MAX_BODY_BYTES: usize = 64 << 10;

/// Timeout for reading the body.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of the displayed body, in characters.
const MAX_SHOWN_CHARS: usize = 200;

/// Converts an error of the HTTP client.
pub(in crate::transport) fn send_error(error: &reqwest::Error) -> RequestError {
    let message = describe_error(error);
    if error.is_connect() {
        let reason =
            UnavailableReason::Unreachable { kind: connect_failure(error), cause: message };
        RequestError::Unavailable { reason, sent: false }
    } else {
        RequestError::Unavailable {
            reason: UnavailableReason::ConnectionLost(message),
            sent: !error.is_builder(),
        }
    }
}

/// Returns why a connection was not established.
fn connect_failure(error: &reqwest::Error) -> ConnectFailureKind {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            if is_certificate_error(error) {
                return ConnectFailureKind::Certificate;
            }
            if let io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound = error.kind() {
                return ConnectFailureKind::Refused;
            }
        }
        // The library has no public type for this error.
        if error.to_string() == "dns error" {
            return ConnectFailureKind::NameNotFound;
        }
        cause = error.source();
    }
    ConnectFailureKind::Other
}

/// Returns whether an error contains a rejected certificate. The source of an I/O error is not the
/// error inside it but that error's source.
fn is_certificate_error(error: &io::Error) -> bool {
    let mut inner = error.get_ref();
    while let Some(error) = inner {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return matches!(error, rustls::Error::InvalidCertificate(_));
        }
        inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    }
    false
}

/// Describes the causes of an error without the URL, which may contain secrets.
pub(in crate::transport) fn describe_error(error: &reqwest::Error) -> Box<str> {
    // The outermost message contains the URL; the causes are its sources.
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    causes.dedup();
    if causes.is_empty() {
        causes.push("HTTP request failed".to_owned());
    }
    display_safe(&causes.join(": ")).into()
}

/// A response without a success status.
#[derive(Debug)]
pub(super) struct StatusFailure {
    pub(super) status: u16,
    /// The request that the JSON-RPC error in the body names.
    pub(super) id: Option<u64>,
    pub(super) error: RequestError,
}

/// Converts a response without a success status.
pub(in crate::transport) async fn status_error(response: Response) -> RequestError {
    read_status_failure(response).await.error
}

/// Reads a response without a success status. The host does not follow redirects: the other server
/// would receive the headers for this URL.
pub(super) async fn read_status_failure(mut response: Response) -> StatusFailure {
    let status = response.status().as_u16();
    let retry_after = parse_retry_after(response.headers(), SystemTime::now());
    let moved = describe_redirect(&response);
    let sent = SentSecrets::from_response(&response);
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_BODY_BYTES {
                body.truncate(MAX_BODY_BYTES);
                break;
            }
        }
    };
    // After a timeout the received part of the body is sufficient.
    let _ = timeout(BODY_TIMEOUT, reading).await;
    let is_busy = matches!(status, 429 | 502 | 503);
    let error_object = parse_error_object(&body, &sent);
    let words = match &error_object {
        Some((_, error)) => error.message.clone(),
        None => moved.unwrap_or_else(|| sent.mask(String::from_utf8_lossy(&body).into_owned())),
    };
    if let Some((id, error)) = error_object
        && (id.is_some() || !is_busy)
    {
        // An error that names a request is the result of the request, whatever the status.
        return StatusFailure { status, id, error: RequestError::ErrorResponse(error) };
    }
    let words: String = words.trim().chars().take(MAX_SHOWN_CHARS).collect();
    let body = display_safe(&words).replace('\n', " ").into();
    let error = if is_busy {
        let reason = UnavailableReason::Busy { status, retry_after, body };
        // With 502 the gateway may have forwarded the request.
        RequestError::Unavailable { reason, sent: status == 502 }
    } else {
        RequestError::Protocol(ProtocolError::HttpStatus { status, body })
    };
    StatusFailure { status, id: None, error }
}

/// Parses the JSON-RPC error in a body with any id, which is also returned: the response belongs to
/// this request. An error without `jsonrpc` comes from a gateway.
fn parse_error_object(body: &[u8], sent: &SentSecrets) -> Option<(Option<u64>, ErrorObject)> {
    let text = std::str::from_utf8(body).ok()?.trim();
    if skim::member(text, "jsonrpc") != Some(r#""2.0""#) {
        return None;
    }
    let error: Value = serde_json::from_str(skim::member(text, "error")?).ok()?;
    let data = error.get("data").map(|data| sent.mask(data.to_string()));
    let id = skim::member(text, "id").and_then(RequestId::from_raw);
    let error = ErrorObject {
        code: error.get("code")?.as_i64()?,
        message: sent.mask(error.get("message")?.as_str()?.to_owned()),
        data: data.and_then(|data| RawValue::from_string(data).ok()),
    };
    Some((id.as_ref().and_then(RequestId::as_client_id), error))
}

/// Describes a redirect with a hint. Shows only the origin because the path may contain secrets.
fn describe_redirect(response: &Response) -> Option<String> {
    let to = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
    let here = response.url();
    let to = response.url().join(to.to_str().ok()?).ok()?;
    let origin = to.origin().ascii_serialization();
    let change = if here.origin() != to.origin() {
        format!("the target is `{origin}`")
    } else if to.path().strip_suffix('/') == Some(here.path()) {
        "the target ends with a slash".to_owned()
    } else {
        format!("the target is another path of `{origin}`")
    };
    Some(format!(
        "redirects are not followed; {change}; if the target is correct, set `url` to the target"
    ))
}

/// Parses `Retry-After` (RFC 9110, 10.2.3): seconds, or a date, relative to the `Date` of the response
/// if it has one, so that clock differences do not matter.
fn parse_retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name| Some(headers.get(name)?.to_str().ok()?.trim());
    let after = text(RETRY_AFTER)?;
    match after.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            let sent = text(DATE).and_then(|text| httpdate::parse_http_date(text).ok());
            let after = httpdate::parse_http_date(after).ok()?;
            let wait = after.duration_since(sent.unwrap_or(now)).ok()?;
            Some(Duration::from_secs(wait.as_secs()))
        }
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_config::Environment;

    use super::*;
    use crate::transport::client::http_client;

    #[test]
    fn a_rejected_certificate_is_found_inside_nested_io_errors() {
        let certificate =
            || rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let error = io::Error::new(io::ErrorKind::InvalidData, certificate());
        assert!(is_certificate_error(&error));
        assert!(is_certificate_error(&io::Error::other(error)));
        assert!(!is_certificate_error(&io::Error::other(rustls::Error::HandshakeNotComplete)));
        assert!(!is_certificate_error(&io::Error::from(io::ErrorKind::ConnectionRefused)));
    }

    #[test]
    fn a_requested_wait_has_seconds_or_a_date_relative_to_that_of_the_response() {
        let wait = |after: &str, date: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, after.parse().unwrap());
            if let Some(date) = date {
                headers.insert(DATE, date.parse().unwrap());
            }
            parse_retry_after(&headers, SystemTime::UNIX_EPOCH).map(|wait| wait.as_secs())
        };
        let date = "Thu, 01 Jan 1970 00:01:30 GMT";
        assert_eq!(wait("7", Some(date)), Some(7));
        assert_eq!(wait(date, None), Some(90));
        assert_eq!(wait(date, Some("Thu, 01 Jan 1970 00:01:00 GMT")), Some(30));
        assert_eq!(wait(date, Some("Thu, 01 Jan 1970 00:02:00 GMT")), None);
        assert_eq!(wait("soon", None), None);
    }

    #[tokio::test]
    async fn a_handshake_that_ends_is_a_connection_failure_of_no_special_kind() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/mcp", listener.local_addr().unwrap());
        let client = http_client(&Environment::default(), false).unwrap();
        let (sent, accepted) = tokio::join!(client.get(url).send(), async {
            listener.accept().await.map(|(stream, _)| drop(stream))
        });
        accepted.unwrap();
        assert_eq!(connect_failure(&sent.unwrap_err()), ConnectFailureKind::Other);
    }
}
