//! The memory of a tool output on its way to a model.

use innkeeper_agent::{ToolOutput, tool_output};
use peak_alloc::PeakAlloc;
use serde_json::value::RawValue;

/// Counts the allocated bytes of the process. The test runner gives each test its own process.
#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The size of an output that a server can send in one message.
const OUTPUT_BYTES: usize = 2 << 20;

/// Maximum memory for an output, as a multiple of its size; includes the output.
const MAX_FACTOR: usize = 8;

/// Repeats `item` as an array of about [`OUTPUT_BYTES`].
fn array_of(item: &str) -> String {
    format!("[{}]", vec![item; OUTPUT_BYTES / (item.len() + 1)].join(","))
}

/// Returns a result whose structured content is short enough for a comparison with the text, which
/// differs in the last item only.
fn compared_with_text(item: &str, last_item: &str) -> String {
    let items = vec![item; ((1 << 20) - 16) / (item.len() + 1)].join(",");
    let (text, structured) = (format!("[{items},{last_item}]"), format!("[{items},{item}]"));
    let text = serde_json::Value::from(text);
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{structured}}}"#)
}

/// Attack: model | results with as many blocks, members or escapes as their bytes allow | the
/// content for the model takes at most eight times the bytes | No unbounded memory
#[test]
fn the_content_for_a_model_takes_at_most_eight_times_the_bytes_of_the_output() {
    let members: String = (0..OUTPUT_BYTES / 12).map(|at| format!(r#""{at:07}":0,"#)).collect();
    let escaped = r"\u00e4".repeat(OUTPUT_BYTES / 6);
    for (name, output) in [
        ("texts", format!(r#"{{"content":{}}}"#, array_of(r#"{"type":"text","text":""}"#))),
        ("images", format!(r#"{{"content":{}}}"#, array_of(r#"{"type":"image","data":""}"#))),
        ("unknown blocks", format!(r#"{{"content":{}}}"#, array_of(r#"{"type":"x"}"#))),
        ("no blocks", format!(r#"{{"content":{}}}"#, array_of("0"))),
        ("empty arrays", format!(r#"{{"content":{}}}"#, array_of("[]"))),
        ("one text", format!(r#"{{"content":[{{"type":"text","text":"{escaped}"}}]}}"#)),
        ("members", format!(r#"{{"content":[{{{members}"type":"text","text":"a"}}]}}"#)),
        ("members of the result", format!(r#"{{{members}"content":[]}}"#)),
        (
            "structured",
            format!(
                r#"{{"content":[{{"type":"text","text":"[]"}}],"structuredContent":{}}}"#,
                array_of("[]")
            ),
        ),
        ("not an object", array_of("[]")),
        ("structured content in a text", compared_with_text("[]", "[]")),
        ("structured content in no text", compared_with_text("[]", "{}")),
        ("objects in a text", compared_with_text(r#"{"a":[]}"#, r#"{"a":[]}"#)),
        ("an unescaped text", compared_with_text(r#""a""#, r#""b""#)),
    ] {
        let bytes = output.len();
        let output = ToolOutput::new(RawValue::from_string(output).unwrap(), false);
        let before = ALLOCATOR.current_usage() - bytes;
        ALLOCATOR.reset_peak_usage();
        let text = tool_output::to_text(&output);
        let peak = ALLOCATOR.peak_usage() - before;
        assert!(text.len() <= tool_output::MAX_OUTPUT_BYTES + 64, "{name}: {}", text.len());
        assert!(peak <= MAX_FACTOR * bytes, "{name}: {peak} bytes for {bytes}");
    }
}
