//! What surrounds a place in text: quotes, back-ticks, fenced blocks, the beginning of a line.

/// How much of a line is looked back at, in bytes. A quotation that began before is forgotten.
const LINE: usize = 256;

/// When the kept text is cut back to `LINE`.
const KEPT: usize = 4 * LINE;

/// The end of the text that was shown so far.
#[derive(Debug, Default)]
pub(super) struct Context {
    tail: Vec<u8>,
    /// Whether a fenced block is open that is no call.
    pub(super) in_fence: bool,
}

impl Context {
    /// Text has been shown.
    pub(super) fn push(&mut self, text: &str) {
        let bytes = text.as_bytes();
        if bytes.len() >= LINE {
            self.tail.clear();
            self.tail.extend_from_slice(&bytes[bytes.len() - LINE..]);
            return;
        }
        if self.tail.len() + bytes.len() > KEPT {
            let cut = self.tail.len() - LINE;
            self.tail.drain(..cut);
        }
        self.tail.extend_from_slice(bytes);
    }

    /// A new part begins: what came before is not on the same line.
    pub(super) fn reset(&mut self) {
        self.tail.clear();
    }

    /// The line so far, with what is not pushed yet.
    fn line(&self, fresh: &str) -> Vec<u8> {
        let fresh = fresh.as_bytes();
        let fresh = &fresh[fresh.len().saturating_sub(LINE)..];
        let room = LINE - fresh.len();
        let mut line = self.tail[self.tail.len().saturating_sub(room)..].to_vec();
        line.extend_from_slice(fresh);
        let from = memchr::memrchr(b'\n', &line).map_or(0, |end| end + 1);
        line.split_off(from)
    }

    /// Whether nothing but white space stands before this place on its line.
    pub(super) fn begins_line(&self, fresh: &str) -> bool {
        self.line(fresh).iter().all(u8::is_ascii_whitespace)
    }

    /// Whether a fenced block may begin here: behind white space, and behind what marks the items
    /// of a list or a quotation.
    pub(super) fn begins_block(&self, fresh: &str) -> bool {
        self.line(fresh).iter().all(|byte| b" \t\r>-*+.)0123456789".contains(byte))
    }

    /// Whether this place is in back-ticks.
    pub(super) fn in_code(&self, fresh: &str) -> bool {
        let line = self.line(fresh);
        let runs = line.split(|byte| *byte != b'`').filter(|run| !run.is_empty()).count();
        runs % 2 == 1
    }

    /// Whether this place is in a quotation that began on its line, or the line is one.
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
                // An apostrophe follows a letter; a quotation does not.
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

    fn after(text: &str) -> Context {
        let mut context = Context::default();
        context.push(text);
        context
    }

    #[test]
    fn an_apostrophe_opens_no_quotation_and_a_line_end_closes_one() {
        assert!(!after("I'll call ").in_quotes("it's "));
        assert!(after("say \"").in_quotes(""));
        assert!(after("say ").in_quotes("'x"));
        assert!(!after("say \"hi\" ").in_quotes(""));
        assert!(!after("say \"\n").in_quotes("then "));
    }

    #[test]
    fn back_ticks_count_on_their_own_line_only() {
        assert!(after("use `").in_code("x "));
        assert!(!after("use `x` ").in_code(""));
        assert!(!after("use `\n").in_code("x"));
    }

    #[test]
    fn a_line_begins_after_its_white_space() {
        assert!(after("text\n").begins_line("  "));
        assert!(after("").begins_line(""));
        assert!(!after("text ").begins_line(""));
    }

    #[test]
    fn what_lies_further_back_than_the_limit_is_forgotten() {
        let far = format!("\"{}", "x".repeat(LINE));
        assert!(!after(&far).in_quotes(""));
        let near = format!("\"{}", "x".repeat(LINE - 1));
        assert!(after(&near).in_quotes(""));
    }
}
