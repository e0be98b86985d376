//! Wraps text at the width of a terminal.

use textwrap::core::Word;
use textwrap::{Options, WordSeparator, WordSplitter};

use super::escape::escape_inline;

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

/// Returns escaped text of at most this number of characters, with an ellipsis for the rest.
pub(crate) fn shorten(text: &str, max_chars: usize) -> String {
    let text = escape_inline(text);
    if text.chars().count() <= max_chars {
        return text.into_owned();
    }
    text.chars().take(max_chars.saturating_sub(1)).chain(['…']).collect()
}

/// Indentation of the second line of a message, in addition to the indentation of the first line.
const MESSAGE_INDENT: usize = 4;

/// Returns a message in lines for a terminal of this width; on a pipe (`None`), the message is one
/// line. Text in back-ticks stays on one line, so that a user can copy a command: a text that is
/// wider than the terminal is left to the terminal.
pub(crate) fn wrap_message(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let indent = text.len() - text.trim_start_matches(' ').len();
    let rest = " ".repeat(indent + MESSAGE_INDENT);
    let options = Options::new(columns.max(MIN_TEXT_COLUMNS))
        .subsequent_indent(&rest)
        .word_separator(WordSeparator::Custom(message_words))
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::wrap(text, options).join("\n")
}

/// Returns the words of a message; a text in back-ticks is one word.
fn message_words(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut is_quoted = false;
    let mut is_gap = false;
    for (index, character) in line.char_indices() {
        if is_gap && character != ' ' {
            words.push(Word::from(&line[start..index]));
            (start, is_gap) = (index, false);
        }
        match character {
            '`' => is_quoted = !is_quoted && line[index + 1..].contains('`'),
            ' ' if !is_quoted => is_gap = start < index,
            _ => {}
        }
    }
    words.push(Word::from(&line[start..]));
    Box::new(words.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_wrapped_between_words_and_below_its_own_indentation() {
        let text = "  hint: run `a b c d` to see the text of `e f` and \u{1b}[1m世界\u{1b}[0m";
        let expected = "  hint: run\n      `a b c d` to\n      see the text\n      of `e f` \
                        and\n      \u{1b}[1m世界\u{1b}[0m";
        assert_eq!(wrap_message(text, Some(20)), expected);
        assert_eq!(wrap_message(text, None), text);
    }

    #[test]
    fn a_quoted_command_stays_whole_and_an_open_quote_quotes_nothing() {
        let command = format!("`innkeeper call {}`", "a=b ".repeat(10));
        let text = format!("run {command} now");
        assert_eq!(wrap_message(&text, Some(20)), format!("run\n    {command}\n    now"));
        assert_eq!(wrap_message("it`s a word and a word", Some(20)), "it`s a word and a\n    word");
        assert_eq!(wrap_message("", Some(20)), "");
    }

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
