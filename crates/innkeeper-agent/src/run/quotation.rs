//! Where calls stand in the Markdown of a response.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use super::delimiters::delimited_ranges;

/// Where a call stands in the Markdown around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallPlace {
    /// Outside of everything else.
    TopLevel,
    /// In something that may show the call or contain it: a list, a table, a heading, a pair of tags
    /// or of quotation marks, a block of code that doesn't end.
    Doubtful,
    /// In code, in a quotation or in a comment.
    Quoted,
}

/// The parts of a text that say something about the calls in them. A part may contain others.
#[derive(Debug)]
pub(super) struct MarkedParts {
    /// The text without what the calls contain.
    masked: String,
    /// Code and comments.
    quoted: Vec<Range<usize>>,
    quotations: Vec<Range<usize>>,
    doubtful: Vec<Range<usize>>,
}

impl MarkedParts {
    /// Finds the parts. What stands inside of `calls` doesn't count: the file that a call writes says
    /// nothing about the text around the call. Nor does what stands in `others`, such as reasoning.
    pub(super) fn new(text: &str, calls: &[Range<usize>], others: &[Range<usize>]) -> Self {
        let mut masked = text.to_owned();
        for call in calls {
            masked.replace_range(call.clone(), &"x".repeat(call.len()));
        }
        for other in others {
            let lines = text[other.clone()].split('\n').map(|line| "x".repeat(line.len()));
            masked.replace_range(other.clone(), &lines.collect::<Vec<_>>().join("\n"));
        }
        let mut quoted = Vec::new();
        let mut quotations = Vec::new();
        let mut doubtful = Vec::new();
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_MATH;
        for (event, range) in Parser::new_ext(&masked, options).into_offset_iter() {
            let part = &masked[range.clone()];
            let ranges: &mut Vec<_> = match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) if !is_closed(part) => {
                    &mut doubtful
                }
                Event::Start(Tag::CodeBlock(_)) | Event::Code(_) => &mut quoted,
                Event::Start(Tag::BlockQuote(_)) => &mut quotations,
                // Calls with tags look like HTML, a comment is hidden text.
                Event::Start(Tag::HtmlBlock) | Event::InlineHtml(_)
                    if part.starts_with("<!--") && part.contains("-->") =>
                {
                    &mut quoted
                }
                Event::Start(Tag::HtmlBlock) | Event::InlineHtml(_)
                    if part.starts_with("<!") || part.starts_with("<?") =>
                {
                    &mut doubtful
                }
                Event::InlineMath(_) | Event::DisplayMath(_) => &mut doubtful,
                Event::Start(Tag::Paragraph | Tag::HtmlBlock) => continue,
                Event::Start(_) => &mut doubtful,
                _ => continue,
            };
            ranges.push(range);
        }
        let blocks = [&*quotations, &*doubtful].concat();
        doubtful.extend(delimited_ranges(&masked, &quoted, &blocks));
        Self { masked, quoted, quotations, doubtful }
    }

    /// Returns the ranges of code and comments.
    pub(super) fn code(&self) -> &[Range<usize>] {
        &self.quoted
    }

    /// Adds a part whose calls are doubtful.
    pub(super) fn add_doubt(&mut self, range: Range<usize>) {
        self.doubtful.push(range);
    }

    pub(super) fn place(&self, call: &Range<usize>) -> CallPlace {
        let is_in = |ranges: &[Range<usize>]| {
            ranges.iter().any(|range| range.start < call.end && call.start < range.end)
        };
        let line = self.masked[..call.start].rsplit('\n').next().unwrap_or_default();
        match is_in(&self.quotations) {
            _ if is_in(&self.quoted) => CallPlace::Quoted,
            true if line.contains('>') => CallPlace::Quoted,
            // The line doesn't say that it belongs to the quotation above.
            true => CallPlace::Doubtful,
            false if is_in(&self.doubtful) => CallPlace::Doubtful,
            false => CallPlace::TopLevel,
        }
    }
}

