//! Which addresses may be asked on behalf of a server: what it names is a stranger's word.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Where an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// This machine.
    Loopback,
    /// A network of one's own.
    Private,
    /// Anywhere.
    Public,
    /// Nowhere that anybody signs in at: link-local (the metadata services of clouds), multicast,
    /// unspecified and reserved ones.
    Never,
}

/// Lets requests go to public addresses, and to others only where the server itself has such a one.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    server: Arc<Url>,
    /// Hosts that somebody trusted has named: proxies.
    trusted: Arc<[String]>,
}

impl Guard {
    pub(super) fn new(server: &Url, trusted: Vec<String>) -> Self {
        Self { server: Arc::new(server.clone()), trusted: trusted.into() }
    }

    /// Whether an address may be asked, as far as its text tells; names are looked at when they are
    /// resolved.
    pub(super) fn allows(&self, url: &Url) -> bool {
        if url.origin() == self.server.origin() {
            return true;
        }
        let (server, kind) = (literal(&self.server), literal(url));
        let both_here = server == Some(Kind::Loopback) && kind == Some(Kind::Loopback);
        match url.scheme() {
            "https" => {}
            "http" if both_here => return true,
            _ => return false,
        }
        match kind {
            // A name.
            None | Some(Kind::Public) => url.host_str().is_some_and(|host| !host.is_empty()),
            Some(Kind::Never) => false,
            Some(Kind::Loopback | Kind::Private) => kind == server,
        }
    }

    async fn resolve(self, name: String) -> io::Result<Vec<SocketAddr>> {
        // The port is set by who connects.
        let found: Vec<SocketAddr> = tokio::net::lookup_host((&*name, 0)).await?.collect();
        let own = |host: &str| host.eq_ignore_ascii_case(&name);
        if self.server.host_str().is_some_and(own) || self.trusted.iter().any(|host| own(host)) {
            return Ok(found);
        }
        if found.iter().all(|address| kind(address.ip()) == Kind::Public) {
            return Ok(found);
        }
        let servers: HashSet<Kind> = match literal(&self.server) {
            Some(kind) => HashSet::from([kind]),
            None => {
                let host = self.server.host_str().unwrap_or_default();
                let found = tokio::net::lookup_host((host, 0)).await?;
                found.map(|address| kind(address.ip())).collect()
            }
        };
        let allowed = |address: &SocketAddr| match kind(address.ip()) {
            Kind::Public => true,
            Kind::Never => false,
            kind @ (Kind::Loopback | Kind::Private) => servers.contains(&kind),
        };
        let allowed: Vec<SocketAddr> = found.into_iter().filter(allowed).collect();
        if allowed.is_empty() {
            return Err(io::Error::other("its address is not one to sign in at"));
        }
        Ok(allowed)
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, name) = (self.clone(), name.as_str().to_owned());
        Box::pin(async move {
            let found = guard.resolve(name).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Where a host leads that needs no resolver; `None` for a name.
fn literal(url: &Url) -> Option<Kind> {
    let host = url.host_str()?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse() {
        return Some(kind(address));
    }
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        return Some(Kind::Loopback);
    }
    (name == "metadata" || name.ends_with(".internal")).then_some(Kind::Never)
}

fn kind(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(address) => kind_of_v4(address),
        IpAddr::V6(address) => kind_of_v6(address),
    }
}

fn kind_of_v4(address: Ipv4Addr) -> Kind {
    let octets = address.octets();
    match octets {
        _ if address.is_loopback() => Kind::Loopback,
        // The second is shared by the customers of one provider.
        _ if address.is_private() => Kind::Private,
        [100, 64..=127, ..] => Kind::Private,
        // The agents of a cloud, and networks for measurements.
        [168, 63, 129, 16] | [198, 18 | 19, ..] => Kind::Never,
        [0 | 224..=255, ..] => Kind::Never,
        _ if address.is_link_local() => Kind::Never,
        _ => Kind::Public,
    }
}

fn kind_of_v6(address: Ipv6Addr) -> Kind {
    if address.is_loopback() {
        return Kind::Loopback;
    }
    let [a, b, c, d, e, f, g, h] = address.segments();
    let last = Ipv4Addr::from((u32::from(g) << 16) | u32::from(h));
    match [a, b, c, d, e, f] {
        // Addresses of the older protocol in the newer one's clothes: mapped, translated, tunnelled.
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => kind_of_v4(last),
        [0x2002, high, low, ..] => {
            kind_of_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
        }
        [0, 0, 0, 0, 0, 0] | [0x2001, 0, ..] | [0x64, 0xff9b, 1, ..] => Kind::Never,
        [0xfd00, 0xec2, ..] => Kind::Never,
        [0xfc00..=0xfdff, ..] => Kind::Private,
        [0xfe80..=0xffff, ..] => Kind::Never,
        _ => Kind::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(server: &str, url: &str) -> bool {
        Guard::new(&Url::parse(server).unwrap(), Vec::new()).allows(&Url::parse(url).unwrap())
    }

    #[test]
    fn only_addresses_of_the_kind_that_the_server_has_are_asked() {
        let public = "https://mcp.example.com/mcp";
        for url in
            ["https://sso.example.org/", "https://93.184.216.34/", "https://mcp.example.com/x"]
        {
            assert!(allows(public, url), "{url}");
        }
        let refused = [
            "http://sso.example.org/",
            "https://127.0.0.1/",
            "https://localhost/",
            "https://a.localhost./",
            "https://10.0.0.1/",
            "https://192.168.1.1/",
            "https://100.64.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "http://169.254.169.254/latest/meta-data",
            "https://2852039166/",
            "https://0x7f.1/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:169.254.169.254]/",
            "https://[64:ff9b::7f00:1]/",
            "https://[2002:7f00:1::]/",
            "https://[fd00:ec2::254]/",
            "https://[fe80::1]/",
            "https://[fc00::1]/",
            "https://0.0.0.0/",
            "https://metadata.google.internal/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "unix:///run/x.sock",
        ];
        for url in refused {
            assert!(!allows(public, url), "{url}");
        }
    }

    #[test]
    fn a_server_on_this_machine_may_name_others_on_it_and_none_on_the_network_around() {
        let here = "http://127.0.0.1:8080/mcp";
        assert!(allows(here, "http://localhost:9000/"));
        assert!(allows(here, "https://127.0.0.2/"));
        assert!(allows(here, "https://sso.example.org/"));
        assert!(!allows(here, "http://sso.example.org/"));
        assert!(!allows(here, "https://10.0.0.1/"));
        assert!(!allows(here, "http://169.254.169.254/"));
        assert!(allows("https://10.0.0.5/mcp", "https://10.0.0.6/"));
        assert!(!allows("https://10.0.0.5/mcp", "https://127.0.0.1/"));
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_refused_for_a_server_elsewhere() {
        let public = Guard::new(&Url::parse("https://93.184.216.34/mcp").unwrap(), Vec::new());
        assert!(public.clone().resolve("localhost".to_owned()).await.is_err());
        let here = Guard::new(&Url::parse("http://127.0.0.1/mcp").unwrap(), Vec::new());
        assert!(here.resolve("localhost".to_owned()).await.is_ok());
        let proxied = Guard { trusted: ["localhost".to_owned()].into(), ..public };
        assert!(proxied.resolve("localhost".to_owned()).await.is_ok());
    }
}
