//! The requests that the OAuth library makes, sent by a client of ours.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Method, Url};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use serde_json::Value;
use tokio::time::timeout;

use super::guard::Guard;
use crate::transport::Remote;
use crate::transport::client::{self, HttpClientError};
use crate::transport::http::words;

/// How long one request may take, its answer included.
const ANSWER: Duration = Duration::from_secs(30);

/// The most bytes of an answer; metadata and tokens have a few thousand.
const BODY: usize = 1 << 20;

/// Why a request got no answer that can be used.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error("its address is not one to sign in at")]
    Refused,
    #[error("no answer within {} s", ANSWER.as_secs())]
    Late,
    #[error("the answer is longer than {BODY} bytes")]
    TooLong,
    #[error("{0}")]
    Failed(Box<str>),
}

/// Sends what the guard lets through, and follows no redirects.
pub(super) struct Outgoing {
    /// Made when it is needed: most servers want no token, and it reads certificates.
    client: OnceLock<Result<Client, HttpClientError>>,
    remote: Remote,
    guard: Guard,
}

impl Outgoing {
    pub(super) fn new(remote: &Remote) -> Self {
        let guard = Guard::new(&remote.url, remote.proxies.hosts());
        Self { client: OnceLock::new(), remote: remote.clone(), guard }
    }

    /// The same for an address that the configuration names, and whatever is at its host.
    pub(super) fn toward(&self, url: &Url) -> Self {
        let guard = Guard::new(url, self.remote.proxies.hosts());
        Self { client: OnceLock::new(), remote: self.remote.clone(), guard }
    }

    fn client(&self) -> Result<&Client, Unanswered> {
        let build = || client::build_guarded(&self.remote, self.guard.clone());
        let client = self.client.get_or_init(build);
        client.as_ref().map_err(|error| Unanswered::Failed(error.to_string().into()))
    }

    /// Whether an address may be asked, or be shown to a person.
    pub(super) fn allows(&self, url: &Url) -> bool {
        self.guard.allows(url)
    }

    /// Posts a form and gives the JSON of the answer, whatever its status is.
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
        let answer = timeout(ANSWER, self.answer(request)).await.unwrap_or(Err(Unanswered::Late));
        let answer = answer.map_err(|error| error.to_string())?;
        // What the parser says may quote a token.
        serde_json::from_slice(answer.body()).map_err(|_| "its answer is no JSON".to_owned())
    }

    async fn answer(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<http::Response<Vec<u8>>, Unanswered> {
        let failed = |error: reqwest::Error| Unanswered::Failed(words(&error));
        let request = reqwest::Request::try_from(request).map_err(failed)?;
        if !self.allows(request.url()) {
            return Err(Unanswered::Refused);
        }
        // Only the headers are wanted, and what follows may be a stream without end.
        let probe = *request.method() == Method::GET && *request.url() == self.remote.url;
        let mut answer = self.client()?.execute(request).await.map_err(failed)?;
        let mut response = http::Response::new(Vec::new());
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        if probe {
            return Ok(response);
        }
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            if response.body().len() + chunk.len() > BODY {
                return Err(Unanswered::TooLong);
            }
            response.body_mut().extend_from_slice(&chunk);
        }
        Ok(response)
    }
}

impl OAuthHttpClient for Outgoing {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let answer = timeout(ANSWER, self.answer(request.request)).await;
            answer.unwrap_or(Err(Unanswered::Late)).map_err(Into::into)
        })
    }
}
