//! A table with aligned columns for a terminal.

use comfy_table::{Attribute, Cell, ColumnConstraint, ContentArrangement, Row, presets};
use textwrap::core::display_width;

use super::Style;
use crate::text::escape_inline;

/// Number of spaces between two columns.
const COLUMN_GAP: u16 = 2;

/// Minimum width of a shortened last column; a narrower column is left out.
const MIN_SHORTENED_WIDTH: usize = 8;

/// The code that ends a style.
const RESET: &str = "\u{1b}[0m";

/// A table; every cell is one line of escaped text.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    has_headings: bool,
    column_styles: Vec<Option<Style>>,
    last_column: LastColumn,
    indent: u16,
}

/// What becomes of a last column that is wider than the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LastColumn {
    /// The terminal breaks the lines.
    #[default]
    Whole,
    /// Each cell has one line, with an ellipsis.
    Shortened,
    /// A cell has several lines.
    Wrapped,
}

impl Table {
    /// Creates a table with a bold line of headings.
    pub(crate) fn new<S: AsRef<str>>(headings: impl IntoIterator<Item = S>) -> Self {
        let mut table = Self { has_headings: true, ..Self::default() };
        table.add_row(headings);
        table
    }

    /// Creates an indented table without headings.
    pub(crate) fn without_headings() -> Self {
        Self { indent: 2, ..Self::default() }
    }

    /// Sets the styles of the first columns.
    pub(crate) fn with_column_styles<const N: usize>(mut self, styles: [Option<Style>; N]) -> Self {
        self.column_styles = styles.to_vec();
        self
    }

    /// Shortens the texts of the last column to the width of the terminal, with an ellipsis.
    pub(crate) fn with_shortened_last_column(mut self) -> Self {
        self.last_column = LastColumn::Shortened;
        self
    }

    /// Wraps the texts of the last column at the width of the terminal.
    pub(crate) fn with_wrapped_last_column(mut self) -> Self {
        self.last_column = LastColumn::Wrapped;
        self
    }

    /// Adds a row; missing cells are empty, extra cells are kept.
    pub(crate) fn add_row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(
            cells.into_iter().map(|cell| escape_inline(cell.as_ref()).into_owned()).collect(),
        );
    }

    /// Adds a row with a label, unless the value is empty.
    pub(crate) fn add_fact(&mut self, label: &str, value: &str) {
        if !value.is_empty() {
            self.add_row([label, value]);
        }
    }

    /// Whether the table has no row except the headings.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() <= usize::from(self.has_headings)
    }

    /// Returns the width of the widest line in terminal columns.
    pub(crate) fn width(&self) -> usize {
        self.render(None, false).lines().map(display_width).max().unwrap_or(0)
    }

    /// Returns the lines of the table for a terminal of this width, or for a pipe.
    pub(super) fn render(&self, columns: Option<usize>, colour: bool) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut shown = count;
        let mut is_fitted = false;
        if let Some(columns) = columns.filter(|_| self.last_column != LastColumn::Whole) {
            let remaining = columns.saturating_sub(self.fixed_width(count.saturating_sub(1)));
            if remaining < MIN_SHORTENED_WIDTH && self.last_column == LastColumn::Shortened {
                shown = count.saturating_sub(1);
            }
            is_fitted =
                remaining >= MIN_SHORTENED_WIDTH || self.last_column == LastColumn::Shortened;
            if is_fitted {
                table.set_content_arrangement(ContentArrangement::Dynamic);
                table.set_width(u16::try_from(columns).unwrap_or(u16::MAX));
            }
        }
        for (index, cells) in self.rows.iter().enumerate() {
            let is_heading = self.has_headings && index == 0;
            let cells = cells.iter().take(shown).enumerate();
            let cells: Vec<Cell> =
                cells.map(|(column, text)| self.cell(text, column, is_heading)).collect();
            let mut row = Row::from(cells);
            if self.last_column == LastColumn::Shortened {
                row.max_height(1);
            }
            table.add_row(row);
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            let left = if index == 0 { self.indent } else { 0 };
            column.set_padding((left, if index + 1 < shown { COLUMN_GAP } else { 0 }));
            if !is_fitted || index + 1 < count {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        let lines: Vec<String> = table.lines().map(|line| trim_line_end(&line)).collect();
        lines.join("\n")
    }

    /// Returns the width of the first columns with their gaps.
    fn fixed_width(&self, columns: usize) -> usize {
        (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| display_width(cell)).max().unwrap_or(0) + usize::from(COLUMN_GAP)
            })
            .sum::<usize>()
            + usize::from(self.indent)
    }

    fn cell(&self, text: &str, column: usize, is_heading: bool) -> Cell {
        let style = match self.column_styles.get(column) {
            _ if is_heading => Some(Style::Strong),
            Some(style) => *style,
            None => None,
        };
        let cell = Cell::new(text);
        match style {
            Some(Style::Strong) => cell.add_attribute(Attribute::Bold),
            Some(Style::Dim) => cell.add_attribute(Attribute::Dim),
            Some(Style::Error | Style::Note | Style::Hint | Style::Good) | None => cell,
        }
    }
}

