//! What a server writes to stderr: always drained, its end kept, its lines handed on at a limited
//! rate.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

use super::session::Pace;
use crate::text::display_safe;

/// The bytes kept of the end: enough for a stack trace, and 100 servers stay under 7 MB.
const KEPT_BYTES: usize = 64 << 10;

/// The longest line handed on in bytes; the rest of a longer line is dropped.
const LINE_BYTES: usize = 8 << 10;

/// The lines handed on within a second: a start that logs much passes, a flood does not.
const LINES_PER_SECOND: u32 = 50;

/// The bytes taken by one read.
const READ_BYTES: usize = 16 << 10;

/// The end of what a server has written to stderr; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct StderrTail(Arc<Mutex<VecDeque<u8>>>);

impl StderrTail {
    /// Reads `source` until it ends, whatever is done with the lines. `line` gets each line
    /// without its end, escaped for display; lines over the rate are counted, and one line tells
    /// how many there were.
    pub(crate) async fn drain(
        &self,
        mut source: impl AsyncRead + Unpin,
        mut line: impl FnMut(&str),
    ) {
        let mut lines = Lines::default();
        let mut rate = Rate::new();
        // Its room is not touched, and takes no memory, before something is read.
        let pace = Pace::new();
        let mut bytes = Vec::with_capacity(READ_BYTES);
        loop {
            let read = match rate.summary_due() {
                None => source.read_buf(&mut bytes).await,
                Some(due) => match timeout_at(due, source.read_buf(&mut bytes)).await {
                    Ok(read) => read,
                    Err(_) => {
                        rate.summarise(&mut line);
                        continue;
                    }
                },
            };
            match read {
                Ok(0) => break,
                Ok(_) => {
                    self.keep(&bytes);
                    lines.split(&bytes, |text| rate.pass(text, &mut line));
                    pace.count(bytes.len() as u64);
                    bytes.clear();
                    if pace.is_over() {
                        pace.rest().await;
                    }
                    // The runtime would let a flood take its thread for 128 reads.
                    tokio::task::yield_now().await;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        lines.finish(|text| rate.pass(text, &mut line));
        rate.summarise(&mut line);
    }

    /// The last lines, escaped for display: at most `max_bytes` of what the server wrote, begun at
    /// a line if one begins there.
    pub(crate) fn tail(&self, max_bytes: usize) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let from = kept.len().saturating_sub(max_bytes);
        let mut bytes: Vec<u8> = kept.range(from..).copied().collect();
        drop(kept);
        if from > 0 {
            let line = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            if line < bytes.len() {
                bytes.drain(..line);
            }
        }
        display_safe(String::from_utf8_lossy(&bytes).trim_end()).into_owned()
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = &bytes[bytes.len().saturating_sub(KEPT_BYTES)..];
        let over = (kept.len() + bytes.len()).saturating_sub(KEPT_BYTES);
        kept.drain(..over);
        kept.extend(bytes);
    }
}

/// Cuts bytes into lines of bounded length.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    fn split(&mut self, bytes: &[u8], mut line: impl FnMut(&[u8])) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            let room = LINE_BYTES.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(&text[..text.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.finish(&mut line);
            }
        }
    }

    fn finish(&mut self, mut line: impl FnMut(&[u8])) {
        let text = self.begun.strip_suffix(b"\r").unwrap_or(&self.begun);
        if !text.is_empty() {
            line(text);
        }
        self.begun.clear();
    }
}

/// Lets so many lines through each second and counts the others.
struct Rate {
    second: Instant,
    passed: u32,
    held_back: u64,
}

impl Rate {
    fn new() -> Self {
        Self { second: Instant::now(), passed: 0, held_back: 0 }
    }

    /// Escapes what it lets through, and spends no time on the rest.
    fn pass(&mut self, text: &[u8], line: &mut impl FnMut(&str)) {
        if self.second.elapsed() >= Duration::from_secs(1) {
            self.summarise(line);
            *self = Self::new();
        }
        if self.passed < LINES_PER_SECOND {
            self.passed += 1;
            line(&display_safe(&String::from_utf8_lossy(text)));
        } else {
            self.held_back += 1;
        }
    }

    fn summary_due(&self) -> Option<Instant> {
        (self.held_back > 0).then(|| self.second + Duration::from_secs(1))
    }

    fn summarise(&mut self, line: &mut impl FnMut(&str)) {
        if self.held_back > 0 {
            line(&format!("({} more lines were not logged)", self.held_back));
            self.held_back = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    async fn drained(bytes: &[u8]) -> (StderrTail, Vec<String>) {
        let (tail, mut lines) = (StderrTail::default(), Vec::new());
        tail.drain(bytes, |line| lines.push(line.to_owned())).await;
        (tail, lines)
    }

    #[tokio::test(start_paused = true)]
    async fn lines_are_handed_on_escaped_and_the_last_one_without_its_end_too() {
        let (tail, lines) = drained(b"one\r\n\n\x1b[31mtwo\nthr\xffee").await;
        assert_eq!(lines, ["one", "\\u{1b}[31mtwo", "thr\u{fffd}ee"]);
        assert_eq!(tail.tail(9), "\\u{1b}[31mtwo\nthr\u{fffd}ee".split_once('\n').unwrap().1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_at_the_limit_is_whole_and_one_byte_more_is_cut() {
        let (_, lines) = drained(&[vec![b'a'; LINE_BYTES], b"\nnext\n".to_vec()].concat()).await;
        assert_eq!((lines[0].len(), lines[1].as_str()), (LINE_BYTES, "next"));
        let (_, lines) =
            drained(&[vec![b'a'; LINE_BYTES + 1], b"\nnext\n".to_vec()].concat()).await;
        assert_eq!((lines[0].len(), lines[1].as_str()), (LINE_BYTES, "next"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_endless_line_stays_bounded_and_its_end_is_kept() {
        let (tail, lines) =
            drained(&[vec![b'x'; 4 * KEPT_BYTES], b"the end".to_vec()].concat()).await;
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].len(), LINE_BYTES);
        assert_eq!(tail.tail(usize::MAX).len(), KEPT_BYTES);
        assert!(tail.tail(100).ends_with("the end"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_lines_is_counted_and_told_once_a_second() {
        let (mut server, source) = tokio::io::duplex(1 << 20);
        let (tail, mut lines) = (StderrTail::default(), Vec::new());
        let flood = "flood\n".repeat(LINES_PER_SECOND as usize + 7);
        let writes = async {
            server.write_all(flood.as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2500)).await;
            server.write_all(b"later\n").await.unwrap();
            drop(server);
        };
        tokio::join!(writes, tail.drain(source, |line| lines.push(line.to_owned())));
        assert_eq!(lines.len(), LINES_PER_SECOND as usize + 2);
        assert_eq!(lines[LINES_PER_SECOND as usize..], ["(7 more lines were not logged)", "later"]);
    }
}
