//! The addresses at which clouds give a machine its credentials, in every form of an address.
//!
//! Address forms as in the fixed request forgeries of registries and gateways: numbers in other
//! bases, IPv4 inside IPv6, NAT64 (RFC 6052) and 6to4 (RFC 3056).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// Names of the service.
const NAMES: [&str; 6] = [
    "metadata.google.internal",
    "metadata.goog",
    "metadata",
    "instance-data",
    "instance-data.ec2.internal",
    "metadata.azure.internal",
];

/// Services outside the link-local network: Alibaba, Oracle.
const ELSEWHERE: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192)];

/// That of Amazon's IPv6.
const AMAZON: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254);

/// Words of one text that are read as an address.
const WORDS: usize = 256;

/// How much of one word is read: longer addresses are not written by people, and cost time.
const LONGEST: usize = 4 << 10;

/// Addresses inside one another that are read in one word: a redirect to a redirect is three.
const NESTED: usize = 8;

/// Whether a word of the text leads to such a service.
pub(super) fn names_one(text: &str) -> bool {
    let cut = |c: char| c.is_whitespace() || "\"'`,;()<>|".contains(c);
    text.split(cut).filter(|word| !word.is_empty()).take(WORDS).any(is_one)
}

fn is_one(word: &str) -> bool {
    let word = &word[..word.floor_char_boundary(LONGEST)];
    if word.contains("://") {
        // An address may stand in the parameters of another one.
        return word.match_indices("://").take(NESTED).any(|(at, _)| {
            let scheme = word[..at].rfind(|c: char| !c.is_ascii_alphanumeric());
            let start = scheme.map_or(0, |at| word.ceil_char_boundary(at + 1));
            leads(&format!("http{}", &word[at..])) || start > 0 && leads(&word[start..])
        });
    }
    // Without a scheme only what can be nothing else: a number alone is a number.
    let bare = (word.contains('.') || word.contains("::") || word.starts_with("0x"))
        && !word.contains('@');
    bare && leads(&format!("http://{}", bracketed(word)))
}

/// An IPv6 address as an address of the web has it.
fn bracketed(word: &str) -> String {
    match word.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => word.to_owned(),
    }
}

fn leads(url: &str) -> bool {
    // Reads hosts as browsers do: `0xa9fea9fe` and `2852039166` are addresses.
    let Ok(url) = Url::parse(url) else { return false };
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    match host.parse() {
        Ok(IpAddr::V4(address)) => is_v4(address),
        Ok(IpAddr::V6(address)) => address == AMAZON || inside(address).is_some_and(is_v4),
        Err(_) => NAMES.contains(&host),
    }
}

fn is_v4(address: Ipv4Addr) -> bool {
    address.is_link_local() || ELSEWHERE.contains(&address)
}

/// The IPv4 address that an IPv6 address stands for.
fn inside(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, _, _, _, _, _] => Some(v4(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_known_in_every_form_of_its_address() {
        for text in [
            "http://169.254.169.254/latest/meta-data/",
            "169.254.169.254",
            "http://2852039166/",
            "http://0xA9FEA9FE/",
            "0xa9.0xfe.0xa9.0xfe",
            "http://0251.0376.0251.0376/",
            "http://[::ffff:169.254.169.254]/",
            "[::ffff:a9fe:a9fe]:80",
            "::ffff:169.254.169.254",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[2002:a9fe:a9fe::1]/",
            "http://[fd00:ec2::254]/latest",
            "http://metadata.google.internal./computeMetadata/v1/",
            "gopher://169.254.169.254:80/_x",
            "https://a.example/go?to=http://169.254.169.254/",
            "http://user@169.254.170.2/v2/credentials",
            "curl -s http://100.100.100.200/latest",
        ] {
            assert!(names_one(text), "{text}");
        }
    }

    #[test]
    fn other_addresses_numbers_and_words_are_not() {
        for text in [
            "http://127.0.0.1/",
            "https://a.example/169.254.169.254",
            "2852039166",
            "metadata",
            "metadata: x",
            "10.0.0.1",
            "http://[2001:db8::1]/",
            "a@169.254.169.254",
        ] {
            assert!(!names_one(text), "{text}");
        }
    }

    #[test]
    fn as_many_words_are_read_as_the_limit() {
        let behind = |count: usize| format!("{}http://169.254.169.254/", "x ".repeat(count));
        assert!(names_one(&behind(WORDS - 1)));
        assert!(!names_one(&behind(WORDS)));
    }

    #[test]
    fn as_many_addresses_in_one_another_are_read_as_the_limit_and_of_a_word_its_beginning() {
        let nested = |count: usize| format!("{}http://169.254.169.254/", "a://".repeat(count));
        assert!(names_one(&nested(NESTED - 1)));
        assert!(!names_one(&nested(NESTED)));
        let at = |place: usize| {
            let address = "&u=http://169.254.169.254/";
            format!("http://a.example/?{}{address}", "x".repeat(place - 18 - address.len()))
        };
        assert!(names_one(&at(LONGEST)));
        assert!(!names_one(&at(LONGEST + 26)));
        assert!(!names_one(&"://".repeat(43_000)), "and the stack is not used up");
        assert!(!names_one(&"é".repeat(LONGEST)));
    }
}
