//! Addresses of cloud metadata services.
//!
//! A host can hide such an address in IPv6 (NAT64 of RFC 6052, 6to4 of RFC 3056, ISATAP of RFC 5214)
//! and in the name of a public resolver that answers with the address in the name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// Host names of metadata services, which also exist below a domain for searches.
const METADATA_HOSTS: [&str; 7] = [
    "metadata.google.internal",
    "metadata.goog",
    "metadata",
    "instance-data",
    "instance-data.ec2.internal",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
];

/// Metadata services outside the link-local network: Alibaba, Oracle, and the wire server of Azure.
const METADATA_IPV4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

/// IPv6 addresses of the metadata services of Amazon and Google.
const METADATA_IPV6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// Returns whether a host is a metadata service, by its name, its address, or an address in its name.
pub(crate) fn is_metadata_host(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    match host.parse() {
        Ok(address) => is_metadata_ip(address),
        Err(_) => METADATA_HOSTS.contains(&&*host) || is_resolver_name(&host),
    }
}

/// Returns whether an address is that of a metadata service. All link-local IPv4 addresses are.
pub(crate) fn is_metadata_ip(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_metadata_ipv4(address),
        IpAddr::V6(address) => {
            METADATA_IPV6.contains(&address) || embedded_ipv4(address).is_some_and(is_metadata_ipv4)
        }
    }
}

fn is_metadata_ipv4(address: Ipv4Addr) -> bool {
    address.is_link_local() || METADATA_IPV4.contains(&address)
}

/// Returns whether a name contains a metadata address, as names below `nip.io` and `sslip.io` do:
/// with dots or dashes, as one hexadecimal number, or with a dash for each colon of IPv6. The domain
/// does not matter, because anyone can run such a resolver.
fn is_resolver_name(host: &str) -> bool {
    let labels: Vec<&str> = host.split('.').collect();
    let dotted = labels.windows(4).any(is_address_of_parts);
    dotted
        || labels.iter().any(|label| {
            let parts: Vec<&str> = label.split('-').collect();
            parts.windows(4).any(is_address_of_parts)
                || parts.iter().any(|part| {
                    part.len() == 8
                        && u32::from_str_radix(part, 16)
                            .is_ok_and(|number| is_metadata_ipv4(Ipv4Addr::from_bits(number)))
                })
                || label.replace('-', ":").parse().is_ok_and(is_metadata_ip)
        })
}

fn is_address_of_parts(parts: &[&str]) -> bool {
    // Each part can be decimal, octal or hexadecimal, as in an address of a URL.
    parts.iter().all(|part| part.starts_with(|c: char| c.is_ascii_digit()))
        && Url::parse(&format!("http://{}/", parts.join("."))).is_ok_and(|url| {
            url.host_str().and_then(|host| host.parse().ok()).is_some_and(is_metadata_ip)
        })
}

/// Returns the IPv4 address embedded in an IPv6 address.
fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bytes = address.octets();
    let at = match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, ..]
        | [0, 0, 0, 0, 0xffff, 0, ..]
        | [0x64, 0xff9b, 0, 0, 0, 0, ..]
        | [0x64, 0xff9b, 1, ..]
        // ISATAP.
        | [_, _, _, _, 0 | 0x200, 0x5efe, ..] => 12,
        [0x2002, ..] => 2,
        _ => return None,
    };
    Some(Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: data | the address of a metadata service inside IPv6 or the name of a resolver, with
    /// dots, dashes, or as a number | the address is recognized | Complete checks
    #[test]
    fn a_service_is_known_by_every_host() {
        for host in [
            "169.254.169.254",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::254",
            "::ffff:168.63.129.16",
            "::ffff:0:169.254.169.254",
            "2001:db8::5efe:a9fe:a9fe",
            "Metadata.Google.Internal.",
            "169.254.169.254.nip.io",
            "www.a9fea9fe.nip.io",
            "a-169-254-169-254-b.sslip.io",
            "0251.0376.0251.0376.example",
        ] {
            assert!(is_metadata_host(host), "{host}");
        }
        for host in [
            "168.63.129.17",
            "192-168-1-1.nip.io",
            "fd00:ec3::254",
            "metadata.example.com",
            "2001:db8::a9fe:a9fe",
            "1.2.3.4.example",
            "cafebabe.example",
            "a-b-c-d.example",
            "",
        ] {
            assert!(!is_metadata_host(host), "{host}");
        }
    }
}
