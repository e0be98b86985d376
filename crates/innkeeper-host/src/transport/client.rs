//! HTTP clients: TLS, proxies, timeouts; no redirects and no retries.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_config::Environment;
use reqwest::dns::Resolve;
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Client, ClientBuilder, Proxy, Url, redirect};
use rustls_platform_verifier::Verifier;

use super::no_proxy::NoProxyList;
use super::{RemoteEndpoint, TransportKind};

/// Timeout for a connection, including TLS. The timeout of the call may end the connection attempt
/// earlier.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Time that an idle connection stays open: longer than most pauses between two calls of a model.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The program in the `User-Agent` of requests without another one: common firewalls refuse requests
/// without this header.
const USER_AGENT_VALUE: &str = concat!("innkeeper/", env!("CARGO_PKG_VERSION"));

/// The accepted coding of bodies. Without this header a server may choose any coding, and the client
/// decodes none.
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// The HTTP client cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    /// TLS cannot be configured: the system has no certificates.
    #[error(
        "no TLS: {0}; install the certificates of your system (`ca-certificates`) or set `SSL_CERT_FILE`"
    )]
    Tls(#[from] rustls::Error),
    /// An environment variable contains an invalid proxy URL.
    #[error("cannot build the HTTP client: `{variable}` is not a valid proxy URL")]
    Proxy {
        /// The name of the environment variable.
        variable: &'static str,
    },
    /// The client library returned an error.
    #[error("cannot build the HTTP client: {0}")]
    Client(#[from] reqwest::Error),
}

/// The proxies from the environment variables. Lower-case names take precedence.
#[derive(Clone, Default)]
pub(super) struct ProxySettings {
    http: Option<(&'static str, String)>,
    https: Option<(&'static str, String)>,
    no_proxy: NoProxyList,
}

impl fmt::Debug for ProxySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The addresses may contain credentials.
        f.debug_struct("ProxySettings").finish_non_exhaustive()
    }
}

impl ProxySettings {
    pub(super) fn from_environment(environment: &Environment) -> Self {
        let value = |name: &'static str| environment.get(name).map(|value| (name, value));
        let proxy_variable = |lower, upper| {
            let (name, value) = value(lower).or_else(|| value(upper))?;
            (!value.is_empty()).then(|| (name, value.to_owned()))
        };
        let all = proxy_variable("all_proxy", "ALL_PROXY");
        Self {
            // `HTTP_PROXY` may be a header of a CGI request.
            http: proxy_variable("http_proxy", "http_proxy").or_else(|| all.clone()),
            https: proxy_variable("https_proxy", "HTTPS_PROXY").or(all),
            no_proxy: proxy_variable("no_proxy", "NO_PROXY")
                .map(|(_, hosts)| NoProxyList::parse(&hosts))
                .unwrap_or_default(),
        }
    }

    /// Returns the variable and the value with the proxy for a URL.
    fn proxy_for(&self, url: &Url) -> Option<&(&'static str, String)> {
        let proxy = if url.scheme() == "https" { &self.https } else { &self.http };
        proxy.as_ref().filter(|_| !self.no_proxy.contains(url))
    }

    /// Describes the proxy for a URL without its credentials.
    pub(super) fn describe(&self, url: &Url) -> Option<String> {
        let (variable, value) = self.proxy_for(url)?;
        let proxy = parse_proxy(value)?;
        let host = proxy.host_str()?;
        let port = proxy.port_or_known_default()?;
        Some(format!("`{host}:{port}` of `{variable}`"))
    }

    /// Returns the host names of the proxies.
    pub(super) fn hosts(&self) -> Vec<String> {
        let proxies = [&self.http, &self.https].into_iter().flatten();
        proxies.filter_map(|(_, proxy)| parse_proxy(proxy)?.host_str().map(str::to_owned)).collect()
    }
}

/// Builds a client without redirects, retries and environment variables.
pub(super) fn build_client(remote: &RemoteEndpoint) -> Result<Client, HttpClientError> {
    Ok(client_builder(remote)?.build()?)
}

/// Builds a client for URLs that a server names, with a resolver that checks addresses.
pub(super) fn build_client_with_resolver(
    remote: &RemoteEndpoint,
    guard: impl Resolve + 'static,
) -> Result<Client, HttpClientError> {
    // The URL may be `https` even if the server's URL is not.
    let tls = tls_config(true, remote.kind == TransportKind::WebSocket)?;
    let builder = client_builder(remote)?.tls_backend_preconfigured(tls);
    Ok(builder.dns_resolver(Arc::new(guard)).build()?)
}

/// Builds a client for other requests of an application, under the same rules: system certificates,
/// the proxies of `environment`, no redirects and no retries.
///
/// Without `tls`, the client accepts only `http` URLs, reads no certificate and reuses no
/// connection: small servers close connections without notice.
///
/// # Errors
///
/// Returns an error if TLS cannot be configured or a proxy URL is invalid.
pub fn http_client(environment: &Environment, tls: bool) -> Result<Client, HttpClientError> {
    let tls_settings = self::tls_config(tls, false)?;
    let builder =
        with_proxies(base_builder(tls_settings), &ProxySettings::from_environment(environment))?;
    let max_idle = if tls { usize::MAX } else { 0 };
    Ok(builder.pool_max_idle_per_host(max_idle).build()?)
}

fn base_builder(tls: rustls::ClientConfig) -> ClientBuilder {
    Client::builder()
        .user_agent(USER_AGENT_VALUE)
        .default_headers(HeaderMap::from_iter([(ACCEPT_ENCODING, IDENTITY)]))
        .tls_backend_preconfigured(tls)
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .tcp_nodelay(true)
}

fn with_proxies(
    builder: ClientBuilder,
    proxies: &ProxySettings,
) -> Result<ClientBuilder, HttpClientError> {
    if let Some((variable, proxy)) = &proxies.http {
        Proxy::http(proxy).map_err(|_| HttpClientError::Proxy { variable })?;
    }
    if let Some((variable, proxy)) = &proxies.https {
        Proxy::https(proxy).map_err(|_| HttpClientError::Proxy { variable })?;
    }
    if proxies.http.is_none() && proxies.https.is_none() {
        return Ok(builder);
    }
    let proxies = proxies.clone();
    let proxy = Proxy::custom(move |url| parse_proxy(&proxies.proxy_for(url)?.1));
    Ok(builder.proxy(proxy))
}

/// Parses the address of a proxy; the scheme is `http` if there is none.
fn parse_proxy(text: &str) -> Option<Url> {
    let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    Url::parse(&text).ok()
}

fn client_builder(remote: &RemoteEndpoint) -> Result<ClientBuilder, HttpClientError> {
    let websocket = remote.kind == TransportKind::WebSocket;
    let mut builder = base_builder(tls_config(remote.url.scheme() == "https", websocket)?);
    if let Some(program) = remote.headers.get(USER_AGENT) {
        builder = builder.user_agent(program.clone());
    }
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
        builder = with_proxies(builder, &remote.proxies)?;
    }
    Ok(builder)
}

