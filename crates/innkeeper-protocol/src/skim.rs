//! Reading of JSON text without a tree: no recursion, one pass.
//!
//! [`members`], [`elements`], [`member`] and [`tokens`] expect valid JSON, such as the text of a
//! `RawValue`; on invalid JSON the iteration ends early. [`replace_member`] and [`remove_member`]
//! change the text of one member. [`recover_top_level_id`] accepts any bytes.

mod brackets;
mod checked_cursor;
mod cursor;
mod duplicate_keys;
mod edit;
mod recovery;
mod tokens;

#[cfg(test)]
mod tests;

pub(crate) use brackets::depth_within;
pub(crate) use checked_cursor::CheckedCursor;
pub(crate) use cursor::Cursor;
pub use duplicate_keys::{KeyTracker, has_duplicate_key};
pub(crate) use edit::remove_members;
pub use edit::{remove_member, replace_member};
pub use recovery::recover_top_level_id;
pub use tokens::{Token, Tokens};

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::raw_text::from_checked;
use crate::text;

/// Iterates over the members of a JSON object in their order: raw key without quotes, raw value.
///
/// Escapes in keys are not decoded. A value that is not an object has no members.
pub fn members(object: &str) -> Members<'_> {
    let mut cursor = Cursor::new(object);
    let has_more = cursor.enter(b'{');
    Members { cursor, has_more }
}

/// Iterates over the raw elements of a JSON array in their order. A value that is not an array has
/// no elements.
pub fn elements(array: &str) -> Elements<'_> {
    let mut cursor = Cursor::new(array);
    let has_more = cursor.enter(b'[');
    Elements { cursor, has_more }
}

/// Returns the raw value of the member `key`, also if the name is written with escapes. With
/// several such members the last one applies, as in a parsed tree.
pub fn member<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    members(object).filter(|(name, _)| text::key_is(name, key)).last().map(|(_, value)| value)
}

/// Like [`member`], for a raw value.
pub fn raw_member<'a>(object: &'a RawValue, key: &str) -> Option<&'a RawValue> {
    member(object.get(), key).and_then(from_checked)
}

/// Iterates over the tokens of JSON text in their order: every member of every object, also members
/// with the same key. Memory: one byte per open container.
pub fn tokens(json: &str) -> Tokens<'_> {
    Tokens::new(json)
}

/// Decodes a raw string with its quotes; lone surrogates become U+FFFD. Returns `None` if `raw` is
/// not a string.
pub fn decode_string(raw: &str) -> Option<Cow<'_, str>> {
    text::decode_string(raw)
}

/// Decodes a raw key without its quotes; lone surrogates become U+FFFD. A key that is not valid
/// stays as written.
pub fn decode_key(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let decoded = text::decode_string(&format!("\"{raw}\"")).map(Cow::into_owned);
    decoded.map_or(Cow::Borrowed(raw), Cow::Owned)
}

/// Iterator over the members of an object; see [`members`].
#[derive(Clone, Debug)]
pub struct Members<'a> {
    cursor: Cursor<'a>,
    has_more: bool,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        if !self.has_more {
            return None;
        }
        let member = self.cursor.next_key().and_then(|key| Some((key, self.cursor.next_value()?)));
        self.has_more = member.is_some();
        member
    }
}

/// Iterator over the elements of an array; see [`elements`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    cursor: Cursor<'a>,
    has_more: bool,
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.has_more {
            return None;
        }
        let element = if self.cursor.next_element() { self.cursor.next_value() } else { None };
        self.has_more = element.is_some();
        element
    }
}
