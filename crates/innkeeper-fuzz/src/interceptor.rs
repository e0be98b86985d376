//! A model's text whole and in chunks must come to the same events, which together are the text.
//!
//! The first byte of the input sets the format, the second the size of a chunk, the third how the
//! text ends, the fourth how much is kept.

use std::sync::Arc;

use innkeeper_toolcall::{Event, Finish, Format, Interceptor, Limits, Options, Tool, Tools};
use serde_json::json;

/// What an event says, pieces of one kind joined.
type Found = Vec<(&'static str, String)>;

/// Reads the input as a model's text.
pub fn interceptor(input: &[u8]) {
    let [format, chunk, finish, limits, text @ ..] = input else { return };
    let formats: Vec<Format> = Format::names().filter_map(Format::named).collect();
    let format = formats[usize::from(*format) % formats.len()];
    let finish = [Finish::Stop, Finish::Length, Finish::Interrupted][usize::from(*finish) % 3];
    let limits = match limits {
        0 => Limits::default(),
        few => Limits { undecided: usize::from(*few) % 32, call: usize::from(*few) * 4 },
    };
    let prompt = (chunk % 4 == 3).then(|| "<think>".to_owned());
    let options = Options { format, limits, prompt };
    let chunk = usize::from(chunk / 4) + 1;
    let (whole, shown) = read(&options, text, usize::MAX, finish);
    assert_eq!(shown, String::from_utf8_lossy(text));
    assert_eq!(read(&options, text, chunk, finish).0, whole);
}

fn read(options: &Options, text: &[u8], chunk: usize, finish: Finish) -> (Found, String) {
    let mut found = Found::new();
    let mut shown = String::new();
    let mut sink = |event: Event<'_>| {
        shown.push_str(event.text());
        let (kind, said) = match &event {
            Event::Text(text) => ("text", (*text).to_owned()),
            Event::Reasoning(text) => ("reasoning", (*text).to_owned()),
            Event::Frame(text) => ("frame", (*text).to_owned()),
            Event::Arguments { fragment, .. } => ("arguments", (*fragment).to_owned()),
            Event::CallStart { .. }
            | Event::Call { .. }
            | Event::Rejected { .. }
            | Event::Incomplete { .. } => ("", format!("{event:?}")),
        };
        match found.last_mut() {
            Some((last, joined)) if *last == kind && !kind.is_empty() => joined.push_str(&said),
            _ => found.push((kind, said)),
        }
    };
    let mut interceptor = Interceptor::new(tools(), options);
    for part in text.chunks(chunk) {
        interceptor.push_bytes(part, &mut sink);
    }
    interceptor.finish(finish, &mut sink);
    (found, shown)
}

fn tools() -> Arc<Tools> {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "integer"}, "b": {"type": ["array", "null"]}, "c": {"type": "string"},
    }});
    Arc::new(["add", "a.b"].into_iter().map(|name| Tool::new(name, "", schema.clone())).collect())
}
