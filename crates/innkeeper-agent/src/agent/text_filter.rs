//! Removes tool calls from streamed text.

use std::sync::Arc;

use innkeeper_toolcall::event::{self, TextEnd};
use innkeeper_toolcall::{Format, ParserOptions, ToolCallParser, Tools};

use super::{AgentEventRef, EventSink};
use crate::provider::StreamChunk;

/// Turns the chunks of one response into events.
pub(super) struct TextFilter {
    /// `None` if there are no tools, so that no text can be a call.
    parser: Option<ToolCallParser>,
}

impl TextFilter {
    pub(super) fn new(tools: &Arc<Tools>, format: Format) -> Self {
        let options = ParserOptions { format, ..ParserOptions::default() };
        let parser = (!tools.is_empty()).then(|| ToolCallParser::new(tools.clone(), &options));
        Self { parser }
    }

    pub(super) fn push(&mut self, chunk: &StreamChunk, sink: &mut EventSink<'_>) {
        match (chunk, &mut self.parser) {
            (StreamChunk::Text(text), Some(parser)) => {
                parser.push(text, &mut |event| forward_event(&event, sink));
            }
            (StreamChunk::Text(text), None) => sink(AgentEventRef::Text(text)),
            (StreamChunk::Reasoning(text), _) => sink(AgentEventRef::Reasoning(text)),
            (StreamChunk::ToolCallStart { name, .. }, _) => {
                sink(AgentEventRef::ToolCallDetected { tool: name });
            }
            (StreamChunk::ArgumentsDelta { .. } | StreamChunk::Done(_), _) => {}
        }
    }

    pub(super) fn finish(&mut self, sink: &mut EventSink<'_>) {
        if let Some(parser) = &mut self.parser {
            parser.finish(TextEnd::Stop, &mut |event| forward_event(&event, sink));
        }
    }
}

fn forward_event(event: &event::ParseEvent<'_>, sink: &mut EventSink<'_>) {
    match event {
        event::ParseEvent::Text(text) => sink(AgentEventRef::Text(text)),
        event::ParseEvent::Reasoning(text) => sink(AgentEventRef::Reasoning(text)),
        event::ParseEvent::CallStart { name, .. } => {
            sink(AgentEventRef::ToolCallDetected { tool: name });
        }
        event::ParseEvent::Rejected { text, .. } | event::ParseEvent::Incomplete { text, .. } => {
            if !text.is_empty() {
                sink(AgentEventRef::Text(text));
            }
        }
        event::ParseEvent::Markup(_)
        | event::ParseEvent::Arguments { .. }
        | event::ParseEvent::Call { .. } => {}
    }
}
