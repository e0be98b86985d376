//! A table with aligned columns for a terminal.

use super::escape::escape_inline;

const COLUMN_GAP: &str = "  ";

/// A table with headings; every cell is one line of escaped text.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(headings: [&str; N]) -> Self {
        Self { headings: headings.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty, extra cells are kept.
    pub(crate) fn add_row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(
            cells.into_iter().map(|cell| escape_inline(cell.as_ref()).into_owned()).collect(),
        );
    }

    pub(super) fn render(&self, paint: impl Fn(&str) -> String) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0).max(self.headings.len());
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().chain([&self.headings]);
                cells
                    .filter_map(|row| row.get(column))
                    .map(|cell| display_width(cell))
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let mut text = paint(&render_line(&self.headings, &widths));
        for row in &self.rows {
            text.push('\n');
            text.push_str(&render_line(row, &widths));
        }
        text
    }
}

fn render_line(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (index, cell) in cells.iter().enumerate() {
        line.push_str(cell);
        if index + 1 < cells.len() {
            line.extend(std::iter::repeat_n(
                ' ',
                widths[index].saturating_sub(display_width(cell)),
            ));
            line.push_str(COLUMN_GAP);
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// Returns the width of the text in terminal columns.
fn display_width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
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
        let text = table.render(str::to_owned);
        assert_eq!(text, "NAME   STATE        TOOLS\nfiles  ready        5\n世界   unavailable");
    }

    #[test]
    fn a_cell_cannot_break_out_of_its_row() {
        let mut table = Table::new(["NAME"]);
        table.add_row(["a\nb\u{1b}[2J"]);
        assert_eq!(table.render(str::to_owned), "NAME\na\\nb\\u{1b}[2J");
    }
}
