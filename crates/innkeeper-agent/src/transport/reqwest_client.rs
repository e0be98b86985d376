//! [`HttpClient`] over TCP and TLS, with the library `reqwest`.

use std::fmt;
use std::sync::OnceLock;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use innkeeper_host::{Environment, http_client};

use super::client::{HttpClient, HttpError, IncomingResponse, OutgoingRequest};

/// A client with the proxies of an environment. No connection pool is created before the first
/// request.
pub(super) struct ReqwestClient {
    environment: Environment,
    /// For `http` URLs: reads no certificate and reuses no connection.
    plain: OnceLock<reqwest::Client>,
    /// For all other URLs.
    tls: OnceLock<reqwest::Client>,
}

impl ReqwestClient {
    pub(super) fn new(environment: Environment) -> Self {
        Self { environment, plain: OnceLock::new(), tls: OnceLock::new() }
    }

    fn client_for(&self, url: &str) -> Result<&reqwest::Client, HttpError> {
        let tls = !url.starts_with("http://");
        let cell = if tls { &self.tls } else { &self.plain };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let client = http_client(&self.environment, tls)
            .map_err(|error| HttpError::ClientSetup { source: error.into() })?;
        Ok(cell.get_or_init(|| client))
    }
}

impl HttpClient for ReqwestClient {
    fn send(&self, request: OutgoingRequest) -> BoxFuture<'_, Result<IncomingResponse, HttpError>> {
        let OutgoingRequest { method, url, headers, body, iteration: _ } = request;
        async move {
            let mut request = self.client_for(&url)?.request(method, url).headers(headers);
            if !body.is_empty() {
                request = request.body(body);
            }
            let mut response = request.send().await.map_err(convert_error)?;
            Ok(IncomingResponse {
                status: response.status(),
                headers: std::mem::take(response.headers_mut()),
                body: response.bytes_stream().map_err(convert_error).boxed(),
            })
        }
        .boxed()
    }
}

/// The variables of a proxy may contain a password.
impl fmt::Debug for ReqwestClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReqwestClient").finish_non_exhaustive()
    }
}

fn convert_error(error: reqwest::Error) -> HttpError {
    let is_connect = error.is_connect();
    let is_timeout = error.is_timeout();
    let is_builder = error.is_builder();
    let source = error.without_url().into();
    match (is_connect, is_timeout) {
        (true, true) => HttpError::ConnectTimedOut { source },
        (true, false) => HttpError::Connect { source },
        (false, _) if is_builder => HttpError::InvalidRequest { source },
        (false, true) => HttpError::TimedOut { source },
        (false, false) => HttpError::Disconnected { source },
    }
}
