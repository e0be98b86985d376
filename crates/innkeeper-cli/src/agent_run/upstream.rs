//! The recording model server: sends each request on to the real server.

use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use futures_util::stream;
use futures_util::{FutureExt as _, StreamExt as _};
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, HOST, HeaderMap, HeaderName,
    LOCATION, TRANSFER_ENCODING,
};
use hyper::{Response, StatusCode};
use innkeeper_host::{Environment, http_client};

use super::credentials;
use super::model_server::{
    ConnectionLost, ModelAnswer, ModelRequest, ModelSide, body_of, error_response,
};
use super::providers::{Upstreams, without_user};
use super::recording::RecordedRun;

/// The headers that belong to one connection, and those that the client library sets.
const CONNECTION_HEADERS: [HeaderName; 5] =
    [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, ACCEPT_ENCODING];

/// Sends requests on, and records both sides.
#[derive(Debug)]
pub(super) struct RecordingModel {
    run: RecordedRun,
    upstreams: Upstreams,
    environment: Environment,
    plain: OnceLock<reqwest::Client>,
    tls: OnceLock<reqwest::Client>,
}

impl RecordingModel {
    pub(super) fn new(run: RecordedRun, upstreams: Upstreams, environment: Environment) -> Self {
        Self { run, upstreams, environment, plain: OnceLock::new(), tls: OnceLock::new() }
    }

    fn client(&self, scheme: &str) -> Result<&reqwest::Client, String> {
        let (cell, tls) = match scheme {
            "https" => (&self.tls, true),
            _ => (&self.plain, false),
        };
        match cell.get() {
            Some(client) => Ok(client),
            None => {
                let client =
                    http_client(&self.environment, tls).map_err(|error| error.to_string())?;
                Ok(cell.get_or_init(|| client))
            }
        }
    }

    async fn send_on(&self, request: ModelRequest) -> ModelAnswer {
        let ModelRequest { method, provider, path_and_query, headers, body } = request;
        let Some((provider, url)) = self.upstreams.url(&provider, &path_and_query) else {
            let text = format!("no provider is named `{provider}`");
            return Ok(error_response(StatusCode::NOT_FOUND, &text));
        };
        let client = match self.client(url.scheme()) {
            Ok(client) => client,
            Err(text) => return Ok(error_response(StatusCode::BAD_GATEWAY, &text)),
        };
        self.run.add_secrets(credentials::of_headers(&headers));
        let mut sent_url = url.clone();
        if let Some(base_url) = self.upstreams.base_url(provider) {
            self.run.add_provider(provider, &without_user(base_url));
            self.run.add_secrets(credentials::of_base_url(base_url));
            sent_url.set_username(base_url.username()).ok();
            sent_url.set_password(base_url.password()).ok();
        }
        if let Some((_, query)) = path_and_query.split_once('?') {
            self.run.add_secrets(credentials::of_query(&credentials::split_query(query).1));
            sent_url.set_query(Some(query));
        }
        let exchange = self.run.on_request(method.as_str(), url.as_str(), &body);
        let sent = client.request(method, sent_url).headers(sent_headers(headers));
        let sent = if body.is_empty() { sent } else { sent.body(body) };
        let response = match sent.send().await {
            Ok(response) => response,
            Err(error) => {
                self.run.on_send_error(exchange, error);
                return Err(ConnectionLost);
            }
        };
        let status = response.status();
        let headers = response.headers().clone();
        self.run.on_response(exchange, status.as_u16(), &headers);
        if let Some(encoding) = headers.get(CONTENT_ENCODING).filter(|value| *value != "identity") {
            let encoding = encoding.to_str().unwrap_or("?");
            self.run.fail(format!("the model server compresses its responses (`{encoding}`)"));
        }
        if let Some(location) = headers.get(LOCATION).filter(|_| status.is_redirection()) {
            let location = location.to_str().unwrap_or("?").split('?').next().unwrap_or_default();
            self.run.fail(format!(
                "the model server redirects to `{location}`; name that server with `--upstream`"
            ));
        }
        let chunks = self.run.clone();
        let end = self.run.clone();
        let body = response.bytes_stream().map(move |chunk| match chunk {
            Ok(bytes) => {
                chunks.on_chunk(exchange, &bytes);
                Ok(bytes)
            }
            Err(error) => {
                chunks.on_body_error(exchange, error);
                Err(ConnectionLost)
            }
        });
        let end = stream::once(async move { end.on_body_end(exchange) });
        let body = body.chain(end.filter_map(async |()| None)).boxed();
        let mut response = Response::new(body_of(body));
        *response.status_mut() = status;
        *response.headers_mut() = sent_headers(headers);
        Ok(response)
    }
}

impl ModelSide for RecordingModel {
    fn respond(self: Arc<Self>, request: ModelRequest) -> BoxFuture<'static, ModelAnswer> {
        async move { self.send_on(request).await }.boxed()
    }
}

/// Returns the headers without those of the connection.
fn sent_headers(mut headers: HeaderMap) -> HeaderMap {
    for name in &CONNECTION_HEADERS {
        headers.remove(name);
    }
    headers
}
