//! One block of the transcript: a message, reasoning, a tool call or a notice.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_agent::agent::ToolCallRecord;
use innkeeper_host::Progress;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use tokio::time::Instant;

use super::markdown::MarkdownText;
use super::theme::{Role, Theme};
use super::wrap::{truncate, wrap_spans, wrap_text};
use crate::chat::call_text;
use crate::output::IndentedJson;

/// Maximum number of bytes of a result, of arguments or of reasoning that an open block shows.
const MAX_SHOWN_BYTES: usize = 32 << 10;

/// The columns for the text, the theme and the time of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) width: usize,
    pub(crate) theme: Theme,
    pub(crate) now: Instant,
}

#[derive(Debug)]
pub(crate) struct Block {
    content: BlockContent,
    /// Whether the block shows its details.
    is_open: bool,
    /// The lines for a width and a theme; not for a response, which has its own.
    layout: Option<(usize, Theme, Vec<Line<'static>>)>,
}

#[derive(Debug)]
pub(crate) enum BlockContent {
    /// A message of the user.
    User(String),
    /// A text of the model.
    Response(MarkdownText),
    /// Reasoning of the model.
    Reasoning(String),
    /// A tool call.
    ToolCall(ToolCallView),
    /// A line of the program.
    Notice(Role, String),
}

/// A tool call as the transcript shows it.
#[derive(Debug)]
pub(crate) struct ToolCallView {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) server: Option<String>,
    pub(crate) arguments: Arc<str>,
    pub(crate) state: ToolCallState,
}

#[derive(Debug)]
pub(crate) enum ToolCallState {
    Running {
        start: Instant,
        progress: Option<Progress>,
    },
    Finished(Arc<ToolCallRecord>),
    /// A call of a stored conversation, with its result and whether the call failed.
    Stored {
        result: String,
        is_error: bool,
    },
    /// The user interrupted the run; nothing shows whether the call completed.
    Interrupted,
}

impl ToolCallState {
    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        matches!(self, Self::Interrupted)
    }
}

impl Block {
    pub(crate) fn new(content: BlockContent) -> Self {
        Self { content, is_open: false, layout: None }
    }

    pub(crate) fn content(&self) -> &BlockContent {
        &self.content
    }

    pub(crate) fn content_mut(&mut self) -> &mut BlockContent {
        self.layout = None;
        &mut self.content
    }

    /// Opens or closes the block, if it has details.
    pub(crate) fn set_open(&mut self, is_open: bool) {
        self.is_open = is_open;
        self.layout = None;
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns whether the block can be opened.
    pub(crate) fn has_details(&self) -> bool {
        matches!(self.content, BlockContent::ToolCall(_) | BlockContent::Reasoning(_))
    }

    pub(crate) fn copied_text(&self) -> String {
        match &self.content {
            BlockContent::User(text)
            | BlockContent::Reasoning(text)
            | BlockContent::Notice(_, text) => text.clone(),
            BlockContent::Response(text) => text.source().to_owned(),
            BlockContent::ToolCall(call) => match &call.state {
                ToolCallState::Finished(record) => record.result_text.clone(),
                ToolCallState::Stored { result, .. } => result.clone(),
                ToolCallState::Running { .. } | ToolCallState::Interrupted => {
                    call.arguments.to_string()
                }
            },
        }
    }

    /// Forgets the lines, to save memory.
    pub(crate) fn forget_lines(&mut self) {
        self.layout = None;
        if let BlockContent::Response(text) = &mut self.content {
            text.forget_lines();
        }
    }

    #[cfg(test)]
    pub(crate) fn has_lines(&self) -> bool {
        match &self.content {
            BlockContent::Response(text) => text.has_lines(),
            BlockContent::User(_)
            | BlockContent::Reasoning(_)
            | BlockContent::ToolCall(_)
            | BlockContent::Notice(..) => self.layout.is_some(),
        }
    }

    /// Returns the number of lines at this width.
    pub(crate) fn height(&mut self, layout: Layout) -> usize {
        if let BlockContent::Response(text) = &mut self.content {
            return text.lines(layout.width, layout.theme).len();
        }
        self.drawn_lines(layout).len()
    }

    /// Returns the lines with these numbers at this width.
    pub(crate) fn lines(
        &mut self,
        range: std::ops::Range<usize>,
        layout: Layout,
    ) -> Vec<Line<'static>> {
        if let BlockContent::Response(text) = &mut self.content {
            let lines = text.lines(layout.width, layout.theme);
            return range.filter_map(|index| lines.get(index).cloned()).collect();
        }
        self.drawn_lines(layout).get(range).unwrap_or_default().to_vec()
    }

