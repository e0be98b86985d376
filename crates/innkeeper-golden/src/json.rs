//! JSON as text: the levels of a value, a readable form, and a form for comparisons.
//!
//! Numbers keep their digits. `serde_json::Value` would round them.

use std::fmt::Write as _;
use std::iter::from_fn;

use serde_json::value::{RawValue, to_raw_value};

/// Maximum depth that is looked into. Deeper values are compared as text.
pub(crate) const MAX_DEPTH: usize = 128;

/// A JSON text, and where its arrays and objects end.
///
/// Whoever walks down a value reads one level after the other. Without the ends, each level would
/// read everything below it again, and a deep value would take its size times its depth.
#[derive(Debug)]
pub(crate) struct Document<'r> {
    text: &'r str,
    /// The arrays and objects in the order of their beginnings.
    containers: Vec<Container>,
}

/// An array or object.
#[derive(Clone, Copy, Debug)]
struct Container {
    /// The position after it.
    end: usize,
    /// The first container that begins after its end.
    next: usize,
}

impl<'r> Document<'r> {
    pub(crate) fn new(raw: &'r RawValue) -> Self {
        let text = raw.get();
        let mut containers: Vec<Container> = Vec::new();
        let mut open = Vec::new();
        let mut at = 0;
        while let Some(byte) = text.as_bytes().get(at) {
            match byte {
                b'"' => {
                    at = string_end(text, at);
                    continue;
                }
                b'{' | b'[' => {
                    open.push(containers.len());
                    containers.push(Container { end: text.len(), next: usize::MAX });
                }
                b'}' | b']' => {
                    let next = containers.len();
                    if let Some(container) = open.pop().and_then(|open| containers.get_mut(open)) {
                        *container = Container { end: at + 1, next };
                    }
                }
                _ => {}
            }
            at += 1;
        }
        Self { text, containers }
    }

    pub(crate) fn root(&self) -> Value<'_> {
        Value { document: self, text: self.text, begin: 0, container: 0 }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'d> {
    document: &'d Document<'d>,
    text: &'d str,
    begin: usize,
    /// The number of the container; for other values, of the next one.
    container: usize,
}

/// One level of a JSON value.
#[derive(Debug)]
pub(crate) enum Node<'d> {
    /// `null`, a boolean or a number, as written.
    Literal(&'d str),
    /// A string, unescaped.
    String(String),
    /// The items of an array.
    Array(Values<'d>),
    /// The members of an object, in their order.
    Object(Vec<(String, Value<'d>)>),
}

impl<'d> Value<'d> {
    /// Returns the value as written.
    pub(crate) fn text(self) -> &'d str {
        self.text
    }

    /// Reads one level. A string with half of a surrogate pair, and an object with such a key, stays as
    /// written.
    pub(crate) fn node(self) -> Node<'d> {
        let literal = Node::Literal(self.text);
        match self.text.as_bytes().first() {
            Some(b'{') => self.members().map_or(literal, Node::Object),
            Some(b'[') => Node::Array(self.values()),
            Some(b'"') => unescape(self.text).map_or(literal, Node::String),
            _ => literal,
        }
    }

    fn members(self) -> Option<Vec<(String, Self)>> {
        let mut values = self.values();
        from_fn(|| Some((values.next()?, values.next()?)))
            .map(|(key, value)| Some((unescape(key.text)?, value)))
            .collect()
    }

    fn values(self) -> Values<'d> {
        let end = self.begin + self.text.len() - 1;
        Values { document: self.document, at: self.begin + 1, end, next: self.container + 1 }
    }

    fn is_container(self) -> bool {
        self.text.starts_with(['{', '['])
    }
}

/// The items of an array, or the keys and values of an object in turn.
#[derive(Debug)]
pub(crate) struct Values<'d> {
    document: &'d Document<'d>,
    at: usize,
    /// The position of the closing bracket.
    end: usize,
    /// The number of the next container.
    next: usize,
}

impl<'d> Iterator for Values<'d> {
    type Item = Value<'d>;

    fn next(&mut self) -> Option<Value<'d>> {
        while self
            .document
            .text
            .as_bytes()
            .get(self.at)
            .is_some_and(|byte| byte.is_ascii_whitespace() || b",:".contains(byte))
        {
            self.at += 1;
        }
        if self.at >= self.end {
            return None;
        }
        let value = self.document.value_at(self.at, self.next)?;
        if value.is_container() {
            self.next = self.document.containers.get(self.next)?.next;
        }
        self.at += value.text.len();
        Some(value)
    }
}

impl Document<'_> {
    /// Returns the value at a position; `next` is the first container that begins there or later.
    fn value_at(&self, begin: usize, next: usize) -> Option<Value<'_>> {
        let bytes = self.text.as_bytes();
        let end = match bytes.get(begin)? {
            b'{' | b'[' => self.containers.get(next)?.end,
            b'"' => string_end(self.text, begin),
            _ => {
                let len = bytes[begin..]
                    .iter()
                    .position(|byte| byte.is_ascii_whitespace() || b",]}".contains(byte));
                len.map_or(bytes.len(), |len| begin + len)
            }
        };
        let text = self.text.get(begin..end)?;
        Some(Value { document: self, text, begin, container: next })
    }
}

