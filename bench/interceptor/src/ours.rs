//! The project's interceptor, as an application uses it.

use std::hint::black_box;
use std::sync::Arc;

use innkeeper_toolcall::{Event, Finish, Interceptor, Json, Limits, Options, Tool, Tools};
use serde_json::json;

use crate::{Peer, pieces};

/// An interceptor for each pass, told nothing of the format.
pub(crate) struct Ours {
    tools: Arc<Tools>,
    options: Options,
}

impl Ours {
    /// With room for a call of this many bytes.
    pub(crate) fn new(call: usize) -> Self {
        let mut ours = Self::with_default_limits();
        ours.options.limits = Limits { call, ..Limits::default() };
        ours
    }

    /// With the limits that apply where nobody says otherwise.
    pub(crate) fn with_default_limits() -> Self {
        let properties = json!({"path": {"type": "string"}, "content": {"type": "string"}});
        let schema = json!({"type": "object", "properties": properties});
        let tool = Tool::new("write_file", "Writes a file.", schema);
        Self { tools: Arc::new([tool].into_iter().collect()), options: Options::default() }
    }
}

impl Peer for Ours {
    fn read(&mut self, text: &str, piece: usize) -> Result<usize, String> {
        let mut interceptor = Interceptor::new(Arc::clone(&self.tools), &self.options);
        let (mut shown, mut content) = (0, None);
        let mut sink = |event: Event<'_>| {
            if let Event::Call { call, .. } = &event {
                content = text_at(&call.arguments, "content").map(str::len);
            } else {
                shown += black_box(event.text()).len();
            }
        };
        for piece in pieces(text, piece) {
            interceptor.push(piece, &mut sink);
        }
        interceptor.finish(Finish::Stop, &mut sink);
        Ok(content.unwrap_or(shown))
    }
}

fn text_at<'j>(json: &'j Json, name: &str) -> Option<&'j str> {
    let Json::Object(members) = json else { return None };
    members.iter().find_map(|(key, value)| match value {
        Json::String(text) if key == name => Some(text.as_str()),
        _ => None,
    })
}
