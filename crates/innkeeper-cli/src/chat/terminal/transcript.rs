//! The blocks of a conversation with the part that the screen shows.

use std::sync::Arc;

use innkeeper_agent::agent::AgentEvent;
use innkeeper_agent::conversation::{Conversation, Message, PartContent};
use ratatui::text::{Line, Span};
use tokio::time::Instant;

use super::block::{Block, BlockContent, ToolCallState, ToolCallView};
use super::markdown::MarkdownText;
use super::theme::{Role, Theme};

/// Maximum number of blocks: the conversation itself has at most 10,000 messages. Beyond the limit,
/// the oldest blocks are not shown any more.
const MAX_BLOCKS: usize = 20_000;

/// Number of blocks above the screen whose lines are forgotten after each frame.
const MAX_FORGOTTEN_BLOCKS: usize = 64;

/// Columns of the mark beside a block.
const GUTTER: usize = 2;

/// The blocks of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    blocks: Vec<Block>,
    /// Number of lines below the shown lines; 0 follows the end.
    lines_below: usize,
    /// The number of blocks, and the height of the last one, when they were shown last.
    end: (usize, usize),
    /// The selected block.
    selected: Option<usize>,
    /// Whether new blocks with details are open.
    opens_details: bool,
}

impl Transcript {
    /// Adds a block at the end.
    pub(crate) fn push(&mut self, content: BlockContent) {
        let mut block = Block::new(content);
        block.set_open(self.opens_details);
        self.blocks.push(block);
        if self.blocks.len() > MAX_BLOCKS {
            self.blocks.drain(..MAX_BLOCKS / 10);
            self.selected = None;
        }
    }

    pub(crate) fn notice(&mut self, role: Role, text: impl Into<String>) {
        self.push(BlockContent::Notice(role, text.into()));
    }

    /// Removes all blocks.
    pub(crate) fn clear(&mut self) {
        *self = Self { opens_details: self.opens_details, ..Self::default() };
    }

    /// Replaces all blocks by the messages of a conversation.
    pub(crate) fn show_conversation(
        &mut self,
        conversation: &Conversation,
        server_of: impl Fn(&str) -> Option<String>,
    ) {
        self.clear();
        for message in conversation.messages() {
            match message {
                Message::User(content) => {
                    self.push(BlockContent::User(content.to_text().into_owned()));
                }
                Message::Assistant(assistant) => {
                    for part in &assistant.parts {
                        self.push_part(&part.content, &server_of);
                    }
                }
                Message::ToolResults(results) => {
                    for result in results.iter() {
                        if let Some(call) = self.call_mut(&result.id) {
                            let text = result.content.to_text().into_owned();
                            call.state =
                                ToolCallState::Stored { result: text, is_error: result.is_error };
                        }
                    }
                }
            }
        }
    }

    fn push_part(&mut self, part: &PartContent, server_of: &impl Fn(&str) -> Option<String>) {
        match part {
            PartContent::Text(text) if text.trim().is_empty() => {}
            PartContent::Text(text) => {
                self.push(BlockContent::Response(MarkdownText::new(text.trim())));
            }
            PartContent::Reasoning(text) if text.trim().is_empty() => {}
            PartContent::Reasoning(text) => self.push(BlockContent::Reasoning(text.clone())),
            PartContent::ToolCall(call) => self.push(BlockContent::ToolCall(ToolCallView {
                id: call.id.clone(),
                tool: call.name.clone(),
                server: server_of(&call.name),
                arguments: Arc::from(&*call.arguments),
                state: ToolCallState::Interrupted,
            })),
            PartContent::Other => {}
        }
    }

