//! The addresses that need no proxy, in the forms of `NO_PROXY` that curl and Go read.

use std::net::IpAddr;

use reqwest::Url;

/// The entries of `NO_PROXY`.
#[derive(Clone, Debug, Default)]
pub(super) struct NoProxyList(Vec<Entry>);

#[derive(Clone, Debug)]
struct Entry {
    hosts: Hosts,
    /// The only port, if there is one.
    port: Option<u16>,
}

#[derive(Clone, Debug)]
enum Hosts {
    All,
    /// A network with the length of its prefix in bits.
    Network(IpAddr, u32),
    /// A domain with its subdomains.
    Domain(String),
}

impl NoProxyList {
    /// Parses a list with commas: `*`, addresses, networks and domains, each with or without a port.
    pub(super) fn parse(text: &str) -> Self {
        Self(text.split(',').filter_map(|entry| Entry::parse(entry.trim())).collect())
    }

    /// Returns whether a request for `url` goes to the server directly.
    pub(super) fn contains(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = url.port_or_known_default();
        self.0.iter().any(|entry| {
            entry.port.is_none_or(|only| Some(only) == port) && entry.hosts.contain(host)
        })
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, rest)) => (address, rest.strip_prefix(':')),
            None if text.matches(':').count() == 1 => {
                let (host, port) = text.split_once(':')?;
                (host, Some(port))
            }
            None => (text, None),
        };
        let port = match port {
            Some(port) => Some(port.parse().ok()?),
            None => None,
        };
        Some(Self { hosts: Hosts::parse(host)?, port })
    }
}

impl Hosts {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::All);
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Self::Network(address, u32::MAX));
        }
        if let Some((address, bits)) = text.split_once('/') {
            return Some(Self::Network(address.parse().ok()?, bits.parse().ok()?));
        }
        let domain = text.trim_start_matches("*.").trim_start_matches('.').trim_end_matches('.');
        (!domain.is_empty()).then(|| Self::Domain(domain.to_ascii_lowercase()))
    }

    fn contain(&self, host: &str) -> bool {
        match self {
            Self::All => true,
            Self::Network(network, bits) => {
                host.parse().is_ok_and(|address| is_in_network(address, *network, *bits))
            }
            Self::Domain(domain) => {
                let host = host.trim_end_matches('.').to_ascii_lowercase();
                let before = host.strip_suffix(domain.as_str());
                before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
            }
        }
    }
}

fn is_in_network(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let difference = address.to_bits() ^ network.to_bits();
            difference.leading_zeros() >= bits.min(u32::BITS)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let difference = address.to_bits() ^ network.to_bits();
            difference.leading_zeros() >= bits.min(u128::BITS)
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_entry_excludes_its_addresses_and_no_other() {
        for (list, inside, outside) in [
            ("*", "http://127.0.0.1:9/", None),
            ("127.0.0.1:80", "http://127.0.0.1/", Some("http://127.0.0.1:81/")),
            ("10.0.0.0/8", "http://10.200.0.1:9/", Some("http://11.0.0.1/")),
            ("::1", "http://[::1]:9/", Some("http://[::2]/")),
            ("[::1]:443", "https://[::1]/", Some("http://[::1]/")),
            ("fd00::/8", "http://[fd12::1]/", Some("http://[fe80::1]/")),
            ("example.com", "http://a.EXAMPLE.com/", Some("http://badexample.com/")),
            (".example.com", "http://example.com/", Some("http://example.org/")),
            ("*.example.com", "http://a.example.com/", Some("http://example.com.org/")),
            ("x, example.com:8080 ,y", "http://example.com:8080/", Some("http://example.com/")),
        ] {
            let parsed = NoProxyList::parse(list);
            let contains = |url: &str| parsed.contains(&Url::parse(url).unwrap());
            assert!(contains(inside), "{list} {inside}");
            assert!(!outside.is_some_and(contains), "{list} {outside:?}");
        }
        assert!(!NoProxyList::parse("").contains(&Url::parse("http://a/").unwrap()));
    }
}
