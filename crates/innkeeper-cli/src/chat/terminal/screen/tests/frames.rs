//! The form of the snapshots: the rows of a frame, and the styles of both themes beside them.

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use tokio::time::Instant;

use super::super::Screen;
use crate::chat::terminal::Theme;

const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (200, 60)];

#[derive(Debug, Default)]
pub(super) struct Frames(String);

impl Frames {
    pub(super) fn add(&mut self, title: &str, screen: &mut Screen) {
        for size in SIZES {
            let _ = writeln!(self.0, "=== {title}, {}x{}", size.0, size.1);
            let dark = draw(screen, size, Theme::Dark);
            let light = draw(screen, size, Theme::Light);
            self.add_rows(&dark, &light);
        }
    }

    fn add_rows(&mut self, dark: &Buffer, light: &Buffer) {
        let mut empty_rows = 0;
        for y in dark.area.rows().map(|row| row.y) {
            let text: String = row(dark, y).map(Cell::symbol).collect();
            let light_text: String = row(light, y).map(Cell::symbol).collect();
            assert_eq!(text, light_text, "the themes differ only in styles");
            let styles = styles(row(dark, y).zip(row(light, y)));
            if text.trim_end().is_empty() && styles.is_empty() {
                empty_rows += 1;
                continue;
            }
            self.add_empty_rows(std::mem::take(&mut empty_rows));
            let text = text.trim_end();
            let _ = match styles.is_empty() {
                true => writeln!(self.0, "|{text}"),
                false => writeln!(self.0, "|{text}  <{styles}>"),
            };
        }
        self.add_empty_rows(empty_rows);
    }

    fn add_empty_rows(&mut self, rows: usize) {
        let _ = match rows {
            0 => Ok(()),
            1 => writeln!(self.0, "|"),
            _ => writeln!(self.0, "({rows} empty rows)"),
        };
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

fn draw(screen: &mut Screen, (width, height): (u16, u16), theme: Theme) -> Buffer {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    screen.theme = theme;
    screen.draw(area, &mut buffer, Instant::now());
    buffer
}

fn row(buffer: &Buffer, y: u16) -> impl Iterator<Item = &Cell> {
    (0..buffer.area.width).map(move |x| &buffer[(x, y)])
}

/// Returns the runs of equal styles of a row, such as `0-3 cyan/blue bold`: two colours are those of
/// the dark and of the light theme.
fn styles<'c>(cells: impl Iterator<Item = (&'c Cell, &'c Cell)>) -> String {
    let mut runs: Vec<(usize, usize, String)> = Vec::new();
    for (column, (dark, light)) in cells.enumerate() {
        let style = cell_style(dark, light);
        match runs.last_mut() {
            Some((_, end, last)) if *last == style => *end = column,
            Some(_) | None => runs.push((column, column, style)),
        }
    }
    let styled = runs.iter().filter(|(.., style)| !style.is_empty());
    styled
        .map(|(start, end, style)| format!("{start}-{end} {style}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn cell_style(dark: &Cell, light: &Cell) -> String {
    let mut words = Vec::new();
    for (at, on) in [("", (dark.fg, light.fg)), ("on ", (dark.bg, light.bg))] {
        match on {
            (Color::Reset, Color::Reset) => {}
            (dark, light) if dark == light => words.push(format!("{at}{dark}")),
            (dark, light) => words.push(format!("{at}{dark}/{light}")),
        }
    }
    assert_eq!(dark.modifier, light.modifier, "the themes differ only in colours");
    let modifiers = dark.modifier.iter_names();
    words.extend(modifiers.map(|(name, _): (&str, Modifier)| name.to_owned()));
    words.join(" ").to_lowercase()
}
