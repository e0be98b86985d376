//! Checks the allowed origins and hosts.

use std::net::Ipv6Addr;

use url::Url;

use super::indexed;
use crate::checks::entry_checker::EntryChecker;
use crate::form::raw::StringElement;
use crate::text::key_location::{PathSegment, key_segment};

/// Returns the origins in their canonical form.
pub(super) fn origins(
    checker: &mut EntryChecker<'_>,
    list: Option<Vec<StringElement>>,
) -> Vec<String> {
    let mut origins = Vec::new();
    for (index, text) in indexed(list) {
        let segments = [key_segment("allowedOrigins"), PathSegment::Index(index)];
        let Some(expanded) = checker.expand(&segments, &text) else { continue };
        match canonical_origin(&expanded.value) {
            Some(origin) => origins.push(origin),
            None => checker.error(
                &segments,
                "expected a scheme and a host without a path, such as `https://app.example.com`",
            ),
        }
    }
    origins
}

/// Returns the origin with its default port removed; `None` for a URL with more than an origin.
///
/// Pages of an extension or an editor have an origin with a scheme of their own, such as
/// `vscode-webview://name`.
fn canonical_origin(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let origin = match (url.origin(), url.host_str()) {
        (origin, _) if origin.is_tuple() => origin.ascii_serialization(),
        (_, Some(host)) if url.scheme() != "file" => format!("{}://{host}", url.scheme()),
        _ => return None,
    };
    let is_only_origin = url.path().len() <= 1
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
        && !text.contains('*');
    is_only_origin.then_some(origin)
}

/// Returns the hosts in lower case.
pub(super) fn hosts(
    checker: &mut EntryChecker<'_>,
    list: Option<Vec<StringElement>>,
) -> Vec<String> {
    let mut hosts = Vec::new();
    for (index, text) in indexed(list) {
        let segments = [key_segment("allowedHosts"), PathSegment::Index(index)];
        let Some(expanded) = checker.expand(&segments, &text) else { continue };
        if is_host(&expanded.value) {
            hosts.push(expanded.value.to_ascii_lowercase());
        } else {
            checker.error(
                &segments,
                "expected a host with or without a port, such as `mcp.example.com`",
            );
        }
    }
    hosts
}

fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_name = !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
        && !host.ends_with('.');
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_address = address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    port.is_none_or(|port| {
        port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    }) && (is_name || is_address)
}
