//! `file:` URIs and base64 for the files server.

use std::path::Path;

/// Returns the `file:` URI of a path.
pub(super) fn from_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    // A canonical Windows path is `\\?\C:\…`; a URI has slashes, and a slash before the drive.
    let text = text.strip_prefix(r"\\?\").unwrap_or(&text);
    let text =
        if std::path::MAIN_SEPARATOR == '\\' { text.replace('\\', "/") } else { text.into() };
    let mut uri = String::from("file://");
    if !text.starts_with('/') {
        uri.push('/');
    }
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => uri.push(char::from(byte)),
            b'/' | b'-' | b'.' | b'_' | b'~' | b':' => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// Returns the decoded path of a local `file:` URI.
pub(super) fn to_path(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let mut bytes = Vec::with_capacity(path.len());
    let mut remaining = path.bytes();
    while let Some(byte) = remaining.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || remaining.next().and_then(|byte| char::from(byte).to_digit(16));
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok().filter(|path| path.starts_with('/'))
}

/// Encodes bytes as standard base64 with padding.
pub(super) fn encode_base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * position) & 63) as usize];
            text.push(if position > group.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_path_survives_the_way_through_its_uri() {
        let path = "/tmp/a b/ü%2f#?.txt";
        let uri = from_path(Path::new(path));
        assert_eq!(uri, "file:///tmp/a%20b/%C3%BC%252f%23%3F.txt");
        assert_eq!(to_path(&uri).as_deref(), Some(path));
    }

    #[test]
    fn foreign_and_broken_uris_have_no_path() {
        for uri in ["http://x/y", "file://host/x", "file:///%zz", "file:///%4", "file:///%ff", ""] {
            assert_eq!(to_path(uri), None, "{uri}");
        }
    }

    #[test]
    fn base64_pads_to_groups_of_four() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, encoded) in cases {
            assert_eq!(encode_base64(plain.as_bytes()), encoded);
        }
        assert_eq!(encode_base64(&[0xfb, 0xff]), "+/8=");
    }
}
