//! The addresses to which authorization requests for a server may go.
//!
//! A server is untrusted and can name any URL.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::metadata_address::{is_metadata_host, is_metadata_ip};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AddressClass {
    /// This machine.
    Loopback,
    /// A private network.
    Private,
    /// The public internet.
    Public,
    /// An address without an authorization server: link-local (cloud metadata services), multicast,
    /// unspecified and reserved addresses.
    Forbidden,
}

/// Allows requests to public addresses. Allows other addresses only if the server's own address has
/// the same class.
#[derive(Clone, Debug)]
pub(super) struct AddressPolicy {
    server: Arc<Url>,
    /// Hosts from a trusted source: proxies of the environment.
    trusted_hosts: Arc<[String]>,
}

impl AddressPolicy {
    pub(super) fn new(server: &Url, trusted: Vec<String>) -> Self {
        Self { server: Arc::new(server.clone()), trusted_hosts: trusted.into() }
    }

    /// Returns whether the text of the URL is allowed. The resolver checks DNS names later.
    pub(super) fn allows(&self, url: &Url) -> bool {
        if url.origin() == self.server.origin() {
            return true;
        }
        let server = classify_host(&self.server);
        let kind = classify_host(url);
        let both_here =
            server == Some(AddressClass::Loopback) && kind == Some(AddressClass::Loopback);
        match url.scheme() {
            "https" => {}
            "http" if both_here => return true,
            _ => return false,
        }
        match kind {
            // `None` means a DNS name.
            None | Some(AddressClass::Public) => {
                url.host_str().is_some_and(|host| !host.is_empty())
            }
            Some(AddressClass::Forbidden) => false,
            Some(AddressClass::Loopback | AddressClass::Private) => kind == server,
        }
    }

    async fn resolve(self, name: String) -> io::Result<Vec<SocketAddr>> {
        // The connector sets the port.
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host((&*name, 0)).await?.collect();
        let trusted_hosts = self.trusted_hosts.iter().map(|host| &**host);
        if trusted_hosts.chain(self.server.host_str()).any(|host| host.eq_ignore_ascii_case(&name))
        {
            return Ok(addresses);
        }
        if addresses.iter().all(|address| classify(address.ip()) == AddressClass::Public) {
            return Ok(addresses);
        }
        let servers: HashSet<AddressClass> = match classify_host(&self.server) {
            Some(kind) => HashSet::from([kind]),
            None => {
                let host = self.server.host_str().unwrap_or_default();
                let server_addresses = tokio::net::lookup_host((host, 0)).await?;
                server_addresses.map(|address| classify(address.ip())).collect()
            }
        };
        let allowed = addresses.into_iter().filter(|address| match classify(address.ip()) {
            AddressClass::Public => true,
            AddressClass::Forbidden => false,
            kind @ (AddressClass::Loopback | AddressClass::Private) => servers.contains(&kind),
        });
        let allowed: Vec<SocketAddr> = allowed.collect();
        if allowed.is_empty() {
            return Err(io::Error::other("address not allowed for authorization requests"));
        }
        Ok(allowed)
    }
}

impl Resolve for AddressPolicy {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        let name = name.as_str().to_owned();
        Box::pin(async move {
            let addresses = guard.resolve(name).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Classifies a host without a resolver; `None` for other names.
fn classify_host(url: &Url) -> Option<AddressClass> {
    let host = url.host_str()?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse() {
        return Some(classify(address));
    }
    if is_metadata_host(host) {
        return Some(AddressClass::Forbidden);
    }
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        return Some(AddressClass::Loopback);
    }
    (name == "metadata" || name.ends_with(".internal")).then_some(AddressClass::Forbidden)
}

fn classify(address: IpAddr) -> AddressClass {
    match address {
        _ if is_metadata_ip(address) => AddressClass::Forbidden,
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    let octets = address.octets();
    match octets {
        _ if address.is_loopback() => AddressClass::Loopback,
        // 100.64.0.0/10 is shared address space (carrier-grade NAT).
        _ if address.is_private() => AddressClass::Private,
        [100, 64..=127, ..] => AddressClass::Private,
        // Networks for benchmarks.
        [198, 18 | 19, ..] => AddressClass::Forbidden,
        [0 | 224..=255, ..] => AddressClass::Forbidden,
        _ if address.is_link_local() => AddressClass::Forbidden,
        _ => AddressClass::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    if address.is_loopback() {
        return AddressClass::Loopback;
    }
    let bytes = address.octets();
    let v4_at = |at: usize| {
        classify_v4(Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]))
    };
    let [a, b, c, d, e, f, ..] = address.segments();
    match [a, b, c, d, e, f] {
        // IPv4 addresses in IPv6: mapped, NAT64 and 6to4.
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => v4_at(12),
        [0x2002, ..] => v4_at(2),
        [0, 0, 0, 0, 0, 0] | [0x2001, 0, ..] | [0x64, 0xff9b, 1, ..] => AddressClass::Forbidden,
        [0xfd00, 0xec2, ..] => AddressClass::Forbidden,
        [0xfc00..=0xfdff, ..] => AddressClass::Private,
        [0xfe80..=0xffff, ..] => AddressClass::Forbidden,
        _ => AddressClass::Public,
    }
}

#[cfg(test)]
mod tests;
