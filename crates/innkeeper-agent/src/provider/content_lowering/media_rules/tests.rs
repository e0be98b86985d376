//! Tests of the types and sizes of media.

use super::*;

fn media<'m>(mime_type: &'m str, data: &'m str) -> Media<'m> {
    Media { kind: MediaKind::Image, mime_type: Some(mime_type), data }
}

const KINDS: [(MediaKind, &str); 3] = [
    (MediaKind::Image, "image/png"),
    (MediaKind::Audio, "audio/wav"),
    (MediaKind::Document, "application/pdf"),
];

#[test]
fn a_medium_at_the_limit_of_its_kind_is_sent_and_one_past_the_limit_is_refused() {
    let rules =
        MediaRules { max_image_bytes: 8, max_audio_bytes: 12, max_document_bytes: 16, ..OPENAI };
    for ((kind, mime_type), max_bytes) in KINDS.into_iter().zip([8, 12, 16]) {
        let check = |bytes| {
            let data = "a".repeat(bytes);
            rules.check(Media { kind, mime_type: Some(mime_type), data: &data })
        };
        assert_eq!(check(max_bytes), Ok(mime_type));
        let refusal = format!("the limit of the provider is {max_bytes} bytes of Base64");
        assert_eq!(check(max_bytes + 1), Err(refusal));
    }
}

#[test]
fn a_kind_that_an_api_does_not_take_is_refused_by_its_name_and_any_other_fits_a_request() {
    for (rules, refused) in [
        (&OPENAI, &[][..]),
        (&ANTHROPIC, &[MediaKind::Audio]),
        (&GEMINI, &[]),
        (&OLLAMA, &[MediaKind::Audio, MediaKind::Document]),
    ] {
        let limits = [rules.max_image_bytes, rules.max_audio_bytes, rules.max_document_bytes];
        for ((kind, mime_type), max_bytes) in KINDS.into_iter().zip(limits) {
            let checked = rules.check(Media { kind, mime_type: Some(mime_type), data: "aGk=" });
            if refused.contains(&kind) {
                assert_eq!(checked, Err(format!("the provider takes no {}", kind.name())));
            } else {
                assert_eq!(checked, Ok(mime_type));
                assert!(max_bytes <= rules.max_request_bytes, "{kind:?} {max_bytes}");
            }
        }
    }
}

#[test]
fn an_api_gets_the_types_that_it_takes_in_its_spelling() {
    let check = |rules: &MediaRules, kind, mime_type| {
        rules.check(Media { kind, mime_type: Some(mime_type), data: "aGk=" })
    };
    for (declared, sent) in [
        ("audio/mpeg", "audio/mp3"),
        ("audio/x-wav", "audio/wav"),
        ("audio/wave", "audio/wav"),
        ("audio/vnd.wave", "audio/wav"),
    ] {
        assert_eq!(check(&OPENAI, MediaKind::Audio, declared), Ok(sent), "{declared}");
    }
    assert_eq!(check(&GEMINI, MediaKind::Audio, "audio/flac"), Ok("audio/flac"));
    let refusal = check(&OPENAI, MediaKind::Audio, "audio/flac").unwrap_err();
    assert_eq!(refusal, "the provider takes audio/wav, audio/mp3");
    assert!(check(&GEMINI, MediaKind::Image, "image/gif").is_err());
    assert_eq!(check(&OPENAI, MediaKind::Image, "image/gif"), Ok("image/gif"));
    assert!(check(&OLLAMA, MediaKind::Image, "image/gif").is_err());
}

#[test]
fn the_data_decide_about_the_type_of_an_image() {
    for (data, detected) in [
        ("iVBORw0KGgoAAAAN", "image/png"),
        ("/9j/4AAQSkZJRgAB", "image/jpeg"),
        ("R0lGODlhAQABAIAA", "image/gif"),
        ("UklGRiIAAABXRUJQ", "image/webp"),
    ] {
        assert_eq!(ANTHROPIC.check(media("image/tiff", data)), Ok(detected));
    }
    assert_eq!(ANTHROPIC.check(media("Image/JPG; q=1", "aGk=")), Ok("image/jpeg"));
    assert!(ANTHROPIC.check(media("image/svg+xml", "aGk=")).is_err());
    assert!(GEMINI.check(media("image/png", "R0lGODlhAQABAIAA")).is_err());
}

#[test]
fn data_that_are_not_base64_are_not_sent() {
    for data in ["", "=", "aGk", "aG k", "aGk-", "a===", "aG=="] {
        assert_eq!(is_base64(data), data == "aG==", "{data}");
    }
}
