//! Context of a position in text: quotes, back-ticks, fences and line starts.

use crate::sanitize::is_blank;

/// Maximum number of bytes to look back on a line. Earlier quotations are ignored.
const MAX_LINE_BYTES: usize = 256;

/// Length at which the stored text is shortened to `MAX_LINE_BYTES`.
const MAX_TAIL_BYTES: usize = 4 * MAX_LINE_BYTES;

/// The end of the emitted text.
#[derive(Debug, Default)]
pub(super) struct TextContext {
    tail: Vec<u8>,
    /// Whether the last section was an inline call whose line has not ended.
    follows_inline_call: bool,
    /// The number of back-ticks that opened a fenced block that is not a call; only as many or more
    /// of them close it, so that a block can show another one.
    pub(super) open_fence: Option<usize>,
}

impl TextContext {
    /// Adds emitted text.
    #[inline]
    pub(super) fn push(&mut self, text: &str) {
        if self.follows_inline_call || self.tail.len() + text.len() > MAX_TAIL_BYTES {
            return self.push_to_full(text.as_bytes());
        }
        self.tail.extend_from_slice(text.as_bytes());
    }

    /// Adds text and removes what is further back than the limit. A function of its own, because most
    /// chunks fit.
    #[inline(never)]
    fn push_to_full(&mut self, bytes: &[u8]) {
        if self.follows_inline_call && bytes.contains(&b'\n') {
            self.follows_inline_call = false;
        }
        let fresh = last_bytes(bytes, MAX_LINE_BYTES);
        let excess = self.tail.len().saturating_sub(MAX_LINE_BYTES - fresh.len());
        self.tail.drain(..excess);
        self.tail.extend_from_slice(fresh);
    }

    /// Returns the last byte of the emitted text.
    pub(super) fn last_byte(&self) -> Option<u8> {
        self.tail.last().copied()
    }

    /// Starts a new section. The previous text is not on the same line.
    pub(super) fn reset(&mut self) {
        self.tail.clear();
        self.follows_inline_call = false;
    }

    /// Starts the text after a call.
    pub(super) fn reset_after_call(&mut self, inline: bool) {
        self.tail.clear();
        self.follows_inline_call = inline;
    }

    /// Whether this position, at the end of the emitted text, has other text before it on its line.
    pub(super) fn is_inline(&self) -> bool {
        self.follows_inline_call || !self.is_at_line_start("")
    }

    /// Returns the current line in two parts; the second part is not yet emitted.
    fn line<'t>(&'t self, fresh: &'t str) -> [&'t [u8]; 2] {
        let fresh = last_bytes(fresh.as_bytes(), MAX_LINE_BYTES);
        if let Some(end) = memchr::memrchr(b'\n', fresh) {
            return [&[], &fresh[end + 1..]];
        }
        let tail = last_bytes(&self.tail, MAX_LINE_BYTES - fresh.len());
        let from = memchr::memrchr(b'\n', tail).map_or(0, |end| end + 1);
        [&tail[from..], fresh]
    }

    /// Opens or closes a fenced block at a line that starts with a fence.
    pub(super) fn pass_fence(&mut self, line: FenceLine) {
        match (self.open_fence, line.after) {
            (Some(open), FenceText::Blank) if line.ticks >= open => self.open_fence = None,
            (None, FenceText::Blank | FenceText::Language) => self.open_fence = Some(line.ticks),
            (Some(_) | None, _) => {}
        }
    }

    /// Whether only white space precedes this position on its line.
    pub(super) fn is_at_line_start(&self, fresh: &str) -> bool {
        match self.last_byte_before(fresh, |byte| byte.is_ascii_whitespace()) {
            None | Some(b'\n') => true,
            Some(byte) if byte.is_ascii_graphic() => false,
            Some(_) => self.line(fresh).into_iter().all(is_blank_line),
        }
    }

    /// Returns the last byte before this position that ends a line or is not passed over; `None` at
    /// the start of the text and where the limit of a line is reached.
    fn last_byte_before(&self, fresh: &str, is_passed: impl Fn(u8) -> bool) -> Option<u8> {
        let before = fresh.bytes().rev().chain(self.tail.iter().rev().copied());
        before.take(MAX_LINE_BYTES).find(|byte| *byte == b'\n' || !is_passed(*byte))
    }

    /// Whether the line up to this position contains `text`.
    pub(super) fn line_contains(&self, fresh: &str, text: &str) -> bool {
        let line = self.line(fresh);
        // Most lines have not even its first byte.
        line.iter().any(|part| memchr::memchr(text.as_bytes()[0], part).is_some())
            && memchr::memmem::find(&line.concat(), text.as_bytes()).is_some()
    }

    /// Whether a fenced block may start here: after white space, list markers or quotation markers.
    pub(super) fn is_at_block_start(&self, fresh: &str) -> bool {
        const BLOCK_MARKS: &str = ">-*+.)0123456789";
        match self.last_byte_before(fresh, |byte| {
            byte.is_ascii_whitespace() || BLOCK_MARKS.as_bytes().contains(&byte)
        }) {
            None | Some(b'\n') => true,
            Some(byte) if byte.is_ascii_graphic() => false,
            Some(_) => self.line(fresh).into_iter().all(|part| {
                is_blank(
                    &String::from_utf8_lossy(part).replace(|mark| BLOCK_MARKS.contains(mark), " "),
                )
            }),
        }
    }

    /// Whether this position is in back-ticks or in a quotation.
    pub(super) fn is_quoted(&self, fresh: &str) -> bool {
        let line = self.line(fresh);
        in_code(line) || in_quotes(line)
    }
}

