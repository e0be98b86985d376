//! Tests of the search of a text.

use super::*;

fn search(text: &str, pattern: &str) -> Vec<(usize, String)> {
    let found = TextPattern::new(pattern).unwrap().search(text, 0, usize::MAX);
    assert_eq!(found.next_offset, None);
    found.matches.into_iter().map(|found| (found.offset, found.text)).collect()
}

fn offsets(text: &str, pattern: &str) -> Vec<usize> {
    search(text, pattern).into_iter().map(|(offset, _)| offset).collect()
}

#[test]
fn each_line_with_a_match_is_returned_once() {
    let text = "one two one\nthree\n\none";
    let expected = [(0, "one two one".to_owned()), (19, "one".to_owned())];
    assert_eq!(search(text, "one"), expected);
    assert_eq!(search(text, "(?i)THREE$"), [(12, "three".to_owned())]);
    assert_eq!(offsets(text, "^"), [0, 12, 18, 19]);
    assert_eq!(offsets(text, "$"), [11, 17, 18, text.len()]);
    assert!(search(text, "four").is_empty());
    assert!(search("", "x*").is_empty());
}

#[test]
fn a_long_line_is_returned_in_parts_with_whole_characters() {
    let text = format!("{}x{}", "é".repeat(1_000), "é".repeat(1_000));
    let found = search(&text, "x");
    assert_eq!(found.len(), 1);
    let (offset, shown) = &found[0];
    assert_eq!(*offset, 2_000);
    let (before, behind) = shown.split_once('x').unwrap();
    assert_eq!((before.len(), behind.len()), (BYTES_BEFORE, BYTES_BEHIND - 2));
    let text = "x".repeat(BYTES_BEHIND * 2 + 1);
    assert_eq!(offsets(&text, "x"), [0, BYTES_BEHIND, BYTES_BEHIND * 2]);
}

#[test]
fn a_search_continues_where_the_last_one_ended() {
    let text = "a\nb\na\na\n";
    let pattern = TextPattern::new("a").unwrap();
    let first = pattern.search(text, 0, 2);
    assert_eq!(first.matches.iter().map(|found| found.offset).collect::<Vec<_>>(), [0, 4]);
    let rest = pattern.search(text, first.next_offset.unwrap(), 2);
    assert_eq!(rest.matches[0].offset, 6);
    assert_eq!(rest.next_offset, None);
    assert_eq!(pattern.search(text, 100, 2), TextMatches { matches: vec![], next_offset: None });
}

#[test]
fn a_match_at_the_border_of_two_blocks_is_found_once_and_whole() {
    for shift in 0..8 {
        let before = "-".repeat(BLOCK_BYTES - shift);
        let text = format!("{before}needle{}", "-".repeat(BLOCK_BYTES));
        assert_eq!(offsets(&text, "needle"), [before.len()], "{shift}");
        // The end of a block is not the end of a line.
        assert!(offsets(&text, "need$").is_empty(), "{shift}");
        assert!(offsets(&text, r"need\b").is_empty(), "{shift}");
        let lines = format!("{before}\nneedle\n{}", "-".repeat(BLOCK_BYTES));
        assert_eq!(offsets(&lines, "^needle$"), [before.len() + 1], "{shift}");
    }
}

#[test]
fn a_text_of_many_blocks_is_searched_to_its_end() {
    let line = format!("{}\n", "y".repeat(99));
    let mut text = line.repeat(5_000);
    text.push_str("the end");
    assert_eq!(search(&text, "e.d"), [(text.len() - 3, "the end".to_owned())]);
    assert_eq!(offsets(&text, "(?s).*"), {
        let blocks = text.len().div_ceil(BLOCK_BYTES / 100 * 100);
        (0..blocks).map(|block| block * (BLOCK_BYTES / 100 * 100)).collect::<Vec<_>>()
    });
}

/// Attack: remote | a client searches a large result with a pattern whose time grows with its size |
/// the search ends behind the block in which its time ends, and says where to continue | No unbounded
/// wait
#[test]
fn a_search_ends_when_its_time_is_over_and_continues() {
    let text = format!("{}y{}y", "x".repeat(BLOCK_BYTES * 3), "\n".repeat(BLOCK_BYTES));
    let pattern = TextPattern::new("x?y").unwrap();
    let (mut next, mut found, mut searches) = (Some(0), Vec::new(), 0);
    while let Some(at) = next {
        let mut blocks = 0;
        let part = pattern.search_until(&text, at, 10, || {
            blocks += 1;
            blocks >= 2
        });
        assert!(part.next_offset.is_none_or(|next| next > at && next <= at + 2 * BLOCK_BYTES));
        found.extend(part.matches.iter().map(|found| found.offset));
        (next, searches) = (part.next_offset, searches + 1);
    }
    assert_eq!(found, [BLOCK_BYTES * 3 - 1, text.len() - 1]);
    assert!(searches >= 2, "{searches}");
}

#[test]
fn patterns_above_their_limits_are_errors() {
    assert!(TextPattern::new(&"x".repeat(MAX_PATTERN_BYTES)).is_ok());
    let long = TextPattern::new(&"x".repeat(MAX_PATTERN_BYTES + 1)).unwrap_err();
    assert!(matches!(long, PatternError::TooLong));
    for pattern in [r"(\w{1,9}){1,9}", "(", r"(a)\1", "(?=a)"] {
        let error = TextPattern::new(pattern).unwrap_err();
        assert!(matches!(error, PatternError::Invalid(_)), "{pattern}");
    }
}
