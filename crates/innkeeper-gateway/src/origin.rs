//! Checks the headers `Host` and `Origin` of HTTP requests.
//!
//! A web page can send requests to every address that the browser reaches. With DNS rebinding, the
//! page gives its own name the address of this machine, and the browser takes the gateway for the
//! server of the page. The header `Host` then has the name of the page, and other requests of the
//! page have its `Origin`.

mod cors;

use std::net::IpAddr;

use http::header::{HOST, HeaderName, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use innkeeper_host::config::ServeConfig;

use crate::Rejection;
use crate::host_name::{HostName, is_loopback};

/// The hosts and origins that a gateway accepts in addition to its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginSettings {
    /// Hosts in lower case, with or without a port; without a port, every port is accepted.
    pub allowed_hosts: Vec<String>,
    /// Origins in lower case: scheme and host, and the port if it is not the scheme's.
    pub allowed_origins: Vec<String>,
}

impl From<&ServeConfig> for OriginSettings {
    fn from(config: &ServeConfig) -> Self {
        Self {
            allowed_hosts: config.allowed_hosts.clone(),
            allowed_origins: config.allowed_origins.clone(),
        }
    }
}

/// Checks that a request is for this gateway, and not from the page of another site.
#[derive(Clone, Debug)]
pub struct OriginCheck {
    settings: OriginSettings,
    is_loopback: bool,
}

impl OriginCheck {
    /// Creates the check for a gateway that listens on this address.
    ///
    /// On a loopback address, the gateway accepts the hosts and origins of this machine. On another
    /// address, the gateway also accepts every address as the host, which no page can rebind, but no
    /// origin.
    pub fn new(listen: IpAddr, settings: OriginSettings) -> Self {
        Self { settings, is_loopback: is_loopback(listen) }
    }

    /// Returns whether the gateway listens on a loopback address.
    pub(crate) fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    /// Checks the request. A request without `Origin` does not come from a page of another site.
    ///
    /// # Errors
    ///
    /// Returns the response to a request with another host or origin.
    pub fn check(&self, parts: &Parts) -> Result<(), Rejection> {
        self.check_host(parts)?;
        self.check_origin(&parts.headers)
    }

    fn check_host(&self, parts: &Parts) -> Result<(), Rejection> {
        let header = only_value(&parts.headers, HOST)?;
        // HTTP/2, and HTTP/1.1 through a proxy, have the host in the URI.
        let authority = parts.uri.authority().map(http::uri::Authority::as_str);
        let header = match header.map(HeaderValue::to_str) {
            None => None,
            Some(Ok(text)) => Some(text),
            Some(Err(_)) => return Err(forbidden("the header `Host` is not a host")),
        };
        let hosts = [header, authority];
        let mut hosts = hosts.into_iter().flatten().peekable();
        if hosts.peek().is_none() {
            return Err(forbidden("the request has no header `Host`"));
        }
        if hosts.all(|host| self.allows_host(host)) {
            return Ok(());
        }
        Err(forbidden(
            "the header `Host` names a host that is not allowed: add the host to \
             `serve.allowedHosts`",
        ))
    }

    fn allows_host(&self, text: &str) -> bool {
        let Some(host) = HostName::parse(text) else { return false };
        let is_own = match host {
            HostName::Name(_) => host.is_loopback(),
            HostName::Address(_) => host.is_loopback() || !self.is_loopback,
        };
        let without_port = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => host,
            _ => text,
        };
        is_own
            || self.settings.allowed_hosts.iter().any(|allowed| {
                allowed.eq_ignore_ascii_case(text) || allowed.eq_ignore_ascii_case(without_port)
            })
    }

    /// Returns the origin of a page of this machine whose requests are permitted, and which cannot read the
    /// responses because its origin is not configured.
    pub(crate) fn unreadable_origin<'p>(&self, parts: &'p Parts) -> Option<&'p str> {
        let origin = parts.headers.get(ORIGIN)?.to_str().ok()?;
        let is_own =
            parts.headers.get(HOST).and_then(|host| host.to_str().ok()).is_some_and(|host| {
                ["http://", "https://"]
                    .iter()
                    .any(|scheme| origin.strip_prefix(scheme) == Some(host))
            });
        let is_unreadable = !is_own
            && !self.is_configured_origin(origin)
            && self.check_origin(&parts.headers).is_ok();
        is_unreadable.then_some(origin)
    }

    fn is_configured_origin(&self, origin: &str) -> bool {
        let mut allowed = self.settings.allowed_origins.iter();
        origin != "null" && allowed.any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Rejection> {
        let Some(origin) = only_value(headers, ORIGIN)? else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        if origin == "null" {
            return Err(forbidden(
                "the header `Origin` is `null`: the page has no origin that the gateway could allow",
            ));
        }
        if self.is_configured_origin(origin) {
            return Ok(());
        }
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let is_own = host.and_then(HostName::parse).is_some_and(HostName::is_loopback);
        if self.is_loopback && is_own {
            return Ok(());
        }
        Err(forbidden(
            "the header `Origin` names an origin that is not allowed: add the origin to \
             `serve.allowedOrigins`",
        ))
    }
}

/// Returns the only value of a header. With several values, a proxy may have checked another one.
fn only_value(headers: &HeaderMap, name: HeaderName) -> Result<Option<&HeaderValue>, Rejection> {
    let message = format!("the request has several headers `{}`", display_name(&name));
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() { Err(forbidden(message)) } else { Ok(first) }
}

fn display_name(name: &HeaderName) -> &'static str {
    if *name == HOST { "Host" } else { "Origin" }
}

fn forbidden(message: impl Into<String>) -> Rejection {
    Rejection::new(StatusCode::FORBIDDEN, message)
}

#[cfg(test)]
mod tests;
