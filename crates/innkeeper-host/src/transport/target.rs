//! One remote server: sends requests with headers, cookies and credentials.

use std::sync::{Arc, OnceLock};

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Method, Request, RequestBuilder, Response, StatusCode, Url};

use super::auth::{BearerAuth, HeadersHelper};
use super::client::ProxySettings;
use super::cookies::CookieJar;
use super::http;
use super::sent_secrets::SentSecrets;
use crate::audit::AuditEvent;
use crate::error::UnavailableReason;
use crate::session::RequestError;

/// An HTTP client with the URL and headers of its server.
#[derive(Debug)]
pub(super) struct HttpTarget {
    pub(super) server: Arc<str>,
    pub(super) client: reqwest::Client,
    pub(super) url: ServerUrl,
    pub(super) headers: HeaderMap,
    /// The source of additional headers.
    pub(super) helper: Option<HeadersHelper>,
    /// The source of bearer tokens; `None` if the headers contain the credentials.
    pub(super) bearer_auth: Option<Arc<BearerAuth>>,
    pub(super) proxies: ProxySettings,
    pub(super) cookies: CookieJar,
}

#[derive(Debug)]
pub(super) struct ServerUrl {
    pub(super) configured: Url,
    /// The URL with the slash at its end that the server asked for, or without it.
    redirected: OnceLock<Url>,
}

impl ServerUrl {
    /// Sends a request to the configured URL where the server asked for it.
    fn apply(&self, request: &mut Request) {
        if let Some(url) = self.redirected.get().filter(|_| *request.url() == self.configured) {
            *request.url_mut() = url.clone();
        }
    }
}

impl HttpTarget {
    /// Creates a target without credentials and without a proxy.
    pub(super) fn new(
        server: Arc<str>,
        client: reqwest::Client,
        url: Url,
        headers: HeaderMap,
    ) -> Self {
        Self {
            server,
            client,
            url: ServerUrl { configured: url, redirected: OnceLock::new() },
            headers,
            helper: None,
            bearer_auth: None,
            proxies: ProxySettings::default(),
            cookies: CookieJar::default(),
        }
    }

    /// Sends a request with headers from the helper or with a bearer token. If the server rejects
    /// the token, the request did not run and is sent again with another token.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, RequestError> {
        self.send_with(request, false).await
    }

    /// Like [`Self::send`], but returns a 401 without a challenge to a request without a token: an
    /// unknown session is a reason, too.
    pub(super) async fn send_in_session(
        &self,
        request: RequestBuilder,
    ) -> Result<Response, RequestError> {
        self.send_with(request, true).await
    }

    async fn send_with(
        &self,
        request: RequestBuilder,
        is_in_session: bool,
    ) -> Result<Response, RequestError> {
        let (client, request) = request.build_split();
        let mut request = request.map_err(|error| http::send_error(&error))?;
        self.url.apply(&mut request);
        let repeated = request.try_clone();
        let mut response = self.send_to_url(&client, request, is_in_session).await?;
        // A redirected request did not run.
        if let Some(url) = slash_redirect(&response, repeated.as_ref())
            && let Some(mut repeated) = repeated
        {
            if *repeated.url() == self.url.configured {
                self.url.redirected.get_or_init(|| url.clone());
            }
            *repeated.url_mut() = url;
            response = Box::pin(self.send_to_url(&client, repeated, is_in_session)).await?;
        }
        match response.status() {
            status if status.is_redirection() => {
                AuditEvent::AddressRefused { reason: "redirects are not followed" }
                    .emit(&self.server);
            }
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                AuditEvent::AccessDenied { status: status.as_u16() }.emit(&self.server);
            }
            _ => {}
        }
        SentSecrets::attach_headers(&mut response, &self.headers);
        Ok(response)
    }

    async fn send_to_url(
        &self,
        client: &reqwest::Client,
        mut request: Request,
        is_in_session: bool,
    ) -> Result<Response, RequestError> {
        let url = request.url().clone();
        self.cookies.add_to(&url, request.headers_mut());
        let request = RequestBuilder::from_parts(client.clone(), request);
        let response = match (&self.helper, &self.bearer_auth) {
            // In a box: few servers have one, and each request is moved with its future.
            (Some(helper), _) => Box::pin(helper.send(request)).await,
            (None, Some(access)) => access.send(request, is_in_session).await,
            (None, None) => request.send().await.map_err(|error| http::send_error(&error)),
        };
        let response = response.map_err(|error| self.name_proxy(&url, error))?;
        self.cookies.store(&url, response.headers());
        Ok(response)
    }

    /// Adds the proxy to the error of a connection that was not established.
    fn name_proxy(&self, url: &Url, error: RequestError) -> RequestError {
        match (error, self.proxies.describe(url)) {
            (
                RequestError::Unavailable {
                    reason: UnavailableReason::Unreachable { kind, cause },
                    sent,
                },
                Some(proxy),
            ) => {
                let cause = format!("{cause} (through the proxy {proxy})").into();
                let reason = UnavailableReason::Unreachable { kind, cause };
                RequestError::Unavailable { reason, sent }
            }
            (error, _) => error,
        }
    }

    /// Sends a request once, without a helper run or a sign-in; for requests during a disconnect.
    pub(super) async fn send_once(
        &self,
        request: RequestBuilder,
    ) -> Result<Response, RequestError> {
        let (client, request) = request.build_split();
        let mut request = request.map_err(|error| http::send_error(&error))?;
        self.url.apply(&mut request);
        let url = request.url().clone();
        self.cookies.add_to(&url, request.headers_mut());
        let request = RequestBuilder::from_parts(client, request);
        match (&self.helper, &self.bearer_auth) {
            (Some(helper), _) => helper.send_once(request).await,
            (None, Some(access)) => access.send_once(request).await,
            (None, None) => request.send().await.map_err(|error| http::send_error(&error)),
        }
    }
}

