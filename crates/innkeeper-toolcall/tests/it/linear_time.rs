//! The time of the parser is proportional to the length of the text.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_testkit::thread_cpu_time;
use innkeeper_toolcall::{
    ParseEvent, ParserLimits, ParserOptions, TextEnd, Tool, ToolCallParser, Tools,
};
use serde_json::json;

/// Length of a chunk: about three tokens.
const CHUNK_BYTES: usize = 12;

/// Largest ratio of the times of a text and of a text with a tenth of its length.
const MAX_RATIO: f64 = 12.0;

/// Maximum number of measurements; the fastest counts, because other load only adds time.
const MAX_ROUNDS: usize = 100;

/// Texts of one form: a beginning, a part that repeats, and the end.
struct TextForm {
    name: &'static str,
    start: &'static str,
    part: &'static str,
    end: &'static str,
    max_call_bytes: usize,
    calls: usize,
    /// Length of the shorter text; ten of these texts take about 0.2 s in a debug build.
    bytes: usize,
}

impl TextForm {
    fn text(&self, bytes: usize) -> String {
        self.start.to_owned() + &self.part.repeat(bytes / self.part.len()) + self.end
    }
}

const NO_LIMIT: usize = 1 << 30;

const FORMS: &[TextForm] = &[
    TextForm {
        name: "prose",
        start: "",
        part: "It costs 5 < 7, `a` or \"b\" [1]. ",
        end: "",
        max_call_bytes: NO_LIMIT,
        calls: 0,
        bytes: 15_000,
    },
    TextForm {
        name: "false starts of calls",
        start: "",
        part: "{ [<tool_ {\"to\" ",
        end: "",
        max_call_bytes: NO_LIMIT,
        calls: 0,
        bytes: 100_000,
    },
    TextForm {
        name: "a call with a long text",
        start: "{\"tool\": \"echo\", \"params\": {\"message\": \"",
        part: "say \\\"}\\\" {[",
        end: "\"}}",
        max_call_bytes: NO_LIMIT,
        calls: 1,
        bytes: 100_000,
    },
    TextForm {
        name: "a call with many values",
        start: "<tool_call>{\"name\": \"echo\", \"arguments\": {\"message\": [",
        part: "{\"a\": [1, true]}, ",
        end: "0]}}</tool_call>",
        max_call_bytes: NO_LIMIT,
        calls: 1,
        bytes: 40_000,
    },
    TextForm {
        name: "a call of tags",
        start: "<tool_call>\n<function=echo>\n<parameter=message>\n",
        part: "a < b </param </",
        end: "\n</parameter>\n</function>\n</tool_call>",
        max_call_bytes: NO_LIMIT,
        calls: 1,
        bytes: 100_000,
    },
    TextForm {
        name: "a call above the limit that never ends",
        start: "{\"tool\": \"echo\", \"params\": {\"message\": \"",
        part: "{[<tool_call> ",
        end: "",
        max_call_bytes: 1 << 14,
        calls: 0,
        bytes: 200_000,
    },
];

/// Returns the processor time of a number of parsers, each for one text.
fn parse_time(form: &TextForm, bytes: usize, count: usize) -> Duration {
    let schema = json!({"type": "object", "properties": {"message": {}}});
    let tools: Arc<Tools> = Arc::new([Tool::new("echo", "", schema)].into_iter().collect());
    let limits = ParserLimits { max_call_bytes: form.max_call_bytes, ..ParserLimits::default() };
    let options = ParserOptions { limits, ..ParserOptions::default() };
    let text = form.text(bytes);
    let started_at = thread_cpu_time();
    for _ in 0..count {
        let mut parser = ToolCallParser::new(tools.clone(), &options);
        let (mut emitted, mut calls) = (0, 0);
        let mut sink = |event: ParseEvent<'_>| {
            emitted += event.text().len();
            calls += usize::from(matches!(event, ParseEvent::Call { .. }));
        };
        for chunk in text.as_bytes().chunks(CHUNK_BYTES) {
            parser.push_bytes(chunk, &mut sink);
        }
        parser.finish(TextEnd::Stop, &mut sink);
        assert_eq!((emitted, calls), (text.len(), form.calls), "{}", form.name);
    }
    thread_cpu_time() - started_at
}

/// Ten short texts are measured beside one long text, so that the load of the machine changes both
/// times.
///
/// Proves: S45
#[test]
fn ten_times_the_text_takes_at_most_twelve_times_the_processor_time() {
    for form in FORMS {
        let (mut ten_short, mut long) = (Duration::MAX, Duration::MAX);
        let mut ratio = f64::MAX;
        for _ in 0..MAX_ROUNDS {
            ten_short = ten_short.min(parse_time(form, form.bytes, 10));
            long = long.min(parse_time(form, 10 * form.bytes, 1));
            ratio = 10.0 * long.as_secs_f64() / ten_short.as_secs_f64();
            if ratio <= MAX_RATIO {
                break;
            }
        }
        assert!(ratio <= MAX_RATIO, "{}: {ten_short:?}, {long:?}, {ratio:.1}", form.name);
    }
}
