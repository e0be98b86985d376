//! Replacements in a text.

use std::ops::Range;

/// A replacement of one range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

/// Sorts replacements and joins those that overlap; the first text that is not empty stays.
pub(super) fn normalize(mut edits: Vec<Edit>) -> Vec<Edit> {
    edits.sort_by_key(|edit| (edit.range.start, usize::MAX - edit.range.end));
    let mut joined: Vec<Edit> = Vec::with_capacity(edits.len());
    for edit in edits {
        match joined.last_mut() {
            Some(last) if edit.range.start < last.range.end => {
                last.range.end = last.range.end.max(edit.range.end);
                if last.text.is_empty() {
                    last.text = edit.text;
                }
            }
            Some(_) | None => joined.push(edit),
        }
    }
    joined
}

/// Applies replacements that are sorted and do not overlap.
pub(super) fn apply(text: &str, edits: &[Edit]) -> String {
    let mut edited = String::with_capacity(text.len());
    let mut begin = 0;
    for edit in edits {
        edited.push_str(&text[begin..edit.range.start]);
        edited.push_str(&edit.text);
        begin = edit.range.end;
    }
    edited.push_str(&text[begin..]);
    edited
}

/// Moves sorted positions along with the replacements. A position inside a replaced range moves to
/// the end of the replacement.
pub(super) fn move_positions(positions: &mut [usize], edits: &[Edit]) {
    let mut edits = edits.iter().peekable();
    let mut removed = 0;
    let mut inserted = 0;
    for position in positions {
        while let Some(edit) = edits.next_if(|edit| edit.range.end <= *position) {
            removed += edit.range.len();
            inserted += edit.text.len();
        }
        *position = match edits.peek() {
            Some(edit) if edit.range.start < *position => {
                edit.range.start - removed + inserted + edit.text.len()
            }
            Some(_) | None => *position - removed + inserted,
        };
    }
}
