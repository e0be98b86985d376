//! HTTP clients, as a rule one for each remote server: TLS, proxies, and what they never do by themselves.

use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::Resolve;
use reqwest::{Client, ClientBuilder, NoProxy, Proxy, Url, redirect};
use rustls_platform_verifier::Verifier;

use super::{Kind, Remote};
use crate::config::Environment;

/// How long a connection may take, TLS included; the call's own time limit ends it earlier.
const CONNECT: Duration = Duration::from_secs(30);

/// How long an unused connection is kept; longer than most pauses between two calls of a model.
const IDLE: Duration = Duration::from_secs(60);

/// The HTTP client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    /// TLS cannot be set up.
    #[error("no TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// A proxy that an environment variable names has no address.
    #[error("no HTTP client: `{variable}` is not the address of a proxy")]
    Proxy {
        /// The variable.
        variable: &'static str,
    },
    /// The client itself.
    #[error("no HTTP client: {0}")]
    Client(#[from] reqwest::Error),
}

/// The proxies an environment names, as other programs read them. Names in lower case go first.
#[derive(Clone, Default)]
pub(super) struct Proxies {
    http: Option<(&'static str, String)>,
    https: Option<(&'static str, String)>,
    none_for: Option<String>,
}

impl Proxies {
    pub(super) fn of(environment: &Environment) -> Self {
        let value = |name: &'static str| environment.get(name).map(|value| (name, value));
        let named = |lower, upper| {
            let (name, value) = value(lower).or_else(|| value(upper))?;
            (!value.is_empty()).then(|| (name, value.to_owned()))
        };
        let all = || named("all_proxy", "ALL_PROXY");
        Self {
            // In capitals it may be a header of a CGI request.
            http: named("http_proxy", "http_proxy").or_else(all),
            https: named("https_proxy", "HTTPS_PROXY").or_else(all),
            none_for: named("no_proxy", "NO_PROXY").map(|(_, hosts)| hosts),
        }
    }

    /// The names of their machines.
    pub(super) fn hosts(&self) -> Vec<String> {
        let proxies = [&self.http, &self.https].into_iter().flatten();
        let host = |(_, proxy): &(_, String)| Url::parse(proxy).ok()?.host_str().map(str::to_owned);
        proxies.filter_map(host).collect()
    }
}

/// A client that follows no redirects, repeats nothing and reads no environment.
pub(super) fn build(remote: &Remote) -> Result<Client, HttpClientError> {
    Ok(builder(remote)?.build()?)
}

/// The same for the addresses that a server names, with a guard over where names lead.
pub(super) fn build_guarded(
    remote: &Remote,
    guard: impl Resolve + 'static,
) -> Result<Client, HttpClientError> {
    // It may be `https` where the server is not.
    let tls = tls(true, remote.kind == Kind::WebSocket)?;
    let builder = builder(remote)?.tls_backend_preconfigured(tls);
    Ok(builder.dns_resolver(Arc::new(guard)).build()?)
}

/// A client for whoever else an application asks, under the same rules: it trusts as the system does,
/// goes by the proxies that `environment` names, follows no redirects and repeats nothing. Without
/// `tls` only addresses with `http` can be asked, no certificate is read, and no connection is used
/// twice: small servers end theirs without a word.
///
/// # Errors
///
/// TLS cannot be set up, or a proxy has no address.
pub fn http_client(environment: &Environment, tls: bool) -> Result<Client, HttpClientError> {
    let own = self::tls(tls, false)?;
    let builder = through(plain(own), &Proxies::of(environment))?;
    let kept = if tls { usize::MAX } else { 0 };
    Ok(builder.pool_max_idle_per_host(kept).build()?)
}

fn plain(tls: rustls::ClientConfig) -> ClientBuilder {
    Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE)
        .tcp_nodelay(true)
}

fn through(
    mut builder: ClientBuilder,
    proxies: &Proxies,
) -> Result<ClientBuilder, HttpClientError> {
    let none = proxies.none_for.as_deref().and_then(NoProxy::from_string);
    if let Some((variable, proxy)) = &proxies.http {
        let proxy = Proxy::http(proxy).map_err(|_| HttpClientError::Proxy { variable })?;
        builder = builder.proxy(proxy.no_proxy(none.clone()));
    }
    if let Some((variable, proxy)) = &proxies.https {
        let proxy = Proxy::https(proxy).map_err(|_| HttpClientError::Proxy { variable })?;
        builder = builder.proxy(proxy.no_proxy(none));
    }
    Ok(builder)
}

fn builder(remote: &Remote) -> Result<ClientBuilder, HttpClientError> {
    let websocket = remote.kind == Kind::WebSocket;
    let mut builder = plain(tls(remote.url.scheme() == "https", websocket)?);
    if websocket {
        builder = builder.http1_only();
    }
    if let Some(socket) = &remote.socket {
        #[cfg(unix)]
        {
            builder = builder.unix_socket(socket.as_path());
        }
        #[cfg(not(unix))]
        let _ = socket;
    } else {
        builder = through(builder, &remote.proxies)?;
    }
    Ok(builder)
}

/// How to trust servers: as the system does. Only where it is needed are its certificates read.
fn tls(needed: bool, websocket: bool) -> Result<rustls::ClientConfig, HttpClientError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    let config = if needed {
        let verifier = Arc::new(Verifier::new(provider)?);
        config.dangerous().with_custom_certificate_verifier(verifier)
    } else {
        config.with_root_certificates(rustls::RootCertStore::empty())
    };
    let mut config = config.with_no_client_auth();
    // A WebSocket is opened with HTTP/1.1.
    let known: &[&[u8]] = if websocket { &[b"http/1.1"] } else { &[b"h2", b"http/1.1"] };
    config.alpn_protocols = known.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}
