//! The lines of blocks, with what lists, quotes and code put in front of them.

use ratatui::text::{Line, Span};

use super::super::super::wrap::wrap_spans;

const CODE_INDENT: &str = "    ";

/// Maximum columns of indentation by lists and quotes: deeper levels have the same indentation.
const MAX_INDENT: usize = 16;

#[derive(Default)]
pub(super) struct BlockLines {
    pub(super) width: usize,
    pub(super) lines: Vec<Line<'static>>,
    /// What each line starts with, one entry for each open list item or quote.
    pub(super) prefixes: Vec<Span<'static>>,
    /// The marker of the item that has no line yet.
    pub(super) marker: Option<Span<'static>>,
    /// Whether a blank line precedes the next block.
    pub(super) needs_blank: bool,
}

impl BlockLines {
    /// Adds the blank line between two blocks.
    pub(super) fn separate(&mut self) {
        if std::mem::take(&mut self.needs_blank) && !self.lines.is_empty() {
            let prefixes = if self.marker.is_none() { self.fitting_prefixes() } else { Vec::new() };
            let blank = wrap_spans(&[], self.width, &prefixes, &prefixes);
            self.lines.extend(blank);
        }
    }

    pub(super) fn push_code(&mut self, line: Span<'_>) {
        self.prefixes.push(Span::raw(CODE_INDENT));
        self.push_line(&[line]);
        self.prefixes.pop();
    }

    pub(super) fn width_behind_prefixes(&self) -> usize {
        self.width.saturating_sub(self.prefixes.iter().map(Span::width).sum())
    }

    /// Draws an item without text.
    pub(super) fn flush_marker(&mut self) {
        if self.marker.is_some() {
            self.push_line(&[]);
        }
    }

    pub(super) fn push_line(&mut self, spans: &[Span<'_>]) {
        let rest = self.fitting_prefixes();
        let mut first = rest.clone();
        if let Some(marker) = self.marker.take() {
            // The prefix of the item itself is the last one, or the one before the code block's.
            let own = first.iter().rposition(|prefix| prefix.content != CODE_INDENT);
            if let Some(own) = own.and_then(|own| first.get_mut(own)) {
                *own = marker;
            }
        }
        self.lines.extend(wrap_spans(spans, self.width, &first, &rest));
    }

    /// Returns the prefixes that fit into the maximum indentation.
    fn fitting_prefixes(&self) -> Vec<Span<'static>> {
        let max = MAX_INDENT.min(self.width / 2);
        let mut columns = 0;
        self.prefixes
            .iter()
            .take_while(|prefix| {
                columns += prefix.width();
                columns <= max
            })
            .cloned()
            .collect()
    }
}
