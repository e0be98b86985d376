//! Reads the signing keys of an issuer over HTTP.

use std::sync::Arc;

use http::header::ACCEPT;
use innkeeper_host::{Environment, HttpClientError, http_client};

use super::key_cache::FetchKeys;
use super::key_set::KeySet;

/// Maximum size of a key set, in bytes: several times a key set with certificates.
const MAX_KEY_SET_BYTES: usize = 512 << 10;

/// Returns a function that reads the keys at this URL. The client follows no redirect, so that only
/// the configured URL supplies keys.
pub(super) fn key_request(
    url: &str,
    environment: &Environment,
) -> Result<FetchKeys, HttpClientError> {
    let needs_tls = url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
    let client = http_client(environment, needs_tls)?;
    let url: Arc<str> = url.into();
    Ok(Arc::new(move || {
        let request = client.get(&*url).header(ACCEPT, "application/json");
        Box::pin(async move {
            let mut response =
                request.send().await.map_err(|error| error.without_url().to_string())?;
            if response.status() != http::StatusCode::OK {
                return Err(format!("the response has the status {}", response.status()));
            }
            let mut body = Vec::new();
            while let Some(chunk) =
                response.chunk().await.map_err(|error| error.without_url().to_string())?
            {
                if body.len() + chunk.len() > MAX_KEY_SET_BYTES {
                    return Err(format!("the key set has more than {MAX_KEY_SET_BYTES} bytes"));
                }
                body.extend_from_slice(&chunk);
            }
            KeySet::parse(&body).map_err(|error| error.to_string())
        })
    }))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::response::Redirect;
    use axum::routing::get;
    use tokio::net::TcpListener;

    use super::*;

    const KEYS: &str = r#"{"keys": [{"kty": "RSA", "n": "AQ", "e": "AQAB", "kid": "a"}]}"#;

    async fn read(path: &str) -> Result<KeySet, String> {
        let at_limit = format!("{KEYS}{}", " ".repeat(MAX_KEY_SET_BYTES - KEYS.len()));
        let over_limit = format!("{at_limit} ");
        let routes = Router::new()
            .route("/keys", get(|| async { KEYS }))
            .route("/html", get(|| async { "<html>" }))
            .route("/elsewhere", get(|| async { Redirect::temporary("/keys") }))
            .route("/at-limit", get(move || async { at_limit }))
            .route("/over-limit", get(move || async { over_limit }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}{path}", listener.local_addr().unwrap());
        let request = key_request(&url, &Environment::default()).unwrap();
        tokio::select! {
            result = request() => result,
            served = async { axum::serve(listener, routes).await } => panic!("{served:?}"),
        }
    }

    #[tokio::test]
    async fn the_keys_are_read_and_any_other_response_is_an_error() {
        assert!(read("/keys").await.is_ok());
        assert!(read("/html").await.unwrap_err().contains("not a JSON Web Key Set"));
        assert!(read("/missing").await.unwrap_err().contains("404"));
    }

    /// Attack: remote | the URL of the keys redirects to another URL | the gateway does not follow the
    /// redirect | Secrets stay with their owner
    #[tokio::test]
    async fn a_redirect_is_not_followed() {
        assert!(read("/elsewhere").await.unwrap_err().contains("307"));
    }

    /// Attack: remote | the issuer sends a key set without end | the gateway stops reading at the limit
    /// | No unbounded memory
    #[tokio::test]
    async fn a_key_set_at_the_limit_is_read_and_one_byte_more_is_not() {
        assert!(read("/at-limit").await.is_ok());
        assert!(read("/over-limit").await.unwrap_err().contains("more than 524288 bytes"));
    }
}
