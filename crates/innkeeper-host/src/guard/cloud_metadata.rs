//! Finds cloud metadata addresses in text, in all address notations.
//!
//! The notations are those of known server-side request forgeries against registries and gateways:
//! numbers in other bases, encoded ends, and addresses inside other addresses.

use std::net::Ipv6Addr;

use reqwest::Url;

use crate::metadata_address::is_metadata_host;

/// Maximum number of words in a text that are parsed as addresses.
const MAX_WORDS: usize = 4096;

/// Maximum number of bytes parsed in a word: people write no longer addresses, and parsing takes
/// time.
const MAX_WORD_BYTES: usize = 4 << 10;

/// Maximum number of nested URLs parsed in a word: a redirect to a redirect has three.
const MAX_NESTED_URLS: usize = 8;

/// Reasons of an incomplete search.
const TOO_MANY_WORDS: &str = "not scanned: more than 4096 addresses in one text";
const TOO_MANY_URLS: &str = "not scanned: more than 8 addresses inside one another";
const TOO_LONG_ADDRESS: &str = "not scanned: an address of more than 4 KiB";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressSearch {
    Found,
    NotFound,
    /// Part of the text was not searched, for this reason.
    Incomplete(&'static str),
}

pub(super) fn find_metadata_address(text: &str) -> AddressSearch {
    // A server may end its text at NUL, and so ends the word.
    let words = text
        .split(|c: char| c.is_whitespace() || "\"'`,;()<>|\0".contains(c))
        .filter(|word| looks_like_address(word));
    let mut incomplete = None;
    for (number, word) in words.enumerate() {
        if number >= MAX_WORDS {
            incomplete = incomplete.or(Some(TOO_MANY_WORDS));
            break;
        }
        match find_in_word(word) {
            AddressSearch::Found => return AddressSearch::Found,
            AddressSearch::NotFound => {}
            AddressSearch::Incomplete(reason) => incomplete = Some(reason),
        }
    }
    incomplete.map_or(AddressSearch::NotFound, AddressSearch::Incomplete)
}

/// Returns whether a word has the marks of an address: a plain number is a number.
fn looks_like_address(word: &str) -> bool {
    let has_dot = word.contains(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']);
    let has_scheme = ["http:", "https:", "0x"].iter().any(|start| {
        word.get(..start.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(start))
    });
    has_dot || has_scheme || word.contains("::") || word.contains("://")
}

fn find_in_word(whole: &str) -> AddressSearch {
    let word = &whole[..whole.floor_char_boundary(MAX_WORD_BYTES)];
    let urls = word.match_indices("://").count();
    let is_found = if urls > 0 {
        // A parameter of a URL may contain another URL.
        word.match_indices("://").take(MAX_NESTED_URLS).any(|(at, _)| {
            let scheme = word[..at].rfind(|c: char| !c.is_ascii_alphanumeric());
            let start = scheme.map_or(0, |at| word.ceil_char_boundary(at + 1));
            is_metadata_url(&format!("http{}", &word[at..])) || is_metadata_url(&word[start..])
        })
    } else {
        // An address of e-mail is none.
        !word.contains('@') && is_metadata_url(&format!("http://{}", bracket_ipv6(word)))
            // Browsers read `http:/host` and `http:host` as a URL.
            || word.split_once(':').is_some_and(|(scheme, rest)| {
                ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
                    && is_metadata_url(&format!("http://{rest}"))
            })
    };
    if is_found {
        AddressSearch::Found
    } else if urls > MAX_NESTED_URLS {
        AddressSearch::Incomplete(TOO_MANY_URLS)
    } else if word.len() < whole.len() && urls > 0 {
        AddressSearch::Incomplete(TOO_LONG_ADDRESS)
    } else {
        AddressSearch::NotFound
    }
}

/// Adds brackets around an IPv6 address, as URLs require.
fn bracket_ipv6(word: &str) -> String {
    match word.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => word.to_owned(),
    }
}

fn is_metadata_url(url: &str) -> bool {
    // Readers differ about what `%00` and `%` after an address mean. Parses hosts as browsers do:
    // `0xa9fea9fe` and `2852039166` are addresses.
    let url = Url::parse(url).ok().or_else(|| Url::parse(&cut_host(url)?).ok());
    let Some(url) = url else { return false };
    url.host_str().is_some_and(|host| is_metadata_host(host.trim_matches(['[', ']'])))
}

/// Returns a URL whose host ends before the first character that no host has; `None` if there is no
/// such character.
fn cut_host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = &rest[..rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len())];
    let host = authority.rsplit('@').next()?;
    // The zone of an IPv6 address is not part of the address.
    let end = host.find(|c: char| c == '%' || c.is_control() || "^{}$!*~+=&".contains(c))?;
    let close = if host.starts_with('[') { "]" } else { "" };
    Some(format!("{scheme}://{}{close}", &host[..end]))
}

#[cfg(test)]
mod tests;
