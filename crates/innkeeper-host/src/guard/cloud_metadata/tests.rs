//! Tests of the search for metadata addresses.

use super::*;

fn is_found(text: &str) -> bool {
    find_metadata_address(text) == AddressSearch::Found
}

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
        "http://168.63.129.16/machine?comp=goalstate",
        "168.63.129.16",
        "fd00:ec2::254",
        "http://[fd00:ec2::254%25eth0]/",
        "http://[fd20:ce::254]/",
        "METADATA.google.internal",
        "metadata.tencentyun.com",
        "http://169.254.169.254.nip.io/",
        "http://169-254-169-254.nip.io/",
        "http://a9fea9fe.nip.io/",
        "http://www.169-254-169-254.sslip.io./",
        "http://0xa9.0xfe.0xa9.0xfe.localtest.me/",
        "http://app-169-254-169-254.example.com/",
        "http://fd00-ec2--254.sslip.io/",
        "http://169.254.169.254%00.example.com/",
        "http://169.254.169.254\0.example.com/",
        "http://169.254.169.254%0d%0a/",
        "169.254.169.254%00",
        "http://169.254.169.254./",
        "http://a:b@169.254.169.254:80/",
        "http://１６９．２５４．１６９．２５４/",
        "http://169。254。169。254/",
        "１６９。２５４。１６９。２５４",
        "http://①⑥⑨.②⑤④.①⑥⑨.②⑤④/",
        "http:/169.254.169.254/",
        "http:169.254.169.254",
        "HTTPS:2852039166",
    ] {
        assert!(is_found(text), "{text}");
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
        "https://docs.example/169-254-169-254",
        "release 1.169.254.2",
        "http://192-168-1-1.nip.io/",
        "http://deadbeef.example/",
        "a: b",
        "12:30",
        "http:",
        "10.0.0.1",
        "http://[2001:db8::1]/",
        "a@169.254.169.254",
    ] {
        assert!(!is_found(text), "{text}");
    }
}

/// Attack: data | an address behind more addresses, or deeper, than the guard reads | the guard
/// says that it has not read the text | Complete checks
#[test]
fn a_text_with_more_than_the_limit_is_incomplete() {
    let at_word = |count: usize| format!("{}http://169.254.169.254/", "x. ".repeat(count));
    assert!(is_found(&at_word(MAX_WORDS - 1)));
    let many = find_metadata_address(&at_word(MAX_WORDS));
    assert_eq!(many, AddressSearch::Incomplete(TOO_MANY_WORDS));
    assert!(is_found(&"word ".repeat(MAX_WORDS).replacen("word", "169.254.169.254", 1)));
    let nested = |count: usize| format!("{}http://169.254.169.254/", "a://".repeat(count));
    assert!(is_found(&nested(MAX_NESTED_URLS - 1)));
    let deep = find_metadata_address(&nested(MAX_NESTED_URLS));
    assert_eq!(deep, AddressSearch::Incomplete(TOO_MANY_URLS));
    let at = |place: usize| {
        let address = "&u=http://169.254.169.254/";
        format!("http://a.example/?{}{address}", "x".repeat(place - 18 - address.len()))
    };
    assert!(is_found(&at(MAX_WORD_BYTES)));
    let long = find_metadata_address(&at(MAX_WORD_BYTES + 26));
    assert_eq!(long, AddressSearch::Incomplete(TOO_LONG_ADDRESS));
}

/// Attack: data | 43,000 nested addresses in one word | the guard stops at its limit and does
/// not exhaust the stack | No unbounded memory
#[test]
fn a_word_of_nested_addresses_ends_at_the_limit() {
    let nested = find_metadata_address(&"://".repeat(43_000));
    assert_eq!(nested, AddressSearch::Incomplete(TOO_MANY_URLS));
    assert!(!is_found(&"é".repeat(MAX_WORD_BYTES)));
}

#[test]
fn the_reasons_name_the_limits() {
    assert!(TOO_MANY_WORDS.contains(&MAX_WORDS.to_string()));
    assert!(TOO_MANY_URLS.contains(&MAX_NESTED_URLS.to_string()));
    assert!(TOO_LONG_ADDRESS.contains(&format!("{} KiB", MAX_WORD_BYTES >> 10)));
}
