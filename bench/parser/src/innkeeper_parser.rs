//! The project's tool-call parser, used as in an application.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_toolcall::{
    Json, ParseEvent, ParserLimits, ParserOptions, TextEnd, Tool, ToolCallParser, Tools,
};
use serde_json::json;

use crate::{BenchParser, chunks, cpu_time};

/// Number of chunks between two passes over the reference text.
const CHUNKS_PER_REFERENCE_PASS: usize = 1 << 18;

/// A tool-call parser per pass, without a known format.
pub(crate) struct InnkeeperParser {
    tools: Arc<Tools>,
    options: ParserOptions,
    /// A text that the program parses between the chunks of the main text, so that both texts meet
    /// the same changes of the machine's speed.
    reference_text: Option<String>,
    reference_cpu_time: Duration,
    reference_bytes: usize,
}

impl InnkeeperParser {
    /// Creates a parser with a limit that fits a call of `call` bytes.
    pub(crate) fn new(call: usize) -> Self {
        let mut ours = Self::with_default_limits();
        ours.options.limits = ParserLimits { max_call_bytes: call, ..ParserLimits::default() };
        ours
    }

    /// As [`InnkeeperParser::new`], with a reference text between the chunks.
    pub(crate) fn with_reference_text(call: usize, beside: String) -> Self {
        Self { reference_text: Some(beside), ..Self::new(call) }
    }

    /// Creates a parser with the default limits.
    pub(crate) fn with_default_limits() -> Self {
        let properties = json!({"path": {"type": "string"}, "content": {"type": "string"}});
        let schema = json!({"type": "object", "properties": properties});
        let tool = Tool::new("write_file", "Writes a file.", schema);
        Self {
            tools: Arc::new([tool].into_iter().collect()),
            options: ParserOptions::default(),
            reference_text: None,
            reference_cpu_time: Duration::ZERO,
            reference_bytes: 0,
        }
    }

    /// Runs one pass over the text and calls `turn` at intervals.
    fn run_pass(&self, text: &str, piece: usize, mut turn: impl FnMut()) -> usize {
        let mut interceptor = ToolCallParser::new(Arc::clone(&self.tools), &self.options);
        let (mut shown, mut content) = (0, None);
        let mut sink = |event: ParseEvent<'_>| {
            if let ParseEvent::Call { call, .. } = &event {
                content = string_member(&call.arguments, "content").map(str::len);
            } else {
                shown += black_box(event.text()).len();
            }
        };
        for part in chunks(text, piece * CHUNKS_PER_REFERENCE_PASS) {
            turn();
            for piece in chunks(part, piece) {
                interceptor.push(piece, &mut sink);
            }
        }
        interceptor.finish(TextEnd::Stop, &mut sink);
        content.unwrap_or(shown)
    }
}

impl BenchParser for InnkeeperParser {
    fn parse(&mut self, text: &str, piece: usize) -> Result<usize, String> {
        let (mut spent, mut bytes) = (Duration::ZERO, 0);
        let told = self.run_pass(text, piece, || {
            if let Some(beside) = &self.reference_text {
                let from = cpu_time();
                black_box(self.run_pass(beside, piece, || {}));
                spent += cpu_time().saturating_sub(from);
                bytes += beside.len();
            }
        });
        (self.reference_cpu_time, self.reference_bytes) = (spent, bytes);
        Ok(told)
    }

    fn reference_time(&self) -> (Duration, usize) {
        (self.reference_cpu_time, self.reference_bytes)
    }
}

fn string_member<'j>(json: &'j Json, name: &str) -> Option<&'j str> {
    let Json::Object(members) = json else { return None };
    members.iter().find_map(|(key, value)| match value {
        Json::String(text) if key == name => Some(text.as_str()),
        _ => None,
    })
}
