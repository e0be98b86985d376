//! One page of a list result.

use serde_json::value::RawValue;

use super::object::boxed_raw;
use super::{ObjectView, ViewError};
use crate::skim;

/// Maximum number of items stored per page: more than a host stores of an entire list, so that the
/// host detects lists that are too long, and far fewer than fit into a line.
pub const MAX_PAGE_ITEMS: usize = 16 * 1024;

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The items as raw JSON; each item is an object.
    pub items: Vec<Box<RawValue>>,
    /// The cursor of the next page as raw JSON: a string, which may be empty, or another value of a
    /// server that expects this value back. `null` and `false` end the list.
    pub next_cursor: Option<Box<RawValue>>,
    /// Number of omitted items: items that are not objects, and items after the first
    /// [`MAX_PAGE_ITEMS`].
    pub left_out: usize,
}

impl Page {
    /// Reads the result of a list method. `member` is the name of the item array, such as `tools`.
    ///
    /// # Errors
    ///
    /// Returns an error if the result is not an object or `member` is not an array.
    pub fn from_raw(result: &RawValue, member: &'static str) -> Result<Self, ViewError> {
        let list = ObjectView::from_raw(result, [member, "nextCursor"])?;
        let mut page = Self { next_cursor: list.raw("nextCursor"), ..Self::default() };
        page.next_cursor.take_if(|cursor| cursor.get() == "false");
        for item in skim::elements(list.required_array(member)?) {
            let accepted = item.starts_with('{') && page.items.len() < MAX_PAGE_ITEMS;
            match if accepted { boxed_raw(item) } else { None } {
                Some(item) => page.items.push(item),
                None => page.left_out += 1,
            }
        }
        Ok(page)
    }
}
