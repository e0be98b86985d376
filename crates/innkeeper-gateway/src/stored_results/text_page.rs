//! A part of a text with whole characters.

use std::ops::Range;

/// Returns the bytes of a page: at most `limit` bytes from `offset` on, but at least one character.
/// An offset within a character counts as the start of the character, an offset behind the end as the
/// end.
pub(crate) fn text_page(text: &str, offset: usize, limit: usize) -> Range<usize> {
    let start = text.floor_char_boundary(offset);
    let end = text.floor_char_boundary(start.saturating_add(limit));
    let end = if end == start { text.ceil_char_boundary(start.saturating_add(1)) } else { end };
    start..end.min(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_has_whole_characters_and_at_least_one() {
        let text = "aé€";
        assert_eq!(text_page(text, 0, 2), 0..1);
        assert_eq!(text_page(text, 1, 1), 1..3, "one character is larger than the limit");
        assert_eq!(text_page(text, 2, 5), 1..6, "the offset is within a character");
        assert_eq!(text_page(text, 6, 5), 6..6);
        assert_eq!(text_page(text, 9, usize::MAX), 6..6);
        assert_eq!(text_page("", 0, 1), 0..0);
    }

    proptest! {
        #[test]
        fn the_pages_of_a_text_are_the_text(text in ".{0,200}", limit in 1_usize..20) {
            let (mut all, mut offset) = (String::new(), 0);
            while offset < text.len() {
                let page = text_page(&text, offset, limit);
                prop_assert_eq!(page.start, offset);
                prop_assert!(page.len() <= limit.max(4));
                all.push_str(&text[page.clone()]);
                offset = page.end;
            }
            prop_assert_eq!(all, text);
        }
    }
}
