//! The texts that are read, made of two pages and a program.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::plan::{Case, Shape};
use crate::Chore;
use crate::program::relative;

const CODE: &str = include_str!("../../../../bench/interceptor/text/code.txt");
const PROSE: &str = include_str!("../../../../bench/interceptor/text/prose.md");
const MARKED: &str = include_str!("../../../../bench/interceptor/text/marked.md");

/// Writes a case's text.
///
/// # Errors
///
/// The file cannot be written.
pub(super) fn write(file: &Path, case: &Case) -> Chore {
    fs::write(file, make(case.shape, case.bytes))
        .map_err(|error| format!("`{}`: {error}", relative(file)))
}

/// Writes the call of 64 KiB that a call is compared with; gives whether the case has one.
///
/// # Errors
///
/// The file cannot be written.
pub(super) fn write_beside(file: &Path, case: &Case) -> Chore<bool> {
    if !matches!(case.shape, Shape::Hermes | Shape::Xml) {
        return Ok(false);
    }
    let problem = |error| format!("`{}`: {error}", relative(file));
    fs::write(file, make(case.shape, 64 << 10)).map_err(problem)?;
    Ok(true)
}

/// A text of this shape. `bytes` is what a reader tells of it: the call's content or all text.
fn make(shape: Shape, bytes: usize) -> String {
    match shape {
        Shape::Prose => repeated(PROSE, bytes),
        Shape::Marked => repeated(MARKED, bytes),
        Shape::Hermes => {
            let content = Value::String(repeated(CODE, bytes));
            let call = r#"{"name": "write_file", "arguments": {"path": "ledger.py", "content": "#;
            format!("<tool_call>\n{call}{content}}}}}\n</tool_call>")
        }
        Shape::Xml => {
            let content = repeated(CODE, bytes);
            let path = "<parameter=path>\nledger.py\n</parameter>";
            let content = format!("<parameter=content>\n{content}\n</parameter>");
            format!(
                "<tool_call>\n<function=write_file>\n{path}\n{content}\n</function>\n</tool_call>"
            )
        }
        Shape::Unclosed => {
            let call = r#"{"tool": "write_file", "params": {"content": "#;
            let content = Value::String(repeated(CODE, bytes)).to_string();
            let mut text = format!("{call}{content}");
            text.truncate(bytes);
            text
        }
    }
}

/// A text again and again, up to a length.
fn repeated(text: &str, bytes: usize) -> String {
    let mut all = text.repeat(bytes / text.len() + 1);
    all.truncate(bytes);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_ascii_so_that_a_piece_is_as_long_for_everyone() {
        for shape in [Shape::Prose, Shape::Marked, Shape::Hermes, Shape::Xml, Shape::Unclosed] {
            assert!(make(shape, 5000).is_ascii(), "{shape:?}");
        }
    }

    #[test]
    fn prose_has_no_letter_that_begins_a_marker_but_in_words() {
        assert!(!PROSE.contains(['<', '{', '[', '`']) && !PROSE.contains("Action:"));
    }

    #[test]
    fn text_that_is_told_has_the_length_that_was_asked_for() {
        for shape in [Shape::Prose, Shape::Marked, Shape::Unclosed] {
            assert_eq!(make(shape, 5000).len(), 5000, "{shape:?}");
        }
    }
}