/// Returns the position after the string that begins at a position.
fn string_end(text: &str, begin: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = begin + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn unescape(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}

/// Returns a body as JSON; a body that is not JSON becomes a string.
pub fn body_json(body: &[u8]) -> Box<RawValue> {
    serde_json::from_slice(body).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(body);
        to_raw_value(&text).unwrap_or_else(|_| RawValue::NULL.to_owned())
    })
}

/// Returns the value without blanks and with sorted members, for comparisons. Strings have one
/// spelling; numbers keep theirs.
pub fn canonical(raw: &RawValue) -> String {
    Document::new(raw).root().canonical()
}

impl Value<'_> {
    /// Returns the form for comparisons; see [`canonical`].
    pub(crate) fn canonical(self) -> String {
        let mut text = String::with_capacity(self.text.len());
        write_canonical(self, 0, &mut text);
        text
    }
}

fn write_canonical(value: Value<'_>, depth: usize, text: &mut String) {
    if depth == MAX_DEPTH {
        text.push_str(value.text);
        return;
    }
    match value.node() {
        Node::Literal(literal) => text.push_str(literal),
        Node::String(string) => push_string(&string, text),
        Node::Array(items) => {
            text.push('[');
            for (at, item) in items.enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                write_canonical(item, depth + 1, text);
            }
            text.push(']');
        }
        Node::Object(mut members) => {
            members.sort_by(|(left, _), (right, _)| left.cmp(right));
            text.push('{');
            for (at, (key, value)) in members.into_iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                push_string(&key, text);
                text.push(':');
                write_canonical(value, depth + 1, text);
            }
            text.push('}');
        }
    }
}

fn push_string(string: &str, text: &mut String) {
    // Writing a string to a `String` cannot fail.
    let _ = write!(text, "{}", serde_json::Value::from(string));
}

/// Returns an object without some members; `None` if no member is left, or if the value is no object.
pub fn without_members(raw: &RawValue, keys: &[&str]) -> Option<Box<RawValue>> {
    let document = Document::new(raw);
    let Node::Object(members) = document.root().node() else { return None };
    let members = members.into_iter().map(|(key, value)| (key, value.text()));
    let members: Vec<_> = members.filter(|(key, _)| !keys.contains(&key.as_str())).collect();
    (!members.is_empty()).then(|| object(members))
}

/// Returns an object with a member in the last place, instead of one with that key.
pub fn with_member(raw: Option<&RawValue>, key: &str, value: &RawValue) -> Box<RawValue> {
    let document = raw.map(Document::new);
    let members = match document.as_ref().map(|document| document.root().node()) {
        Some(Node::Object(members)) => members,
        _ => Vec::new(),
    };
    let members = members.into_iter().map(|(key, value)| (key, value.text()));
    let others = members.filter(|(other, _)| other != key);
    object(others.chain([(key.to_owned(), value.get())]))
}

fn object<'t>(members: impl IntoIterator<Item = (String, &'t str)>) -> Box<RawValue> {
    let mut text = String::from("{");
    for (at, (key, value)) in members.into_iter().enumerate() {
        text.push_str(if at == 0 { "" } else { "," });
        push_string(&key, &mut text);
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Returns the value on one line: without blanks between tokens, and otherwise as written.
pub fn on_one_line(raw: &RawValue) -> String {
    let mut text = String::with_capacity(raw.get().len());
    let mut is_in_string = false;
    let mut is_escaped = false;
    for character in raw.get().chars() {
        if is_in_string {
            is_in_string = is_escaped || character != '"';
            is_escaped = character == '\\' && !is_escaped;
        } else if character.is_ascii_whitespace() {
            continue;
        } else {
            is_in_string = character == '"';
        }
        text.push(character);
    }
    text
}

/// Returns the value with one line for each item, two blanks deeper than `depth`. Only blanks between
/// tokens change. What is deeper than 128 levels stays on one line: blanks before each item would
/// take the square of the depth.
pub fn indent(raw: &RawValue, depth: usize) -> Box<RawValue> {
    let mut text = String::with_capacity(raw.get().len() * 2);
    let max_depth = depth + MAX_DEPTH;
    let mut depth = depth;
    let mut is_in_string = false;
    let mut is_escaped = false;
    let mut characters = raw.get().chars().peekable();
    while let Some(character) = characters.next() {
        if is_in_string {
            text.push(character);
            is_in_string = is_escaped || character != '"';
            is_escaped = character == '\\' && !is_escaped;
            continue;
        }
        match character {
            ' ' | '\t' | '\n' | '\r' => {}
            '{' | '[' => {
                text.push(character);
                while characters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(close) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    text.push(close);
                } else {
                    depth += 1;
                    push_line(depth, max_depth, &mut text);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                push_line(depth, max_depth - 1, &mut text);
                text.push(character);
            }
            ',' => {
                text.push(',');
                push_line(depth, max_depth, &mut text);
            }
            ':' => text.push_str(": "),
            _ => {
                is_in_string = character == '"';
                text.push(character);
            }
        }
    }
    RawValue::from_string(text).unwrap_or_else(|_| raw.to_owned())
}

/// Starts a line, if it is not too deep.
fn push_line(depth: usize, max_depth: usize, text: &mut String) {
    if depth <= max_depth {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", depth));
    }
}

#[cfg(test)]
mod tests;
