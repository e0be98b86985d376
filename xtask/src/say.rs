//! The only place that prints.

use std::fmt::Display;

/// One line of data or talk for whoever runs the chore.
#[expect(clippy::print_stdout, reason = "a chore reports to its terminal")]
pub(crate) fn line(text: impl Display) {
    println!("{text}");
}

/// What went wrong.
#[expect(clippy::print_stderr, reason = "a chore reports to its terminal")]
pub(crate) fn problem(text: &str) {
    eprintln!("error: {text}");
}

/// Lays cells out in columns; the first column is flush left, the others flush right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}
