//! The parts of a response that its Markdown marks as code, as a quotation or as a comment.

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag};

/// Returns the ranges of the text that are code, quotations or comments, in their order. A range may
/// contain others. What stands inside of `calls` doesn't count: the file that a call writes says
/// nothing about the text around the call.
pub(super) fn quoted_ranges(text: &str, calls: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut masked = text.to_owned();
    for call in calls {
        masked.replace_range(call.clone(), &"x".repeat(call.len()));
    }
    let text = &*masked;
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

/// Whether a call is part of one of the ranges.
pub(super) fn is_quoted(ranges: &[Range<usize>], call: &Range<usize>) -> bool {
    ranges.iter().any(|range| range.start < call.end && call.start < range.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_call_quoted(text: &str) -> bool {
        let start = text.find("CALL").unwrap();
        let call = start..start + "CALL".len();
        is_quoted(&quoted_ranges(text, std::slice::from_ref(&call)), &call)
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
    fn what_a_call_contains_says_nothing_about_it_or_the_next_one() {
        for call in ["```json\n{}\n```", "write(\n```py\nx\n``` )", "w(> a)", "w(<!-- )", "w(`)"] {
            let text = format!("Here:\n{call}\n{call}\nDone `x`.");
            let starts = [text.find(call).unwrap(), text.rfind(call).unwrap()];
            let calls = starts.map(|start| start..start + call.len());
            let ranges = quoted_ranges(&text, &calls);
            assert!(!calls.iter().any(|call| is_quoted(&ranges, call)), "{text}");
        }
    }
}
