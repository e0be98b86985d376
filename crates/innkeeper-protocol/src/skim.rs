//! Walking JSON text without building a tree: no allocation, no recursion, one pass.
//!
//! [`members`], [`elements`] and [`member`] expect text that is known to be valid JSON, such as that
//! of a `RawValue`; on anything else they end early. [`top_level_id`] expects the worst.

mod brackets;
mod cursor;
mod tolerant;

#[cfg(test)]
mod tests;

pub(crate) use brackets::depth_within;
pub(crate) use cursor::Cursor;
pub use tolerant::top_level_id;

use crate::text;

/// The members of a JSON object, in their order: raw key without its quotes, raw value.
///
/// Escapes in keys are left as they are. Anything but an object has no members.
pub fn members(object: &str) -> Members<'_> {
    let mut cursor = Cursor::new(object);
    let open = cursor.enter(b'{');
    Members { cursor, open }
}

/// The raw elements of a JSON array, in their order. Anything but an array has none.
pub fn elements(array: &str) -> Elements<'_> {
    let mut cursor = Cursor::new(array);
    let open = cursor.enter(b'[');
    Elements { cursor, open }
}

/// The raw value of the member `key`, however its name is escaped; the last one if there are
/// several, as in a parsed tree.
pub fn member<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    members(object).filter(|(name, _)| text::key_is(name, key)).last().map(|(_, value)| value)
}

/// Iterator over the members of an object; see [`members`].
#[derive(Clone, Debug)]
pub struct Members<'a> {
    cursor: Cursor<'a>,
    open: bool,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        if !self.open {
            return None;
        }
        let member = self.cursor.next_key().and_then(|key| Some((key, self.cursor.value()?)));
        self.open = member.is_some();
        member
    }
}

/// Iterator over the elements of an array; see [`elements`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    cursor: Cursor<'a>,
    open: bool,
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.open {
            return None;
        }
        let element = if self.cursor.next_element() { self.cursor.value() } else { None };
        self.open = element.is_some();
        element
    }
}
