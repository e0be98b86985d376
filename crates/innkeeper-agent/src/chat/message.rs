//! Results as a message for the model.
//!
//! One JSON object a line: what a tool says cannot end its line, and no line is in a form in which
//! models call tools.

use serde_json::{Value, json};

use super::calls::Executed;

/// The longest message in bytes; about as much as the largest models read at once. What does not
/// fit is left out, and the line says so.
pub(super) const LENGTH: usize = 1 << 20;

/// How long a line without its content may be; room for it is kept for every call.
const HEAD: usize = 512;

/// The line of one result, at most `room` bytes but for its head.
pub(super) fn line(executed: &Executed, room: usize) -> String {
    let tool: String = executed.tool.chars().take(HEAD / 4).collect();
    let line = match &executed.outcome {
        Ok(output) => {
            let result = content(output.raw().get());
            let key = if output.is_error() { "error" } else { "result" };
            json!({"result_of": tool, "call": executed.index, key: result})
        }
        Err(error) => {
            json!({"result_of": tool, "call": executed.index, "error": error.to_string()})
        }
    };
    let line = line.to_string();
    if line.len() <= room {
        return line;
    }
    let why = format!("left out: it has {} bytes, which is too long to be read", line.len());
    json!({"result_of": tool, "call": executed.index, "error": why}).to_string()
}

/// The message of these lines; `None` of none.
pub(super) fn of<'l>(lines: impl Iterator<Item = &'l String>) -> Option<String> {
    let mut text = String::new();
    for line in lines {
        text.push('\n');
        text.push_str(line);
    }
    (!text.is_empty()).then(|| format!("Results of the tools, one a line:{text}"))
}

/// The text of a result if it has nothing but text, which then says what structured content says;
/// else the result.
fn content(raw: &str) -> Value {
    let Ok(result) = serde_json::from_str::<Value>(raw) else {
        return Value::String(raw.to_owned());
    };
    match texts(&result) {
        Some(text) => Value::String(text),
        None => result,
    }
}

fn texts(result: &Value) -> Option<String> {
    let blocks = result.get("content")?.as_array().filter(|blocks| !blocks.is_empty())?;
    let texts = blocks.iter().map(|block| {
        let is_text = block.get("type").is_some_and(|kind| kind == "text");
        block.get("text").and_then(Value::as_str).filter(|_| is_text)
    });
    Some(texts.collect::<Option<Vec<_>>>()?.join("\n"))
}
