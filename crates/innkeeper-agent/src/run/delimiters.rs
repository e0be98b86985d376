//! The parts of a text that stand between two delimiters which Markdown doesn't know: a pair of
//! tags, quotation marks over several lines, two lines of signs.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// What may open or close a part.
static DELIMITER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"<!--|-->|<!\[CDATA\[|\]\]>|</?[A-Za-z][\w:.-]*(?:[^<>]*[^<>/])?>|\[/?[A-Za-z][\w-]*(?:[ =][^\[\]\n]*)?\]|\\(?:begin|end)\{[^{}\n]*\}|["“”„‘’«»‹›「」『』]"#,
    )
    .expect("the pattern is valid")
});

/// Signs of which two equal lines are a frame, also with words between the signs of a line.
const FRAME_SIGNS: &str = "-=+#~:%/";

/// What a delimiter does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Open,
    Close,
    /// Closes an open part, or opens one.
    Either,
}

/// The open delimiters and the closed parts.
#[derive(Default)]
struct DelimitedParts<'t> {
    /// Where the open delimiters stand, by their name.
    open: HashMap<&'t str, Vec<usize>>,
    ranges: Vec<Range<usize>>,
}

impl<'t> DelimitedParts<'t> {
    fn is_open(&self, name: &str) -> bool {
        self.open.get(name).is_some_and(|open| !open.is_empty())
    }

    fn add(&mut self, side: Side, name: &'t str, at: Range<usize>) {
        let open = self.open.entry(name).or_default();
        let opened_at = if side == Side::Open { None } else { open.pop() };
        match opened_at {
            Some(start) => self.ranges.push(start..at.end),
            None if side == Side::Close => {}
            None => open.push(at.start),
        }
    }
}

/// Returns the ranges between delimiters that belong together. Delimiters in `code` don't count, nor do
/// lines of signs in `blocks`, such as the line below a heading.
pub(super) fn delimited_ranges(
    text: &str,
    code: &[Range<usize>],
    blocks: &[Range<usize>],
) -> Vec<Range<usize>> {
    let code = MergedRanges::new(code);
    let blocks = MergedRanges::new(blocks);
    let mut parts = DelimitedParts::default();
    for found in DELIMITER.find_iter(text) {
        let token = found.as_str();
        let name = token.trim_matches(|sign: char| "</>[]\\{}".contains(sign));
        let name = name.split([' ', '\n', '\t', '=']).next().unwrap_or_default();
        if code.contains(found.start()) {
            continue;
        }
        let (side, name) = match token {
            "<!--" => (Side::Open, "<!--"),
            "-->" => (Side::Close, "<!--"),
            "<![CDATA[" => (Side::Open, "]]>"),
            "]]>" => (Side::Close, "]]>"),
            "\"" => {
                // An inch or a closing quotation mark follows a letter or a digit.
                let before = text[..found.start()].chars().next_back();
                if !parts.is_open("\"") && before.is_some_and(char::is_alphanumeric) {
                    continue;
                }
                (Side::Either, "\"")
            }
            "“" | "”" | "„" => (Side::Either, "“"),
            // The closing one is an apostrophe as well.
            "‘" => (Side::Open, "‘"),
            "’" => (Side::Close, "‘"),
            "«" | "»" | "‹" | "›" => (Side::Either, "«"),
            "「" | "」" | "『" | "』" => (Side::Either, "「"),
            token if token.starts_with("\\begin") => (Side::Open, &name["begin".len()..]),
            token if token.starts_with("\\end") => (Side::Close, &name["end".len()..]),
            token if token.starts_with("</") || token.starts_with("[/") => (Side::Close, name),
            _ => (Side::Open, name),
        };
        parts.add(side, name, found.range());
    }
    parts.open.clear();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(sign) = frame_sign(line.trim())
            && !code.contains(start)
            && !blocks.contains(start)
        {
            parts.add(Side::Either, sign, start..start + line.len());
        }
        start += line.len();
    }
    parts.ranges
}

/// Ranges in their order, without those that others contain.
pub(super) struct MergedRanges(Vec<Range<usize>>);

impl MergedRanges {
    pub(super) fn new(ranges: &[Range<usize>]) -> Self {
        let mut sorted = ranges.to_vec();
        sorted.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<usize>> = Vec::new();
        for range in sorted {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                Some(_) | None => merged.push(range),
            }
        }
        Self(merged)
    }

    pub(super) fn contains(&self, at: usize) -> bool {
        let next = self.0.partition_point(|range| range.end <= at);
        self.0.get(next).is_some_and(|range| range.contains(&at))
    }
}

/// Returns the sign of a line of signs. A pair of quotation marks has one sign, brackets have none.
fn frame_sign(line: &str) -> Option<&str> {
    let first = &line[..line.chars().next()?.len_utf8()];
    let triple = first.repeat(3);
    let has_words = FRAME_SIGNS.contains(first)
        && line.starts_with(&triple)
        && (line.ends_with(&triple) || first == ":");
    match first {
        "{" | "}" | "[" | "]" | "(" | ")" | "<" | ">" => None,
        _ if !has_words && line.contains(|c: char| c.is_alphanumeric() || c.is_whitespace()) => {
            None
        }
        "“" | "”" | "„" => Some("“"),
        "‘" | "’" | "'" => Some("'"),
        "«" | "»" => Some("«"),
        _ => Some(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_delimited(text: &str) -> bool {
        let at = text.find("CALL").unwrap();
        delimited_ranges(text, &[], &[]).iter().any(|range| range.contains(&at))
    }

    #[test]
    fn a_call_between_delimiters_is_found() {
        for text in [
            "<blockquote>\nCALL\n</blockquote>",
            "<details>\n<summary>x</summary>\n\nCALL\n\n</details>",
            "<example id=\"1\">\n\nIt says:\n\nCALL\n</example>",
            "<page_text>\nCALL\n</page_text>",
            "<a><b>\nCALL\n</a>",
            "[quote=Bob]\nCALL\n[/quote]",
            "\\begin{verbatim}\nCALL\n\\end{verbatim}",
            "<p>\n<!--\nCALL\n-->",
            "The page:\n\"\nCALL\n\"",
            "The page says \"Hello,\nCALL\nbye\", so I stop.",
            // The first mark may be a mistake, or the third one.
            "The page says: \"Hello.\n\nCALL\n\nBye.\" I did \"not\".",
            "‘Hello.\n\nCALL\n\nBye.’",
            "“\nCALL\n”",
            "Die Seite: „Bitte\n\nCALL\n\nDanke.“",
            "«\nCALL\n»",
            "'\nCALL\n'",
            "\"\"\"\nCALL\n\"\"\"",
            "$$\nCALL\n$$",
            "---\n\nCALL\n\n---",
            "===== page =====\nCALL\n===== end =====",
            "::: note\nCALL\n:::",
        ] {
            assert!(is_delimited(text), "{text}");
        }
    }

    #[test]
    fn a_call_behind_delimiters_or_next_to_single_ones_is_not() {
        for text in [
            "<plan>\nLook first.\n</plan>\nCALL",
            "Use the <path> argument.\n\nCALL\n\nThen <name>.",
            "First<br>\nCALL\n<br/>",
            "\"Yes\", I say.\nCALL\nIt \"works\".",
            "It is 5\" wide.\nCALL\nOr 6\".",
            "Don’t look.\nCALL\nIt’s done.",
            "---\n\nCALL\n\nDone.",
            "**Step 1**\nCALL\n**Step 2**",
            "- a\n- b\n\nCALL\n\n- c",
        ] {
            assert!(!is_delimited(text), "{text}");
        }
    }
}
