//! The texts of a JSON value with their places: its beginning and its end, within a budget.

use std::ops::ControlFlow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// How much is read from the beginning: more than any definition seen, and a long page.
pub(super) const FRONT: usize = 48 << 10;

/// How much is read from the end, where an order is added to a long text.
pub(super) const BACK: usize = 16 << 10;

/// What each text counts at least, so that a list of empty ones has an end too.
const LEAST: usize = 32;

/// The longest value that is taken apart; a longer one is read as it is spelled.
pub(super) const PARSED: usize = 1 << 20;

/// One step from the whole to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step<'v> {
    Name(&'v str),
    At(usize),
}

/// One text, on its way past the reader: nothing is kept of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'p, 'v> {
    /// The steps to it; for a member's name those to the object that has the member.
    pub(super) steps: &'p [Step<'v>],
    pub(super) text: &'v str,
    pub(super) is_name: bool,
}

/// The whole of a text that is no value.
fn whole<'t>(text: &'t str) -> Piece<'t, 't> {
    Piece { steps: &[], text, is_name: false }
}

impl<'v> Piece<'_, 'v> {
    /// The name it is called by: the innermost that is no number.
    pub(super) fn called(&self) -> &'v str {
        names(self.steps).next_back().unwrap_or_default()
    }
}

/// The names among the steps, from the outside, without numbers.
pub(super) fn names<'v>(steps: &[Step<'v>]) -> impl DoubleEndedIterator<Item = &'v str> {
    steps.iter().filter_map(|step| match *step {
        Step::Name(name) => Some(name).filter(|name| name.parse::<usize>().is_err()),
        Step::At(_) => None,
    })
}

