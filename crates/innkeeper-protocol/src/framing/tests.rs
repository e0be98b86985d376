//! Tests of framing: line endings, blank lines, limits and buffer size.

use super::{Frame, LineFramer, MAX_HEAD_BYTES, READ_BYTES, RETAINED_CAPACITY, SHRINK_AFTER_READS};

#[derive(Clone, Debug, PartialEq, Eq)]
enum OwnedFrame {
    Line(String),
    TooLong(usize),
}

impl From<Frame<'_>> for OwnedFrame {
    fn from(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Line(line) => Self::Line(String::from_utf8_lossy(line).into_owned()),
            Frame::TooLong { head } => Self::TooLong(head.len()),
        }
    }
}

fn line(text: &str) -> OwnedFrame {
    OwnedFrame::Line(text.to_owned())
}

fn feed(framer: &mut LineFramer, mut bytes: &[u8]) -> Vec<OwnedFrame> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let n = spare_capacity(framer).min(bytes.len());
        framer.read_buffer().extend_from_slice(&bytes[..n]);
        bytes = &bytes[n..];
        while let Some(frame) = framer.next_frame() {
            frames.push(frame.into());
        }
    }
    frames
}

/// Returns the free capacity of the buffer.
fn spare_capacity(framer: &mut LineFramer) -> usize {
    let space = framer.read_buffer();
    space.capacity() - space.len()
}

fn finish(framer: &mut LineFramer) -> Vec<OwnedFrame> {
    let mut frames = Vec::new();
    while let Some(frame) = framer.finish() {
        frames.push(frame.into());
    }
    frames
}

/// Proves: TR3.2
#[test]
fn line_endings_of_both_kinds_and_blank_lines_and_byte_order_marks_are_dropped() {
    let mut framer = LineFramer::new(100);
    let input = b"\xEF\xBB\xBF{1}\r\n\n \t \r\n\r\n{2}\n\xEF\xBB\xBF{3}\n\xEF\xBB\xBF\n";
    assert_eq!(feed(&mut framer, input), [line("{1}"), line("{2}"), line("{3}")]);
    assert_eq!(finish(&mut framer), []);
}

#[test]
fn only_one_carriage_return_belongs_to_the_line_ending() {
    let mut framer = LineFramer::new(100);
    assert_eq!(feed(&mut framer, b"a\rb\r\r\n"), [line("a\rb\r")]);
}

#[test]
fn the_last_line_needs_no_newline() {
    let mut framer = LineFramer::new(100);
    assert_eq!(feed(&mut framer, b"first\nlast\r"), [line("first")]);
    assert_eq!(finish(&mut framer), [line("last")]);
    assert_eq!(finish(&mut framer), []);
}

#[test]
fn finishing_hands_out_complete_lines_not_yet_taken() {
    let mut framer = LineFramer::new(100);
    framer.read_buffer().extend_from_slice(b"a\nb\n");
    assert_eq!(finish(&mut framer), [line("a"), line("b")]);
}

#[test]
fn a_line_at_the_limit_is_kept_and_one_past_it_is_not() {
    let mut framer = LineFramer::new(5);
    assert_eq!(feed(&mut framer, b"12345\n"), [line("12345")]);
    assert_eq!(feed(&mut framer, b"123456\n"), [OwnedFrame::TooLong(5)]);
    assert_eq!(framer.discarded(), 6);
    assert_eq!(feed(&mut framer, b"1234\r\n"), [line("1234")]);
    assert_eq!(feed(&mut framer, b"12345\r\n"), [OwnedFrame::TooLong(5)]);
}

/// Attack: framing | a line grows past the limit without its end | the line is reported once, at
/// its first byte past the limit, and the next line is read | No unbounded memory
#[test]
fn a_line_that_is_too_long_is_reported_once_and_at_once() {
    let mut framer = LineFramer::new(1000);
    assert_eq!(feed(&mut framer, &[b'x'; 1000]), []);
    assert_eq!(feed(&mut framer, b"x"), [OwnedFrame::TooLong(1000)]);
    assert_eq!(feed(&mut framer, &[b'x'; 5000]), []);
    assert_eq!(framer.discarded(), 6001);
    assert_eq!(feed(&mut framer, b"tail\nnext\n"), [line("next")]);
    assert_eq!(framer.discarded(), 6005);
}

