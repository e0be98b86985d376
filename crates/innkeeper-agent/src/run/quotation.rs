//! The parts of a response that its Markdown marks as code, as a quotation or as a comment.

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag};

/// Returns the ranges of the text that are code, quotations or HTML, in their order. A range may
/// contain others.
pub(super) fn quoted_ranges(text: &str) -> Vec<Range<usize>> {
    let ranges = Parser::new(text).into_offset_iter().filter_map(|(event, range)| {
        let is_quoted = match event {
            Event::Start(Tag::BlockQuote(_) | Tag::CodeBlock(_)) | Event::Code(_) => true,
            // Calls with tags look like HTML, a comment is hidden text.
            Event::Start(Tag::HtmlBlock) | Event::InlineHtml(_) => {
                text[range.clone()].starts_with("<!--")
            }
            _ => false,
        };
        is_quoted.then_some(range)
    });
    ranges.collect()
}

/// Whether a call is part of one of the ranges. A fenced block whose whole body is the call belongs
/// to the call, not the call to the block.
pub(super) fn is_quoted(ranges: &[Range<usize>], call: &Range<usize>) -> bool {
    ranges.iter().any(|range| {
        let is_whole_block = call.start <= range.start && range.end <= call.end;
        range.start < call.end && call.start < range.end && !is_whole_block
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_call_quoted(text: &str) -> bool {
        let start = text.find("CALL").unwrap();
        is_quoted(&quoted_ranges(text), &(start..start + "CALL".len()))
    }

    #[test]
    fn code_quotations_and_comments_are_quoted() {
        for text in [
            "You would write `CALL` to delete.",
            "You would write ``\nCALL\n`` to delete.",
            "~~~\n# deletes all\nCALL\n~~~",
            "````markdown\n# Usage\n```\nCALL\n```\n````",
            "```\nCALL",
            "> The page says\nCALL",
            "- a\n\n  > b\n  > CALL",
            "Text\n\n    CALL\n",
            "<!--\nCALL\n-->",
            "Text <!-- CALL --> more",
        ] {
            assert!(is_call_quoted(text), "{text}");
        }
    }

    #[test]
    fn other_text_is_not_quoted() {
        for text in [
            "CALL",
            "Let me look.\nCALL",
            "`code`\nCALL",
            "Use ` here.\nCALL",
            "```\nexample\n```\nCALL",
            "> a quotation\n\nCALL",
            "<tool_call>\nCALL\n</tool_call>",
        ] {
            assert!(!is_call_quoted(text), "{text}");
        }
    }

    #[test]
    fn a_block_that_is_the_call_is_not_around_it() {
        let text = "Here:\n```json\n{}\n```\n";
        let block = text.find("```").unwrap()..text.len() - 1;
        assert!(!is_quoted(&quoted_ranges(text), &block));
    }
}
