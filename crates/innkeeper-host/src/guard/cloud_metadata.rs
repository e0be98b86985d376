//! Detects cloud metadata addresses in all address notations.
//!
//! The notations are those of known server-side request forgeries against registries and gateways:
//! numbers in other bases, IPv4 inside IPv6, NAT64 (RFC 6052) and 6to4 (RFC 3056).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// Host names of metadata services.
const METADATA_HOSTS: [&str; 6] = [
    "metadata.google.internal",
    "metadata.goog",
    "metadata",
    "instance-data",
    "instance-data.ec2.internal",
    "metadata.azure.internal",
];

/// Metadata services outside the link-local network: Alibaba, Oracle.
const METADATA_IPV4: [Ipv4Addr; 2] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192)];

/// IPv6 address of Amazon's metadata service.
const AWS_METADATA_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254);

/// Maximum number of words in a text that are parsed as addresses.
const MAX_WORDS: usize = 256;

/// Maximum number of bytes parsed in a word: people write no longer addresses, and parsing takes
/// time.
const MAX_WORD_BYTES: usize = 4 << 10;

/// Maximum number of nested URLs parsed in a word: a redirect to a redirect has three.
const MAX_NESTED_URLS: usize = 8;

/// Returns whether a word of the text is a metadata address.
pub(super) fn mentions_metadata_address(text: &str) -> bool {
    let is_separator = |c: char| c.is_whitespace() || "\"'`,;()<>|".contains(c);
    text.split(is_separator)
        .filter(|word| !word.is_empty())
        .take(MAX_WORDS)
        .any(is_metadata_address)
}

fn is_metadata_address(word: &str) -> bool {
    let word = &word[..word.floor_char_boundary(MAX_WORD_BYTES)];
    if word.contains("://") {
        // A parameter of a URL may contain another URL.
        return word.match_indices("://").take(MAX_NESTED_URLS).any(|(at, _)| {
            let scheme = word[..at].rfind(|c: char| !c.is_ascii_alphanumeric());
            let start = scheme.map_or(0, |at| word.ceil_char_boundary(at + 1));
            is_metadata_url(&format!("http{}", &word[at..])) || is_metadata_url(&word[start..])
        });
    }
    // Without a scheme, only unambiguous addresses count: a plain number is a number.
    let bare = (word.contains('.') || word.contains("::") || word.starts_with("0x"))
        && !word.contains('@');
    bare && is_metadata_url(&format!("http://{}", bracket_ipv6(word)))
}

/// Adds brackets around an IPv6 address, as URLs require.
fn bracket_ipv6(word: &str) -> String {
    match word.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => word.to_owned(),
    }
}

fn is_metadata_url(url: &str) -> bool {
    // Parses hosts as browsers do: `0xa9fea9fe` and `2852039166` are addresses.
    let Ok(url) = Url::parse(url) else { return false };
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    match host.parse() {
        Ok(IpAddr::V4(address)) => is_metadata_ipv4(address),
        Ok(IpAddr::V6(address)) => {
            address == AWS_METADATA_IPV6 || embedded_ipv4(address).is_some_and(is_metadata_ipv4)
        }
        Err(_) => METADATA_HOSTS.contains(&host),
    }
}

fn is_metadata_ipv4(address: Ipv4Addr) -> bool {
    address.is_link_local() || METADATA_IPV4.contains(&address)
}

/// Returns the IPv4 address embedded in an IPv6 address.
fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bytes = address.octets();
    let at = match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, ..]
        | [0, 0, 0, 0, 0xffff, 0, ..]
        | [0x64, 0xff9b, 0, 0, 0, 0, ..]
        | [0x64, 0xff9b, 1, ..] => 12,
        [0x2002, ..] => 2,
        _ => return None,
    };
    Some(Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: data | the address of a cloud metadata service as a number, in octal, in IPv6 or
    /// inside another URL | the guard recognizes the address | Complete checks
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
            "http://[::ffff:100.100.100.200]/",
            "http://[2002:6464:64c8::1]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[2002:a9fe:a9fe::1]/",
            "http://[fd00:ec2::254]/latest",
            "http://metadata.google.internal./computeMetadata/v1/",
            "gopher://169.254.169.254:80/_x",
            "https://a.example/go?to=http://169.254.169.254/",
            // Schemes of the web read a backslash as a slash; other schemes read what follows.
            r"gopher://a\@169.254.169.254/",
            r"to=gopher://a\@169.254.169.254/",
            "http://user@169.254.170.2/v2/credentials",
            "curl -s http://100.100.100.200/latest",
        ] {
            assert!(mentions_metadata_address(text), "{text}");
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
            assert!(!mentions_metadata_address(text), "{text}");
        }
    }

    #[test]
    fn as_many_words_are_read_as_the_limit() {
        let at_word = |count: usize| format!("{}http://169.254.169.254/", "x ".repeat(count));
        assert!(mentions_metadata_address(&at_word(MAX_WORDS - 1)));
        assert!(!mentions_metadata_address(&at_word(MAX_WORDS)));
    }

    /// Attack: data | 43,000 nested addresses in one word | the guard stops at its limit and does
    /// not exhaust the stack | No unbounded memory
    #[test]
    fn as_many_addresses_in_one_another_are_read_as_the_limit_and_of_a_word_its_beginning() {
        let nested = |count: usize| format!("{}http://169.254.169.254/", "a://".repeat(count));
        assert!(mentions_metadata_address(&nested(MAX_NESTED_URLS - 1)));
        assert!(!mentions_metadata_address(&nested(MAX_NESTED_URLS)));
        let at = |place: usize| {
            let address = "&u=http://169.254.169.254/";
            format!("http://a.example/?{}{address}", "x".repeat(place - 18 - address.len()))
        };
        assert!(mentions_metadata_address(&at(MAX_WORD_BYTES)));
        assert!(!mentions_metadata_address(&at(MAX_WORD_BYTES + 26)));
        assert!(!mentions_metadata_address(&"://".repeat(43_000)), "and the stack is not used up");
        assert!(!mentions_metadata_address(&"é".repeat(MAX_WORD_BYTES)));
    }
}