#[test]
fn the_end_of_a_discarded_line_is_not_a_line() {
    let mut framer = LineFramer::new(3);
    assert_eq!(feed(&mut framer, b"12345"), [OwnedFrame::TooLong(3)]);
    assert_eq!(finish(&mut framer), []);
    assert_eq!(framer.discarded(), 5);
}

#[test]
fn the_head_of_a_long_line_has_a_limit() {
    let mut framer = LineFramer::new(2 * MAX_HEAD_BYTES);
    let long = vec![b'x'; 2 * MAX_HEAD_BYTES + 1];
    assert_eq!(feed(&mut framer, &long), [OwnedFrame::TooLong(MAX_HEAD_BYTES)]);
}

#[test]
fn the_buffer_grows_with_the_line_and_never_past_the_limit_and_one_read() {
    let limit = 1 << 20;
    let mut framer = LineFramer::new(limit);
    assert_eq!(spare_capacity(&mut framer), READ_BYTES);
    for sent in 1..=limit {
        framer.read_buffer().push(b'x');
        assert!(framer.next_frame().is_none());
        if sent % READ_BYTES == 0 {
            assert!(framer.buffer.capacity() <= (2 * sent + READ_BYTES).min(limit + READ_BYTES));
        }
    }
    assert!(spare_capacity(&mut framer) > 0);
    assert!(framer.buffer.capacity() <= limit + READ_BYTES);
    assert_eq!(feed(&mut framer, b"x"), [OwnedFrame::TooLong(MAX_HEAD_BYTES)]);
    assert!(framer.buffer.capacity() <= limit + READ_BYTES);
}

/// Attack: framing | a line never ends | the buffer stays at the limit plus one read | No unbounded
/// memory
#[test]
fn an_endless_line_takes_no_more_than_the_limit() {
    let limit = 3 * READ_BYTES;
    let mut framer = LineFramer::new(limit);
    let chunk = vec![b'x'; READ_BYTES];
    let frame_count: usize = (0..100).map(|_| feed(&mut framer, &chunk).len()).sum();
    assert_eq!(frame_count, 1);
    assert!(framer.buffer.capacity() <= limit + READ_BYTES);
    assert_eq!(framer.discarded(), 100 * READ_BYTES as u64);
    assert_eq!(feed(&mut framer, b"\nnext\n"), [line("next")]);
}

/// Attack: framing | one huge line makes the buffer grow | the buffer shrinks after the line | No
/// unbounded memory
#[test]
fn a_huge_line_does_not_keep_its_buffer() {
    let mut framer = LineFramer::new(4 * RETAINED_CAPACITY);
    let mut huge = vec![b'x'; RETAINED_CAPACITY + 1];
    huge.push(b'\n');
    assert_eq!(feed(&mut framer, &huge).len(), 1);
    assert!(framer.buffer.capacity() > RETAINED_CAPACITY);
    assert_eq!(spare_capacity(&mut framer), READ_BYTES);
}

#[test]
fn a_long_line_among_short_ones_does_not_keep_its_buffer() {
    let mut framer = LineFramer::new(RETAINED_CAPACITY);
    let mut long = vec![b'x'; 4 * READ_BYTES];
    long.push(b'\n');
    assert_eq!(feed(&mut framer, &long).len(), 1);
    assert!(spare_capacity(&mut framer) > READ_BYTES, "another long line may follow");
    for _ in 0..=SHRINK_AFTER_READS {
        feed(&mut framer, b"short\n");
    }
    assert_eq!(spare_capacity(&mut framer), READ_BYTES);
}

#[test]
fn there_is_always_space_even_if_no_frame_is_taken() {
    let mut framer = LineFramer::new(10);
    for _ in 0..100 {
        let more = spare_capacity(&mut framer);
        assert!(more > 0);
        framer.read_buffer().extend(std::iter::repeat_n(b'\n', more));
    }
}

#[test]
fn a_caller_that_appends_more_than_there_is_space_for_loses_nothing() {
    let mut framer = LineFramer::new(100);
    framer.read_buffer().extend(b"{1}\n".repeat(READ_BYTES));
    let mut lines = 0;
    while framer.next_frame().is_some() {
        lines += 1;
    }
    assert_eq!(lines, READ_BYTES);
}
