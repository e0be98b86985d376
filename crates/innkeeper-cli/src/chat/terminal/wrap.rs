//! Wraps styled text at the width of the terminal.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::output::escape_block;

/// Maximum number of bytes that [`truncate`] reads for a column: a character with its combining
/// characters.
const MAX_COLUMN_BYTES: usize = 32;

const TAB: &str = "    ";

/// Wraps spans of one line at `width` columns, between words where possible. The first line starts
/// with `first`, the others with `rest`. Untrusted characters are escaped, and a character that is
/// wider than the rest of the width is replaced by `?`.
pub(crate) fn wrap_spans(
    spans: &[Span<'_>],
    width: usize,
    first: &[Span<'static>],
    rest: &[Span<'static>],
) -> Vec<Line<'static>> {
    let mut wrapper = Wrapper::new(width, first, rest);
    for span in spans {
        let text = escape_block(&span.content).replace('\t', TAB);
        for grapheme in text.graphemes(true) {
            wrapper.push(grapheme, span.style);
        }
    }
    wrapper.finish()
}

/// Wraps plain text, whose lines end with `\n`.
pub(crate) fn wrap_text(
    text: &str,
    style: Style,
    width: usize,
    prefix: &[Span<'static>],
) -> Vec<Line<'static>> {
    let lines = text.split('\n');
    lines.flat_map(|line| wrap_spans(&[Span::styled(line, style)], width, prefix, prefix)).collect()
}

/// Shortens text to one line of at most `width` columns, with an ellipsis. The time depends on the
/// width and not on the length of the text.
pub(crate) fn truncate(text: &str, width: usize) -> String {
    let end = text.floor_char_boundary((width + 1) * MAX_COLUMN_BYTES);
    let is_whole = end == text.len();
    let text = crate::output::escape_inline(&text[..end]);
    if is_whole && text.width() <= width {
        return text.into_owned();
    }
    let mut shortened = String::new();
    let mut columns = 0;
    for grapheme in text.graphemes(true) {
        columns += grapheme.width();
        if columns >= width {
            break;
        }
        shortened.push_str(grapheme);
    }
    if width > 0 {
        shortened.push('…');
    }
    shortened
}

struct Wrapper<'p> {
    width: usize,
    rest: &'p [Span<'static>],
    lines: Vec<Line<'static>>,
    line: Vec<Span<'static>>,
    columns: usize,
    /// Whether the line has text behind its prefix.
    has_text: bool,
    /// The graphemes since the last space.
    graphemes: Vec<(String, Style)>,
    graphemes_columns: usize,
}

fn columns_of(prefix: &[Span<'_>]) -> usize {
    prefix.iter().map(|span| span.content.width()).sum()
}

/// Returns a prefix that leaves room for text, or none.
fn fitting<'p>(prefix: &'p [Span<'static>], width: usize) -> &'p [Span<'static>] {
    if columns_of(prefix) + 2 <= width { prefix } else { &[] }
}

impl<'p> Wrapper<'p> {
    fn new(width: usize, first: &[Span<'static>], rest: &'p [Span<'static>]) -> Self {
        let width = width.max(1);
        let first = fitting(first, width);
        Self {
            width,
            rest: fitting(rest, width),
            lines: Vec::new(),
            line: first.to_vec(),
            columns: columns_of(first),
            has_text: false,
            graphemes: Vec::new(),
            graphemes_columns: 0,
        }
    }

    fn push(&mut self, grapheme: &str, style: Style) {
        let columns = grapheme.width();
        if grapheme == " " {
            self.flush_word();
            if self.columns < self.width {
                self.append(" ", 1, style);
            } else {
                self.break_line();
            }
            return;
        }
        let room = self.width - columns_of(self.rest);
        let (grapheme, columns) = if columns > room { ("?", 1) } else { (grapheme, columns) };
        if self.graphemes_columns + columns > room {
            self.flush_word();
        }
        self.graphemes.push((grapheme.to_owned(), style));
        self.graphemes_columns += columns;
    }

    fn flush_word(&mut self) {
        if self.graphemes.is_empty() {
            return;
        }
        if self.has_text && self.columns + self.graphemes_columns > self.width {
            self.break_line();
        }
        for (grapheme, style) in std::mem::take(&mut self.graphemes) {
            let columns = grapheme.width();
            if self.columns + columns > self.width {
                self.break_line();
            }
            self.append(&grapheme, columns, style);
        }
        self.graphemes_columns = 0;
    }

    fn append(&mut self, grapheme: &str, columns: usize, style: Style) {
        self.columns += columns;
        match self.line.last_mut() {
            Some(last) if self.has_text && last.style == style => {
                last.content.to_mut().push_str(grapheme);
            }
            Some(_) | None => self.line.push(Span::styled(grapheme.to_owned(), style)),
        }
        self.has_text = true;
    }

    fn break_line(&mut self) {
        let next = self.rest.to_vec();
        self.columns = columns_of(&next);
        self.has_text = false;
        self.lines.push(Line::from(std::mem::replace(&mut self.line, next)));
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.flush_word();
        self.lines.push(Line::from(std::mem::take(&mut self.line)));
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    fn wrap(text: &str, width: usize) -> Vec<String> {
        texts(&wrap_text(text, Style::new(), width, &[]))
    }

    #[test]
    fn a_line_breaks_between_words_and_a_long_word_breaks_inside() {
        assert_eq!(wrap("one two three", 8), ["one two ", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("a\n\nb", 4), ["a", "", "b"]);
        assert_eq!(wrap("", 4), [""]);
    }

    #[test]
    fn wide_characters_count_two_columns_and_prefixes_repeat() {
        assert_eq!(wrap("世界世界", 5), ["世界", "世界"]);
        let bar = [Span::raw("| ")];
        let lines = wrap_spans(&[Span::raw("one two")], 6, &bar, &bar);
        assert_eq!(texts(&lines), ["| one ", "| two"]);
        assert_eq!(wrap("世", 1), ["?"]);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(wrap("a\u{1b}[2Jb", 40), ["a\\u{1b}[2Jb"]);
        assert_eq!(truncate("a\nb", 10), "a\\nb");
        assert_eq!(truncate("abcdef", 4), "abc…");
        assert_eq!(truncate("世界世界", 4), "世…");
        let shortened = truncate(&format!("a{}", "\u{301}".repeat(100_000)), 4);
        assert!(shortened.len() < 200 && shortened.ends_with('…'), "{shortened}");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_width_and_no_word_is_lost(
            text in "[a-z 世é🦀\u{200d}\u{1b}\t\n]{0,80}",
            width in 2usize..30,
            prefix in "[> ]{0,3}",
        ) {
            let prefix = [Span::raw(prefix)];
            let lines = wrap_text(&text, Style::new(), width, &prefix);
            for line in &lines {
                prop_assert!(line.width() <= width, "{line:?}");
            }
            let letters = |text: &str| text.chars().filter(|c| c.is_ascii_lowercase()).count();
            let shown: usize = texts(&lines).iter().map(|line| letters(line)).sum();
            prop_assert!(shown >= letters(&text));
        }
    }
}