/// Gives the texts of a value to `each`, names of members among them, those at the front first, until
/// it says that it has enough. Members for which `skip` says so, by the steps to their object, their
/// name and their value, are left out.
pub(super) fn pieces<'v>(
    value: &'v Value,
    skip: fn(&[Step<'v>], &str, &Value) -> bool,
    mut each: impl FnMut(Piece<'_, 'v>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut walk = Walk { budget: FRONT, back: false, skip, steps: Vec::new(), each: &mut each };
    walk.value(value)?;
    if walk.budget > 0 {
        return ControlFlow::Continue(());
    }
    Walk { budget: BACK, back: true, ..walk }.value(value)
}

/// The beginning and the end of one text.
pub(super) fn ends<'t>(text: &'t str) -> impl Iterator<Item = Piece<'t, 't>> {
    let front = up_to(text, FRONT);
    let rest = &text[front.len()..];
    let back = (!rest.is_empty()).then(|| whole(tail(rest, BACK)));
    std::iter::once(whole(front)).chain(back)
}

/// The beginning and the end of JSON that is not taken apart, with its escapes read.
pub(super) fn spelled(
    json: &str,
    mut each: impl FnMut(Piece<'_, '_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    ends(json).try_for_each(|piece| each(whole(&unescaped(piece.text))))
}

fn unescaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let mut units = Vec::new();
        while let Some(unit) = unit(rest) {
            units.push(unit);
            rest = &rest[5..];
            // The other half of a character, or the next one.
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

/// The number in `uXXXX`.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    let hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    hexadecimal.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

/// The value of a result, unless it is so long or so deep that it is read as it is spelled.
pub(super) fn parsed(raw: &RawValue) -> Option<Value> {
    let raw = raw.get();
    if raw.len() > PARSED { None } else { serde_json::from_str(raw).ok() }
}

struct Walk<'v, 'e> {
    budget: usize,
    back: bool,
    skip: fn(&[Step<'v>], &str, &Value) -> bool,
    steps: Vec<Step<'v>>,
    each: &'e mut dyn FnMut(Piece<'_, 'v>) -> ControlFlow<()>,
}

impl<'v> Walk<'v, '_> {
    fn value(&mut self, value: &'v Value) -> ControlFlow<()> {
        if self.budget == 0 {
            return ControlFlow::Continue(());
        }
        match value {
            Value::String(text) => self.text(text, false),
            Value::Array(items) => self
                .each(items.iter().enumerate(), |walk, (at, item)| walk.inner(Step::At(at), item)),
            Value::Object(members) => {
                self.each(members.iter(), |walk, (name, value)| walk.member(members, name, value))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => ControlFlow::Continue(()),
        }
    }

    /// Goes through a list from the end that it begins at.
    fn each<I>(
        &mut self,
        mut list: impl DoubleEndedIterator<Item = I>,
        step: impl Fn(&mut Self, I) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.back {
            list.rev().try_for_each(|item| step(self, item))
        } else {
            list.try_for_each(|item| step(self, item))
        }
    }

    fn member(
        &mut self,
        members: &Map<String, Value>,
        name: &'v str,
        value: &'v Value,
    ) -> ControlFlow<()> {
        if (self.skip)(&self.steps, name, value) {
            return ControlFlow::Continue(());
        }
        self.text(name, true)?;
        if is_binary(members, name, value) {
            return ControlFlow::Continue(());
        }
        self.inner(Step::Name(name), value)
    }

    fn inner(&mut self, step: Step<'v>, value: &'v Value) -> ControlFlow<()> {
        self.steps.push(step);
        let flow = self.value(value);
        self.steps.pop();
        flow
    }

    fn text(&mut self, text: &'v str, is_name: bool) -> ControlFlow<()> {
        if self.budget == 0 {
            return ControlFlow::Continue(());
        }
        let whole = text.len();
        let text = if self.back { tail(text, self.budget) } else { up_to(text, self.budget) };
        let left = self.budget.saturating_sub(text.len().max(LEAST));
        self.budget = if text.len() < whole { 0 } else { left };
        if text.len() < 2 {
            return ControlFlow::Continue(());
        }
        (self.each)(Piece { steps: &self.steps, text, is_name })
    }
}

/// Whether a member is what a picture, a recording or a file consists of, and is written as it has to
/// be: whatever stands beside it, a text is read.
fn is_binary(members: &Map<String, Value>, name: &str, value: &Value) -> bool {
    let Value::String(data) = value else { return false };
    let said = |name: &str| members.get(name).and_then(Value::as_str);
    let binary = match name {
        "data" => matches!(said("type"), Some("image" | "audio")),
        "blob" => said("mimeType").is_some_and(|kind| !is_text(kind)),
        _ => false,
    };
    binary && STANDARD.decode(data).is_ok()
}

/// Whether files of this type are read as text.
fn is_text(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let texts = ["json", "xml", "yaml", "javascript", "toml", "sql", "html", "csv", "markdown"];
    kind.trim_start().starts_with("text/") || texts.iter().any(|text| kind.contains(text))
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
        let mut found = Vec::new();
        let flow = pieces(
            value,
            |_, name, _| name == "$ref",
            |piece| {
                let steps: Vec<String> = piece
                    .steps
                    .iter()
                    .map(|step| match step {
                        Step::Name(name) => (*name).to_owned(),
                        Step::At(at) => at.to_string(),
                    })
                    .collect();
                let name = if piece.is_name { "name " } else { "" };
                found.push((steps.join(" "), format!("{name}{}", piece.text)));
                ControlFlow::Continue(())
            },
        );
        assert_eq!(flow, ControlFlow::Continue(()));
        found
    }

    #[test]
    fn every_text_is_read_with_the_steps_to_it_and_every_name_with_those_to_its_object() {
        let value = json!({"a/b": ["one", {"deep": "two"}], "$ref": "not said"});
        let place = |steps: &str, text: &str| (steps.to_owned(), text.to_owned());
        let expected = [
            place("", "name a/b"),
            place("a/b 0", "one"),
            place("a/b 1", "name deep"),
            place("a/b 1 deep", "two"),
        ];
        assert_eq!(read(&value), expected);
        let enough = pieces(&value, |_, _, _| false, |_| ControlFlow::Break(()));
        assert_eq!(enough, ControlFlow::Break(()));
    }

    #[test]
    fn the_bytes_of_pictures_recordings_and_files_are_not_read_and_every_text_is() {
        let has = |value: &Value, text: &str| read(value).iter().any(|(_, read)| read == text);
        let picture = |data: &str| json!({"type": "image", "mimeType": "image/png", "data": data});
        let file = |kind: &str, data: &str| json!({"uri": "x:y", "mimeType": kind, "blob": data});
        assert!(!has(&picture("AAAA"), "AAAA"));
        assert!(!has(&file("application/pdf", "AAAA"), "AAAA"));
        assert!(has(&picture("not base64"), "not base64"));
        assert!(has(&file("application/pdf", "not base64"), "not base64"));
        for kind in ["text/plain", "Application/JSON", "image/svg+xml"] {
            assert!(has(&file(kind, "AAAA"), "AAAA"), "{kind}");
        }
        assert!(has(&json!({"type": "text", "mimeType": "a/b", "data": "AAAA"}), "AAAA"));
        assert!(has(&json!({"mimeType": "a/b", "data": "AAAA"}), "AAAA"));
    }

    #[test]
    fn what_fits_is_read_once_and_of_more_than_that_the_beginning_and_the_end() {
        let fits = "a".repeat(FRONT - 1);
        assert_eq!(read(&json!(fits)).len(), 1);
        let more = format!("begin{}end", "ä".repeat(FRONT));
        let read = read(&json!(more));
        assert!(read[0].1.starts_with("begin") && read[0].1.len() <= FRONT);
        assert!(read[1].1.ends_with("end") && read[1].1.len() <= BACK);
        let found: Vec<_> = ends(&more).collect();
        assert!(found[0].text.starts_with("begin") && found[1].text.ends_with("end"));
    }

    #[test]
    fn escapes_are_read_where_a_value_is_not_taken_apart() {
        for text in ["a\nb\t\"c\" \\ d", "\u{435}\u{e0061}\u{1f600}é", "\u{1}", "\\u0041"] {
            let escaped: String =
                text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
            assert_eq!(unescaped(&escaped), text);
            assert_eq!(unescaped(&json!(text).to_string()), format!("\"{text}\""));
        }
        for broken in ["\\", "\\u12", "\\uzzzz", "\\ud800\\", "\\ué"] {
            assert!(unescaped(broken).len() <= 8, "{broken}");
        }
    }

    #[test]
    fn a_list_of_tiny_texts_has_an_end_too() {
        let many = json!(vec!["ab"; FRONT]);
        assert!(read(&many).len() <= (FRONT + BACK) / LEAST + 2);
    }
}
