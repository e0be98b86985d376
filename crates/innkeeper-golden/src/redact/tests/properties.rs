//! Random secrets in random encodings, cut into random events and chunks.

use proptest::prelude::*;

use super::encodings::{ENCODINGS, SECRETS};
use super::streams::{WIRES, read_events, write_events};
use super::*;

fn cut(text: &str, sizes: &[usize]) -> Vec<String> {
    let mut characters = text.chars();
    let mut pieces: Vec<String> =
        sizes.iter().map(|size| characters.by_ref().take(*size).collect()).collect();
    pieces.push(characters.collect());
    pieces
}

fn secret() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z0-9+/=_-]{6,40}",
        "[ -~]{6,20}",
        "\\PC{6,12}",
        proptest::sample::select(&SECRETS[..]).prop_map(str::to_owned),
    ]
    // Blanks at an end are no part of a secret.
    .prop_filter("is trimmed", |secret| secret.trim() == secret)
}

proptest! {
    #[test]
    fn no_cut_and_no_encoding_hides_a_secret(
        secret in secret(),
        encoding in 0..ENCODINGS.len(),
        wire in 0..WIRES.len(),
        sizes in proptest::collection::vec(0_usize..6, 0..20),
        chunk_size in 1_usize..100,
    ) {
        let (_, encode) = ENCODINGS[encoding];
        let (framing, event, pointer) = WIRES[wire];
        let encoded = encode(&secret);
        let text = format!("<< {encoded} >>");
        let events: Vec<Value> =
            cut(&text, &sizes).iter().enumerate().map(|(at, piece)| event(piece, at)).collect();
        let before = write_events(framing, &events);
        let chunks: Vec<&[u8]> = before.as_bytes().chunks(chunk_size).collect();
        let mut golden = golden_with_chunks(&chunks);
        golden.test_name.clone_from(&text);
        redact(&mut golden, &[anywhere("key", &secret)], find_nothing).unwrap();
        let events = read_events(framing, &body(&golden));
        let joined: String =
            events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect();
        prop_assert!(!joined.contains(&encoded));
        prop_assert!(joined.starts_with("<< ") && joined.ends_with(" >>"), "{joined}");
        prop_assert!(joined.contains("[redacted:key]"), "{joined}");
        prop_assert_eq!(joined, golden.test_name);
    }

    #[test]
    fn no_body_makes_it_panic(
        pieces in proptest::collection::vec(
            prop_oneof![
                "[\\[{}\"\\],:\\\\ \\nu0d8x%&;+#=-]{0,12}",
                Just("data: ".to_owned()),
                Just("\"abc".to_owned()),
                Just("def\"".to_owned()),
                Just("\\ud83d".to_owned()),
                Just("\u{e9}".to_owned()),
            ],
            0..12,
        ),
        chunk_size in 1_usize..8,
    ) {
        let before = pieces.concat();
        let chunks: Vec<&[u8]> = before.as_bytes().chunks(chunk_size).collect();
        let mut golden = golden_with_chunks(&chunks);
        let secrets = [anywhere("a", "abcdef"), anywhere("b", "\\\\\\\\\\\\"), anywhere("c", "%%%&&&")];
        if redact(&mut golden, &secrets, find_nothing).is_ok() {
            prop_assert!(!json_text(&golden).contains("abcdef"));
        }
    }
}
