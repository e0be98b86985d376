//! Base64 in the variants that servers send.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Decodes base64 with and without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Decodes the data of a blob: base64 in the standard or the URL-safe alphabet, with or without
/// padding and line breaks, also as a `data:` URI. Returns `None` for another text.
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let data = match text.trim_start().strip_prefix("data:") {
        Some(uri) => uri.split_once(";base64,")?.1,
        None => text,
    };
    let standard = data.bytes().filter(|byte| !byte.is_ascii_whitespace()).map(|byte| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    });
    LENIENT.decode(standard.collect::<Vec<u8>>()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_of_base64_is_decoded() {
        for text in ["+/+/", "-_-_", " -_\n-_", "data:application/pdf;base64,+/+/"] {
            assert_eq!(decode_base64(text).as_deref(), Some(&[0xfb, 0xff, 0xbf][..]), "{text}");
        }
        assert_eq!(decode_base64("aGk").as_deref(), Some(&b"hi"[..]));
        assert_eq!(decode_base64("aGk=").as_deref(), Some(&b"hi"[..]));
        assert_eq!(decode_base64("").as_deref(), Some(&b""[..]));
        for text in ["a", "%%%%", "data:text/plain,hi"] {
            assert_eq!(decode_base64(text), None, "{text}");
        }
    }
}
