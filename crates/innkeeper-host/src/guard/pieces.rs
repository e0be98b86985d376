//! The texts of a JSON value with their places: its beginning and its end, within a budget.

use serde_json::Value;
use serde_json::value::RawValue;

/// How much is read from the beginning: more than any definition seen, and a long page.
pub(super) const FRONT: usize = 128 << 10;

/// How much is read from the end, where an order is added to a long text.
pub(super) const BACK: usize = 32 << 10;

/// What each text counts at least, so that a list of empty ones has an end too.
const LEAST: usize = 32;

/// The longest value that is taken apart; a longer one is read as it is spelled.
pub(super) const PARSED: usize = 1 << 20;

/// One text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece<'v> {
    /// A JSON pointer to it; to its value for a member's name.
    pub(super) pointer: String,
    pub(super) text: &'v str,
}

/// The texts of a value, names of members among them, those at the front first. Members for which
/// `skip` says so are left out.
pub(super) fn pieces<'v>(value: &'v Value, skip: impl Fn(&str) -> bool) -> Vec<Piece<'v>> {
    let mut front = Walk { budget: FRONT, back: false, skip: &skip, found: Vec::new() };
    front.value(&mut String::new(), value);
    let mut found = front.found;
    if front.budget == 0 {
        let mut back = Walk { budget: BACK, back: true, skip: &skip, found: Vec::new() };
        back.value(&mut String::new(), value);
        found.extend(back.found);
    }
    found
}

/// The beginning and the end of one text.
pub(super) fn ends(text: &str) -> Vec<Piece<'_>> {
    let piece = |text| Piece { pointer: String::new(), text };
    let front = up_to(text, FRONT);
    let rest = &text[front.len()..];
    let back = (!rest.is_empty()).then(|| piece(tail(rest, BACK)));
    std::iter::once(piece(front)).chain(back).collect()
}

/// The value of a result, unless it is so long or so deep that it is read as it is spelled.
pub(super) fn parsed(raw: &RawValue) -> Option<Value> {
    let raw = raw.get();
    if raw.len() > PARSED { None } else { serde_json::from_str(raw).ok() }
}

struct Walk<'v, 's, S> {
    budget: usize,
    back: bool,
    skip: &'s S,
    found: Vec<Piece<'v>>,
}

impl<'v, S: Fn(&str) -> bool> Walk<'v, '_, S> {
    fn value(&mut self, pointer: &mut String, value: &'v Value) {
        if self.budget == 0 {
            return;
        }
        match value {
            Value::String(text) => self.text(pointer, text),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                if self.back {
                    items.rev().for_each(|(at, item)| self.inner(pointer, &at.to_string(), item));
                } else {
                    items.for_each(|(at, item)| self.inner(pointer, &at.to_string(), item));
                }
            }
            Value::Object(members) => {
                let said = members.iter().filter(|(name, _)| !(self.skip)(name));
                // Binary data has its type beside it.
                let binary = members.contains_key("mimeType");
                let said =
                    said.filter(|(name, _)| !(binary && ["data", "blob"].contains(&&***name)));
                let said: Vec<_> = said.collect();
                let step = |walk: &mut Self, pointer: &mut String, name: &'v String, value| {
                    let length = pointer.len();
                    push(pointer, name);
                    walk.text(pointer, name);
                    pointer.truncate(length);
                    walk.inner(pointer, name, value);
                };
                if self.back {
                    said.into_iter()
                        .rev()
                        .for_each(|(name, value)| step(self, pointer, name, value));
                } else {
                    said.into_iter().for_each(|(name, value)| step(self, pointer, name, value));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn inner(&mut self, pointer: &mut String, step: &str, value: &'v Value) {
        if self.budget == 0 {
            return;
        }
        let length = pointer.len();
        push(pointer, step);
        self.value(pointer, value);
        pointer.truncate(length);
    }

    fn text(&mut self, pointer: &str, text: &'v str) {
        if self.budget == 0 {
            return;
        }
        let whole = text.len();
        let text = if self.back { tail(text, self.budget) } else { up_to(text, self.budget) };
        let left = self.budget.saturating_sub(text.len().max(LEAST));
        self.budget = if text.len() < whole { 0 } else { left };
        if text.len() > 1 {
            self.found.push(Piece { pointer: pointer.to_owned(), text });
        }
    }
}

fn push(pointer: &mut String, step: &str) {
    pointer.push('/');
    pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
}

/// At most so many bytes of the beginning.
fn up_to(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// At most so many bytes of the end.
fn tail(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Vec<(String, String)> {
        let found = pieces(value, |name| name == "$ref");
        found.into_iter().map(|piece| (piece.pointer, piece.text.to_owned())).collect()
    }

    #[test]
    fn every_text_and_name_is_read_with_its_place_and_binary_data_is_not() {
        let value = json!({
            "a/b": ["one", {"deep": "two"}], "$ref": "not said",
            "image": {"mimeType": "image/png", "data": "AAAA"}
        });
        let place = |pointer: &str, text: &str| (pointer.to_owned(), text.to_owned());
        let expected = [
            place("/a~1b", "a/b"),
            place("/a~1b/0", "one"),
            place("/a~1b/1/deep", "deep"),
            place("/a~1b/1/deep", "two"),
            place("/image", "image"),
            place("/image/mimeType", "mimeType"),
            place("/image/mimeType", "image/png"),
        ];
        assert_eq!(read(&value), expected);
    }

    #[test]
    fn what_fits_is_read_once_and_of_more_than_that_the_beginning_and_the_end() {
        let fits = "a".repeat(FRONT - 1);
        assert_eq!(read(&json!(fits)).len(), 1);
        let more = format!("begin{}end", "ä".repeat(FRONT));
        let read = read(&json!(more));
        assert!(read[0].1.starts_with("begin") && read[0].1.len() <= FRONT);
        assert!(read[1].1.ends_with("end") && read[1].1.len() <= BACK);
        let found = ends(&more);
        assert!(found[0].text.starts_with("begin") && found[1].text.ends_with("end"));
    }

    #[test]
    fn a_list_of_tiny_texts_has_an_end_too() {
        let many = json!(vec!["ab"; FRONT]);
        assert!(read(&many).len() <= (FRONT + BACK) / LEAST + 2);
    }
}