    /// Shows an event of a run.
    pub(crate) fn on_event(
        &mut self,
        event: &AgentEvent,
        server_of: impl Fn(&str) -> Option<String>,
        now: Instant,
    ) {
        match event {
            AgentEvent::Text(text) => self.append_response(text),
            AgentEvent::Reasoning(text) => self.append_reasoning(text),
            AgentEvent::ToolCallStarted { id, tool, arguments } => {
                self.push(BlockContent::ToolCall(ToolCallView {
                    id: id.clone(),
                    tool: tool.clone(),
                    server: server_of(tool),
                    arguments: arguments.clone(),
                    state: ToolCallState::Running { start: now, progress: None },
                }));
            }
            AgentEvent::ToolCallProgress { id, progress: step, .. } => {
                if let Some(call) = self.call_mut(id)
                    && let ToolCallState::Running { progress, .. } = &mut call.state
                {
                    *progress = Some(step.clone());
                }
            }
            AgentEvent::ToolCallFinished(record) => {
                let ended = ToolCallState::Finished(record.clone());
                match self.call_mut(&record.id) {
                    Some(call) => call.state = ended,
                    // A refused call has no start.
                    None => self.push(BlockContent::ToolCall(ToolCallView {
                        id: record.id.clone(),
                        tool: record.tool.clone(),
                        server: server_of(&record.tool),
                        arguments: Arc::from(record.arguments.to_string()),
                        state: ended,
                    })),
                }
            }
            AgentEvent::Planned(steps) => {
                let lines =
                    steps.iter().map(|step| format!("{}. {} {}", step.id, step.tool, step.purpose));
                self.notice(Role::Dim, format!("plan\n{}", lines.collect::<Vec<_>>().join("\n")));
            }
            AgentEvent::HistorySummaryStarted { messages } => {
                self.notice(Role::Dim, format!("the model summarizes {messages} old messages"));
            }
            AgentEvent::HistoryShortened { is_summarized: true, .. } => {}
            AgentEvent::HistoryShortened { messages, is_summarized: false } => {
                let text = format!("requests leave out the first {messages} messages");
                self.notice(Role::Dim, text);
            }
            AgentEvent::Warned(warning) => {
                self.notice(Role::Warning, format!("{}: {}", warning.tool, warning.text));
            }
            AgentEvent::Retrying { delay } if delay.is_zero() => {}
            AgentEvent::Retrying { delay } => {
                let seconds = delay.as_secs_f64();
                self.notice(Role::Warning, format!("the request is sent again in {seconds:.1} s"));
            }
            AgentEvent::ToolCallDetected { .. }
            | AgentEvent::ResponseFinished { .. }
            | AgentEvent::MessagesAdded(_)
            | AgentEvent::Finished(_) => {}
        }
    }

    fn append_response(&mut self, text: &str) {
        match self.blocks.last_mut().map(Block::content_mut) {
            Some(BlockContent::Response(response)) => response.push(text),
            Some(_) | None if text.trim().is_empty() => {}
            Some(_) | None => {
                self.push(BlockContent::Response(MarkdownText::new(text.trim_start())));
            }
        }
    }

    fn append_reasoning(&mut self, text: &str) {
        match self.blocks.last_mut().map(Block::content_mut) {
            Some(BlockContent::Reasoning(reasoning)) => reasoning.push_str(text),
            Some(_) | None if text.trim().is_empty() => {}
            Some(_) | None => self.push(BlockContent::Reasoning(text.to_owned())),
        }
    }

    fn call_mut(&mut self, id: &str) -> Option<&mut ToolCallView> {
        let is_call = |block: &Block| match block.content() {
            BlockContent::ToolCall(call) => call.id == id,
            BlockContent::User(_)
            | BlockContent::Response(_)
            | BlockContent::Reasoning(_)
            | BlockContent::Notice(..) => false,
        };
        let at = self.blocks.iter().rposition(is_call)?;
        match self.blocks[at].content_mut() {
            BlockContent::ToolCall(call) => Some(call),
            BlockContent::User(_)
            | BlockContent::Response(_)
            | BlockContent::Reasoning(_)
            | BlockContent::Notice(..) => None,
        }
    }

    /// Marks the running calls as interrupted.
    pub(crate) fn interrupt_calls(&mut self) {
        for block in self.blocks.iter_mut().rev().take(1024) {
            if let BlockContent::ToolCall(ToolCallView {
                state: ToolCallState::Running { .. }, ..
            }) = block.content()
                && let BlockContent::ToolCall(call) = block.content_mut()
            {
                call.state = ToolCallState::Interrupted;
            }
        }
    }

    /// Opens or closes the details of all blocks, and of those to come.
    pub(crate) fn toggle_all_details(&mut self) {
        self.opens_details = !self.opens_details;
        for block in &mut self.blocks {
            block.set_open(self.opens_details);
        }
    }

    /// Opens or closes the selected block.
    pub(crate) fn toggle_selected(&mut self) {
        if let Some(block) = self.selected.and_then(|at| self.blocks.get_mut(at))
            && block.has_details()
        {
            block.set_open(!block.is_open());
        }
    }

    /// Selects the block before or after the selected one, or the last one.
    pub(crate) fn select(&mut self, is_next: bool) {
        let last = self.blocks.len().saturating_sub(1);
        self.selected = match (self.selected, is_next) {
            _ if self.blocks.is_empty() => None,
            (None, _) => Some(last),
            (Some(at), true) => Some((at + 1).min(last)),
            (Some(at), false) => Some(at.saturating_sub(1)),
        };
    }

    pub(crate) fn unselect(&mut self) {
        self.selected = None;
    }

