//! Formats results as a message of limited size.

use innkeeper_toolcall::quote_for_prompt;

use crate::executor::ToolExecution;
use crate::tool_output;

/// Maximum number of bytes in a message, about the context of the largest models. The line of a
/// result that does not fit says so.
pub(super) const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Maximum number of bytes in a tool's name, as encoded in a line: twice the protocol's limit,
/// because the server's name precedes the tool's.
const MAX_NAME_BYTES: usize = 256;

/// The line of a result, with a shorter line in case the first does not fit.
pub(super) struct ResultLine {
    full: Option<String>,
    omitted: String,
}

impl ResultLine {
    /// Formats a result for which the message can hold at most `room` bytes. The full line is not
    /// made if the text alone is longer.
    pub(super) fn new(execution: &ToolExecution, max_bytes: usize) -> Self {
        let tool = truncate_name(&execution.tool);
        let (text, is_error) = match &execution.outcome {
            Ok(output) => (tool_output::to_full_text(output), output.is_error()),
            Err(error) => (error.to_string(), true),
        };
        let notice =
            format!("omitted: the {} bytes of the result do not fit in this message", text.len());
        let fits = text.len() <= max_bytes;
        let full =
            fits.then(|| tool_output::result_line(&tool, Some(execution.index), &text, is_error));
        Self {
            full,
            omitted: tool_output::result_line(&tool, Some(execution.index), &notice, true),
        }
    }

    /// Returns the full line if the line has at most `room` bytes, else the line that says that the
    /// result is omitted.
    pub(super) fn into_string_within(self, max_bytes: usize) -> String {
        self.full.filter(|line| line.len() <= max_bytes).unwrap_or(self.omitted)
    }
}

/// Truncates a tool's name to the maximum length in a line.
fn truncate_name(tool: &str) -> String {
    let mut name: String = tool.chars().take(MAX_NAME_BYTES).collect();
    while quote_for_prompt(&name).len() > MAX_NAME_BYTES {
        name.pop();
    }
    name
}

/// Joins the lines to a message; `None` without lines.
pub(super) fn results_message<'l>(lines: impl Iterator<Item = &'l String>) -> Option<String> {
    let mut lines = lines.peekable();
    lines.peek()?;
    Some(tool_output::results_message(lines))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use innkeeper_toolcall::Json;
    use serde_json::json;

    use super::*;
    use crate::tools::ToolOutput;

    fn execution(tool: &str, index: usize, text: &str) -> ToolExecution {
        let result = json!({"content": [{"type": "text", "text": text}]});
        let raw = serde_json::value::to_raw_value(&result).unwrap();
        ToolExecution {
            has_changed_arguments: false,
            index,
            tool: tool.to_owned(),
            arguments: Json::Null,
            outcome: Ok(Arc::new(ToolOutput::new(raw, false))),
            elapsed: Duration::ZERO,
            cached: false,
        }
    }

    #[test]
    fn a_line_is_there_where_it_fits_and_of_longer_words_none_is_made() {
        let done = execution("t", 0, "\u{7}".repeat(10).as_str());
        let line = ResultLine::new(&done, MAX_MESSAGE_BYTES).into_string_within(MAX_MESSAGE_BYTES);
        assert!(!line.contains("omitted"), "{line}");
        assert_eq!(ResultLine::new(&done, MAX_MESSAGE_BYTES).into_string_within(line.len()), line);
        let notice = ResultLine::new(&done, MAX_MESSAGE_BYTES).into_string_within(line.len() - 1);
        assert!(notice.contains("omitted: the 10 bytes of the result"), "{notice}");
        assert!(
            ResultLine::new(&done, 10).full.is_some() && ResultLine::new(&done, 9).full.is_none()
        );
        assert_eq!(ResultLine::new(&done, 9).into_string_within(MAX_MESSAGE_BYTES), notice);
    }

    #[test]
    fn the_line_of_what_is_left_out_has_at_most_400_bytes() {
        for tool in ["\u{e0041}".repeat(1000), "n".repeat(1000), "<|".repeat(1000)] {
            let line =
                ResultLine::new(&execution(&tool, usize::MAX, &"x".repeat(MAX_MESSAGE_BYTES)), 0)
                    .into_string_within(0);
            assert!((200..=400).contains(&line.len()), "{} of {line}", line.len());
        }
        let usual = format!("{}.{}", "s".repeat(120), "t".repeat(128));
        assert_eq!(truncate_name(&usual), usual, "a name of the usual characters is whole");
    }
}
