//! Fuzz target: decodes a header value and a cursor of a client. Decoded values encode to a value
//! that decodes the same.

use innkeeper_protocol::PageCursor;
use innkeeper_protocol::http::{decode_value, encode_value, legacy_revision};

/// Reads the input as a header value and as a cursor.
pub fn client_text(input: &[u8]) {
    if let Ok(value) = decode_value(input) {
        assert!(value.len() <= input.len());
        let encoded = encode_value(&value).into_owned();
        assert_eq!(decode_value(encoded.as_bytes()), Ok(value));
    }
    if let Ok(revision) = legacy_revision(Some(input), None) {
        assert_eq!(revision.as_str().as_bytes(), input);
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    assert_eq!(decode_value(encode_value(text).as_bytes()), Ok(text.into()));
    if let Ok(cursor) = PageCursor::decode(text) {
        assert_eq!(cursor.encode(), text);
    }
}