    pub(crate) fn has_selection(&self) -> bool {
        self.selected.is_some()
    }

    /// Returns the text of the selected block, or of the last response.
    pub(crate) fn copied_text(&self) -> Option<String> {
        let last_response = || {
            let is_response = |block: &&Block| matches!(block.content(), BlockContent::Response(_));
            self.blocks.iter().rev().find(is_response)
        };
        let block = self.selected.and_then(|at| self.blocks.get(at)).or_else(last_response)?;
        Some(block.copied_text())
    }

    /// Scrolls up by a number of lines, or down if it is negative.
    pub(crate) fn scroll(&mut self, lines: isize) {
        self.lines_below = self.lines_below.saturating_add_signed(lines);
    }

    /// Shows the end, and follows new text.
    pub(crate) fn scroll_to_end(&mut self) {
        self.lines_below = 0;
    }

    pub(crate) fn scroll_to_start(&mut self) {
        self.lines_below = usize::MAX / 2;
    }

    /// Returns whether newer lines are below the shown lines.
    pub(crate) fn is_scrolled(&self) -> bool {
        self.lines_below > 0
    }

    /// Returns the lines for an area, at most `height`. A call costs the lines of the shown blocks,
    /// and of the blocks below them.
    pub(crate) fn visible_lines(
        &mut self,
        (width, height): (usize, usize),
        theme: Theme,
        now: Instant,
    ) -> Vec<Line<'static>> {
        let layout = (width.saturating_sub(GUTTER).max(1), theme, now);
        self.keep_position(layout);
        // The selected block is always visible.
        if let Some(selected) = self.selected {
            self.scroll_to_block(selected, height, layout);
        }
        let (mut top, mut lines_from_top) = (self.blocks.len(), 0);
        while top > 0 && lines_from_top < self.lines_below.saturating_add(height) {
            top -= 1;
            lines_from_top += block_height(&mut self.blocks[top], layout);
        }
        if top == 0 {
            self.lines_below = self.lines_below.min(lines_from_top.saturating_sub(height));
        }
        let mut skipped = self.lines_below;
        let mut lines = Vec::new();
        for index in (top..self.blocks.len()).rev() {
            let is_selected = self.selected == Some(index);
            let block = &mut self.blocks[index];
            let block_height = block_height(block, layout);
            let end = block_height.saturating_sub(skipped);
            skipped = skipped.saturating_sub(block_height);
            let start = end.saturating_sub(height - lines.len());
            let mut shown = block.lines(start..end.min(block_height - 1), layout);
            let shown = shown.drain(..).rev().map(|line| with_gutter(line, is_selected, theme));
            let separator = (start < end && end == block_height).then(Line::default);
            lines.extend(separator.into_iter().chain(shown));
        }
        for block in self.blocks[..top].iter_mut().rev().take(MAX_FORGOTTEN_BLOCKS) {
            block.forget_lines();
        }
        lines.reverse();
        lines
    }

    /// Moves the scroll position by the lines that were added at the end, so that the shown lines stay.
    fn keep_position(&mut self, layout: (usize, Theme, Instant)) {
        let (blocks, last_height) = self.end;
        if self.lines_below > 0 && blocks > 0 {
            let added = self.blocks.iter_mut().skip(blocks - 1);
            let height: usize = added.map(|block| block_height(block, layout)).sum();
            self.lines_below += height.saturating_sub(last_height);
        }
        let last_height = self.blocks.last_mut().map_or(0, |block| block_height(block, layout));
        self.end = (self.blocks.len(), last_height);
    }

    fn scroll_to_block(&mut self, selected: usize, height: usize, layout: (usize, Theme, Instant)) {
        let heights = self.blocks[selected..].iter_mut();
        let mut heights = heights.map(|block| block_height(block, layout));
        let own = heights.next().unwrap_or_default();
        let after: usize = heights.sum();
        let (min, max) = ((after + own).saturating_sub(height), after + own.saturating_sub(1));
        if own >= height {
            self.lines_below = self.lines_below.clamp(after, max);
        } else {
            self.lines_below = self.lines_below.clamp(min, after);
        }
    }
}

/// Returns the height of a block with the blank line that separates it from the next one.
fn block_height(block: &mut Block, (width, theme, now): (usize, Theme, Instant)) -> usize {
    block.height(width, theme, now) + 1
}

fn with_gutter(mut line: Line<'static>, is_selected: bool, theme: Theme) -> Line<'static> {
    let mark = match is_selected {
        true => Span::styled("> ", theme.style(Role::Running)),
        false => Span::raw("  "),
    };
    line.spans.insert(0, mark);
    line
}
