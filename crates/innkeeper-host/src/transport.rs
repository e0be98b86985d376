//! Ways to reach a server that is no child process: where it is, and who carries the messages.

pub(crate) mod auth;
mod client;
mod http;
mod sent;
mod sse;
mod websocket;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use tokio::sync::oneshot;

use crate::audit::Fact;
use crate::config::{Environment, Oauth, Secret, TransportConfig};
use crate::server::process::Launch;
use crate::server::session::{Fault, Limits, Owner, Session};
use crate::telemetry::Network;
use auth::{Access, Helper, SignIn};
use sent::Sent;

pub(crate) use auth::Programs;
pub use client::{HttpClientError, http_client};
#[cfg(any(test, fuzzing))]
pub use http::fuzz::http_answer as fuzz_http_answer;

/// The ways there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Streamable HTTP.
    Http,
    /// The older HTTP with server-sent events.
    Sse,
    /// A WebSocket.
    WebSocket,
}

/// Where a remote server is, and what every request to it carries.
#[derive(Clone)]
pub(crate) struct Remote {
    pub(crate) kind: Kind,
    url: Url,
    /// The socket to connect to in place of the address's host (`unix:///path#/where`).
    socket: Option<PathBuf>,
    headers: HeaderMap,
    /// The program that prints further ones.
    helper: Option<Arc<Launch>>,
    proxies: client::Proxies,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Addresses and headers may hold secrets.
        f.debug_struct("Remote").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// A connection that carries messages until its session closes.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) session: Session,
    /// Resolves with an error once nothing of the connection is left.
    pub(crate) ended: oneshot::Receiver<()>,
}

impl Remote {
    /// The remote server of a configuration; `None` for one that is a child process.
    ///
    /// # Errors
    ///
    /// The key of what cannot be used, and why.
    pub(crate) fn of(
        transport: &TransportConfig,
        environment: &Environment,
    ) -> Option<Result<Self, (&'static str, String)>> {
        let (kind, url, headers) = match transport {
            TransportConfig::Stdio { .. } => return None,
            TransportConfig::Http { url, headers } => (Kind::Http, url, headers),
            TransportConfig::Sse { url, headers } => (Kind::Sse, url, headers),
            TransportConfig::WebSocket { url, headers } => (Kind::WebSocket, url, headers),
        };
        Some(Self::new(kind, url.expose(), headers, environment))
    }

    fn new(
        kind: Kind,
        url: &str,
        headers: &IndexMap<String, Secret>,
        environment: &Environment,
    ) -> Result<Self, (&'static str, String)> {
        let no_address = |why: String| ("url", format!("not an address: {why}"));
        let (socket, url) = match socket_of(url) {
            Some((path, inner)) => (Some(path), format!("http://localhost{inner}")),
            None => (None, url.to_owned()),
        };
        // The HTTP client opens WebSockets too, by their plain address.
        let url = match url.strip_prefix("ws") {
            Some(rest) if kind == Kind::WebSocket => format!("http{rest}"),
            _ => url,
        };
        let mut url = Url::parse(&url).map_err(|error| no_address(error.to_string()))?;
        let mut carried = HeaderMap::new();
        for (name, value) in headers {
            let bad = || ("headers", format!("`{name}` has a value that no header can have"));
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| bad())?;
            value.set_sensitive(true);
            carried.insert(name, value);
        }
        url.set_fragment(None);
        let proxies = client::Proxies::of(environment);
        Ok(Self { kind, url, socket, headers: carried, helper: None, proxies })
    }

    /// The same with a program that prints further headers.
    pub(crate) fn with_helper(self, helper: Option<Launch>) -> Self {
        Self { helper: helper.map(Arc::new), ..self }
    }

    /// The same place by the older transport, for servers that know only that.
    pub(crate) fn by_sse(&self) -> Self {
        Self { kind: Kind::Sse, ..self.clone() }
    }

    /// How it is reached, in the words of telemetry.
    pub(crate) fn network(&self) -> Network {
        let transport = if self.socket.is_some() { "unix" } else { "tcp" };
        let protocol = match self.kind {
            Kind::Http | Kind::Sse => "http",
            Kind::WebSocket => "websocket",
        };
        Network { transport, protocol: Some(protocol) }
    }

    /// Begins to carry messages; what goes wrong later is told to the session.
    ///
    /// # Errors
    ///
    /// The HTTP client cannot be made, for want of root certificates for instance.
    pub(crate) fn open(
        &self,
        owner: Owner,
        limits: Limits,
        sign_in: &SignIn,
        oauth: Option<&Oauth>,
        programs: Programs,
    ) -> Result<Carried, HttpClientError> {
        let client = client::build(self)?;
        let (server, tasks) = (owner.server.clone(), owner.tasks.clone());
        let access = sign_in.access(&owner.server, self, oauth, &tasks);
        let helper = self.helper.clone().map(|launch| Helper::new(launch, programs));
        let (session, inlet, orders) = Session::carried(owner, limits);
        let (alive, ended) = oneshot::channel::<()>();
        let (url, headers) = (self.url.clone(), self.headers.clone());
        let place = Arc::new(Place { server, client, url, headers, helper, access });
        match self.kind {
            Kind::Http => tasks.spawn(http::carry(place, inlet, orders, alive)),
            Kind::Sse => tasks.spawn(sse::carry(place, inlet, orders, alive)),
            Kind::WebSocket => tasks.spawn(websocket::carry(place, inlet, orders, alive)),
        }
        Ok(Carried { session, ended })
    }
}

/// The path of a Unix socket and what to ask it for: `unix:///run/mcp.sock#/mcp`.
fn socket_of(url: &str) -> Option<(PathBuf, &str)> {
    let rest = url.strip_prefix("unix://")?;
    let (path, inner) = rest.split_once('#').unwrap_or((rest, "/"));
    Some((PathBuf::from(path), inner))
}

/// A client and the place it talks to.
#[derive(Debug)]
struct Place {
    server: Arc<str>,
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    /// Gives every request further headers.
    helper: Option<Helper>,
    /// Signs requests in; `None` where the headers do.
    access: Option<Arc<Access>>,
}

impl Place {
    /// Sends a request, signed in if the server wants that. One that the server refused for want of
    /// a token did not run: it is sent again with another.
    async fn send(&self, request: RequestBuilder) -> Result<Response, Fault> {
        let mut response = match (&self.helper, &self.access) {
            (Some(helper), _) => helper.send(request).await?,
            (None, Some(access)) => access.send(request).await?,
            (None, None) => request.send().await.map_err(|error| http::unsent(&error))?,
        };
        match response.status() {
            status if status.is_redirection() => {
                Fact::AddressRefused { why: "redirects are not followed" }.tell(&self.server);
            }
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Fact::AccessDenied { status: status.as_u16() }.tell(&self.server);
            }
            _ => {}
        }
        Sent::note_headers(&mut response, &self.headers);
        Ok(response)
    }

    /// The same without asking anybody for anything, for what is said in leaving.
    async fn send_once(&self, request: RequestBuilder) -> Result<Response, Fault> {
        match (&self.helper, &self.access) {
            (Some(helper), _) => helper.send_once(request).await,
            (None, Some(access)) => access.send_once(request).await,
            (None, None) => request.send().await.map_err(|error| http::unsent(&error)),
        }
    }
}