/// Removes the spaces at the end of a line, also before the end of a style.
fn trim_line_end(line: &str) -> String {
    match line.trim_end().strip_suffix(RESET) {
        Some(styled) => format!("{}{RESET}", styled.trim_end()),
        None => line.trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_by_what_a_terminal_shows() {
        let mut table = Table::new(["NAME", "STATE", "TOOLS"]);
        table.add_row(["files", "ready", "5"]);
        table.add_row(["世界", "unavailable", ""]);
        let text = table.render(None, false);
        assert_eq!(text, "NAME   STATE        TOOLS\nfiles  ready        5\n世界   unavailable");
        assert_eq!(table.width(), 25);
    }

    /// Attack: terminal | a cell contains a line end and an escape code | both are escaped |
    /// Foreign text stays text
    #[test]
    fn a_cell_cannot_break_out_of_its_row() {
        let mut table = Table::new(["NAME"]);
        table.add_row(["a\nb\u{1b}[2J"]);
        assert_eq!(table.render(None, false), "NAME\na\\nb\\u{1b}[2J");
    }

    fn described() -> Table {
        let mut table = Table::without_headings()
            .with_column_styles([None, Some(Style::Strong), Some(Style::Dim)])
            .with_shortened_last_column();
        table.add_row(["tool", "files.list_directory", "Lists the entries of a directory."]);
        table.add_row(["tool", "files.世界", "世界世界世界世界世界世界"]);
        table.add_row(["prompt", "files.plain", ""]);
        table
    }

    #[test]
    fn only_the_last_column_is_shortened_and_wide_characters_count_twice() {
        let expected = "  tool    files.list_directory  Lists the…\n  \
                        tool    files.世界            世界世界…\n  prompt  files.plain";
        let text = described().render(Some(42), false);
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| display_width(line) <= 42));
    }

    #[test]
    fn a_last_column_without_room_is_left_out_and_the_names_stay_whole() {
        let expected = "  tool    files.list_directory\n  tool    files.世界\n  \
                        prompt  files.plain";
        assert_eq!(described().render(Some(36), false), expected);
        assert_eq!(described().render(Some(5), false), expected);
    }

    #[test]
    fn a_wrapped_last_column_has_several_lines_and_a_narrow_terminal_breaks_them() {
        let mut table = Table::without_headings().with_wrapped_last_column();
        table.add_row(["state", "unavailable"]);
        table.add_row(["last failure", "the server closed its output"]);
        let expected = "  state         unavailable\n  last failure  the server\n                \
                        closed its\n                output";
        assert_eq!(table.render(Some(28), false), expected);
        assert_eq!(table.render(Some(20), false), table.render(None, false));
    }

    #[test]
    fn on_a_pipe_nothing_is_shortened() {
        let text = described().render(None, false);
        assert!(text.contains("Lists the entries of a directory.\n"), "{text}");
    }

    #[test]
    fn styles_surround_the_cells_and_no_line_ends_with_a_space() {
        let text = described().render(Some(60), true);
        assert!(text.contains("\u{1b}[1mfiles.plain"), "{text:?}");
        assert!(text.lines().all(|line| !line.trim_end_matches(RESET).ends_with(' ')), "{text:?}");
    }
}
