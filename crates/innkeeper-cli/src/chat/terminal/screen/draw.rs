//! Draws the screen: the transcript, a line of state, the editor or a question, and the facts.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use tokio::time::Instant;

use super::super::block::seconds;
use super::super::theme::Role;
use super::super::wrap::{truncate, wrap_text};
use super::Screen;
use super::question_queue::ShownQuestion;

/// Maximum number of rows of the editor.
const MAX_EDITOR_ROWS: u16 = 8;

/// The frames of the sign that something is in progress, without special characters.
const SPINNER: [&str; 4] = ["|", "/", "-", "\\"];
const SPINNER_MILLISECONDS: u128 = 120;

/// An area that lines fill from the top.
struct Rows<'b> {
    buffer: &'b mut Buffer,
    area: Rect,
}

impl Rows<'_> {
    /// Takes the last rows of the area.
    fn take_bottom(&mut self, rows: u16) -> Rect {
        let rows = rows.min(self.area.height);
        self.area.height -= rows;
        Rect { y: self.area.y + self.area.height, height: rows, ..self.area }
    }

    fn draw(&mut self, area: Rect, lines: &[Line<'_>]) {
        for (row, line) in (area.y..area.y + area.height).zip(lines) {
            self.buffer.set_line(area.x, row, line, area.width);
        }
    }

    fn draw_bottom(&mut self, line: &Line<'_>) {
        let area = self.take_bottom(1);
        self.draw(area, std::slice::from_ref(line));
    }
}

impl Screen {
    pub(crate) fn draw(&mut self, area: Rect, buffer: &mut Buffer, now: Instant) {
        self.questions.update(!self.editor.is_empty(), now);
        if area.is_empty() {
            return;
        }
        let mut rows = Rows { buffer, area };
        if area.height >= 8 {
            let facts = self.facts_line(area.width);
            rows.draw_bottom(&facts);
        }
        if self.questions.is_shown() {
            self.draw_panel(&mut rows);
        } else {
            self.draw_editor(&mut rows);
        }
        let state_area = rows.take_bottom(if rows.area.height >= 2 { 1 } else { 0 });
        let transcript_area = rows.area;
        let width = transcript_area.width.into();
        let height = transcript_area.height.into();
        let lines = self.transcript.visible_lines(width, height, self.theme, now);
        rows.draw(transcript_area, &lines);
        rows.draw(state_area, &[self.state_line(area.width, now)]);
    }

