//! Newline framing: bytes in any chunks become lines, and no line grows without bound.
//!
//! The caller owns reading: it appends what it reads to [`LineFramer::space`] and takes lines from
//! [`LineFramer::next_frame`] until there is none.

#[cfg(test)]
mod tests;

use memchr::memchr;

/// The longest line kept unless the caller says otherwise: 16 MiB, what peers accept as well.
pub const DEFAULT_LINE_LIMIT: usize = 16 * 1024 * 1024;

/// How much of a line that is too long is handed out: enough to find the id that comes first in
/// what every known server writes.
pub const HEAD_LIMIT: usize = 4 * 1024;

/// One read: what a pipe holds by default.
const READ: usize = 64 * 1024;
/// Less room than this at the end of the buffer is not worth a read.
const MIN_SPACE: usize = 16 * 1024;
/// A buffer above this is given back as soon as it is empty.
const KEEP: usize = 4 * 1024 * 1024;
/// A buffer above one read is given back after so many reads that would have fitted in one: a
/// server that answers with long lines all the time keeps it, one that did once does not.
const CALM_READS: u32 = 16;

/// What the framer cuts out of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// One line without its line ending and without a byte order mark; never blank.
    Line(&'a [u8]),
    /// A line that crossed the limit; said once, as soon as it did. The rest of it is dropped.
    TooLong {
        /// How the line starts, at most [`HEAD_LIMIT`] bytes.
        head: &'a [u8],
    },
}

/// Cuts a stream of bytes into lines.
///
/// A line ends at `\n`; a `\r` before it and a byte order mark at the line's start are dropped, and
/// lines of nothing but white space are skipped. The limit counts every byte before the `\n`.
pub struct LineFramer {
    /// What was read; its room is not touched before something is, so that an idle server's costs
    /// nothing.
    buffer: Vec<u8>,
    /// First byte not yet handed out.
    start: usize,
    /// First byte not yet searched for a newline.
    searched: usize,
    limit: usize,
    discarding: bool,
    discarded: u64,
    calm_reads: u32,
}

impl LineFramer {
    /// A framer for lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            limit,
            discarding: false,
            discarded: 0,
            calm_reads: 0,
        }
    }

    /// Where the next read is to be appended; never without room.
    ///
    /// The buffer grows with the line it holds, never past the limit and one read (64 KiB), as
    /// long as the caller takes every frame before asking for more space and appends no more than
    /// there is room for. What is in it already is not the caller's: a caller that takes it away
    /// makes the next call panic.
    pub fn space(&mut self) -> &mut Vec<u8> {
        let pending = self.pending();
        self.calm_reads = if pending < READ { self.calm_reads.saturating_add(1) } else { 0 };
        if pending == 0 {
            self.start = 0;
            self.searched = 0;
            self.buffer.clear();
            self.shrink();
        }
        if self.room() < MIN_SPACE {
            self.make_room();
        }
        &mut self.buffer
    }

    /// The next line, if one is complete or has become too long.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        let found = self.next_found()?;
        Some(self.frame(&found))
    }

    /// The last lines at the end of the input, whether or not a newline ended them; call it until
    /// it returns `None`.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        let found = self.next_found().or_else(|| self.rest())?;
        Some(self.frame(&found))
    }

    /// Whether nothing of a line is held.
    pub fn is_empty(&self) -> bool {
        self.pending() == 0
    }

    /// How many bytes of lines that were too long have been dropped, without their newlines.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    fn next_found(&mut self) -> Option<Found> {
        loop {
            let Some(offset) = memchr(b'\n', &self.buffer[self.searched..]) else {
                return self.unfinished();
            };
            let line = self.start..self.searched + offset;
            self.start = line.end + 1;
            self.searched = self.start;
            if self.discarding {
                self.discarding = false;
                self.discarded += line.len() as u64;
            } else if line.len() > self.limit {
                self.discarded += line.len() as u64;
                return Some(self.too_long(line.start));
            } else if let Some(line) = self.trimmed(line.start, line.end) {
                return Some(line);
            }
        }
    }

    /// No newline is left: the rest waits for more, unless there is already too much of it.
    fn unfinished(&mut self) -> Option<Found> {
        self.searched = self.buffer.len();
        let line = self.start;
        let length = self.pending();
        if !self.discarding && length <= self.limit {
            return None;
        }
        self.discarded += length as u64;
        self.start = self.buffer.len();
        if self.discarding {
            return None;
        }
        self.discarding = true;
        Some(self.too_long(line))
    }

    fn rest(&mut self) -> Option<Found> {
        let line = self.start;
        self.start = self.buffer.len();
        self.trimmed(line, self.start)
    }

    fn too_long(&self, start: usize) -> Found {
        let end = start + self.limit.min(HEAD_LIMIT);
        Found { start: self.after_mark(start, end), end, whole: false }
    }

    fn trimmed(&self, start: usize, end: usize) -> Option<Found> {
        let start = self.after_mark(start, end);
        let line = &self.buffer[start..end];
        let end = if line.ends_with(b"\r") { end - 1 } else { end };
        let blank = line.iter().all(u8::is_ascii_whitespace);
        (!blank).then_some(Found { start, end, whole: true })
    }

    fn after_mark(&self, start: usize, end: usize) -> usize {
        const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
        let marked = self.buffer[start..end].starts_with(BYTE_ORDER_MARK);
        if marked { start + BYTE_ORDER_MARK.len() } else { start }
    }

    fn frame(&self, found: &Found) -> Frame<'_> {
        let bytes = &self.buffer[found.start..found.end];
        if found.whole { Frame::Line(bytes) } else { Frame::TooLong { head: bytes } }
    }

    fn shrink(&mut self) {
        let outgrown = self.buffer.capacity() > READ && self.calm_reads >= CALM_READS;
        if outgrown || self.buffer.capacity() > KEEP {
            self.buffer = Vec::new();
        }
    }

    fn pending(&self) -> usize {
        self.buffer.len() - self.start
    }

    fn room(&self) -> usize {
        self.buffer.capacity() - self.buffer.len()
    }

    fn make_room(&mut self) {
        let (pending, size) = (self.pending(), self.buffer.capacity());
        let most = self.limit.saturating_add(READ);
        // Moving less than half of the buffer frees more than was moved, so that every byte is
        // moved about once however small the lines are.
        if self.start > 0 && (pending <= size / 2 || size >= most) {
            self.move_to_front();
        }
        if self.room() < MIN_SPACE {
            self.move_to_front();
            let size = (size * 2).clamp(READ, most.max(READ));
            // A caller that leaves frames untaken gets space all the same.
            let size = size.max(pending + MIN_SPACE);
            self.buffer.reserve_exact(size - pending);
        }
    }

    fn move_to_front(&mut self) {
        self.buffer.copy_within(self.start.., 0);
        self.buffer.truncate(self.pending());
        self.searched -= self.start;
        self.start = 0;
    }
}

impl std::fmt::Debug for LineFramer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineFramer")
            .field("limit", &self.limit)
            .field("pending", &self.pending())
            .field("discarding", &self.discarding)
            .field("discarded", &self.discarded)
            .finish_non_exhaustive()
    }
}

/// Where in the buffer a frame lies.
struct Found {
    start: usize,
    end: usize,
    whole: bool,
}
