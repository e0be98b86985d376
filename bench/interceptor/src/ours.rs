//! The project's interceptor, as an application uses it.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_toolcall::{Event, Finish, Interceptor, Json, Limits, Options, Tool, Tools};
use serde_json::json;

use crate::{Peer, pieces, processor_time};

/// After how many pieces the text beside is read once.
const TURN: usize = 1 << 18;

/// An interceptor for each pass, told nothing of the format.
pub(crate) struct Ours {
    tools: Arc<Tools>,
    options: Options,
    /// A text that is read again and again between the pieces of the other. The machine's speed
    /// changes within seconds: this one meets the same changes.
    beside: Option<String>,
    spent: Duration,
    bytes: usize,
}

impl Ours {
    /// With room for a call of this many bytes.
    pub(crate) fn new(call: usize) -> Self {
        let mut ours = Self::with_default_limits();
        ours.options.limits = Limits { call, ..Limits::default() };
        ours
    }

    /// As [`Ours::new`], with another text read between the pieces.
    pub(crate) fn with_beside(call: usize, beside: String) -> Self {
        Self { beside: Some(beside), ..Self::new(call) }
    }

    /// With the limits that apply where nobody says otherwise.
    pub(crate) fn with_default_limits() -> Self {
        let properties = json!({"path": {"type": "string"}, "content": {"type": "string"}});
        let schema = json!({"type": "object", "properties": properties});
        let tool = Tool::new("write_file", "Writes a file.", schema);
        Self {
            tools: Arc::new([tool].into_iter().collect()),
            options: Options::default(),
            beside: None,
            spent: Duration::ZERO,
            bytes: 0,
        }
    }

    /// One pass; `turn` is called now and then.
    fn pass(&self, text: &str, piece: usize, mut turn: impl FnMut()) -> usize {
        let mut interceptor = Interceptor::new(Arc::clone(&self.tools), &self.options);
        let (mut shown, mut content) = (0, None);
        let mut sink = |event: Event<'_>| {
            if let Event::Call { call, .. } = &event {
                content = text_at(&call.arguments, "content").map(str::len);
            } else {
                shown += black_box(event.text()).len();
            }
        };
        for part in pieces(text, piece * TURN) {
            turn();
            for piece in pieces(part, piece) {
                interceptor.push(piece, &mut sink);
            }
        }
        interceptor.finish(Finish::Stop, &mut sink);
        content.unwrap_or(shown)
    }
}

impl Peer for Ours {
    fn read(&mut self, text: &str, piece: usize) -> Result<usize, String> {
        let (mut spent, mut bytes) = (Duration::ZERO, 0);
        let told = self.pass(text, piece, || {
            if let Some(beside) = &self.beside {
                let from = processor_time();
                black_box(self.pass(beside, piece, || {}));
                spent += processor_time().saturating_sub(from);
                bytes += beside.len();
            }
        });
        (self.spent, self.bytes) = (spent, bytes);
        Ok(told)
    }

    fn beside(&self) -> (Duration, usize) {
        (self.spent, self.bytes)
    }
}

fn text_at<'j>(json: &'j Json, name: &str) -> Option<&'j str> {
    let Json::Object(members) = json else { return None };
    members.iter().find_map(|(key, value)| match value {
        Json::String(text) if key == name => Some(text.as_str()),
        _ => None,
    })
}
