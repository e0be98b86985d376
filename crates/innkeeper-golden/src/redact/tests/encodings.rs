//! Every encoding of a secret in every place.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

use super::*;

pub(super) type Encode = fn(&str) -> String;

fn each_byte(text: &str, encode: impl Fn(u8) -> String) -> String {
    text.bytes().map(encode).collect()
}

fn percent(text: &str) -> String {
    each_byte(text, |byte| format!("%{byte:02X}"))
}

fn percent_if_needed(text: &str) -> String {
    each_byte(text, |byte| {
        if byte.is_ascii_alphanumeric() {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02x}")
        }
    })
}

fn percent_component(text: &str) -> String {
    each_byte(text, |byte| {
        if byte.is_ascii_alphanumeric() || b"-._~!*'()".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    })
}

fn json_string(text: &str) -> String {
    let quoted = json!(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn json_units(text: &str) -> String {
    text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect()
}

fn html_decimal(text: &str) -> String {
    text.chars().map(|c| format!("&#{};", u32::from(c))).collect()
}

fn html_hex(text: &str) -> String {
    text.chars().map(|c| format!("&#x{:x};", u32::from(c))).collect()
}

fn html_named(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

fn hex(text: &str) -> String {
    each_byte(text, |byte| format!("{byte:02x}"))
}

fn base64_after(text: &str, before: &str) -> String {
    STANDARD.encode(format!("{before}{text} and more"))
}

fn in_lines(text: &str, line_break: &str) -> String {
    text.as_bytes()
        .chunks(5)
        .map(|line| String::from_utf8_lossy(line))
        .collect::<Vec<_>>()
        .join(line_break)
}

/// The position of the first encoding that is Base64.
const FIRST_BASE64: usize = 21;

pub(super) const ENCODINGS: [(&str, Encode); 33] = [
    ("plain", str::to_owned),
    ("JSON", json_string),
    ("JSON with escaped slashes", |text| json_string(text).replace('/', "\\/")),
    ("JSON escapes", json_units),
    ("JSON escapes in lower case", |text| json_units(text).to_lowercase()),
    ("JSON in JSON", |text| json_string(&json_string(text))),
    ("JSON escapes in JSON", |text| json_string(&json_units(text))),
    ("JSON escapes in JSON in JSON", |text| json_string(&json_string(&json_units(text)))),
    ("percent-encoding", percent),
    ("percent-encoding in lower case", |text| percent(text).to_lowercase()),
    ("percent-encoding if needed", percent_if_needed),
    ("percent-encoding twice", |text| percent(&percent(text))),
    ("a form", |text| percent_if_needed(text).replace("%20", "+")),
    ("percent-encoded JSON", |text| percent(&json_units(text))),
    ("hexadecimal digits", hex),
    ("hexadecimal digits in upper case", |text| hex(text).to_uppercase()),
    ("hexadecimal escapes", |text| each_byte(text, |byte| format!("\\x{byte:02x}"))),
    ("decimal HTML references", html_decimal),
    ("hexadecimal HTML references", html_hex),
    ("named HTML references", html_named),
    ("HTML references in HTML", |text| html_decimal(text).replace('&', "&amp;")),
    ("Base64", |text| STANDARD.encode(text)),
    ("Base64 after one byte", |text| base64_after(text, "x")),
    ("Base64 after two bytes", |text| base64_after(text, "xy")),
    ("Base64 after three bytes", |text| base64_after(text, "xyz")),
    ("URL-safe Base64", |text| URL_SAFE_NO_PAD.encode(format!("\u{3ff}?{text}"))),
    ("Base64 in lines", |text| in_lines(&base64_after(text, "xyz"), "\r\n")),
    ("Base64 in escaped lines", |text| in_lines(&base64_after(text, "xy"), "\\n")),
    ("Base64 in a URL", |text| percent_if_needed(&base64_after(text, "\u{3ff}"))),
    ("Base64 with escaped slashes", |text| base64_after(text, "\u{3ff}").replace('/', "\\/")),
    ("Base64 of Base64", |text| base64_after(&base64_after(text, "y"), "xz")),
    ("Base64 of JSON", |text| base64_after(&json_string(text), "x")),
    ("Base64 of a URL", |text| base64_after(&percent_component(text), "x")),
];

/// Secrets with all that makes encodings differ.
pub(super) const SECRETS: [&str; 7] = [
    "???>>>~~~",
    "abcdef",
    "sk-ABC/DEF+0123==",
    "pass word \"quoted\" \\ back",
    "grüße-😀-secret",
    "%41%2f&amp;\\u0041",
    "<tag>&'more'",
];

#[test]
fn a_secret_is_replaced_in_each_place_whatever_its_encoding() {
    let secret = SECRETS[2];
    for (encoding, encode) in ENCODINGS {
        let encoded = encode(secret);
        let text = format!("before {encoded} after");
        let golden =
            redact_with(golden(&text, &json!({})), &[anywhere("api-key", secret)], find_nothing);
        let clean = json_text(&golden);
        let case = format!("{encoding}: {clean}");
        assert!(!clean.contains(&json_string(&encoded)), "{case}");
        assert!(!clean.contains(&json_string(&json_string(&encoded))), "{case}");
        let expected = golden_text(&text, &json!({})).matches("before ").count();
        assert_eq!(clean.matches("[redacted:api-key]").count(), expected, "{case}");
        assert_eq!(clean.matches("before ").count(), expected, "{case}");
        golden.to_json().unwrap();
    }
}

#[test]
fn what_is_around_a_secret_stays() {
    for secret in SECRETS {
        for (at, (encoding, encode)) in ENCODINGS.into_iter().enumerate() {
            let encoded = encode(secret);
            let mut golden = golden_with_chunks(&[]);
            golden.test_name = format!("before {encoded} after");
            redact(&mut golden, &[anywhere("key", secret)], find_nothing).unwrap();
            let clean = golden.test_name;
            let case = format!("{secret} as {encoding}: {clean}");
            assert!(!clean.contains(&encoded) && clean.contains("[redacted:key]"), "{case}");
            assert!(clean.starts_with("before ") && clean.ends_with(" after"), "{case}");
            // Base64 leaves what is not of the secret.
            if at < FIRST_BASE64 {
                assert_eq!(clean, "before [redacted:key] after", "{case}");
            }
        }
    }
}

#[test]
fn base64_loses_each_character_with_bits_of_the_secret() {
    let secret = [anywhere("key", "abcdef")];
    // The first and the last character hold only bits of `x` and `!`.
    let text = STANDARD.encode("xabcdef!");
    let golden = redact_with(golden(&text, &json!({})), &secret, find_nothing);
    let expected = format!("{}[redacted:key]{}=", &text[..1], &text[10..11]);
    assert_eq!(golden.test_name, expected);
}

#[test]
fn mixed_encodings_are_one_secret() {
    let secret = [anywhere("key", "a/b<c>d e")];
    for text in ["a%2Fb&lt;c\\u003ed+e", "a\\/b%3Cc&#62;d%20e", "&#97;%252fb<c>d\\u0020e"] {
        let golden = redact_with(golden(text, &json!({})), &secret, find_nothing);
        assert_eq!(golden.test_name, "[redacted:key]", "{text}");
    }
}

#[test]
fn the_longest_secret_names_what_overlaps() {
    let secrets = [anywhere("a", "abcdef"), anywhere("b", "abcdefghij"), anywhere("c", "hijklmno")];
    let golden = redact_with(golden("abcdefghijklmno abcdef", &json!({})), &secrets, find_nothing);
    assert_eq!(golden.test_name, "[redacted:b] [redacted:a]");
}

#[test]
fn a_placeholder_escapes_nothing_and_is_not_escaped() {
    let secret = [anywhere("env:A \"B\"", "nabcdef")];
    let text = json!({"path": "C:\\nabcdef", "line": "x\nabcdef"}).to_string();
    let golden = redact_with(golden(&text, &json!({})), &secret, find_nothing);
    let inner: Value = serde_json::from_str(&golden.test_name).unwrap();
    assert_eq!(inner["path"], "C:[redacted:env:A__B_]");
}

#[test]
fn a_secret_that_is_in_a_placeholder_does_not_repeat_it() {
    let secrets = [anywhere("password", "redacted"), anywhere("other", "password")];
    let golden = redact_with(golden("redacted, password", &json!({})), &secrets, find_nothing);
    assert_eq!(golden.test_name, "[redacted:password], [redacted:other]");
}
