//! Lines out of bytes: endings, blanks, limits, and what the buffer costs.

use super::{CALM_READS, Frame, HEAD_LIMIT, KEEP, LineFramer, READ};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Owned {
    Line(String),
    TooLong(usize),
}

impl From<Frame<'_>> for Owned {
    fn from(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Line(line) => Self::Line(String::from_utf8_lossy(line).into_owned()),
            Frame::TooLong { head } => Self::TooLong(head.len()),
        }
    }
}

fn line(text: &str) -> Owned {
    Owned::Line(text.to_owned())
}

fn feed(framer: &mut LineFramer, mut bytes: &[u8]) -> Vec<Owned> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let n = room(framer).min(bytes.len());
        framer.space().extend_from_slice(&bytes[..n]);
        bytes = &bytes[n..];
        while let Some(frame) = framer.next_frame() {
            frames.push(frame.into());
        }
    }
    frames
}

/// How much the framer has room for.
fn room(framer: &mut LineFramer) -> usize {
    let space = framer.space();
    space.capacity() - space.len()
}

fn end(framer: &mut LineFramer) -> Vec<Owned> {
    let mut frames = Vec::new();
    while let Some(frame) = framer.finish() {
        frames.push(frame.into());
    }
    frames
}

/// Proves: TR3.2
#[test]
fn line_endings_of_both_kinds_and_blank_lines_and_marks_are_dropped() {
    let mut framer = LineFramer::new(100);
    let input = b"\xEF\xBB\xBF{1}\r\n\n \t \r\n\r\n{2}\n\xEF\xBB\xBF{3}\n\xEF\xBB\xBF\n";
    assert_eq!(feed(&mut framer, input), [line("{1}"), line("{2}"), line("{3}")]);
    assert_eq!(end(&mut framer), []);
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
    assert_eq!(end(&mut framer), [line("last")]);
    assert_eq!(end(&mut framer), []);
}

#[test]
fn finishing_hands_out_complete_lines_not_yet_taken() {
    let mut framer = LineFramer::new(100);
    framer.space().extend_from_slice(b"a\nb\n");
    assert_eq!(end(&mut framer), [line("a"), line("b")]);
}

#[test]
fn a_line_at_the_limit_is_kept_and_one_past_it_is_not() {
    let mut framer = LineFramer::new(5);
    assert_eq!(feed(&mut framer, b"12345\n"), [line("12345")]);
    assert_eq!(feed(&mut framer, b"123456\n"), [Owned::TooLong(5)]);
    assert_eq!(framer.discarded(), 6);
    assert_eq!(feed(&mut framer, b"1234\r\n"), [line("1234")]);
    assert_eq!(feed(&mut framer, b"12345\r\n"), [Owned::TooLong(5)]);
}

#[test]
fn a_line_that_is_too_long_is_said_once_and_at_once() {
    let mut framer = LineFramer::new(1000);
    assert_eq!(feed(&mut framer, &[b'x'; 1000]), []);
    assert_eq!(feed(&mut framer, b"x"), [Owned::TooLong(1000)]);
    assert_eq!(feed(&mut framer, &[b'x'; 5000]), []);
    assert_eq!(framer.discarded(), 6001);
    assert_eq!(feed(&mut framer, b"tail\nnext\n"), [line("next")]);
    assert_eq!(framer.discarded(), 6005);
}

#[test]
fn the_end_of_a_dropped_line_is_not_a_line() {
    let mut framer = LineFramer::new(3);
    assert_eq!(feed(&mut framer, b"12345"), [Owned::TooLong(3)]);
    assert_eq!(end(&mut framer), []);
    assert_eq!(framer.discarded(), 5);
}

#[test]
fn the_head_of_a_long_line_has_a_limit() {
    let mut framer = LineFramer::new(2 * HEAD_LIMIT);
    let long = vec![b'x'; 2 * HEAD_LIMIT + 1];
    assert_eq!(feed(&mut framer, &long), [Owned::TooLong(HEAD_LIMIT)]);
}

#[test]
fn the_buffer_grows_with_the_line_and_never_past_the_limit_and_one_read() {
    let limit = 1 << 20;
    let mut framer = LineFramer::new(limit);
    assert_eq!(room(&mut framer), READ);
    for sent in 1..=limit {
        framer.space().push(b'x');
        assert!(framer.next_frame().is_none());
        if sent % READ == 0 {
            assert!(framer.buffer.capacity() <= (2 * sent + READ).min(limit + READ));
        }
    }
    assert!(room(&mut framer) > 0);
    assert!(framer.buffer.capacity() <= limit + READ);
    assert_eq!(feed(&mut framer, b"x"), [Owned::TooLong(HEAD_LIMIT)]);
    assert!(framer.buffer.capacity() <= limit + READ);
}

#[test]
fn an_endless_line_takes_no_more_than_the_limit() {
    let limit = 3 * READ;
    let mut framer = LineFramer::new(limit);
    let endless = vec![b'x'; READ];
    let said: usize = (0..100).map(|_| feed(&mut framer, &endless).len()).sum();
    assert_eq!(said, 1);
    assert!(framer.buffer.capacity() <= limit + READ);
    assert_eq!(framer.discarded(), 100 * READ as u64);
    assert_eq!(feed(&mut framer, b"\nnext\n"), [line("next")]);
}

#[test]
fn a_huge_line_does_not_keep_its_buffer() {
    let mut framer = LineFramer::new(4 * KEEP);
    let mut huge = vec![b'x'; KEEP + 1];
    huge.push(b'\n');
    assert_eq!(feed(&mut framer, &huge).len(), 1);
    assert!(framer.buffer.capacity() > KEEP);
    assert_eq!(room(&mut framer), READ);
}

#[test]
fn a_long_line_among_short_ones_does_not_keep_its_buffer() {
    let mut framer = LineFramer::new(KEEP);
    let mut long = vec![b'x'; 4 * READ];
    long.push(b'\n');
    assert_eq!(feed(&mut framer, &long).len(), 1);
    assert!(room(&mut framer) > READ, "another long line may follow");
    for _ in 0..=CALM_READS {
        feed(&mut framer, b"short\n");
    }
    assert_eq!(room(&mut framer), READ);
}

#[test]
fn there_is_always_room_even_if_no_frame_is_taken() {
    let mut framer = LineFramer::new(10);
    for _ in 0..100 {
        let more = room(&mut framer);
        assert!(more > 0);
        framer.space().extend(std::iter::repeat_n(b'\n', more));
    }
}

#[test]
fn a_caller_that_appends_more_than_there_is_room_for_loses_nothing() {
    let mut framer = LineFramer::new(100);
    framer.space().extend(b"{1}\n".repeat(READ));
    let mut lines = 0;
    while framer.next_frame().is_some() {
        lines += 1;
    }
    assert_eq!(lines, READ);
}