/// Whether the part of a line has only white space and invisible characters.
fn is_blank_line(part: &[u8]) -> bool {
    let visible = part.iter().position(|byte| !byte.is_ascii_whitespace());
    visible.is_none_or(|from| {
        !part[from].is_ascii_graphic() && is_blank(&String::from_utf8_lossy(&part[from..]))
    })
}

/// A line that starts with a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FenceLine {
    /// The number of back-ticks.
    pub(super) ticks: usize,
    /// The text after them on the line.
    after: FenceText,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FenceText {
    /// White space: the line opens or closes a block.
    Blank,
    /// A language, which only an opening line has.
    Language,
    /// More back-ticks: the line is code in a sentence.
    Code,
}

/// Maximum number of bytes of a fence's line that are read after its back-ticks.
const MAX_FENCE_LINE_BYTES: usize = 128;

/// Number of back-ticks in a row that are no fence. Without a limit, each chunk of an endless row would
/// count them all again.
const MAX_FENCE_TICKS: usize = 128;

/// Reads a line from its fence on; `None` if more text decides.
pub(super) fn fence_line(text: &str, is_ended: bool) -> Option<FenceLine> {
    let ticks = text.bytes().take(MAX_FENCE_TICKS).take_while(|byte| *byte == b'`').count();
    if ticks == MAX_FENCE_TICKS {
        return Some(FenceLine { ticks, after: FenceText::Code });
    }
    let rest = &text.as_bytes()[ticks..];
    // The decision must not depend on how much text happens to be there.
    let window = &rest[..rest.len().min(MAX_FENCE_LINE_BYTES)];
    let mut after = FenceText::Blank;
    // Most lines have a short word or nothing here, so a loop is faster than a search.
    for byte in window {
        match byte {
            b'\n' => return Some(FenceLine { ticks, after }),
            b'`' => after = FenceText::Code,
            _ if after == FenceText::Blank && !byte.is_ascii_whitespace() => {
                after = FenceText::Language;
            }
            _ => {}
        }
    }
    let is_decided = is_ended || window.len() < rest.len();
    is_decided.then_some(FenceLine { ticks, after })
}

/// Whether the end of a line is in back-ticks.
fn in_code(line: [&[u8]; 2]) -> bool {
    if line.iter().all(|part| memchr::memchr(b'`', part).is_none()) {
        return false;
    }
    let mut runs = 0;
    let mut in_run = false;
    for byte in line.into_iter().flatten() {
        let is_tick = *byte == b'`';
        runs += usize::from(is_tick && !in_run);
        in_run = is_tick;
    }
    runs % 2 == 1
}

/// Whether the end of a line is in a quotation that started on the same line, or the line is a
/// quotation.
fn in_quotes(line: [&[u8]; 2]) -> bool {
    if line.iter().all(|part| part.is_ascii() && memchr::memchr2(b'"', b'\'', part).is_none()) {
        let first = line.into_iter().flatten().find(|byte| !char::from(**byte).is_whitespace());
        return first == Some(&b'>');
    }
    let line = line.concat();
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

/// Returns the last `count` bytes, or all.
fn last_bytes(bytes: &[u8], count: usize) -> &[u8] {
    &bytes[bytes.len().saturating_sub(count)..]
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
        assert!(!context_after("I'll call ").is_quoted("it's "));
        assert!(context_after("say \"").is_quoted(""));
        assert!(context_after("say ").is_quoted("'x"));
        assert!(!context_after("say \"hi\" ").is_quoted(""));
        assert!(!context_after("say \"\n").is_quoted("then "));
    }

    #[test]
    fn back_ticks_count_on_their_own_line_only() {
        assert!(context_after("use `").is_quoted("x "));
        assert!(!context_after("use `x` ").is_quoted(""));
        assert!(!context_after("use `\n").is_quoted("x"));
    }

    #[test]
    fn a_block_is_closed_by_as_many_back_ticks_as_opened_it() {
        let open_after = |lines: &[&str]| {
            let mut context = TextContext::default();
            lines.iter().for_each(|line| context.pass_fence(fence_line(line, true).unwrap()));
            context.open_fence
        };
        assert_eq!(open_after(&["````markdown", "```", "```"]), Some(4));
        assert_eq!(open_after(&["````markdown", "```", "`````"]), None);
        assert_eq!(open_after(&["```", "```json"]), Some(3));
        assert_eq!(open_after(&["```code``` is code"]), None);
        assert_eq!(fence_line("```js", false), None);
    }

    #[test]
    fn a_long_row_of_back_ticks_is_no_fence_and_waits_for_no_more() {
        let row = |ticks| "`".repeat(ticks);
        assert_eq!(fence_line(&row(MAX_FENCE_TICKS - 1), false), None);
        let is_code = |text: &str| {
            let line = fence_line(text, false);
            line.is_some_and(|line| line.after == FenceText::Code && line.ticks == MAX_FENCE_TICKS)
        };
        assert!(is_code(&row(MAX_FENCE_TICKS)));
        assert!(is_code(&format!("{}rust\n", row(10 * MAX_FENCE_TICKS))));
    }

    #[test]
    fn a_line_begins_after_its_white_space() {
        assert!(context_after("text\n").is_at_line_start("  "));
        assert!(context_after("").is_at_line_start(""));
        assert!(context_after("\u{feff}").is_at_line_start("\u{a0}\u{200b} "));
        assert!(!context_after("text ").is_at_line_start(""));
    }

    #[test]
    fn what_lies_further_back_than_the_limit_is_forgotten() {
        let long_line = format!("\"{}", "x".repeat(MAX_LINE_BYTES));
        assert!(!context_after(&long_line).is_quoted(""));
        let near = format!("\"{}", "x".repeat(MAX_LINE_BYTES - 1));
        assert!(context_after(&near).is_quoted(""));
    }
}
