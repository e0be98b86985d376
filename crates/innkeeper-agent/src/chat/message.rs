//! Results as a message for the model, which has room for so much.

use innkeeper_toolcall::quoted;

use super::calls::Executed;
use crate::words;

/// The longest message in bytes; about as much as the largest models read at once. What does not
/// fit is left out, and the line says so.
pub(super) const LENGTH: usize = 1 << 20;

/// The longest name of a tool in a line, in bytes as it stands there: as long as the protocol lets
/// them be, twice, for the server's name stands before the tool's.
const NAME: usize = 256;

/// A result as a line of the message, or what stands there where it does not fit.
pub(super) struct Line {
    full: Option<String>,
    left_out: String,
}

impl Line {
    /// The line of a result for which there are at most `room` bytes. Of words that are longer than
    /// that, no line is made.
    pub(super) fn of(executed: &Executed, room: usize) -> Self {
        let tool = name(&executed.tool);
        let (says, is_error) = match &executed.outcome {
            Ok(output) => (words::whole(output), output.is_error()),
            Err(error) => (error.to_string(), true),
        };
        let why = format!("left out: it has {} bytes, which is too long to be read", says.len());
        let fits = says.len() <= room;
        let full = fits.then(|| words::line(&tool, Some(executed.index), &says, is_error));
        Self { full, left_out: words::line(&tool, Some(executed.index), &why, true) }
    }

    /// The line that stands where there are `room` bytes.
    pub(super) fn within(self, room: usize) -> String {
        self.full.filter(|line| line.len() <= room).unwrap_or(self.left_out)
    }
}

/// As much of a tool's name as a line has.
fn name(tool: &str) -> String {
    let mut name: String = tool.chars().take(NAME).collect();
    while quoted(&name).len() > NAME {
        name.pop();
    }
    name
}

/// The message of these lines; `None` of none.
pub(super) fn of<'l>(lines: impl Iterator<Item = &'l String>) -> Option<String> {
    let mut lines = lines.peekable();
    lines.peek()?;
    Some(words::lines(lines))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use innkeeper_toolcall::Json;
    use serde_json::json;

    use super::*;
    use crate::tools::Output;

    fn executed(tool: &str, index: usize, text: &str) -> Executed {
        let result = json!({"content": [{"type": "text", "text": text}]});
        let raw = serde_json::value::to_raw_value(&result).unwrap();
        Executed {
            index,
            tool: tool.to_owned(),
            arguments: Json::Null,
            outcome: Ok(Arc::new(Output::new(raw, false))),
            elapsed: Duration::ZERO,
            cached: false,
        }
    }

    #[test]
    fn a_line_is_there_where_it_fits_and_of_longer_words_none_is_made() {
        let done = executed("t", 0, "\u{7}".repeat(10).as_str());
        let line = Line::of(&done, LENGTH).within(LENGTH);
        assert_eq!(Line::of(&done, LENGTH).within(line.len()), line);
        let left_out = Line::of(&done, LENGTH).within(line.len() - 1);
        assert!(left_out.contains("left out: it has 10 bytes"), "{left_out}");
        assert!(Line::of(&done, 10).full.is_some() && Line::of(&done, 9).full.is_none());
        assert_eq!(Line::of(&done, 9).within(LENGTH), left_out);
    }

    #[test]
    fn the_line_of_what_is_left_out_has_at_most_400_bytes() {
        for tool in ["\u{e0041}".repeat(1000), "n".repeat(1000), "<|".repeat(1000)] {
            let line = Line::of(&executed(&tool, usize::MAX, &"x".repeat(LENGTH)), 0).within(0);
            assert!((200..=400).contains(&line.len()), "{} of {line}", line.len());
        }
        let usual = format!("{}.{}", "s".repeat(120), "t".repeat(128));
        assert_eq!(name(&usual), usual, "a name of the usual characters is whole");
    }
}
