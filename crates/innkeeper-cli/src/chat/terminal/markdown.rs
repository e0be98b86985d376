//! Draws the Markdown text of a model as styled lines, also while the text arrives.

mod renderer;

use ratatui::text::Line;

use super::theme::Theme;

/// Number of bytes after which an open paragraph or code block is cut, so that a chunk of a stream
/// costs no more than this number of bytes.
const MAX_OPEN_BYTES: usize = 8 << 10;

/// A Markdown text that grows, with the lines of its finished part.
#[derive(Debug, Default)]
pub(crate) struct MarkdownText {
    source: String,
    /// The width and the theme of the lines.
    layout: Option<(usize, Theme)>,
    /// The end of the part of the source that `finished` shows.
    finished_end: usize,
    finished: Vec<Line<'static>>,
    /// The opening fence of a code block that the finished part does not close.
    open_fence: Option<String>,
    /// Whether the rest of the source continues the last finished block.
    continues_block: bool,
    /// The lines of the rest of the source, up to `open_end`.
    open: Vec<Line<'static>>,
    open_end: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkdownLines<'t> {
    finished: &'t [Line<'static>],
    open: &'t [Line<'static>],
}

impl<'t> MarkdownLines<'t> {
    pub(crate) fn len(self) -> usize {
        self.finished.len() + self.open.len()
    }

    pub(crate) fn get(self, index: usize) -> Option<&'t Line<'static>> {
        match index.checked_sub(self.finished.len()) {
            None => self.finished.get(index),
            Some(index) => self.open.get(index),
        }
    }
}

/// The end of a part that later text does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PartEnd {
    length: usize,
    /// Whether the part ends between two blocks.
    is_between_blocks: bool,
}

impl MarkdownText {
    pub(crate) fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), ..Self::default() }
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    #[cfg(test)]
    pub(crate) fn has_lines(&self) -> bool {
        self.layout.is_some()
    }

    pub(crate) fn push(&mut self, chunk: &str) {
        self.source.push_str(chunk);
    }

    /// Forgets the lines, to save memory.
    pub(crate) fn forget_lines(&mut self) {
        *self = Self::new(std::mem::take(&mut self.source));
    }

    /// Returns the lines at this width. A call costs the time of the text since the last finished
    /// part.
    pub(crate) fn lines(&mut self, width: usize, theme: Theme) -> MarkdownLines<'_> {
        if self.layout != Some((width, theme)) {
            self.forget_lines();
            self.layout = Some((width, theme));
        }
        while let Some(end) =
            next_part(&self.source[self.finished_end..], self.open_fence.as_deref())
        {
            self.finish(end, width, theme);
        }
        if self.open_end != self.source.len() || self.open.is_empty() {
            let rest = &self.source[self.finished_end..];
            self.open = self.render(rest, width, theme);
            self.open_end = self.source.len();
        }
        MarkdownLines { finished: &self.finished, open: &self.open }
    }

    /// Returns the lines of the part after the finished part, with a blank line between two blocks.
    fn render(&self, part: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let text = match &self.open_fence {
            Some(fence) => format!("{fence}\n{part}"),
            None => part.to_owned(),
        };
        let mut lines = renderer::render(&text, width, theme);
        if !self.finished.is_empty() && !self.continues_block && !lines.is_empty() {
            lines.insert(0, Line::default());
        }
        lines
    }

    /// Moves the next part of the source to the finished part.
    fn finish(&mut self, end: PartEnd, width: usize, theme: Theme) {
        let part = &self.source[self.finished_end..self.finished_end + end.length];
        let lines = self.render(part, width, theme);
        self.open_fence = fence_after(part, self.open_fence.as_deref());
        self.finished.extend(lines);
        self.finished_end += end.length;
        self.continues_block = !end.is_between_blocks;
        self.open.clear();
    }
}

/// Returns the fence of a line: three or more backticks or tildes.
fn fence_of(line: &str) -> Option<&str> {
    let trimmed = line.trim_start();
    if line.len() - trimmed.len() > 3 {
        return None;
    }
    let marker = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = trimmed.chars().take_while(|c| *c == marker).count();
    (length >= 3).then(|| &trimmed[..length])
}

/// Returns the fence of the code block that is open after a part.
fn fence_after(part: &str, open: Option<&str>) -> Option<String> {
    let mut fence = open.map(str::to_owned);
    for line in part.lines() {
        let Some(mark) = fence_of(line) else { continue };
        match &fence {
            None => fence = Some(mark.to_owned()),
            Some(open) => {
                let is_closing = mark.starts_with(open.as_str()) && line.trim() == mark;
                if is_closing {
                    fence = None;
                }
            }
        }
    }
    fence
}

/// Returns the end of the first part of a text that later text does not change: a blank line between
/// two blocks, or, in a long block, the end of a line or of a word.
fn next_part(text: &str, open_fence: Option<&str>) -> Option<PartEnd> {
    let mut fence = open_fence.map(str::to_owned);
    let mut position = 0;
    let mut blank_end = None;
    for line in text.split_inclusive('\n') {
        let starts_block = !line.starts_with([' ', '\t', '\n', '\r']);
        if let Some(length) = blank_end.filter(|_| starts_block) {
            return Some(PartEnd { length, is_between_blocks: true });
        }
        if !line.ends_with('\n') {
            break;
        }
        fence = fence_after(line, fence.as_deref());
        position += line.len();
        blank_end = (line.trim().is_empty() && fence.is_none()).then_some(position);
    }
    if text.len() <= MAX_OPEN_BYTES {
        return None;
    }
    let limit = text.floor_char_boundary(MAX_OPEN_BYTES);
    let cut = text[..limit].rfind('\n').or_else(|| text[..limit].rfind(' '));
    Some(PartEnd { length: cut.map_or(limit, |at| at + 1), is_between_blocks: false })
}

#[cfg(test)]
mod tests;