    fn facts_line(&self, width: u16) -> Line<'static> {
        let status = &self.status;
        let servers = format!("{}/{} servers", status.ready_servers, status.servers);
        let mut facts = vec![status.model.clone(), servers];
        if !status.tokens.is_empty() {
            facts.push(status.tokens.clone());
        }
        if !status.attachments.is_empty() {
            facts.push(format!("attached: {}", status.attachments.join(", ")));
        }
        let mut text = truncate(&facts.join(" · "), width.into());
        if !status.context.is_empty() {
            facts.insert(3.min(facts.len()), status.context.clone());
            let longer = facts.join(" · ");
            text = if truncate(&longer, width.into()) == longer { longer } else { text };
        }
        Line::from(Span::styled(text, self.theme.style(Role::Dim)))
    }

    /// Returns the line between the transcript and the editor.
    fn state_line(&self, width: u16, now: Instant) -> Line<'static> {
        let (text, role) = if let Some(hint) = &self.hint {
            (hint.clone(), Role::Warning)
        } else if let Some(search) = &self.search {
            let found = search.found.and_then(|at| self.editor.search("", at + 1));
            let found = found.map_or("no message", |(_, message)| message);
            (format!("search `{}`: {found}", search.text), Role::Running)
        } else if self.questions.is_shown() {
            ("Your answer is needed · Ctrl-C stops the response".to_owned(), Role::Warning)
        } else if self.questions.waiting() > 0 {
            ("a question waits until you stop typing".to_owned(), Role::Warning)
        } else if self.transcript.has_selection() {
            ("Up/Down select · Enter open · y copy · Esc back".to_owned(), Role::Dim)
        } else if let Some(run) = &self.run {
            let elapsed = now.saturating_duration_since(run.start);
            let frame = elapsed.as_millis() / SPINNER_MILLISECONDS;
            let frame = SPINNER[frame as usize % SPINNER.len()];
            let queued = self.queued_text();
            let elapsed = seconds(elapsed);
            let text = format!("{frame} {elapsed} · Esc stops{queued} · {}", run.waits_for);
            (text, Role::Running)
        } else if let Some(work) = &self.work {
            (format!("… {work}{}", self.queued_text()), Role::Running)
        } else if self.transcript.is_scrolled() {
            ("newer lines below · Ctrl-End shows the end".to_owned(), Role::Dim)
        } else {
            ("Enter sends · Alt-Enter new line · Tab blocks · /help".to_owned(), Role::Dim)
        };
        Line::from(Span::styled(truncate(&text, width.into()), self.theme.style(role)))
    }

    fn queued_text(&self) -> String {
        match self.queued.len() {
            0 => String::new(),
            1 => " · 1 message waits".to_owned(),
            waiting => format!(" · {waiting} messages wait"),
        }
    }

    fn draw_editor(&mut self, rows: &mut Rows<'_>) {
        let width = rows.area.width;
        let max_rows = MAX_EDITOR_ROWS.min(rows.area.height / 2).max(1);
        let editor_rows = self.editor.rows(width.saturating_sub(2)).clamp(1, max_rows);
        let area = rows.take_bottom(editor_rows);
        let prompt = Line::from(Span::styled("> ", self.theme.style(Role::User)));
        rows.draw(Rect { height: area.height.min(1), ..area }, &[prompt]);
        self.editor.draw(
            behind_prompt(area),
            rows.buffer,
            self.theme,
            "Message, or / for commands",
        );
        let Some(suggestions) = &self.suggestions else { return };
        let lines: Vec<Line<'_>> = suggestions
            .visible_values()
            .map(|(value, purpose, is_selected)| {
                let role = if is_selected { Role::Selected } else { Role::Text };
                let text = truncate(&format!("{value}  {purpose}"), width.into());
                Line::from(Span::styled(text, self.theme.style(role)))
            })
            .collect();
        let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let area = rows.take_bottom(height.min(rows.area.height.saturating_sub(2)));
        rows.draw(area, &lines);
    }

    fn draw_panel(&mut self, rows: &mut Rows<'_>) {
        let width = rows.area.width;
        let theme = self.theme;
        let waiting = self.questions.waiting();
        let Some(ShownQuestion { panel, is_ready, .. }) = self.questions.shown_mut() else {
            return;
        };
        let drawn = panel.draw(width.into(), theme);
        let height = rows.area.height;
        let mut keys = if *is_ready { drawn.keys.to_owned() } else { String::new() };
        match waiting {
            0 => {}
            1 => keys.push_str("\n1 more question"),
            more => keys.push_str(&format!("\n{more} more questions")),
        }
        let keys = wrap_text(&keys, theme.style(Role::Running), width.into(), &[]);
        let area = rows.take_bottom(u16::try_from(keys.len()).unwrap_or(u16::MAX));
        rows.draw(area, &keys);
        let editor_rows = panel.editor_mut().map_or(0, |editor| {
            editor.rows(width.saturating_sub(2)).clamp(1, MAX_EDITOR_ROWS.min(height / 3).max(1))
        });
        let editor_area = rows.take_bottom(editor_rows);
        if let Some(editor) = panel.editor_mut() {
            editor.draw(behind_prompt(editor_area), rows.buffer, theme, "");
        }
        let problem = rows.take_bottom(u16::try_from(drawn.problem.len()).unwrap_or(u16::MAX));
        rows.draw(problem, &drawn.problem);
        let max = usize::from(rows.area.height.saturating_sub(height / 4).max(1));
        let mut shown = drawn.lines.len().min(max);
        if shown < drawn.lines.len() && max > 2 {
            shown -= 1;
            panel.show_current_field(drawn.current_field, shown);
            panel.scroll = panel.scroll.min(drawn.lines.len() - shown);
            let below = drawn.lines.len() - shown - panel.scroll;
            let text = match below {
                0 => {
                    panel.set_end_shown();
                    "PageUp shows the start".to_owned()
                }
                _ => format!("{below} more lines: PageDown"),
            };
            rows.draw_bottom(&Line::from(Span::styled(text, theme.style(Role::Warning))));
        } else {
            panel.show_current_field(drawn.current_field, shown);
            panel.scroll = panel.scroll.min(drawn.lines.len() - shown);
            if panel.scroll + shown == drawn.lines.len() {
                panel.set_end_shown();
            }
        }
        let area = rows.take_bottom(u16::try_from(shown).unwrap_or(u16::MAX));
        rows.draw(area, &drawn.lines[panel.scroll..]);
    }
}

fn behind_prompt(area: Rect) -> Rect {
    let prompt = area.width.min(2);
    Rect { x: area.x + prompt, width: area.width - prompt, ..area }
}
