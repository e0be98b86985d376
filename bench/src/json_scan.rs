//! Scans JSON text in place, without a tree or an allocation.

use memchr::memchr2;

/// Returns the index after the value that starts at `at`, if the value is complete.
pub fn value_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => string_end(text, at),
        b'{' | b'[' => container_end(text, at),
        _ => Some(at + text[at..].iter().take_while(|byte| !ends_scalar(**byte)).count()),
    }
}

fn ends_scalar(byte: u8) -> bool {
    matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace()
}

fn string_end(text: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

fn container_end(text: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = open;
    loop {
        match text.get(at)? {
            b'"' => {
                at = string_end(text, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return Some(at + 1),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

/// An iterator over the members of a JSON object, as raw key and raw value.
#[derive(Debug)]
pub struct JsonMembers<'a> {
    text: &'a [u8],
    at: usize,
}

/// Iterates over the members of the object in `text`.
pub fn members(text: &[u8]) -> JsonMembers<'_> {
    let open = skip_space(text, 0);
    JsonMembers { text, at: open + 1 }
}

fn skip_space(text: &[u8], at: usize) -> usize {
    at + text[at.min(text.len())..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

impl<'a> Iterator for JsonMembers<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let mut open = skip_space(self.text, self.at);
        if self.text.get(open) == Some(&b',') {
            open = skip_space(self.text, open + 1);
        }
        if self.text.get(open) != Some(&b'"') {
            return None;
        }
        let close = string_end(self.text, open)?;
        let colon = skip_space(self.text, close);
        let start = skip_space(self.text, colon + 1);
        let end = value_end(self.text, start)?;
        self.at = end;
        Some((&self.text[open + 1..close - 1], &self.text[start..end]))
    }
}

/// Returns the value of a member of an object.
pub fn find_member<'a>(object: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    members(object).find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// Parses ASCII digits; returns zero for any other input.
pub fn parse_digits(digits: &[u8]) -> usize {
    digits
        .iter()
        .try_fold(0_usize, |sum, byte| {
            byte.is_ascii_digit()
                .then(|| sum.wrapping_mul(10).wrapping_add(usize::from(byte - b'0')))
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_nested_objects_are_found_with_escapes_and_space() {
        let text = br#" { "a" : "x\"}" , "b":[1,{"c":"]"}],"id":12}"#;
        let found: Vec<_> = members(text).collect();
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], (&b"a"[..], &br#""x\"}""#[..]));
        assert_eq!(found[1].1, br#"[1,{"c":"]"}]"#);
        assert_eq!(parse_digits(found[2].1), 12);
    }

    #[test]
    fn a_truncated_object_ends_early() {
        assert_eq!(members(br#"{"a":"unfinished"#).count(), 0);
        assert_eq!(members(b"").count(), 0);
    }
}
