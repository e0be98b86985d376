//! The HTTP client of the OAuth library.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Method, Url};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use serde_json::Value;
use tokio::time::timeout;

use super::address_policy::AddressPolicy;
use super::token_response;
use crate::transport::RemoteEndpoint;
use crate::transport::client::{self, HttpClientError};
use crate::transport::http::describe_error;

/// Timeout for one request, including the response body.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a response body in bytes. Metadata and tokens have a few thousand.
const MAX_BODY_BYTES: usize = 1 << 20;

#[derive(Debug, thiserror::Error)]
enum AuthRequestError {
    #[error("address not allowed for authorization requests")]
    AddressDenied,
    #[error("no response within {} s", RESPONSE_TIMEOUT.as_secs())]
    Timeout,
    #[error("the response exceeds {MAX_BODY_BYTES} bytes")]
    BodyTooLarge,
    #[error("{0}")]
    Failed(Box<str>),
}

/// Sends the requests that the address policy allows. Follows no redirects.
pub(super) struct AuthHttpClient {
    /// Built on first use: most servers require no token, and the build reads certificates.
    client: OnceLock<Result<Client, HttpClientError>>,
    remote: RemoteEndpoint,
    policy: AddressPolicy,
}

impl AuthHttpClient {
    pub(super) fn new(remote: &RemoteEndpoint) -> Self {
        let policy = AddressPolicy::new(&remote.url, remote.proxies.hosts());
        Self { client: OnceLock::new(), remote: remote.clone(), policy }
    }

    /// Returns a client with an address policy for a URL from the configuration.
    pub(super) fn for_url(&self, url: &Url) -> Self {
        let policy = AddressPolicy::new(url, self.remote.proxies.hosts());
        Self { client: OnceLock::new(), remote: self.remote.clone(), policy }
    }

    fn client(&self) -> Result<&Client, AuthRequestError> {
        let client = self
            .client
            .get_or_init(|| client::build_client_with_resolver(&self.remote, self.policy.clone()));
        client.as_ref().map_err(|error| AuthRequestError::Failed(error.to_string().into()))
    }

    /// Returns whether a request may go to the URL, or a person may open the URL.
    pub(super) fn allows(&self, url: &Url) -> bool {
        self.policy.allows(url)
    }

    /// Posts a form and returns the JSON body of the response, with any status.
    pub(super) async fn post_form(
        &self,
        url: &str,
        form: &[(&str, &str)],
    ) -> Result<Value, String> {
        let encoded = Url::parse_with_params("http://form/", form);
        let encoded = encoded.map_err(|error| error.to_string())?;
        let request = http::Request::post(url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json")
            .body(encoded.query().unwrap_or_default().as_bytes().to_vec());
        let request = request.map_err(|error| error.to_string())?;
        let response = timeout(RESPONSE_TIMEOUT, self.send(request))
            .await
            .unwrap_or(Err(AuthRequestError::Timeout));
        let response = response.map_err(|error| error.to_string())?;
        // The parser's error message may contain a token.
        serde_json::from_slice(response.body()).map_err(|_| "the response is not JSON".to_owned())
    }

    async fn send(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<http::Response<Vec<u8>>, AuthRequestError> {
        let request = reqwest::Request::try_from(request).map_err(|error| request_error(&error))?;
        if !self.allows(request.url()) {
            return Err(AuthRequestError::AddressDenied);
        }
        let is_token_request = token_response::is_token_request(&request);
        // Only the headers matter, and the body may be an endless stream.
        let probe = *request.method() == Method::GET && *request.url() == self.remote.url;
        let mut http_response =
            self.client()?.execute(request).await.map_err(|error| request_error(&error))?;
        let mut response = http::Response::new(Vec::new());
        *response.status_mut() = http_response.status();
        *response.headers_mut() = http_response.headers().clone();
        if probe {
            return Ok(response);
        }
        while let Some(chunk) =
            http_response.chunk().await.map_err(|error| request_error(&error))?
        {
            if response.body().len() + chunk.len() > MAX_BODY_BYTES {
                return Err(AuthRequestError::BodyTooLarge);
            }
            response.body_mut().extend_from_slice(&chunk);
        }
        if is_token_request {
            token_response::normalize(&mut response);
        }
        Ok(response)
    }
}

fn request_error(error: &reqwest::Error) -> AuthRequestError {
    AuthRequestError::Failed(describe_error(error))
}

impl OAuthHttpClient for AuthHttpClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let response = timeout(RESPONSE_TIMEOUT, self.send(request.request)).await;
            response.unwrap_or(Err(AuthRequestError::Timeout)).map_err(Into::into)
        })
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_config::Environment;
    use innkeeper_testkit::{Fault, RemoteServer};

    use super::*;
    use crate::transport::TransportKind;

    /// Attack: remote | a token endpoint sends a response without end | the host reads 1 MiB | No
    /// unbounded memory
    #[tokio::test]
    async fn a_response_at_the_limit_is_read_and_a_longer_one_is_an_error() {
        for (excess, expected) in [(0, Ok(())), (1, Err("the response exceeds 1048576 bytes"))] {
            let body = format!("\"{}\"", "x".repeat(MAX_BODY_BYTES - 2 + excess));
            let large = Fault::body(200, "application/json", &body);
            let server = RemoteServer::request_recorder().fault(large).start().await;
            let (environment, headers) = (Environment::default(), Default::default());
            let url = server.url();
            let remote =
                RemoteEndpoint::new(TransportKind::Http, &url, &headers, &environment).unwrap();
            let read = AuthHttpClient::new(&remote).post_form(&url, &[("a", "b c&d")]).await;
            assert_eq!(read.map(drop), expected.map_err(str::to_owned));
            assert_eq!(server.requests()[0].body, "a=b+c%26d");
        }
    }
}
