//! Response headers that let a page of a configured origin read responses (CORS).
//!
//! Without these headers, a browser sends no request with a JSON body for a page of another origin,
//! and the page reads no response. The origins of this machine get no such headers unless they are
//! configured. No response permits cookies: a page must have a credential of its own.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};

use super::OriginCheck;

const METHODS: &str = "GET, POST, DELETE";

/// Request headers that a page may set, in lower case, in addition to the headers of MCP.
const REQUEST_HEADERS: [&str; 6] = [
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "x-api-key",
    "x-mcp-connection-id",
];

/// The beginning of the names of the headers of MCP, in lower case.
const MCP_HEADER_PREFIX: &str = "mcp-";

/// Response headers that a page may read.
const RESPONSE_HEADERS: &str = "Mcp-Session-Id, X-MCP-Connection-ID, WWW-Authenticate, Retry-After";

/// Time in seconds for which a browser remembers the response to a preflight request.
const PREFLIGHT_SECONDS: &str = "600";

/// Maximum number of request headers that a preflight response names.
const MAX_REQUEST_HEADERS: usize = 32;

impl OriginCheck {
    /// Returns the headers to add to the response to this request; empty unless `Origin` is a
    /// configured origin. The caller has checked the request with [`OriginCheck::check`].
    pub fn cors_headers(&self, parts: &Parts) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let Some(origin) = parts.headers.get(ORIGIN) else { return headers };
        if !origin.to_str().is_ok_and(|origin| self.is_configured_origin(origin)) {
            return headers;
        }
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(RESPONSE_HEADERS));
        headers
    }

    /// Returns the headers of the response to a preflight request, which has no body and the status
    /// 204; `None` for any other request. A preflight request has no credential.
    pub fn preflight_headers(&self, parts: &Parts) -> Option<HeaderMap> {
        let is_preflight = parts.method == Method::OPTIONS
            && parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let mut headers = Some(self.cors_headers(parts)).filter(|_| is_preflight)?;
        if headers.is_empty() {
            return Some(headers);
        }
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_SECONDS));
        if let Some(allowed) = allowed_headers(&parts.headers) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        }
        Some(headers)
    }
}

/// Returns the requested headers that a page may set.
fn allowed_headers(headers: &HeaderMap) -> Option<HeaderValue> {
    let requested = headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let requested = requested.filter_map(|value| value.to_str().ok());
    let names = requested.flat_map(|value| value.split(',')).take(MAX_REQUEST_HEADERS);
    let names = names.map(|name| name.trim().to_ascii_lowercase());
    let allowed: Vec<String> = names
        .filter(|name| {
            REQUEST_HEADERS.contains(&name.as_str()) || name.starts_with(MCP_HEADER_PREFIX)
        })
        .collect();
    (!allowed.is_empty()).then(|| HeaderValue::from_str(&allowed.join(", ")).ok())?
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use http::Request;

    use super::super::OriginSettings;
    use super::*;

    fn check() -> OriginCheck {
        let settings = OriginSettings {
            allowed_origins: vec!["https://app.example.com".to_owned(), "null".to_owned()],
            ..OriginSettings::default()
        };
        OriginCheck::new(IpAddr::from([127, 0, 0, 1]), settings)
    }

    fn parts(method: Method, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    /// Attack: remote | a page of another origin, or of this machine, reads responses of the gateway |
    /// only a page of a configured origin gets the headers for this, and never with cookies | Isolation
    #[test]
    fn only_a_configured_origin_may_read_responses() {
        let headers =
            |origin: &str| check().cors_headers(&parts(Method::POST, &[("origin", origin)]));
        let allowed = headers("https://app.example.com");
        assert_eq!(allowed["access-control-allow-origin"], "https://app.example.com");
        assert_eq!(allowed["vary"], "Origin");
        assert!(!allowed.contains_key("access-control-allow-credentials"));
        for other in ["http://localhost:3000", "https://evil.example", "null", "*"] {
            assert!(headers(other).is_empty(), "{other}");
        }
        assert!(check().cors_headers(&parts(Method::POST, &[])).is_empty());
    }

    #[test]
    fn a_preflight_response_names_the_requested_headers_of_the_protocol() {
        let method = ("access-control-request-method", "POST");
        let origin = ("origin", "https://app.example.com");
        let requested = "Content-Type,mcp-session-id, Mcp-Param-Region,cookie,x-forwarded-for";
        let requested = ("access-control-request-headers", requested);
        let preflight = parts(Method::OPTIONS, &[origin, method, requested]);
        let headers = check().preflight_headers(&preflight).unwrap();
        assert_eq!(
            headers["access-control-allow-headers"],
            "content-type, mcp-session-id, mcp-param-region"
        );
        assert_eq!(headers["access-control-allow-methods"], METHODS);
        let many = "mcp-a,".repeat(MAX_REQUEST_HEADERS + 1);
        let many = parts(
            Method::OPTIONS,
            &[origin, method, ("access-control-request-headers", many.as_str())],
        );
        let headers = check().preflight_headers(&many).unwrap();
        let named = headers["access-control-allow-headers"].to_str().unwrap();
        assert_eq!(named.split(", ").count(), MAX_REQUEST_HEADERS);
        let other = parts(Method::OPTIONS, &[("origin", "https://evil.example"), method]);
        assert!(check().preflight_headers(&other).unwrap().is_empty());
        for request in [parts(Method::OPTIONS, &[origin]), parts(Method::POST, &[origin, method])] {
            assert!(check().preflight_headers(&request).is_none());
        }
    }
}
