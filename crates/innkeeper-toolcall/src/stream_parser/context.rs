//! Context of a position in text: quotes, back-ticks, fences and line starts.

/// Maximum number of bytes to look back on a line. Earlier quotations are ignored.
const MAX_LINE_BYTES: usize = 256;

/// Length at which the stored text is shortened to `MAX_LINE_BYTES`.
const MAX_TAIL_BYTES: usize = 4 * MAX_LINE_BYTES;

/// The end of the emitted text.
#[derive(Debug, Default)]
pub(super) struct TextContext {
    tail: Vec<u8>,
    /// Whether a fenced block is open that is not a call.
    pub(super) in_fence: bool,
}

impl TextContext {
    /// Adds emitted text.
    pub(super) fn push(&mut self, text: &str) {
        let bytes = text.as_bytes();
        if bytes.len() >= MAX_LINE_BYTES {
            self.tail.clear();
            self.tail.extend_from_slice(&bytes[bytes.len() - MAX_LINE_BYTES..]);
            return;
        }
        if self.tail.len() + bytes.len() > MAX_TAIL_BYTES {
            let excess = self.tail.len() - MAX_LINE_BYTES;
            self.tail.drain(..excess);
        }
        self.tail.extend_from_slice(bytes);
    }

    /// Starts a new section. The previous text is not on the same line.
    pub(super) fn reset(&mut self) {
        self.tail.clear();
    }

    /// Returns the current line, including `fresh`, which is not yet emitted.
    fn line(&self, fresh: &str) -> Vec<u8> {
        let fresh = fresh.as_bytes();
        let fresh = &fresh[fresh.len().saturating_sub(MAX_LINE_BYTES)..];
        let remaining = MAX_LINE_BYTES - fresh.len();
        let mut line = self.tail[self.tail.len().saturating_sub(remaining)..].to_vec();
        line.extend_from_slice(fresh);
        let from = memchr::memrchr(b'\n', &line).map_or(0, |end| end + 1);
        line.split_off(from)
    }

    /// Whether only white space precedes this position on its line.
    pub(super) fn is_at_line_start(&self, fresh: &str) -> bool {
        self.line(fresh).iter().all(u8::is_ascii_whitespace)
    }

    /// Whether a fenced block may start here: after white space, list markers or quotation markers.
    pub(super) fn is_at_block_start(&self, fresh: &str) -> bool {
        self.line(fresh).iter().all(|byte| b" \t\r>-*+.)0123456789".contains(byte))
    }

    /// Whether this position is in back-ticks.
    pub(super) fn in_code(&self, fresh: &str) -> bool {
        let line = self.line(fresh);
        let runs = line.split(|byte| *byte != b'`').filter(|run| !run.is_empty()).count();
        runs % 2 == 1
    }

    /// Whether this position is in a quotation that started on the same line, or the line is a
    /// quotation.
    pub(super) fn in_quotes(&self, fresh: &str) -> bool {
        let line = self.line(fresh);
        let line = String::from_utf8_lossy(&line);
        let mut open = None;
        let mut before = ' ';
        for letter in line.chars() {
            let closes = open == Some(letter);
            open = match letter {
                _ if closes => None,
                _ if open.is_some() => open,
                // An apostrophe follows a letter; an opening quotation mark does not.
                '"' | '\'' if !before.is_alphanumeric() => Some(letter),
                '“' => Some('”'),
                '„' => Some('“'),
                '«' => Some('»'),
                _ => open,
            };
            before = letter;
        }
        open.is_some() || line.trim_start().starts_with('>')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context_after(text: &str) -> TextContext {
        let mut context = TextContext::default();
        context.push(text);
        context
    }

    #[test]
    fn an_apostrophe_opens_no_quotation_and_a_line_end_closes_one() {
        assert!(!context_after("I'll call ").in_quotes("it's "));
        assert!(context_after("say \"").in_quotes(""));
        assert!(context_after("say ").in_quotes("'x"));
        assert!(!context_after("say \"hi\" ").in_quotes(""));
        assert!(!context_after("say \"\n").in_quotes("then "));
    }

    #[test]
    fn back_ticks_count_on_their_own_line_only() {
        assert!(context_after("use `").in_code("x "));
        assert!(!context_after("use `x` ").in_code(""));
        assert!(!context_after("use `\n").in_code("x"));
    }

    #[test]
    fn a_line_begins_after_its_white_space() {
        assert!(context_after("text\n").is_at_line_start("  "));
        assert!(context_after("").is_at_line_start(""));
        assert!(!context_after("text ").is_at_line_start(""));
    }

    #[test]
    fn what_lies_further_back_than_the_limit_is_forgotten() {
        let long_line = format!("\"{}", "x".repeat(MAX_LINE_BYTES));
        assert!(!context_after(&long_line).in_quotes(""));
        let near = format!("\"{}", "x".repeat(MAX_LINE_BYTES - 1));
        assert!(context_after(&near).in_quotes(""));
    }
}
