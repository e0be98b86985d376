//! A message written over several lines: no line of it is a message, and none says alone whose
//! answer it is.

use innkeeper_protocol::RequestId;

/// What has been seen of such a message.
#[derive(Debug, Default)]
pub(super) struct Spread {
    /// How far its members are indented; `None` until the first of them.
    indent: Option<usize>,
    open: bool,
    id: Option<RequestId>,
    answers: bool,
}

impl Spread {
    /// Takes a line that is no message; once it is certain which request the lines answer, its id.
    /// Lines that are no JSON at all change nothing.
    pub(super) fn line(&mut self, line: &[u8]) -> Option<RequestId> {
        // Those of objects within it are indented.
        match line.trim_ascii_end() {
            b"{" => {
                *self = Self { open: true, ..Self::default() };
                return None;
            }
            b"}" => *self = Self::default(),
            _ => {}
        }
        let text = line.trim_ascii();
        let (key, value) = self.open.then(|| member(text)).flatten()?;
        let indent = line.len() - line.trim_ascii_start().len();
        if *self.indent.get_or_insert(indent) != indent {
            return None;
        }
        match key {
            b"id" => self.id = str::from_utf8(value).ok().and_then(RequestId::from_raw),
            b"result" | b"error" => self.answers = true,
            // It asks; its id is its own.
            b"method" => self.open = false,
            _ => {}
        }
        if self.answers && self.open { self.id.take() } else { None }
    }
}

/// A line's name and what stands behind the colon, without the comma.
fn member(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = text.strip_prefix(b"\"")?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    let value = rest[end + 1..].trim_ascii_start().strip_prefix(b":")?.trim_ascii();
    Some((&rest[..end], value.strip_suffix(b",").unwrap_or(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<RequestId> {
        let mut spread = Spread::default();
        text.lines().filter_map(|line| spread.line(line.as_bytes())).collect()
    }

    const SEVEN: RequestId = RequestId::Integer(7);

    #[test]
    fn the_id_is_told_once_wherever_it_stands() {
        let first = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 7,\n  \"result\": {\n  }\n}";
        let last = "{\n\t\"error\" : {\n\t\t\"code\": 1\n\t},\n\t\"id\" : 7\n}";
        let within =
            "{\n  \"result\": {\n    \"content\": [\n      {\n      }\n    ]\n  },\n  \"id\": 7\n}";
        for text in [first, last, within] {
            assert_eq!(ids(&format!("a banner\n{text}\n{text}")), [SEVEN, SEVEN], "{text}");
        }
    }

    #[test]
    fn an_id_inside_of_a_result_or_of_a_question_or_of_nothing_is_no_ones_answer() {
        let inner = "{\n  \"result\": {\n    \"id\": 7\n  }\n}";
        let question = "{\n  \"id\": 7,\n  \"method\": \"ping\",\n  \"result\": 1\n}";
        for text in
            [inner, question, "  \"id\": 7,\n  \"result\": 1", "{\n\"id\": [,\n\"result\": 1"]
        {
            assert_eq!(ids(text), [], "{text}");
        }
    }
}
