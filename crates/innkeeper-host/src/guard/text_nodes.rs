//! Walks the strings of a JSON value, front and back, within a budget.

use std::ops::ControlFlow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Maximum number of bytes scanned at the front: more than any known definition, and a long page.
pub(super) const MAX_FRONT_BYTES: usize = 48 << 10;

/// Maximum number of bytes scanned at the back, where attackers append to a long text.
pub(super) const MAX_BACK_BYTES: usize = 16 << 10;

/// Minimum cost of a string in bytes, which bounds a list of empty strings.
const MIN_TEXT_COST: usize = 32;

/// Maximum length of parsed JSON in bytes; longer JSON is scanned as text.
pub(super) const MAX_PARSED_BYTES: usize = 1 << 20;

/// One segment of a path into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathSegment<'v> {
    Name(&'v str),
    Index(usize),
}

/// One borrowed string of a value, with its path.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextNode<'p, 'v> {
    /// Path of the string; for a member name, the path of the object.
    pub(super) steps: &'p [PathSegment<'v>],
    pub(super) text: &'v str,
    pub(super) is_name: bool,
}

/// Wraps a text that is not a JSON value.
fn root_text<'t>(text: &'t str) -> TextNode<'t, 't> {
    TextNode { steps: &[], text, is_name: false }
}

impl<'v> TextNode<'_, 'v> {
    /// Returns the innermost name on the path.
    pub(super) fn name(&self) -> &'v str {
        segment_names(self.steps).next_back().unwrap_or_default()
    }
}

/// Returns the names on the path, outermost first, without indexes.
pub(super) fn segment_names<'v>(
    segments: &[PathSegment<'v>],
) -> impl DoubleEndedIterator<Item = &'v str> {
    segments.iter().filter_map(|segment| match *segment {
        PathSegment::Name(name) => Some(name).filter(|name| name.parse::<usize>().is_err()),
        PathSegment::Index(_) => None,
    })
}

