//! Draws a table, or a list of its rows if the table is wider than the terminal.

use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::super::super::theme::{Role, Theme};
use super::super::super::wrap::wrap_spans;
use crate::output::escape_inline;

const SEPARATOR: &str = " │ ";

/// The rows of a table; the first row has the headers.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn add_cell(&mut self, text: &str) {
        if let Some(row) = self.rows.last_mut() {
            row.push(escape_inline(text.trim()).into_owned());
        }
    }

    pub(super) fn render(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.width()).max().unwrap_or_default()
            })
            .collect();
        let total = widths.iter().sum::<usize>() + SEPARATOR.width() * columns.saturating_sub(1);
        if total <= width { self.grid(&widths, theme) } else { self.list(width, theme) }
    }

    fn grid(&self, widths: &[usize], theme: Theme) -> Vec<Line<'static>> {
        let dim = theme.style(Role::Dim);
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let role = if index == 0 { Role::Strong } else { Role::Text };
            let mut spans = Vec::new();
            for (column, width) in widths.iter().enumerate() {
                if column > 0 {
                    spans.push(Span::styled(SEPARATOR, dim));
                }
                let cell = row.get(column).map_or("", String::as_str);
                let padding = " ".repeat(width.saturating_sub(cell.width()));
                spans.push(Span::styled(format!("{cell}{padding}"), theme.style(role)));
            }
            lines.push(Line::from(spans));
            if index == 0 {
                let dashes: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::from(Span::styled(dashes.join("─┼─"), dim)));
            }
        }
        lines
    }

    fn list(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let Some((headers, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                lines.push(Line::default());
            }
            for (column, cell) in row.iter().enumerate() {
                let header = headers.get(column).map_or("", String::as_str);
                let spans = [
                    Span::styled(format!("{header}: "), theme.style(Role::Strong)),
                    Span::raw(cell.clone()),
                ];
                lines.extend(wrap_spans(&spans, width, &[], &[]));
            }
        }
        lines
    }
}