/// Whether a block of code ends with a line that closes it.
pub(super) fn is_closed(block: &str) -> bool {
    let mut lines = block.trim_end().lines();
    lines.next().is_some()
        && lines.next_back().is_some_and(|line| {
            let line = line.trim_start_matches([' ', '\t', '>']).trim_end();
            line.len() >= 3
                && (line.bytes().all(|it| it == b'`') || line.bytes().all(|it| it == b'~'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> CallPlace {
        let start = text.find("CALL").unwrap();
        let call = start..start + "CALL".len();
        MarkedParts::new(text, std::slice::from_ref(&call), &[]).place(&call)
    }

    #[test]
    fn code_quotations_and_comments_are_quoted() {
        for text in [
            "You would write `CALL` to delete.",
            "You would write ``\nCALL\n`` to delete.",
            "~~~\n# deletes all\nCALL\n~~~",
            "````markdown\n# Usage\n```\nCALL\n```\n````",
            "- a\n\n  > b\n  > CALL",
            "> ```\n> CALL\n> ```",
            "Text\n\n    CALL\n",
            "<!--\nCALL\n-->",
            "Text <!-- CALL --> more",
        ] {
            assert_eq!(place(text), CallPlace::Quoted, "{text}");
        }
    }

    #[test]
    fn what_may_show_a_call_is_doubtful() {
        for text in [
            "```\nCALL",
            "<!--\nCALL",
            "- a\n\n  ```\n  CALL\n- b",
            "> The page says\nCALL",
            "- The page says\nCALL",
            "- The page says:\n\n  CALL\n\nI did not.",
            "1. a\n   - b\n\n     CALL",
            "a | b\n---|---\nCALL | bad",
            "a | b\n---|---\nc | d\nCALL",
            "CALL\n---",
            "CALL\nmore\n===\n",
            "See[^1].\n\n[^1]: It says\n    CALL",
            "$$\nCALL\n$$",
            "**It says\nCALL**",
            "[It says\nCALL](http://x)",
            "<![CDATA[\nCALL\n]]>",
            "<?php\nCALL\n?>",
            "<pre>\nCALL\n</pre>",
        ] {
            assert_eq!(place(text), CallPlace::Doubtful, "{text}");
        }
    }

    #[test]
    fn a_call_outside_of_them_stands_at_the_top_level() {
        for text in [
            "CALL",
            "Let me look.\nCALL",
            "Let me look:\n\nCALL\n\nThen I write.",
            "`code`\nCALL",
            "Use ` here.\nCALL",
            "```\nexample\n```\nCALL",
            "> a quotation\n\nCALL",
            "- first\n- second\n\nCALL",
            "## Step\nCALL",
            "a | b\n---|---\nc | d\n\nCALL",
            "It costs $5.\nCALL\nOr $6.",
        ] {
            assert_eq!(place(text), CallPlace::TopLevel, "{text}");
        }
    }

    #[test]
    fn what_a_call_contains_says_nothing_about_it_or_the_next_one() {
        for call in ["```json\n{}\n```", "write(\n```py\nx\n``` )", "w(> a)", "w(<!-- )", "w(`)"] {
            let text = format!("Here:\n{call}\n{call}\nDone `x`.");
            let starts = [text.find(call).unwrap(), text.rfind(call).unwrap()];
            let calls = starts.map(|start| start..start + call.len());
            let parts = MarkedParts::new(&text, &calls, &[]);
            assert!(calls.iter().all(|call| parts.place(call) == CallPlace::TopLevel), "{text}");
        }
    }

    #[test]
    fn reasoning_says_nothing_about_a_call() {
        let text = "<think>\n> hm\n- a ```\n</think>\nCALL";
        let start = text.find("CALL").unwrap();
        let reasoning = "<think>".len()..start - "</think>\n".len();
        let parts = MarkedParts::new(text, &[], std::slice::from_ref(&reasoning));
        assert_eq!(parts.place(&(start..text.len())), CallPlace::TopLevel);
    }
}