/// Passes the strings and member names of a value to `each`, front first, until `each` returns
/// `Break`. Skips members for which `skip` returns true; `skip` receives the path of the object,
/// the name and the value.
pub(super) fn walk_text_nodes<'v>(
    value: &'v Value,
    skip: fn(&[PathSegment<'v>], &str, &Value) -> bool,
    mut each: impl FnMut(TextNode<'_, 'v>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut walk = TextWalker {
        budget: MAX_FRONT_BYTES,
        from_back: false,
        skip,
        steps: Vec::new(),
        visitor: &mut each,
    };
    walk.visit_value(value)?;
    if walk.budget > 0 {
        return ControlFlow::Continue(());
    }
    TextWalker { budget: MAX_BACK_BYTES, from_back: true, ..walk }.visit_value(value)
}

/// Returns the front and the back of a text.
pub(super) fn front_and_back<'t>(text: &'t str) -> impl Iterator<Item = TextNode<'t, 't>> {
    let front = head(text, MAX_FRONT_BYTES);
    let rest = &text[front.len()..];
    let back = (!rest.is_empty()).then(|| root_text(tail(rest, MAX_BACK_BYTES)));
    std::iter::once(root_text(front)).chain(back)
}

/// Passes the front and the back of unparsed JSON to `each`, with escapes decoded.
pub(super) fn walk_unparsed_text(
    json: &str,
    mut each: impl FnMut(TextNode<'_, '_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    front_and_back(json).try_for_each(|node| each(root_text(&unescape(node.text))))
}

fn unescape(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let mut units = Vec::new();
        while let Some(unit) = parse_utf16_unit(rest) {
            units.push(unit);
            rest = &rest[5..];
            // The low surrogate, or the next character.
            match rest.strip_prefix('\\').filter(|next| next.starts_with('u')) {
                Some(next) => rest = next,
                None => break,
            }
        }
        if !units.is_empty() {
            text.push_str(&String::from_utf16_lossy(&units));
            continue;
        }
        let Some(escaped) = rest.chars().next() else { break };
        text.push(match escaped {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'b' | 'f' => ' ',
            other => other,
        });
        rest = &rest[escaped.len_utf8()..];
    }
    text.push_str(rest);
    text
}

/// Parses `uXXXX`.
fn parse_utf16_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    let hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    hexadecimal.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

/// Parses a result, or returns `None` if it is too long or too deep.
pub(super) fn parse_within_limits(raw: &RawValue) -> Option<Value> {
    let raw = raw.get();
    if raw.len() > MAX_PARSED_BYTES { None } else { serde_json::from_str(raw).ok() }
}

struct TextWalker<'v, 'e> {
    budget: usize,
    from_back: bool,
    skip: fn(&[PathSegment<'v>], &str, &Value) -> bool,
    steps: Vec<PathSegment<'v>>,
    visitor: &'e mut dyn FnMut(TextNode<'_, 'v>) -> ControlFlow<()>,
}

impl<'v> TextWalker<'v, '_> {
    fn visit_value(&mut self, value: &'v Value) -> ControlFlow<()> {
        if self.budget == 0 {
            return ControlFlow::Continue(());
        }
        match value {
            Value::String(text) => self.visit_text(text, false),
            Value::Array(items) => self.visit_all(items.iter().enumerate(), |walk, (at, item)| {
                walk.visit_child(PathSegment::Index(at), item)
            }),
            Value::Object(members) => self.visit_all(members.iter(), |walk, (name, value)| {
                walk.visit_member(members, name, value)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => ControlFlow::Continue(()),
        }
    }

    /// Visits a list in the direction of the walk.
    fn visit_all<I>(
        &mut self,
        mut list: impl DoubleEndedIterator<Item = I>,
        visit: impl Fn(&mut Self, I) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.from_back {
            list.rev().try_for_each(|item| visit(self, item))
        } else {
            list.try_for_each(|item| visit(self, item))
        }
    }

    fn visit_member(
        &mut self,
        members: &Map<String, Value>,
        name: &'v str,
        value: &'v Value,
    ) -> ControlFlow<()> {
        if (self.skip)(&self.steps, name, value) {
            return ControlFlow::Continue(());
        }
        self.visit_text(name, true)?;
        if is_binary(members, name, value) {
            return ControlFlow::Continue(());
        }
        self.visit_child(PathSegment::Name(name), value)
    }

    fn visit_child(&mut self, segment: PathSegment<'v>, value: &'v Value) -> ControlFlow<()> {
        self.steps.push(segment);
        let flow = self.visit_value(value);
        self.steps.pop();
        flow
    }

    fn visit_text(&mut self, text: &'v str, is_name: bool) -> ControlFlow<()> {
        if self.budget == 0 {
            return ControlFlow::Continue(());
        }
        let full_len = text.len();
        let text = if self.from_back { tail(text, self.budget) } else { head(text, self.budget) };
        let remaining = self.budget.saturating_sub(text.len().max(MIN_TEXT_COST));
        self.budget = if text.len() < full_len { 0 } else { remaining };
        if text.len() < 2 {
            return ControlFlow::Continue(());
        }
        (self.visitor)(TextNode { steps: &self.steps, text, is_name })
    }
}

/// Returns whether a member is the base64 data of an image, a recording or a binary file, and is
/// valid base64. Any other text is scanned, whatever its neighbours claim.
fn is_binary(members: &Map<String, Value>, name: &str, value: &Value) -> bool {
    let Value::String(data) = value else { return false };
    let string_member = |name: &str| members.get(name).and_then(Value::as_str);
    let binary = match name {
        "data" => matches!(string_member("type"), Some("image" | "audio")),
        "blob" => string_member("mimeType").is_some_and(|kind| !is_text(kind)),
        _ => false,
    };
    binary && STANDARD.decode(data).is_ok()
}

/// Returns whether files of this MIME type are text.
fn is_text(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let texts = ["json", "xml", "yaml", "javascript", "toml", "sql", "html", "csv", "markdown"];
    kind.trim_start().starts_with("text/") || texts.iter().any(|text| kind.contains(text))
}

/// Returns at most `max_bytes` bytes of the start.
fn head(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// Returns at most `max_bytes` bytes of the end.
fn tail(text: &str, max_bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(max_bytes))..]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Vec<(String, String)> {
        let mut nodes = Vec::new();
        let flow = walk_text_nodes(
            value,
            |_, name, _| name == "$ref",
            |node| {
                let segments: Vec<String> = node
                    .steps
                    .iter()
                    .map(|segment| match segment {
                        PathSegment::Name(name) => (*name).to_owned(),
                        PathSegment::Index(at) => at.to_string(),
                    })
                    .collect();
                let name = if node.is_name { "name " } else { "" };
                nodes.push((segments.join(" "), format!("{name}{}", node.text)));
                ControlFlow::Continue(())
            },
        );
        assert_eq!(flow, ControlFlow::Continue(()));
        nodes
    }

    #[test]
    fn every_text_is_read_with_the_steps_to_it_and_every_name_with_those_to_its_object() {
        let value = json!({"a/b": ["one", {"deep": "two"}], "$ref": "not said"});
        let node = |segments: &str, text: &str| (segments.to_owned(), text.to_owned());
        let expected = [
            node("", "name a/b"),
            node("a/b 0", "one"),
            node("a/b 1", "name deep"),
            node("a/b 1 deep", "two"),
        ];
        assert_eq!(read(&value), expected);
        let enough = walk_text_nodes(&value, |_, _, _| false, |_| ControlFlow::Break(()));
        assert_eq!(enough, ControlFlow::Break(()));
    }

    #[test]
    fn the_bytes_of_pictures_recordings_and_files_are_not_read_and_every_text_is() {
        let contains = |value: &Value, text: &str| read(value).iter().any(|(_, read)| read == text);
        let picture = |data: &str| json!({"type": "image", "mimeType": "image/png", "data": data});
        let file = |kind: &str, data: &str| json!({"uri": "x:y", "mimeType": kind, "blob": data});
        assert!(!contains(&picture("AAAA"), "AAAA"));
        assert!(!contains(&file("application/pdf", "AAAA"), "AAAA"));
        assert!(contains(&picture("not base64"), "not base64"));
        assert!(contains(&file("application/pdf", "not base64"), "not base64"));
        for kind in ["text/plain", "Application/JSON", "image/svg+xml"] {
            assert!(contains(&file(kind, "AAAA"), "AAAA"), "{kind}");
        }
        assert!(contains(&json!({"type": "text", "mimeType": "a/b", "data": "AAAA"}), "AAAA"));
        assert!(contains(&json!({"mimeType": "a/b", "data": "AAAA"}), "AAAA"));
    }

    #[test]
    fn what_fits_is_read_once_and_of_more_than_that_the_beginning_and_the_end() {
        let fits = "a".repeat(MAX_FRONT_BYTES - 1);
        assert_eq!(read(&json!(fits)).len(), 1);
        let more = format!("begin{}end", "ä".repeat(MAX_FRONT_BYTES));
        let read = read(&json!(more));
        assert!(read[0].1.starts_with("begin") && read[0].1.len() <= MAX_FRONT_BYTES);
        assert!(read[1].1.ends_with("end") && read[1].1.len() <= MAX_BACK_BYTES);
        let nodes: Vec<_> = front_and_back(&more).collect();
        assert!(nodes[0].text.starts_with("begin") && nodes[1].text.ends_with("end"));
    }

    #[test]
    fn escapes_are_read_where_a_value_is_not_taken_apart() {
        for text in ["a\nb\t\"c\" \\ d", "\u{435}\u{e0061}\u{1f600}é", "\u{1}", "\\u0041"] {
            let escaped: String =
                text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
            assert_eq!(unescape(&escaped), text);
            assert_eq!(unescape(&json!(text).to_string()), format!("\"{text}\""));
        }
        for malformed in ["\\", "\\u12", "\\uzzzz", "\\ud800\\", "\\ué"] {
            assert!(unescape(malformed).len() <= 8, "{malformed}");
        }
    }

    #[test]
    fn a_list_of_tiny_texts_has_an_end_too() {
        let many = json!(vec!["ab"; MAX_FRONT_BYTES]);
        assert!(read(&many).len() <= (MAX_FRONT_BYTES + MAX_BACK_BYTES) / MIN_TEXT_COST + 2);
    }
}
