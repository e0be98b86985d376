//! Newline framing: splits a byte stream into lines of bounded length.
//!
//! The caller reads: it appends bytes to [`LineFramer::read_buffer`] and takes lines from
//! [`LineFramer::next_frame`] until the method returns `None`.

#[cfg(test)]
mod tests;

use memchr::memchr;

/// Default maximum length of a line: 16 MiB, which peers accept as well.
pub const DEFAULT_MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Maximum number of bytes returned from the start of a line that is too long: sufficient for the
/// id, which all known servers write near the start.
pub const MAX_HEAD_BYTES: usize = 4 * 1024;

/// Size of one read: the default capacity of a pipe.
const READ_BYTES: usize = 64 * 1024;
/// Minimum free space at the end of the buffer. A read into less space is not worth a system call.
const MIN_SPACE_BYTES: usize = 16 * 1024;
/// Maximum buffer capacity that is retained while the buffer is empty.
const RETAINED_CAPACITY: usize = 4 * 1024 * 1024;
/// Number of consecutive small reads after which a buffer larger than one read is freed. A server
/// that sends long lines continuously keeps the buffer; a server that sent one long line does not.
const SHRINK_AFTER_READS: u32 = 16;

/// One line of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line without its line ending and without a byte order mark. The line is never blank.
    Line(&'a [u8]),
    /// A line over the limit, reported once, as soon as the line exceeds the limit. The rest of the
    /// line is discarded.
    TooLong {
        /// The start of the line, at most [`MAX_HEAD_BYTES`] bytes.
        head: &'a [u8],
    },
}

/// Splits a stream of bytes into lines.
///
/// A line ends at `\n`. The framer removes a `\r` before the `\n` and a byte order mark at the
/// start of the line, and skips lines that contain only white space. The limit counts every byte
/// before the `\n`.
pub struct LineFramer {
    /// The bytes read so far. Unused capacity is never written, so that the buffer of an idle
    /// server occupies no physical memory.
    buffer: Vec<u8>,
    /// Index of the first byte that has not been returned.
    start: usize,
    /// Index of the first byte that has not been searched for a newline.
    searched: usize,
    limit: usize,
    discarding: bool,
    discarded: u64,
    small_reads: u32,
}

impl LineFramer {
    /// Creates a framer for lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            limit,
            discarding: false,
            discarded: 0,
            small_reads: 0,
        }
    }

    /// Returns the buffer to which the caller appends the next read. The buffer always has free
    /// capacity.
    ///
    /// The buffer grows with the current line, up to the limit plus one read (64 KiB), as long as
    /// the caller takes every frame before the next call of this method and appends no more than
    /// the free capacity. The caller must not remove bytes from the buffer: the next call would
    /// panic.
    pub fn read_buffer(&mut self) -> &mut Vec<u8> {
        let pending = self.pending();
        self.small_reads =
            if pending < READ_BYTES { self.small_reads.saturating_add(1) } else { 0 };
        if pending == 0 {
            self.start = 0;
            self.searched = 0;
            self.buffer.clear();
            self.shrink();
        }
        if self.spare_capacity() < MIN_SPACE_BYTES {
            self.reserve_space();
        }
        &mut self.buffer
    }

    /// Returns the next line, if a line is complete or exceeds the limit.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        let span = self.next_span()?;
        Some(self.frame_at(&span))
    }

    /// Returns the remaining lines at the end of the input, also a last line without a newline.
    /// Call this method until it returns `None`.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        let span = self.next_span().or_else(|| self.take_rest())?;
        Some(self.frame_at(&span))
    }

    /// Whether the buffer contains no part of a line.
    pub fn is_empty(&self) -> bool {
        self.pending() == 0
    }

    /// Returns the number of discarded bytes of lines that were too long, without their newlines.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    fn next_span(&mut self) -> Option<FrameSpan> {
        loop {
            let Some(offset) = memchr(b'\n', &self.buffer[self.searched..]) else {
                return self.check_unfinished();
            };
            let line = self.start..self.searched + offset;
            self.start = line.end + 1;
            self.searched = self.start;
            if self.discarding {
                self.discarding = false;
                self.discarded += line.len() as u64;
            } else if line.len() > self.limit {
                self.discarded += line.len() as u64;
                return Some(self.too_long_span(line.start));
            } else if let Some(line) = self.trimmed_span(line.start, line.end) {
                return Some(line);
            }
        }
    }

    /// Handles the rest of the buffer without a newline: the rest waits for more input, unless it
    /// exceeds the limit.
    fn check_unfinished(&mut self) -> Option<FrameSpan> {
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
        Some(self.too_long_span(line))
    }

    fn take_rest(&mut self) -> Option<FrameSpan> {
        let line = self.start;
        self.start = self.buffer.len();
        self.trimmed_span(line, self.start)
    }

    fn too_long_span(&self, start: usize) -> FrameSpan {
        let end = start + self.limit.min(MAX_HEAD_BYTES);
        FrameSpan { start: self.strip_bom(start, end), end, complete: false }
    }

    fn trimmed_span(&self, start: usize, end: usize) -> Option<FrameSpan> {
        let start = self.strip_bom(start, end);
        let line = &self.buffer[start..end];
        let end = if line.ends_with(b"\r") { end - 1 } else { end };
        let blank = line.iter().all(u8::is_ascii_whitespace);
        (!blank).then_some(FrameSpan { start, end, complete: true })
    }

    fn strip_bom(&self, start: usize, end: usize) -> usize {
        const BOM: &[u8] = b"\xEF\xBB\xBF";
        let marked = self.buffer[start..end].starts_with(BOM);
        if marked { start + BOM.len() } else { start }
    }

    fn frame_at(&self, span: &FrameSpan) -> Frame<'_> {
        let bytes = &self.buffer[span.start..span.end];
        if span.complete { Frame::Line(bytes) } else { Frame::TooLong { head: bytes } }
    }

    fn shrink(&mut self) {
        let outgrown =
            self.buffer.capacity() > READ_BYTES && self.small_reads >= SHRINK_AFTER_READS;
        if outgrown || self.buffer.capacity() > RETAINED_CAPACITY {
            self.buffer = Vec::new();
        }
    }

    fn pending(&self) -> usize {
        self.buffer.len() - self.start
    }

    fn spare_capacity(&self) -> usize {
        self.buffer.capacity() - self.buffer.len()
    }

    fn reserve_space(&mut self) {
        let pending = self.pending();
        let size = self.buffer.capacity();
        let max_capacity = self.limit.saturating_add(READ_BYTES);
        // Moving less than half of the buffer frees more bytes than it moves, so that every byte is
        // moved about once, regardless of the line length.
        if self.start > 0 && (pending <= size / 2 || size >= max_capacity) {
            self.compact();
        }
        if self.spare_capacity() < MIN_SPACE_BYTES {
            self.compact();
            let size = (size * 2).clamp(READ_BYTES, max_capacity.max(READ_BYTES));
            // A caller that does not take its frames also gets free space.
            let size = size.max(pending + MIN_SPACE_BYTES);
            self.buffer.reserve_exact(size - pending);
        }
    }

    fn compact(&mut self) {
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

/// The position of a frame in the buffer.
struct FrameSpan {
    start: usize,
    end: usize,
    complete: bool,
}
