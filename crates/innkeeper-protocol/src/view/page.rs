//! One page of any list.

use serde_json::value::RawValue;

use super::object::boxed;
use super::{Object, ViewError};
use crate::skim;

/// The most items kept of one page: above what a host keeps of a whole list, so that it notices
/// that there are too many, and far below what fits into a line.
pub const PAGE_ITEM_LIMIT: usize = 16 * 1024;

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The items as they were sent; each is an object.
    pub items: Vec<Box<RawValue>>,
    /// What asks for the next page. Any string, the empty one too.
    pub next_cursor: Option<String>,
    /// How many items were left out because they are not objects, or beyond [`PAGE_ITEM_LIMIT`].
    pub left_out: usize,
}

impl Page {
    /// Reads the result of a list method; `member` is where its items are, such as `tools`.
    ///
    /// # Errors
    ///
    /// If the result is not an object or `member` not an array.
    pub fn read(result: &RawValue, member: &'static str) -> Result<Self, ViewError> {
        let list = Object::read(result, [member, "nextCursor"])?;
        let mut page = Self { next_cursor: list.string("nextCursor"), ..Self::default() };
        for item in skim::elements(list.required_array(member)?) {
            let wanted = item.starts_with('{') && page.items.len() < PAGE_ITEM_LIMIT;
            match if wanted { boxed(item) } else { None } {
                Some(item) => page.items.push(item),
                None => page.left_out += 1,
            }
        }
        Ok(page)
    }
}