    fn drawn_lines(&mut self, layout: Layout) -> &[Line<'static>] {
        let Layout { width, theme, now } = layout;
        let is_running = matches!(
            &self.content,
            BlockContent::ToolCall(ToolCallView { state: ToolCallState::Running { .. }, .. })
        );
        let is_current =
            self.layout.as_ref().is_some_and(|(at, with, _)| (*at, *with) == (width, theme));
        if !is_current || is_running {
            let lines = self.draw(width, theme, now);
            self.layout = Some((width, theme, lines));
        }
        self.layout.as_ref().map(|(_, _, lines)| &**lines).unwrap_or_default()
    }

    fn draw(&self, width: usize, theme: Theme, now: Instant) -> Vec<Line<'static>> {
        match &self.content {
            BlockContent::User(text) => draw_part(text, theme.style(Role::User), width, theme, &[]),
            BlockContent::Response(_) => Vec::new(),
            BlockContent::Reasoning(text) => draw_reasoning(text, self.is_open, width, theme),
            BlockContent::ToolCall(call) => call.draw(self.is_open, width, theme, now),
            BlockContent::Notice(role, text) => {
                draw_part(text, theme.style(*role), width, theme, &[])
            }
        }
    }
}

/// Draws the start of a text, and says how much follows.
fn draw_part(
    text: &str,
    style: Style,
    width: usize,
    theme: Theme,
    indent: &[Span<'static>],
) -> Vec<Line<'static>> {
    let (shown, omitted) = shown_part(text);
    let mut lines = wrap_text(shown, style, width, indent);
    if omitted > 0 {
        let note = format!("… {omitted} bytes more; y copies the text");
        lines.extend(wrap_text(&note, theme.style(Role::Dim), width, indent));
    }
    lines
}

fn draw_reasoning(text: &str, is_open: bool, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let dim = theme.style(Role::Dim);
    if is_open {
        return draw_part(text.trim(), dim, width, theme, &[]);
    }
    let mut last: Vec<&str> = text.split_whitespace().rev().take(12).collect();
    last.reverse();
    let words = text.split_whitespace().count();
    let line = truncate(&format!("reasoning, {words} words: … {}", last.join(" ")), width);
    vec![Line::from(Span::styled(line, dim))]
}

