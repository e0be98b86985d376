//! Output of tasks: the only place that prints.

use std::fmt::Display;

/// Prints one line on stdout.
#[expect(clippy::print_stdout, reason = "tasks print to the terminal")]
pub(crate) fn print_line(text: impl Display) {
    println!("{text}");
}

/// Prints an error on stderr.
#[expect(clippy::print_stderr, reason = "tasks print to the terminal")]
pub(crate) fn print_error(text: &str) {
    eprintln!("error: {text}");
}

/// Formats rows as text columns; the first column is left-aligned, the others are right-aligned.
pub(crate) fn format_table(rows: &[Vec<String>]) -> String {
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