/// Returns the target of a redirect that only adds a slash to the path or removes one. The request
/// then reaches the same origin with the same credentials. Other redirects are not followed.
fn slash_redirect(response: &Response, request: Option<&Request>) -> Option<Url> {
    let keeps_method = match response.status() {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => *request?.method() == Method::GET,
        _ => false,
    };
    let to = response.headers().get(LOCATION).filter(|_| keeps_method)?;
    let from = request?.url();
    let to = from.join(to.to_str().ok()?).ok()?;
    let differs_in_slash = to.path().strip_suffix('/') == Some(from.path())
        || from.path().strip_suffix('/') == Some(to.path());
    let is_same = to.origin() == from.origin() && to.query() == from.query();
    (is_same && differs_in_slash).then_some(to)
}

#[cfg(test)]
mod tests {
    use innkeeper_config::Environment;
    use innkeeper_testkit::{Fault, RemoteServer};

    use super::*;
    use crate::transport::{RemoteEndpoint, TransportKind, client};

    fn target(server: &RemoteServer) -> HttpTarget {
        let (environment, headers) = (Environment::default(), Default::default());
        let url = format!("{}/mcp", server.origin());
        let remote = RemoteEndpoint::new(TransportKind::Http, &url, &headers, &environment);
        let remote = remote.unwrap();
        let client = client::build_client(&remote).unwrap();
        HttpTarget::new("a".into(), client, remote.url, remote.headers)
    }

    async fn post(target: &HttpTarget) -> Response {
        let request = target.client.post(target.url.configured.clone()).body("{}");
        target.send(request).await.unwrap()
    }

    #[tokio::test]
    async fn a_redirect_that_adds_a_slash_is_followed_and_remembered() {
        let to_slash = Fault::redirect(307, "/mcp/").first_n(1);
        let server = RemoteServer::request_recorder().fault(to_slash).start().await;
        let target = target(&server);
        for _ in 0..2 {
            assert!(!post(&target).await.status().is_redirection());
        }
        assert_eq!(server.requests().len(), 3, "the second message needs no redirect");
        assert_eq!(target.url.redirected.get().unwrap().path(), "/mcp/");
        server.stop().await;
    }

    /// Attack: remote | a server redirects a request to another path of its origin, or changes its
    /// method | the request is not repeated | No repeated execution
    #[tokio::test]
    async fn another_redirect_is_not_followed() {
        for (status, to) in [(307, "/other"), (308, "/mcp/?a=b"), (302, "/mcp/"), (303, "/mcp/")] {
            let elsewhere = Fault::redirect(status, to);
            let server = RemoteServer::request_recorder().fault(elsewhere).start().await;
            assert_eq!(post(&target(&server)).await.status().as_u16(), status);
            assert_eq!(server.requests().len(), 1, "{status} {to}");
            server.stop().await;
        }
    }

    #[tokio::test]
    async fn requests_have_a_program_the_identity_coding_and_the_cookies_of_the_server() {
        let cookie = Fault::status(200).header("set-cookie", "node=1; Path=/").first_n(1);
        let server = RemoteServer::request_recorder().fault(cookie).start().await;
        let target = target(&server);
        post(&target).await;
        post(&target).await;
        let requests = server.requests();
        let [first, second] = &requests[..] else { panic!("{requests:?}") };
        assert_eq!((first.header("cookie"), second.header("cookie")), (None, Some("node=1")));
        assert_eq!(first.header("accept-encoding"), Some("identity"));
        assert!(first.header("user-agent").unwrap().starts_with("innkeeper/"));
        server.stop().await;
    }
}