impl ToolCallView {
    fn draw(&self, is_open: bool, width: usize, theme: Theme, now: Instant) -> Vec<Line<'static>> {
        let (sign, role) = self.sign();
        let facts = self.facts(width, now);
        let tool = truncate(&self.tool, width);
        let room = width.saturating_sub(sign.len() + tool.len() + facts.len() + 3);
        let arguments = if is_open || room < 8 {
            String::new()
        } else {
            format!("{} ", truncate(&self.arguments, room.saturating_sub(1)))
        };
        let header = [
            Span::styled(format!("{sign} "), theme.style(role)),
            Span::styled(format!("{tool} "), theme.style(Role::Strong)),
            Span::styled(arguments, theme.style(Role::Dim)),
            Span::styled(facts, theme.style(Role::Dim)),
        ];
        let mut lines = wrap_spans(&header, width, &[], &[Span::raw("  ")]);
        if is_open {
            lines.extend(self.draw_details(width, theme));
        } else if let Some((result, true)) = self.result() {
            let text = truncate(result, width.saturating_sub(2));
            lines.push(Line::from(Span::styled(format!("  {text}"), theme.style(Role::Error))));
        }
        lines
    }

    /// Returns the text of the result, and whether the call failed.
    fn result(&self) -> Option<(&str, bool)> {
        match &self.state {
            ToolCallState::Finished(record) => Some((&record.result_text, !record.outcome.success)),
            ToolCallState::Stored { result, is_error } => Some((result, *is_error)),
            ToolCallState::Running { .. } | ToolCallState::Interrupted => None,
        }
    }

    fn sign(&self) -> (&'static str, Role) {
        match &self.state {
            ToolCallState::Running { .. } => ("run", Role::Running),
            ToolCallState::Interrupted => ("interrupted", Role::Warning),
            ToolCallState::Finished(_) | ToolCallState::Stored { .. } => match self.result() {
                Some((_, true)) => ("failed", Role::Error),
                Some((_, false)) | None => ("ok", Role::Success),
            },
        }
    }

    fn facts(&self, width: usize, now: Instant) -> String {
        match &self.state {
            ToolCallState::Running { start, progress } => {
                let mut facts = seconds(now.saturating_duration_since(*start));
                if let Some(progress) = progress {
                    facts.push_str(&format!(", {}", progress_text(progress, width)));
                }
                facts
            }
            ToolCallState::Finished(record) => {
                let mut facts = seconds(record.elapsed);
                facts.push_str(&call_text::facts(record));
                facts
            }
            ToolCallState::Interrupted => "unknown whether the call completed".to_owned(),
            ToolCallState::Stored { .. } => String::new(),
        }
    }

    fn draw_details(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let indent = [Span::raw("  ")];
        let mut lines = Vec::new();
        let mut add = |title: &str, text: &str, role: Role| {
            let title = Span::styled(title.to_owned(), theme.style(Role::Heading));
            lines.extend(wrap_spans(&[title], width, &indent, &indent));
            lines.extend(draw_part(text, theme.style(role), width, theme, &indent));
        };
        let origin = match &self.state {
            ToolCallState::Finished(record) => record.origin.name(),
            ToolCallState::Running { .. }
            | ToolCallState::Interrupted
            | ToolCallState::Stored { .. } => "",
        };
        let server = self.server.as_deref().unwrap_or("this program");
        let made = if origin.is_empty() { String::new() } else { format!(", {origin} call") };
        add("server", &format!("{server}{made}"), Role::Text);
        add("arguments", &indented_json(&self.arguments, MAX_SHOWN_BYTES), Role::Code);
        if let ToolCallState::Finished(record) = &self.state
            && !self.has_arguments(record)
        {
            let arguments = indented_json(&record.arguments.to_string(), MAX_SHOWN_BYTES);
            add("sent arguments", &arguments, Role::Code);
        }
        if let Some((result, is_error)) = self.result() {
            add("result", result, if is_error { Role::Error } else { Role::Text });
        }
        lines
    }

    /// Returns whether the call ran with the arguments that the model wrote.
    fn has_arguments(&self, record: &ToolCallRecord) -> bool {
        let written = serde_json::from_str::<serde_json::Value>(&self.arguments);
        let sent = serde_json::from_str::<serde_json::Value>(&record.arguments.to_string());
        written.is_ok() && written.ok() == sent.ok()
    }
}

/// Returns JSON with indentation. The start of a longer text is not indented; a note says how much
/// follows.
pub(crate) fn indented_json(json: &str, max_bytes: usize) -> String {
    if json.len() <= max_bytes {
        return IndentedJson(json).to_string();
    }
    let end = json.floor_char_boundary(max_bytes);
    format!("{}\n… the first {end} of {} bytes", &json[..end], json.len())
}

/// Returns the start of a text that is shown, and the number of the other bytes.
fn shown_part(text: &str) -> (&str, usize) {
    let end = text.floor_char_boundary(MAX_SHOWN_BYTES);
    (&text[..end], text.len() - end)
}

/// Returns the progress as a text that fits into a row.
fn progress_text(progress: &Progress, width: usize) -> String {
    truncate(&call_text::progress(progress), width / 2)
}

/// Formats a duration: milliseconds below a second.
pub(crate) fn seconds(duration: Duration) -> String {
    match duration.as_millis() {
        ms @ 0..1_000 => format!("{ms} ms"),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}
