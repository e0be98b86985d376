//! Results as a message for the model, which has room for so much.

use super::calls::Executed;
use crate::words;

/// The longest message in bytes; about as much as the largest models read at once. What does not
/// fit is left out, and the line says so.
pub(super) const LENGTH: usize = 1 << 20;

/// The longest name of a tool in a line, in characters: as long as the protocol lets them be.
const NAME: usize = 128;

/// The line of one result, at most `room` bytes but for its head.
pub(super) fn line(executed: &Executed, room: usize) -> String {
    let tool: String = executed.tool.chars().take(NAME).collect();
    let (says, is_error) = match &executed.outcome {
        Ok(output) => (words::whole(output), output.is_error()),
        Err(error) => (error.to_string(), true),
    };
    let line = words::line(&tool, Some(executed.index), &says, is_error);
    if line.len() <= room {
        return line;
    }
    let why = format!("left out: it has {} bytes, which is too long to be read", line.len());
    words::line(&tool, Some(executed.index), &why, true)
}

/// The message of these lines; `None` of none.
pub(super) fn of<'l>(lines: impl Iterator<Item = &'l String>) -> Option<String> {
    let mut lines = lines.peekable();
    lines.peek()?;
    Some(words::lines(lines))
}
