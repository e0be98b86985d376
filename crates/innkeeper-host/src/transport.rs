//! Transports to remote servers: endpoint, connection, request sending.

pub(crate) mod auth;
mod client;
mod cookies;
mod http;
mod no_proxy;
mod sent_secrets;
mod sse;
mod target;
mod websocket;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use indexmap::IndexMap;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use crate::remote_session::RemoteSession;
use crate::session::{Session, SessionContext, SessionLimits};
use crate::telemetry::NetworkAttributes;
use auth::{AuthManager, HeadersHelper};
use innkeeper_config::{Environment, OauthConfig, Secret, TransportConfig};
use innkeeper_process::ProcessSpec;
use target::HttpTarget;

pub(crate) use auth::HelperLaunchContext;
pub use client::{HttpClientError, http_client};
pub(crate) use http::HttpSessionState;
#[cfg(any(test, fuzzing))]
pub use http::fuzz::http_response as fuzz_http_response;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportKind {
    /// Streamable HTTP.
    Http,
    /// The older transport: HTTP with server-sent events.
    Sse,
    /// WebSocket.
    WebSocket,
}

/// The address of a remote server and the headers of every request.
#[derive(Clone)]
pub(crate) struct RemoteEndpoint {
    pub(crate) kind: TransportKind,
    url: Url,
    /// The Unix socket to connect to in place of the URL's host (`unix:///path#/where`).
    socket: Option<PathBuf>,
    headers: HeaderMap,
    /// The program that prints additional headers (`headersHelper`).
    helper: Option<Arc<ProcessSpec>>,
    proxies: client::ProxySettings,
    /// The session of another host to continue.
    continued: Option<RemoteSession>,
}

impl fmt::Debug for RemoteEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // URLs and headers may contain secrets.
        f.debug_struct("RemoteEndpoint").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// A connection that carries messages until its session closes.
#[derive(Debug)]
pub(crate) struct TransportHandle {
    pub(crate) session: Session,
    /// The state of a session over Streamable HTTP.
    pub(crate) http_session: Option<Arc<HttpSessionState>>,
    /// Resolves with an error when all tasks of the connection have ended.
    pub(crate) ended: oneshot::Receiver<()>,
}

impl RemoteEndpoint {
    /// Creates the endpoint from a configuration; `None` for a server without a URL.
    ///
    /// # Errors
    ///
    /// Returns the invalid configuration key and the reason.
    pub(crate) fn from_config(
        transport: &TransportConfig,
        environment: &Environment,
    ) -> Option<Result<Self, (&'static str, String)>> {
        let (kind, url, headers) = match transport {
            TransportConfig::Stdio { .. } | TransportConfig::InProcess => return None,
            TransportConfig::Http { url, headers } => (TransportKind::Http, url, headers),
            TransportConfig::Sse { url, headers } => (TransportKind::Sse, url, headers),
            TransportConfig::WebSocket { url, headers } => (TransportKind::WebSocket, url, headers),
        };
        Some(Self::new(kind, url.expose(), headers, environment))
    }

    fn new(
        kind: TransportKind,
        url: &str,
        headers: &IndexMap<String, Secret>,
        environment: &Environment,
    ) -> Result<Self, (&'static str, String)> {
        let (socket, url) = match parse_unix_url(url) {
            Some((path, inner)) => (Some(path), format!("http://localhost{inner}")),
            None => (None, url.to_owned()),
        };
        // The HTTP client also opens WebSockets, with the `http` scheme.
        let url = match url.strip_prefix("ws") {
            Some(rest) if kind == TransportKind::WebSocket => format!("http{rest}"),
            _ => url,
        };
        let mut url = Url::parse(&url).map_err(|error| ("url", format!("not a URL: {error}")))?;
        let mut header_map = HeaderMap::new();
        for (name, value) in headers {
            let header = HeaderName::from_bytes(name.as_bytes()).ok();
            let Some((header, mut value)) = header.zip(HeaderValue::from_str(value.expose()).ok())
            else {
                return Err(("headers", format!("`{name}` has an invalid header value")));
            };
            value.set_sensitive(true);
            header_map.insert(header, value);
        }
        url.set_fragment(None);
        let proxies = client::ProxySettings::from_environment(environment);
        Ok(Self { kind, url, socket, headers: header_map, helper: None, proxies, continued: None })
    }

    /// Adds the program that prints additional headers.
    pub(crate) fn with_helper(self, helper: Option<ProcessSpec>) -> Self {
        Self { helper: helper.map(Arc::new), ..self }
    }

