//! The host in a header, and whether it is this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host without its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostName<'a> {
    /// A name, which the resolver of the client turned into an address.
    Name(&'a str),
    /// An address.
    Address(IpAddr),
}

impl<'a> HostName<'a> {
    /// Parses `host` or `host:port`, with an IPv6 address in brackets; `None` for any other text.
    ///
    /// A name with a trailing dot is no valid host here: some resolvers treat the name as another
    /// name.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (text, None),
        };
        if let Some(port) = port
            && !(port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok())
        {
            return None;
        }
        if let Some(inner) = host.strip_prefix('[') {
            let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Address(address.into()));
        }
        if let Ok(address) = host.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let is_name = !host.is_empty()
            && host
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
            && !host.ends_with('.');
        is_name.then_some(Self::Name(host))
    }

    /// Returns whether the host is this machine for every client.
    pub(crate) fn is_loopback(self) -> bool {
        match self {
            Self::Name(name) => name.eq_ignore_ascii_case("localhost"),
            Self::Address(address) => is_loopback(address),
        }
    }
}

/// Returns whether an address is a loopback address, also in its IPv6 form.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
        assert_eq!(HostName::parse("a.b:80"), Some(HostName::Name("a.b")));
        let address = |text: &str| Some(HostName::Address(text.parse().unwrap()));
        assert_eq!(HostName::parse("10.0.0.1"), address("10.0.0.1"));
        assert_eq!(HostName::parse("[::1]:80"), address("::1"));
        for other in ["a.b.", "a.b.:80", "a b", "ä", "[::1]x", "[a]", ":80", "a:b"] {
            assert_eq!(HostName::parse(other), None, "{other}");
        }
    }
}
