//! Fuzz target: parses model text. Chunked and unchunked input give the same events, and the events
//! concatenate to the text.
//!
//! The first byte of the input is the format, the second byte the chunk size, the third byte the
//! end of the text, and the fourth byte the parser's limits.

use std::sync::Arc;

use innkeeper_toolcall::{
    Format, ParseEvent, ParserLimits, ParserOptions, TextEnd, Tool, ToolCallParser, Tools,
};
use serde_json::json;

/// Kind and text of events; consecutive events of one kind are joined.
type MergedEvents = Vec<(&'static str, String)>;

/// Parses the input as a model's text.
pub fn stream_parser(input: &[u8]) {
    let [format, chunk, end_byte, limits, text @ ..] = input else { return };
    let formats: Vec<Format> = Format::names().filter_map(Format::from_name).collect();
    let format = formats[usize::from(*format) % formats.len()];
    let text_end = [TextEnd::Stop, TextEnd::Length, TextEnd::Interrupted, TextEnd::Unknown]
        [usize::from(*end_byte) % 4];
    let limits = match limits {
        0 => ParserLimits::default(),
        few => ParserLimits {
            max_undecided_chars: usize::from(*few) % 32,
            max_call_bytes: usize::from(*few) * 4,
        },
    };
    let prompt = (chunk % 4 == 3).then(|| "<think>".to_owned());
    let options = ParserOptions { format, limits, prompt };
    let chunk = usize::from(chunk / 4) + 1;
    let (unsplit, text_unsplit) = collect_events(&options, text, usize::MAX, text_end);
    assert_eq!(text_unsplit, String::from_utf8_lossy(text));
    assert_eq!(collect_events(&options, text, chunk, text_end).0, unsplit);
}

fn collect_events(
    options: &ParserOptions,
    text: &[u8],
    chunk: usize,
    text_end: TextEnd,
) -> (MergedEvents, String) {
    let mut merged = MergedEvents::new();
    let mut visible_text = String::new();
    let mut sink = |event: ParseEvent<'_>| {
        visible_text.push_str(event.text());
        let (kind, event_text) = match &event {
            ParseEvent::Text(text) => ("text", (*text).to_owned()),
            ParseEvent::Reasoning(text) => ("reasoning", (*text).to_owned()),
            ParseEvent::Markup(text) => ("frame", (*text).to_owned()),
            ParseEvent::Arguments { fragment, .. } => ("arguments", (*fragment).to_owned()),
            ParseEvent::CallStart { .. }
            | ParseEvent::Call { .. }
            | ParseEvent::Rejected { .. }
            | ParseEvent::Incomplete { .. } => ("", format!("{event:?}")),
        };
        match merged.last_mut() {
            Some((last, joined)) if *last == kind && !kind.is_empty() => {
                joined.push_str(&event_text);
            }
            _ => merged.push((kind, event_text)),
        }
    };
    let mut parser = ToolCallParser::new(tools(), options);
    for part in text.chunks(chunk) {
        parser.push_bytes(part, &mut sink);
    }
    parser.finish(text_end, &mut sink);
    (merged, visible_text)
}

fn tools() -> Arc<Tools> {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "integer"}, "b": {"type": ["array", "null"]}, "c": {"type": "string"},
    }});
    Arc::new(["add", "a.b"].into_iter().map(|name| Tool::new(name, "", schema.clone())).collect())
}