    /// Returns the same endpoint with the SSE transport, for servers without Streamable HTTP.
    pub(crate) fn with_sse(&self) -> Self {
        Self { kind: TransportKind::Sse, ..self.clone() }
    }

    /// Returns the same endpoint with a session of another host to continue.
    pub(crate) fn continuing(&self, session: Option<RemoteSession>) -> Self {
        Self { continued: session, ..self.clone() }
    }

    pub(crate) fn network_attributes(&self) -> NetworkAttributes {
        let transport = if self.socket.is_some() { "unix" } else { "tcp" };
        let protocol = match self.kind {
            TransportKind::Http | TransportKind::Sse => "http",
            TransportKind::WebSocket => "websocket",
        };
        NetworkAttributes { transport, protocol: Some(protocol) }
    }

    /// Connects and starts the tasks that carry messages. Later errors close the session. Continues a
    /// session of another host if the session belongs to this address.
    ///
    /// # Errors
    ///
    /// Returns an error if the HTTP client cannot be built, for example without root certificates.
    pub(crate) fn connect(
        &self,
        owner: SessionContext,
        limits: SessionLimits,
        sign_in: &AuthManager,
        oauth: Option<&OauthConfig>,
        programs: HelperLaunchContext,
    ) -> Result<TransportHandle, HttpClientError> {
        let client = client::build_client(self)?;
        let server = owner.server.clone();
        let tasks = owner.host.tasks.clone();
        let bearer_auth = sign_in.bearer_auth(&owner.server, self, oauth, &tasks);
        let helper = self.helper.clone().map(|launch| HeadersHelper::new(launch, programs));
        let (session, inbound, outbound) = Session::over_transport(owner, limits);
        let (alive, ended) = oneshot::channel::<()>();
        let url = self.url.clone();
        let headers = self.headers.clone();
        let target = Arc::new(HttpTarget {
            helper,
            bearer_auth,
            proxies: if self.socket.is_some() { Default::default() } else { self.proxies.clone() },
            ..HttpTarget::new(server, client, url, headers)
        });
        let mut http_session = None;
        match self.kind {
            TransportKind::Http => {
                let state = Arc::new(self.http_session_state(&target.server));
                if let Some((_, revision)) = state.continued() {
                    session.set_revision(revision);
                }
                http_session = Some(state.clone());
                tasks.spawn(http::run(target, inbound, outbound, state, alive));
            }
            TransportKind::Sse => tasks.spawn(sse::run(target, inbound, outbound, alive)),
            TransportKind::WebSocket => {
                tasks.spawn(websocket::run(target, inbound, outbound, alive));
            }
        }
        Ok(TransportHandle { session, http_session, ended })
    }

    /// Returns the state of a session that begins, or that another host started at this address.
    fn http_session_state(&self, server: &str) -> HttpSessionState {
        let endpoint = self.digest();
        let continued = self.continued.as_ref();
        match continued.map(|session| HttpSessionState::continuing(&endpoint, session)) {
            Some(Ok(state)) => return state,
            Some(Err(reason)) => tracing::warn!(server, reason, "session not continued"),
            None => {}
        }
        HttpSessionState::new(endpoint)
    }

    /// Returns a digest of the address, of the configured headers and of the program for further headers.
    fn digest(&self) -> String {
        let mut digest = Sha256::new();
        let mut add = |part: &[u8]| {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        };
        add(self.url.as_str().as_bytes());
        add(self
            .socket
            .as_deref()
            .map(|path| path.as_os_str().as_encoded_bytes())
            .unwrap_or_default());
        let mut headers: Vec<(&str, &[u8])> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        headers.sort_unstable();
        for (name, value) in headers {
            add(name.as_bytes());
            add(value);
        }
        if let Some(helper) = &self.helper {
            let words = std::iter::once(helper.program.as_os_str());
            for word in words.chain(helper.args.iter().map(AsRef::as_ref)) {
                add(word.as_encoded_bytes());
            }
        }
        URL_SAFE_NO_PAD.encode(digest.finalize())
    }
}

/// Splits a Unix socket URL into the socket path and the request path: `unix:///run/mcp.sock#/mcp`.
fn parse_unix_url(url: &str) -> Option<(PathBuf, &str)> {
    let rest = url.strip_prefix("unix://")?;
    let (path, inner) = rest.split_once('#').unwrap_or((rest, "/"));
    Some((PathBuf::from(path), inner))
}
