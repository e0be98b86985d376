//! Lists in bounded pages.

use std::hash::{DefaultHasher, Hash, Hasher};

use innkeeper_protocol::PageCursor;

/// Maximum number of items on a page: more than clients expect of one server, so that clients that
/// read only the first page miss nothing in common configurations.
pub(crate) const MAX_PAGE_ITEMS: usize = 1_000;

/// Maximum size of a page in bytes, apart from the first item of the page.
pub(crate) const MAX_PAGE_BYTES: usize = 4 << 20;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListItem {
    /// The name or the URI for clients.
    pub(crate) name: Box<str>,
    /// The definition as JSON text.
    pub(crate) text: String,
}

/// The definitions of a list in their order.
#[derive(Debug)]
pub(crate) struct ItemList {
    items: Vec<ListItem>,
    /// Identifies the content of the list in cursors.
    fingerprint: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListPage<'a> {
    pub(crate) items: &'a [ListItem],
    /// The cursor of the next page.
    pub(crate) next: Option<String>,
}

/// A cursor that this list did not return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageError;

impl ItemList {
    pub(crate) fn new(items: Vec<ListItem>) -> Self {
        let mut hasher = DefaultHasher::new();
        items.hash(&mut hasher);
        Self { items, fingerprint: hasher.finish() }
    }

    pub(crate) fn items(&self) -> &[ListItem] {
        &self.items
    }

    /// Returns whether both lists have the same items.
    pub(crate) fn has_same_items(&self, other: &Self) -> bool {
        self.items == other.items
    }

    /// Returns the page of a cursor; the first page without a cursor. A cursor of a list that
    /// changed in the meantime is an error, because the client would miss or repeat items.
    pub(crate) fn page(&self, cursor: Option<&str>) -> Result<ListPage<'_>, PageError> {
        let start = match cursor {
            None => 0,
            Some(cursor) => {
                let cursor = PageCursor::decode(cursor).map_err(|_| PageError)?;
                let offset = cursor.offset_in(self.fingerprint).map_err(|_| PageError)?;
                let offset = usize::try_from(offset).map_err(|_| PageError)?;
                if offset >= self.items.len() {
                    return Err(PageError);
                }
                offset
            }
        };
        let mut bytes = 0;
        let rest = &self.items[start..];
        let count = rest
            .iter()
            .take(MAX_PAGE_ITEMS)
            .take_while(|item| {
                let is_first = bytes == 0;
                bytes += item.text.len();
                is_first || bytes <= MAX_PAGE_BYTES
            })
            .count();
        let end = start + count;
        let next = (end < self.items.len())
            .then(|| PageCursor { offset: end as u64, fingerprint: self.fingerprint }.encode());
        Ok(ListPage { items: &self.items[start..end], next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(count: usize, bytes: usize) -> ItemList {
        ItemList::new(
            (0..count)
                .map(|number| {
                    let text = format!("{number}{}", "x".repeat(bytes.saturating_sub(1)));
                    ListItem { name: number.to_string().into(), text: text[..bytes].to_owned() }
                })
                .collect(),
        )
    }

    fn page_sizes(list: &ItemList) -> Vec<usize> {
        let (mut sizes, mut cursor) = (Vec::new(), None);
        loop {
            let page = list.page(cursor.as_deref()).unwrap();
            sizes.push(page.items.len());
            cursor = page.next;
            if cursor.is_none() {
                return sizes;
            }
        }
    }

    #[test]
    fn a_page_has_at_most_the_maximum_number_of_items_and_bytes() {
        assert_eq!(page_sizes(&list(0, 1)), [0]);
        assert_eq!(page_sizes(&list(MAX_PAGE_ITEMS, 1)), [MAX_PAGE_ITEMS]);
        assert_eq!(page_sizes(&list(MAX_PAGE_ITEMS + 1, 1)), [MAX_PAGE_ITEMS, 1]);
        assert_eq!(page_sizes(&list(2, MAX_PAGE_BYTES / 2)), [2]);
        assert_eq!(page_sizes(&list(3, MAX_PAGE_BYTES / 2)), [2, 1]);
        assert_eq!(page_sizes(&list(2, MAX_PAGE_BYTES + 1)), [1, 1], "each fits alone");
    }

    #[test]
    fn a_foreign_cursor_and_a_cursor_of_a_changed_list_are_errors() {
        let old = list(MAX_PAGE_ITEMS + 1, 1);
        let cursor = old.page(None).unwrap().next.unwrap();
        assert!(old.page(Some(&cursor)).is_ok());
        let changed = list(MAX_PAGE_ITEMS + 2, 1);
        assert_eq!(changed.page(Some(&cursor)), Err(PageError));
        for foreign in ["", "2", "not a cursor"] {
            assert_eq!(old.page(Some(foreign)), Err(PageError), "{foreign}");
        }
    }
}
