//! References between the parts of one schema.

use serde_json::Value;

use super::words::quoted;

/// What a reference names.
#[derive(Debug, PartialEq)]
pub(super) enum Target<'s> {
    /// The part a JSON pointer leads to.
    Part(&'s Value),
    /// The parts that carry a name.
    Anchor(&'s str),
}

/// Finds what `text` refers to in `schema`.
///
/// # Errors
///
/// A sentence, if it leads out of the schema or nowhere in it; nothing is ever fetched.
pub(super) fn resolve<'s>(schema: &'s Value, text: &'s str) -> Result<Target<'s>, String> {
    let Some(fragment) = text.strip_prefix('#') else {
        return Err(format!("its reference {} leads out of the schema", quoted(text)));
    };
    if fragment.is_empty() {
        return Ok(Target::Part(schema));
    }
    if !fragment.starts_with('/') {
        return Ok(Target::Anchor(fragment));
    }
    let pointer = decoded(fragment).ok_or_else(|| nowhere(text))?;
    schema.pointer(&pointer).map(Target::Part).ok_or_else(|| nowhere(text))
}

pub(super) fn nowhere(text: &str) -> String {
    format!("its reference {} leads nowhere", quoted(text))
}

/// Undoes percent-encoding; `None` if the result is no UTF-8.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        let escaped = tail.split_at_checked(2).filter(|_| *first == b'%');
        let byte = escaped.and_then(|(digits, after)| {
            // A sign is a digit to the parser.
            digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
            let digits = std::str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, after))
        });
        match byte {
            Some((byte, after)) => {
                bytes.push(byte);
                rest = after;
            }
            None => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).ok()
}
