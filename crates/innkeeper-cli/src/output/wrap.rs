//! Wraps text at the width of a terminal.

use textwrap::{Options, WordSplitter};

/// Maximum width of wrapped text; longer lines are hard to read.
const MAX_TEXT_COLUMNS: usize = 100;

/// Minimum width of wrapped text, for a terminal that is narrower than an indentation.
const MIN_TEXT_COLUMNS: usize = 20;

/// Returns text with indented lines: `first` starts the first line, `rest` starts each other line.
/// Lines are wrapped at the width of the terminal; on a pipe (`None`), no line is wrapped.
pub(crate) fn wrap(text: &str, columns: Option<usize>, first: &str, rest: &str) -> String {
    let width =
        columns.map_or(usize::MAX, |columns| columns.clamp(MIN_TEXT_COLUMNS, MAX_TEXT_COLUMNS));
    let options = Options::new(width)
        .initial_indent(first)
        .subsequent_indent(rest)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(columns.is_some());
    let lines = textwrap::wrap(text, options);
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_between_words_and_indented() {
        let text = "one two three four\n\nfive 世界世界世界";
        assert_eq!(
            wrap(text, Some(20), "  a  ", "     "),
            "  a  one two three\n     four\n\n     five\n     世界世界世界"
        );
    }

    #[test]
    fn on_a_pipe_every_line_stays_whole() {
        let line = "word ".repeat(100);
        assert_eq!(wrap(&line, None, "  ", "  "), format!("  {}", line.trim_end()));
        assert_eq!(wrap(&line, Some(1000), "", "").lines().next().unwrap().len(), 99);
    }
}
