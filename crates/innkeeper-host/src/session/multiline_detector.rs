//! Detects a message that is pretty-printed over several lines.
//!
//! None of its lines is a valid message, and no single line shows which request the message
//! answers.

use innkeeper_protocol::RequestId;

/// The state of a partially received message.
#[derive(Debug, Default)]
pub(super) struct MultilineDetector {
    /// Indentation of its members; `None` before the first member.
    indent: Option<usize>,
    in_object: bool,
    id: Option<RequestId>,
    is_response: bool,
}

impl MultilineDetector {
    /// Adds an invalid line; returns the id of the answered request as soon as it is certain. Lines
    /// that are not JSON change nothing.
    pub(super) fn push_line(&mut self, line: &[u8]) -> Option<RequestId> {
        // Braces of nested objects are indented.
        match line.trim_ascii_end() {
            b"{" => {
                *self = Self { in_object: true, ..Self::default() };
                return None;
            }
            b"}" => *self = Self::default(),
            _ => {}
        }
        let text = line.trim_ascii();
        let (key, value) = self.in_object.then(|| parse_member(text)).flatten()?;
        let indent = line.len() - line.trim_ascii_start().len();
        if *self.indent.get_or_insert(indent) != indent {
            return None;
        }
        match key {
            b"id" => self.id = str::from_utf8(value).ok().and_then(RequestId::from_raw),
            b"result" | b"error" => self.is_response = true,
            // The message is a request with the server's own id.
            b"method" => self.in_object = false,
            _ => {}
        }
        if self.is_response && self.in_object { self.id.take() } else { None }
    }
}

/// Returns the key of a line and its value without the trailing comma.
fn parse_member(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = text.strip_prefix(b"\"")?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    let value = rest[end + 1..].trim_ascii_start().strip_prefix(b":")?.trim_ascii();
    Some((&rest[..end], value.strip_suffix(b",").unwrap_or(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<RequestId> {
        let mut spread = MultilineDetector::default();
        text.lines().filter_map(|line| spread.push_line(line.as_bytes())).collect()
    }

    const SEVEN: RequestId = RequestId::Integer(7);

    #[test]
    fn the_id_is_returned_once_wherever_it_stands() {
        let first = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 7,\n  \"result\": {\n  }\n}";
        let last = "{\n\t\"error\" : {\n\t\t\"code\": 1\n\t},\n\t\"id\" : 7\n}";
        let within =
            "{\n  \"result\": {\n    \"content\": [\n      {\n      }\n    ]\n  },\n  \"id\": 7\n}";
        for text in [first, last, within] {
            assert_eq!(ids(&format!("a banner\n{text}\n{text}")), [SEVEN, SEVEN], "{text}");
        }
    }

    #[test]
    fn an_id_inside_of_a_result_or_a_request_or_outside_of_an_object_is_ignored() {
        let inner = "{\n  \"result\": {\n    \"id\": 7\n  }\n}";
        let request = "{\n  \"id\": 7,\n  \"method\": \"ping\",\n  \"result\": 1\n}";
        for text in
            [inner, request, "  \"id\": 7,\n  \"result\": 1", "{\n\"id\": [,\n\"result\": 1"]
        {
            assert_eq!(ids(text), [], "{text}");
        }
    }
}
