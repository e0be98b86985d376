//! Tests of the decoders.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;
use crate::text::visible_text;

const SAMPLE: &str = "please water the plants on the balcony, and the ladder too";

fn decode(text: &str) -> String {
    let mut remaining = MAX_DECODED_BYTES;
    decode_embedded(text, &visible_text(text), &mut remaining).unwrap()
}

fn each(encode: impl Fn(u8) -> String) -> String {
    SAMPLE.bytes().map(encode).collect()
}

fn base32(bytes: &[u8]) -> String {
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let letter = |group: &[u8]| {
        let text = format!("{:0<5}", std::str::from_utf8(group).unwrap());
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[usize::from_str_radix(&text, 2).unwrap()])
    };
    bits.as_bytes().chunks(5).map(letter).collect()
}

fn encodings() -> Vec<(&'static str, String)> {
    let utf16 = |bytes: fn(u16) -> [u8; 2]| {
        STANDARD.encode(SAMPLE.encode_utf16().flat_map(bytes).collect::<Vec<u8>>())
    };
    let selectors = SAMPLE.bytes().map(|byte| {
        let number = if byte < 16 { 0xfe00 } else { 0xe0100 - 16 } + u32::from(byte);
        char::from_u32(number).unwrap()
    });
    let wrapped = STANDARD.encode(SAMPLE.repeat(3));
    let lines = |width: usize| {
        let lines = wrapped.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap());
        lines.collect::<Vec<_>>().join("\n")
    };
    vec![
        ("percent", each(|byte| format!("%{byte:02X}"))),
        ("percent of old scripts", each(|byte| format!("%u{byte:04x}"))),
        ("references", each(|byte| format!("&#{byte};"))),
        (
            "hexadecimal references without an end",
            each(|byte| format!("&#x{byte:x}")).replace("&#x20", "&#x20;"),
        ),
        ("unicode escapes", each(|byte| format!("\\u{byte:04x}"))),
        ("doubled escapes", each(|byte| format!("\\\\\\u{byte:04x}"))),
        ("braced escapes", each(|byte| format!("\\u{{{byte:x}}}"))),
        ("long escapes", each(|byte| format!("\\U{byte:08x}"))),
        ("byte escapes", each(|byte| format!("\\x{byte:02x}"))),
        ("octal escapes", each(|byte| format!("\\{byte:03o}"))),
        ("quoted-printable", each(|byte| format!("={byte:02X}"))),
        ("hexadecimal", each(|byte| format!("{byte:02x}"))),
        ("hexadecimal pairs", each(|byte| format!("{byte:02x} "))),
        ("hexadecimal numbers", each(|byte| format!("0x{byte:02x}, "))),
        ("decimal numbers", each(|byte| format!("{byte} "))),
        ("bits", each(|byte| format!("{byte:08b} "))),
        ("base32", base32(SAMPLE.as_bytes())),
        ("base64", STANDARD.encode(SAMPLE)),
        ("base64 for URLs", URL_SAFE_NO_PAD.encode(SAMPLE)),
        ("base64 of UTF-16", utf16(u16::to_le_bytes)),
        ("base64 of UTF-16, the high byte first", utf16(u16::to_be_bytes)),
        ("base64 in lines", lines(76)),
        ("base64 in short lines", lines(20)),
        ("base64 in a data URL", format!("data:text/plain;base64,{}", STANDARD.encode(SAMPLE))),
        ("base64 behind a path", format!("/download/{}", STANDARD.encode(SAMPLE))),
        ("base64 before a parameter", format!("q={}&x=1", STANDARD.encode(SAMPLE))),
        (
            "base64 between binary data",
            STANDARD.encode([&[0x91; 99], SAMPLE.as_bytes(), &[7; 99]].concat()),
        ),
        ("selectors", format!("x{}y", selectors.collect::<String>())),
        ("tags", each(|byte| format!("{}<b></b>", char::from(byte)))),
        ("comments", each(|byte| format!("{}<!-- > -->", char::from(byte)))),
    ]
}

/// Attack: data | a sentence in one of 30 encodings | the guard reads the sentence | Complete checks
#[test]
fn each_encoding_is_decoded() {
    for (name, text) in encodings() {
        let decoded = decode(&format!("see: {text} there"));
        assert!(decoded.contains(SAMPLE), "{name}: {text}\n{decoded}");
    }
}

#[test]
fn what_only_looks_encoded_is_left() {
    for text in [
        "100% of 50%",
        "AT&T, R&D and a&b",
        "0123456789abcdef0123456789abcdef",
        "3f786850e387550fdab836ed7e6dc881de23001b",
        "/usr/local/lib/some/path/x",
        "C:\\users\\name\\new",
        "a=12&b=34&c=56",
        "line\\nline\\nline\\nline",
        "a < b, b > c and <b>bold</b> text",
        "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12",
        "❤\u{fe0f} 葛\u{e0100}",
    ] {
        assert_eq!(decode(text), "", "{text}");
    }
}

/// Attack: data | encoded texts that are longer than the limit together | the guard says so instead
/// of reading a part | No unbounded memory
#[test]
fn decoded_text_ends_at_the_limit_of_the_message() {
    let text = STANDARD.encode(SAMPLE);
    let mut remaining = SAMPLE.len() * 2;
    assert!(decode_embedded(&text, &text, &mut remaining).is_ok());
    assert!(decode_embedded(&text, &text, &mut remaining).is_ok());
    assert_eq!(remaining, 0);
    assert_eq!(decode_embedded(&text, &text, &mut remaining), Err(TooLong));
}

fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "%",
        "%4",
        "%41",
        "%u00",
        "&#",
        "&#x",
        "&#x41;",
        "&#99999999999;",
        "&amp",
        "&amp;",
        "\\",
        "\\u",
        "\\ud800",
        "\\u{",
        "\\u{110000}",
        "\\x",
        "\\7",
        "\\377",
        "=",
        "=4",
        "=41",
        "=\r\n",
        "<",
        "<!--",
        "-->",
        "<a",
        ">",
        "\u{fe00}",
        "\u{e01ef}",
        "SWdub3Jl",
        "4142",
        "MFRGG",
        "0x41 ",
        "é",
        "\n",
        " ",
    ]);
    prop::collection::vec(pieces, 0..80).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// Attack: data | generated pieces of escapes and runs | no decoder panics, and the decoded text
    /// stays within its limit | No unbounded memory
    #[test]
    fn no_text_makes_a_decoder_panic_or_exceed_the_limit(
        text in prop_oneof![hostile(), any::<String>(), "[A-Za-z2-7+/=_\\n-]{0,300}"], limit in 0..500_usize,
    ) {
        let mut remaining = limit;
        if let Ok(decoded) = decode_embedded(&text, &visible_text(&text), &mut remaining) {
            prop_assert!(decoded.len() <= limit + 2 * limit);
        }
    }

    #[test]
    fn every_text_is_read_from_its_runs(words in "[a-z]{4,9}( [a-z]{2,9}){5,9}") {
        let hex: String = words.bytes().map(|byte| format!("{byte:02x}")).collect();
        for text in [hex, base32(words.as_bytes()), STANDARD.encode(&words)] {
            prop_assert!(decode(&text).contains(&words), "{text}");
        }
    }
}
