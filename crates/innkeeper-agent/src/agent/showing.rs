//! What of an answer is shown while it is written: its text, without the calls in it.

use std::sync::Arc;

use innkeeper_toolcall::event::{self, Finish};
use innkeeper_toolcall::{Format, Interceptor, Options, Tools};

use super::{Event, Sink};
use crate::provider::Piece;

/// Takes the pieces of one answer.
pub(super) struct Showing {
    /// `None` where no text can be a call.
    interceptor: Option<Interceptor>,
}

impl Showing {
    pub(super) fn new(tools: &Arc<Tools>, format: Format) -> Self {
        let options = Options { format, ..Options::default() };
        let interceptor = (!tools.is_empty()).then(|| Interceptor::new(tools.clone(), &options));
        Self { interceptor }
    }

    pub(super) fn piece(&mut self, piece: &Piece, sink: &mut Sink<'_>) {
        match (piece, &mut self.interceptor) {
            (Piece::Text(text), Some(interceptor)) => {
                interceptor.push(text, &mut |event| show(&event, sink));
            }
            (Piece::Text(text), None) => sink(Event::Text(text)),
            (Piece::Reasoning(text), _) => sink(Event::Reasoning(text)),
            (Piece::CallStart { name, .. }, _) => sink(Event::CallStart { tool: name }),
            (Piece::Arguments { .. } | Piece::Done(_), _) => {}
        }
    }

    pub(super) fn end(&mut self, sink: &mut Sink<'_>) {
        if let Some(interceptor) = &mut self.interceptor {
            interceptor.finish(Finish::Stop, &mut |event| show(&event, sink));
        }
    }
}

fn show(event: &event::Event<'_>, sink: &mut Sink<'_>) {
    match event {
        event::Event::Text(text) => sink(Event::Text(text)),
        event::Event::Reasoning(text) => sink(Event::Reasoning(text)),
        event::Event::CallStart { name, .. } => sink(Event::CallStart { tool: name }),
        event::Event::Rejected { text, .. } | event::Event::Incomplete { text, .. } => {
            if !text.is_empty() {
                sink(Event::Text(text));
            }
        }
        event::Event::Frame(_) | event::Event::Arguments { .. } | event::Event::Call { .. } => {}
    }
}
