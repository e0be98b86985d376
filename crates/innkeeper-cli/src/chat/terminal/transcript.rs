//! The blocks of a conversation with the part that the screen shows.

use std::collections::BTreeSet;
use std::sync::Arc;

use innkeeper_agent::agent::AgentEvent;
use innkeeper_agent::conversation::{Conversation, Message, PartContent};
use ratatui::text::{Line, Span};
use tokio::time::Instant;

use super::block::{Block, BlockContent, Layout, ToolCallState, ToolCallView};
use super::markdown::MarkdownText;
use super::theme::{Role, Theme};

/// Maximum number of blocks: the conversation itself has at most 10,000 messages. Beyond the limit,
/// the oldest blocks are not shown any more.
const MAX_BLOCKS: usize = 20_000;

/// Number of blocks at the end whose notices can be replaced.
const RECENT_BLOCKS: usize = 3;

/// Columns of the mark beside a block.
const GUTTER: usize = 2;

/// A line of the transcript: a line of a block, or the blank line below the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    block: usize,
    line: usize,
}

/// The blocks of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    blocks: Vec<Block>,
    /// The first shown line; `None` shows the end and follows new text.
    top: Option<Position>,
    /// Number of lines to scroll up before the next frame, or down if it is negative.
    scroll: isize,
    /// The width of the last frame, and the height of the first shown block there.
    last_layout: (usize, usize),
    /// The blocks whose lines the last frame needed.
    used: BTreeSet<usize>,
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
            self.remove_oldest(MAX_BLOCKS / 10);
        }
    }

    fn remove_oldest(&mut self, blocks: usize) {
        self.blocks.drain(..blocks);
        self.selected = None;
        self.used.clear();
        self.top = self.top.map(|top| match top.block.checked_sub(blocks) {
            Some(block) => Position { block, ..top },
            None => Position { block: 0, line: 0 },
        });
    }

    pub(crate) fn notice(&mut self, role: Role, text: impl Into<String>) {
        self.push(BlockContent::Notice(role, text.into()));
    }

    /// Adds a line that belongs to no response: a response or reasoning at the end stays at the end,
    /// so that its next part continues the block.
    pub(crate) fn notice_before_response(&mut self, role: Role, text: String) {
        let last = self.blocks.last().map(Block::content);
        if !matches!(last, Some(BlockContent::Response(_) | BlockContent::Reasoning(_))) {
            return self.notice(role, text);
        }
        let at = self.blocks.len() - 1;
        self.blocks.insert(at, Block::new(BlockContent::Notice(role, text)));
        let shift = |index: usize| if index >= at { index + 1 } else { index };
        self.used = self.used.iter().map(|index| shift(*index)).collect();
        self.selected = self.selected.map(shift);
        self.top = self.top.map(|top| Position { block: shift(top.block), ..top });
    }

    /// Returns whether a notice with this text is among the last blocks.
    pub(crate) fn has_recent_notice(&self, text: &str) -> bool {
        self.recent_notice(text).is_some()
    }

    fn recent_notice(&self, text: &str) -> Option<usize> {
        let first = self.blocks.len().saturating_sub(RECENT_BLOCKS);
        Some(
            first
                + self.blocks[first..].iter().rposition(|block| match block.content() {
                    BlockContent::Notice(_, notice) => notice == text,
                    BlockContent::User(_)
                    | BlockContent::Response(_)
                    | BlockContent::Reasoning(_)
                    | BlockContent::ToolCall(_) => false,
                })?,
        )
    }

    /// Replaces the text of a notice that is among the last blocks.
    pub(crate) fn replace_recent_notice(&mut self, text: &str, new: String) {
        if let Some(at) = self.recent_notice(text)
            && let BlockContent::Notice(_, notice) = self.blocks[at].content_mut()
        {
            *notice = new;
        }
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
                        if let Some(call) = self.call_mut(&result.id, ToolCallState::is_interrupted)
                        {
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
                if let Some(call) = self.call_mut(id, ToolCallState::is_running)
                    && let ToolCallState::Running { progress, .. } = &mut call.state
                {
                    *progress = Some(step.clone());
                }
            }
            AgentEvent::ToolCallFinished(record) => {
                let ended = ToolCallState::Finished(record.clone());
                match self.call_mut(&record.id, ToolCallState::is_running) {
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
            AgentEvent::ToolsOmitted(tools) => self.notice(Role::Warning, tools.to_string()),
            AgentEvent::Retrying { delay } if delay.is_zero() => {
                let last = self.blocks.last().map(Block::content);
                if matches!(last, Some(BlockContent::Response(_))) {
                    self.notice(Role::Dim, "the model is asked again");
                }
            }
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

    /// Returns the newest call with this id in a state: a later run may use the id again.
    fn call_mut(
        &mut self,
        id: &str,
        has_state: impl Fn(&ToolCallState) -> bool,
    ) -> Option<&mut ToolCallView> {
        let at = self.blocks.iter().rposition(|block| match block.content() {
            BlockContent::ToolCall(call) => call.id == id && has_state(&call.state),
            BlockContent::User(_)
            | BlockContent::Response(_)
            | BlockContent::Reasoning(_)
            | BlockContent::Notice(..) => false,
        })?;
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
        let block = self.selected.and_then(|at| self.blocks.get(at)).or_else(|| {
            let mut blocks = self.blocks.iter().rev();
            blocks.find(|block| matches!(block.content(), BlockContent::Response(_)))
        })?;
        Some(block.copied_text())
    }

    /// Scrolls up by a number of lines, or down if it is negative.
    pub(crate) fn scroll(&mut self, lines: isize) {
        self.scroll = self.scroll.saturating_add(lines);
    }

    /// Shows the end, and follows new text.
    pub(crate) fn scroll_to_end(&mut self) {
        (self.top, self.scroll) = (None, 0);
    }

    pub(crate) fn scroll_to_start(&mut self) {
        (self.top, self.scroll) = (Some(Position { block: 0, line: 0 }), 0);
    }

    /// Returns whether newer lines are below the lines of the last frame.
    pub(crate) fn is_scrolled(&self) -> bool {
        self.top.is_some()
    }

    /// Returns the lines for an area, at most `height`. A call costs the lines of the shown blocks,
    /// and of the blocks at the end.
    pub(crate) fn visible_lines(
        &mut self,
        width: usize,
        height: usize,
        theme: Theme,
        now: Instant,
    ) -> Vec<Line<'static>> {
        let layout = Layout { width: width.saturating_sub(GUTTER).max(1), theme, now };
        let last_used = std::mem::take(&mut self.used);
        let top = self.first_line(height, layout);
        let mut lines = Vec::new();
        let mut next = top;
        while lines.len() < height && next.block < self.blocks.len() {
            let block_height = self.block_height(next.block, layout);
            let end = block_height.min(next.line + height - lines.len());
            let is_selected = self.selected == Some(next.block);
            let shown = next.line..end.min(block_height - 1);
            let shown = self.blocks[next.block].lines(shown, layout);
            lines.extend(shown.into_iter().map(|line| with_gutter(line, is_selected, theme)));
            if end == block_height {
                lines.push(Line::default());
            }
            next = Position { block: next.block + 1, line: 0 };
        }
        for index in last_used.difference(&self.used) {
            if let Some(block) = self.blocks.get_mut(*index) {
                block.forget_lines();
            }
        }
        lines
    }

    /// Returns the first line of a frame, and stores the line if newer lines are below the frame.
    fn first_line(&mut self, height: usize, layout: Layout) -> Position {
        let end = Position { block: self.blocks.len(), line: 0 };
        let end = self.line_above(end, height, layout);
        let mut top = self.top.map_or(end, |top| self.position_in_layout(top, layout));
        let lines = std::mem::take(&mut self.scroll);
        top = match lines {
            0.. => self.line_above(top, lines.unsigned_abs(), layout),
            _ => self.line_below(top, lines.unsigned_abs(), layout),
        };
        if let Some(block) = self.selected {
            // The selected block is always visible.
            let start = Position { block, line: 0 };
            let last = self.line_above(Position { block: block + 1, line: 0 }, height, layout);
            top = top.clamp(start.min(last), start.max(last));
        }
        self.top = (top < end).then_some(top);
        let top = self.top.unwrap_or(end);
        let block_height = match top.block < self.blocks.len() {
            true => self.block_height(top.block, layout),
            false => 0,
        };
        self.last_layout = (layout.width, block_height);
        top
    }

    /// Returns the line for a line of the last frame: with another width, the block has another
    /// number of lines.
    fn position_in_layout(&mut self, last: Position, layout: Layout) -> Position {
        let Some(block) = self.blocks.len().checked_sub(1).map(|last_at| last_at.min(last.block))
        else {
            return Position { block: 0, line: 0 };
        };
        let (last_width, last_height) = self.last_layout;
        let height = self.block_height(block, layout);
        let line = match last_width == layout.width {
            true => last.line,
            false => last.line.saturating_mul(height) / last_height.max(1),
        };
        Position { block, line: line.min(height - 1) }
    }

    /// Returns the line that is a number of lines above a line, or the first line.
    fn line_above(&mut self, from: Position, mut lines: usize, layout: Layout) -> Position {
        let Position { mut block, mut line } = from;
        while lines > line {
            let Some(above) = block.checked_sub(1) else { return Position { block: 0, line: 0 } };
            lines -= line;
            (block, line) = (above, self.block_height(above, layout));
        }
        Position { block, line: line - lines }
    }

    /// Returns the line that is a number of lines below a line, or the end.
    fn line_below(&mut self, from: Position, lines: usize, layout: Layout) -> Position {
        let Position { mut block, mut line } = from;
        line = line.saturating_add(lines);
        while block < self.blocks.len() {
            let height = self.block_height(block, layout);
            if line < height {
                return Position { block, line };
            }
            (block, line) = (block + 1, line - height);
        }
        Position { block, line: 0 }
    }

    /// Returns the height of a block with the blank line that separates it from the next one.
    fn block_height(&mut self, index: usize, layout: Layout) -> usize {
        self.used.insert(index);
        self.blocks[index].height(layout) + 1
    }

    /// Returns the number of blocks whose lines are stored.
    #[cfg(test)]
    pub(crate) fn drawn_blocks(&self) -> usize {
        self.blocks.iter().filter(|block| block.has_lines()).count()
    }
}

fn with_gutter(mut line: Line<'static>, is_selected: bool, theme: Theme) -> Line<'static> {
    let mark = match is_selected {
        true => Span::styled("> ", theme.style(Role::Running)),
        false => Span::raw("  "),
    };
    line.spans.insert(0, mark);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_limit_the_newest_blocks_stay() {
        let mut transcript = Transcript::default();
        for number in 0..=MAX_BLOCKS {
            transcript.notice(Role::Dim, number.to_string());
        }
        assert!(transcript.blocks.len() <= MAX_BLOCKS, "{}", transcript.blocks.len());
        assert!(transcript.has_recent_notice(&MAX_BLOCKS.to_string()));
    }
}
