//! The benchmark texts.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::cases::{ParserCase, TextShape};
use crate::TaskResult;
use crate::program::relative_path;

const CODE_TEXT: &str = include_str!("../../../../bench/parser/text/code.txt");
const PROSE_TEXT: &str = include_str!("../../../../bench/parser/text/prose.md");
const MARKED_TEXT: &str = include_str!("../../../../bench/parser/text/marked.md");

/// Writes the text of a case.
///
/// # Errors
///
/// The file cannot be written.
pub(in crate::bench) fn write_text(file: &Path, case: &ParserCase) -> TaskResult {
    fs::write(file, build_text(case.shape, case.bytes))
        .map_err(|error| format!("`{}`: {error}", relative_path(file)))
}

/// Writes the 64 KiB reference call; returns whether the case has a reference.
///
/// # Errors
///
/// The file cannot be written.
pub(super) fn write_reference_text(file: &Path, case: &ParserCase) -> TaskResult<bool> {
    if !matches!(case.shape, TextShape::Hermes | TextShape::Xml) {
        return Ok(false);
    }
    fs::write(file, build_text(case.shape, 64 << 10))
        .map_err(|error| format!("`{}`: {error}", relative_path(file)))?;
    Ok(true)
}

/// Builds a text; `bytes` is the length that a parser must report, of the argument or of the text.
fn build_text(shape: TextShape, bytes: usize) -> String {
    match shape {
        TextShape::Prose => repeat_to(PROSE_TEXT, bytes),
        TextShape::Marked => repeat_to(MARKED_TEXT, bytes),
        TextShape::Hermes => {
            let content = Value::String(repeat_to(CODE_TEXT, bytes));
            let call = r#"{"name": "write_file", "arguments": {"path": "ledger.py", "content": "#;
            format!("<tool_call>\n{call}{content}}}}}\n</tool_call>")
        }
        TextShape::Xml => {
            let content = repeat_to(CODE_TEXT, bytes);
            let path = "<parameter=path>\nledger.py\n</parameter>";
            let content = format!("<parameter=content>\n{content}\n</parameter>");
            format!(
                "<tool_call>\n<function=write_file>\n{path}\n{content}\n</function>\n</tool_call>"
            )
        }
        TextShape::Unclosed => {
            let call = r#"{"tool": "write_file", "params": {"content": "#;
            let content = Value::String(repeat_to(CODE_TEXT, bytes)).to_string();
            let mut text = format!("{call}{content}");
            text.truncate(bytes);
            text
        }
    }
}

/// Repeats a text up to a length.
fn repeat_to(text: &str, bytes: usize) -> String {
    let mut all = text.repeat(bytes / text.len() + 1);
    all.truncate(bytes);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_ascii_so_that_chunks_are_equally_long_for_all_parsers() {
        for shape in [
            TextShape::Prose,
            TextShape::Marked,
            TextShape::Hermes,
            TextShape::Xml,
            TextShape::Unclosed,
        ] {
            assert!(build_text(shape, 5000).is_ascii(), "{shape:?}");
        }
    }

    #[test]
    fn prose_has_no_letter_that_begins_a_marker_but_in_words() {
        assert!(!PROSE_TEXT.contains(['<', '{', '[', '`']) && !PROSE_TEXT.contains("Action:"));
    }

    #[test]
    fn reported_text_has_the_requested_length() {
        for shape in [TextShape::Prose, TextShape::Marked, TextShape::Unclosed] {
            assert_eq!(build_text(shape, 5000).len(), 5000, "{shape:?}");
        }
    }
}