/// Returns the TLS configuration with the system's certificates. Reads the certificates only if
/// they are needed.
fn tls_config(needed: bool, websocket: bool) -> Result<rustls::ClientConfig, HttpClientError> {
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
    // A WebSocket handshake requires HTTP/1.1.
    let protocols: &[&[u8]] = if websocket { &[b"http/1.1"] } else { &[b"h2", b"http/1.1"] };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&'static str, &'static str)]) -> ProxySettings {
        ProxySettings::from_environment(&Environment::from_pairs(variables.iter().copied()))
    }

    #[test]
    fn lower_case_names_of_proxies_take_precedence_and_an_empty_value_is_none() {
        let hosts = |variables: &[(&'static str, &'static str)]| settings(variables).hosts();
        assert_eq!(hosts(&[("https_proxy", "http://a:1"), ("HTTPS_PROXY", "http://b:1")]), ["a"]);
        assert_eq!(hosts(&[("HTTPS_PROXY", "http://b:1")]), ["b"]);
        assert!(hosts(&[("https_proxy", ""), ("HTTPS_PROXY", "http://b:1")]).is_empty());
        // A header of a CGI request may be in `HTTP_PROXY`.
        assert!(hosts(&[("HTTP_PROXY", "http://b:1")]).is_empty());
        assert_eq!(hosts(&[("http_proxy", "http://a:1"), ("all_proxy", "http://c:1")]), ["a", "c"]);
        assert_eq!(hosts(&[("ALL_PROXY", "http://c:1")]), ["c", "c"]);
        let is_direct = |variables: &[(&'static str, &'static str)]| {
            settings(variables).no_proxy.contains(&Url::parse("http://x/").unwrap())
        };
        assert!(is_direct(&[("no_proxy", "x"), ("NO_PROXY", "y")]));
        assert!(!is_direct(&[("no_proxy", "y"), ("NO_PROXY", "x")]));
        assert!(is_direct(&[("NO_PROXY", "x")]) && !is_direct(&[("no_proxy", "")]));
    }

    #[test]
    fn a_proxy_is_described_without_its_credentials_for_the_urls_that_use_it() {
        let settings =
            settings(&[("http_proxy", "http://me:secret@p:3128"), ("NO_PROXY", "direct:80")]);
        let describe = |url: &str| settings.describe(&Url::parse(url).unwrap());
        assert_eq!(describe("http://a/").as_deref(), Some("`p:3128` of `http_proxy`"));
        assert_eq!(describe("http://direct/"), None);
        assert_eq!(describe("https://a/"), None);
    }

    #[test]
    fn only_a_websocket_is_restricted_to_the_first_version_of_http() {
        let protocols = |websocket| tls_config(false, websocket).unwrap().alpn_protocols;
        assert_eq!(protocols(true), [b"http/1.1".to_vec()]);
        assert_eq!(protocols(false), [b"h2".to_vec(), b"http/1.1".to_vec()]);
    }

    #[test]
    fn an_invalid_proxy_is_reported_with_its_variable() {
        for variable in ["http_proxy", "HTTPS_PROXY"] {
            let environment = Environment::from_pairs([(variable, "http://[")]);
            let error = http_client(&environment, false).unwrap_err().to_string();
            assert!(error.contains(&format!("`{variable}` is not a valid proxy URL")), "{error}");
        }
    }

    #[test]
    fn a_client_that_the_library_rejects_is_reported() {
        let builder = base_builder(tls_config(false, false).unwrap()).user_agent("two\nlines");
        let build = || Ok(with_proxies(builder, &ProxySettings::default())?.build()?);
        let result: Result<Client, HttpClientError> = build();
        assert!(matches!(result, Err(HttpClientError::Client(_))), "{result:?}");
    }
}
