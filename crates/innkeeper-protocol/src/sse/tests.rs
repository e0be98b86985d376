//! Tests of the SSE decoder: grammar, limits and buffer sizes.

use super::{MAX_FIELD_BYTES, MAX_HEAD_BYTES, RETAINED_CAPACITY, SseDecoder, SseEvent};

/// A message as name, data and id, or the length of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
enum OwnedEvent {
    Message(String, String, Option<String>),
    TooLong(usize),
}

impl From<SseEvent<'_>> for OwnedEvent {
    fn from(event: SseEvent<'_>) -> Self {
        match event {
            SseEvent::TooLong { head } => Self::TooLong(head.len()),
            SseEvent::Message { name, data, id } => {
                let data = String::from_utf8_lossy(data).into_owned();
                Self::Message(name.to_owned(), data, id.map(str::to_owned))
            }
        }
    }
}

fn message(data: &str) -> OwnedEvent {
    named_message("message", data)
}

fn named_message(name: &str, data: &str) -> OwnedEvent {
    OwnedEvent::Message(name.to_owned(), data.to_owned(), None)
}

fn feed(decoder: &mut SseDecoder, bytes: &[u8]) -> Vec<OwnedEvent> {
    decoder.feed(bytes);
    std::iter::from_fn(|| decoder.next_event().map(OwnedEvent::from)).collect()
}

fn decode(stream: &str) -> Vec<OwnedEvent> {
    feed(&mut SseDecoder::new(1000), stream.as_bytes())
}

#[test]
fn lines_end_in_three_ways() {
    let expected = [message("a\nb"), named_message("x", "c")];
    for newline in ["\n", "\r", "\r\n"] {
        let stream = "data: a\ndata: b\n\nevent: x\ndata: c\n\n".replace('\n', newline);
        assert_eq!(decode(&stream), expected, "{newline:?}");
    }
    assert_eq!(decode("data: a\r\ndata: b\n\revent: x\rdata: c\n\r\n"), expected);
}

#[test]
fn an_event_is_emitted_at_its_last_byte() {
    let mut decoder = SseDecoder::new(1000);
    assert_eq!(feed(&mut decoder, b"data: a\r\n"), []);
    assert_eq!(feed(&mut decoder, b"\r"), [message("a")]);
    assert_eq!(feed(&mut decoder, b"\ndata: b\n"), []);
    assert_eq!(feed(&mut decoder, b"\n"), [message("b")]);
}

#[test]
fn one_leading_space_belongs_to_the_colon() {
    let stream = "data:a\n\ndata: a\n\ndata:  a\n\ndata: \n\ndata:\ta\n\ndata : a\n\n data: a\n\n";
    let expected = ["a", "a", " a", "", "\ta"].map(message);
    assert_eq!(decode(stream), expected);
}

#[test]
fn a_field_without_a_colon_has_an_empty_value() {
    assert_eq!(decode("data\n\n"), [message("")]);
    assert_eq!(decode("data\ndata\n\n"), [message("\n")]);
    assert_eq!(decode("event: x\nevent\ndata: a\n\n"), [message("a")]);
}

#[test]
fn comments_and_unknown_fields_are_nothing() {
    let stream = ":\n: keep\n:data: no\ndata: a\nDATA: no\ndatas: no\nfoo\nx: y\n\n\n:\n\n";
    assert_eq!(decode(stream), [message("a")]);
}

#[test]
fn a_byte_order_mark_at_the_start_of_the_stream_is_dropped_and_elsewhere_it_is_not() {
    assert_eq!(decode("\u{FEFF}data: a\n\n"), [message("a")]);
    assert_eq!(decode("\u{FEFF}\u{FEFF}data: a\n\n"), []);
    assert_eq!(decode("data: \u{FEFF}a\n\n\u{FEFF}data: b\n\n"), [message("\u{FEFF}a")]);
    let mut decoder = SseDecoder::new(1000);
    assert_eq!(feed(&mut decoder, b"\xEF\xBBdata: a\ndata: b\n\n"), [message("b")]);
}

#[test]
fn an_event_without_data_is_none_and_its_name_does_not_stay() {
    assert_eq!(decode("event: x\n\ndata: a\n\n"), [message("a")]);
    assert_eq!(decode("event: x\ndata: a\n\ndata: b\n\n"), [named_message("x", "a"), message("b")]);
}

#[test]
fn an_event_cut_off_by_the_end_is_none() {
    let mut decoder = SseDecoder::new(1000);
    assert_eq!(feed(&mut decoder, b"id: 1\ndata: a\n\nid: 2\ndata: b\n").len(), 1);
    assert_eq!(decoder.last_event_id(), Some("1"));
}

#[test]
fn ids_count_when_their_event_ends_even_without_data() {
    let mut decoder = SseDecoder::new(1000);
    assert_eq!(decoder.last_event_id(), None);
    assert_eq!(feed(&mut decoder, b"id: 1\ndata:\n\n").len(), 1);
    assert_eq!(feed(&mut decoder, b"id: 2\n"), []);
    assert_eq!(decoder.last_event_id(), Some("1"));
    assert_eq!(feed(&mut decoder, b"\n"), []);
    assert_eq!(decoder.last_event_id(), Some("2"));
    assert_eq!(feed(&mut decoder, b"data: a\n\n"), [message("a")]);
    assert_eq!(decoder.last_event_id(), Some("2"));
    assert_eq!(feed(&mut decoder, b"id: a\0b\n\n"), []);
    assert_eq!(decoder.last_event_id(), Some("2"));
    let event = feed(&mut decoder, b"id\ndata: a\n\n");
    assert_eq!(event, [OwnedEvent::Message("message".into(), "a".into(), Some(String::new()))]);
    assert_eq!(decoder.last_event_id(), None);
}

#[test]
fn an_event_carries_its_own_id() {
    let events = decode("id: 1\nid: 2\nid: \0\ndata: a\n\ndata: b\n\n");
    let first = OwnedEvent::Message("message".into(), "a".into(), Some("2".into()));
    assert_eq!(events, [first, message("b")]);
}

#[test]
fn a_retry_time_is_digits_only() {
    let retry = |value: &str| {
        let mut decoder = SseDecoder::new(1000);
        assert_eq!(feed(&mut decoder, format!("retry:{value}\n").as_bytes()), []);
        decoder.retry()
    };
    assert_eq!((retry(" 500"), retry("0007")), (Some(500), Some(7)));
    assert_eq!(retry("99999999999999999999999"), Some(u64::MAX));
    for odd in ["", " ", "5 ", "  5", "-5", "+5", "5.0", "5s", "\u{0663}"] {
        assert_eq!(retry(odd), None, "{odd:?}");
    }
    let mut decoder = SseDecoder::new(1000);
    assert_eq!(feed(&mut decoder, b"retry: 5\nretry: x\n"), []);
    assert_eq!(decoder.retry(), Some(5));
}

#[test]
fn data_at_the_limit_is_kept_and_one_past_it_is_not() {
    let mut decoder = SseDecoder::new(5);
    assert_eq!(feed(&mut decoder, b"data: 12345\n\n"), [message("12345")]);
    assert_eq!(feed(&mut decoder, b"data: 12\ndata: 45\n\n"), [message("12\n45")]);
    assert_eq!(feed(&mut decoder, b"data: 123456\n\n"), [OwnedEvent::TooLong(5)]);
    assert_eq!(feed(&mut decoder, b"data: 12\ndata: 456\n\n"), [OwnedEvent::TooLong(5)]);
    assert_eq!(feed(&mut decoder, b"data: 12345\ndata\n\n"), [OwnedEvent::TooLong(5)]);
    assert_eq!(feed(&mut decoder, b"data: 12345\ndata:\n\n"), [OwnedEvent::TooLong(5)]);
    assert_eq!(feed(&mut decoder, b"data: 1\n\n"), [message("1")]);
}

/// Attack: framing | an event grows past the limit without its end | the event is reported once,
/// and the next event is read | No unbounded memory
#[test]
fn an_event_that_is_too_long_is_reported_once_and_at_once_and_its_id_counts() {
    let mut decoder = SseDecoder::new(1000);
    assert_eq!(feed(&mut decoder, b"id: 1\nevent: x\ndata:"), []);
    assert_eq!(feed(&mut decoder, &[b'x'; 1000]), []);
    assert!(!decoder.is_discarding());
    assert_eq!(feed(&mut decoder, b"x"), [OwnedEvent::TooLong(1000)]);
    assert!(decoder.is_discarding());
    assert_eq!(feed(&mut decoder, &[b'x'; 5000]), []);
    assert_eq!(feed(&mut decoder, b"\ndata: y\ndata\nid: 2\n"), []);
    assert!(decoder.is_discarding());
    assert_eq!(decoder.last_event_id(), None);
    assert_eq!(feed(&mut decoder, b"\ndata: z\n\n"), [message("z")]);
    assert!(!decoder.is_discarding());
    assert_eq!(decoder.last_event_id(), Some("2"));
}

#[test]
fn the_head_of_a_long_event_has_a_limit() {
    for sizes in [&[MAX_HEAD_BYTES, MAX_HEAD_BYTES, 1][..], &[2 * MAX_HEAD_BYTES + 1]] {
        let mut decoder = SseDecoder::new(2 * MAX_HEAD_BYTES);
        assert_eq!(feed(&mut decoder, b"data:"), []);
        let events: Vec<_> =
            sizes.iter().flat_map(|size| feed(&mut decoder, &vec![b'x'; *size])).collect();
        assert_eq!(events, [OwnedEvent::TooLong(MAX_HEAD_BYTES)]);
    }
}

#[test]
fn names_and_ids_at_the_limit_are_kept_and_one_past_it_are_ignored() {
    let at = "x".repeat(MAX_FIELD_BYTES);
    let stream = format!("event: {at}\nid: {at}\ndata: a\n\n");
    assert_eq!(decode(&stream), [OwnedEvent::Message(at.clone(), "a".into(), Some(at.clone()))]);
    let stream = format!("id: 1\nevent: {at}x\nid: {at}x\nretry: {at}1\ndata: a\n\n");
    assert_eq!(
        decode(&stream),
        [OwnedEvent::Message("message".into(), "a".into(), Some("1".into()))]
    );
}

/// Attack: framing | an event name exceeds the limit in several pieces | the name is ignored | No
/// unbounded memory
#[test]
fn a_field_received_in_pieces_has_the_same_limit() {
    let half = vec![b'x'; MAX_FIELD_BYTES / 2];
    let name_of_pieces = |pieces: &[&[u8]]| {
        let mut decoder = SseDecoder::new(1000);
        assert_eq!(feed(&mut decoder, b"event:"), []);
        for piece in pieces {
            assert_eq!(feed(&mut decoder, piece), []);
        }
        match &feed(&mut decoder, b"\ndata: a\n\n")[..] {
            [OwnedEvent::Message(name, _, _)] => name.len(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(name_of_pieces(&[&half, &half]), MAX_FIELD_BYTES);
    for pieces in
        [&[&half[..], &half, b"x"][..], &[&half, b"x", &half], &[&half, &half, &half, b"x"]]
    {
        assert_eq!(name_of_pieces(pieces), "message".len());
    }
}

#[test]
fn a_field_name_received_in_pieces_is_compared_whole() {
    for pieces in [["dat", "a"], ["", "data"]] {
        let mut decoder = SseDecoder::new(1000);
        assert!(pieces.iter().all(|piece| feed(&mut decoder, piece.as_bytes()).is_empty()));
        assert_eq!(feed(&mut decoder, b": a\n\n"), [message("a")]);
    }
    for pieces in [["dataaaa", "a"], ["longer name", "data"], ["x", "data"], ["data", "data"]] {
        let mut decoder = SseDecoder::new(1000);
        assert!(pieces.iter().all(|piece| feed(&mut decoder, piece.as_bytes()).is_empty()));
        assert_eq!(feed(&mut decoder, b": a\n\n"), [], "{pieces:?}");
    }
}

#[test]
fn text_that_is_not_utf8_is_replaced_in_names_and_ids_and_kept_in_data() {
    let mut decoder = SseDecoder::new(1000);
    decoder.feed(b"event: \xFF\nid: \xFE\ndata: \xFD\n\n");
    let event = SseEvent::Message { name: "\u{FFFD}", data: b"\xFD", id: Some("\u{FFFD}") };
    assert_eq!(decoder.next_event(), Some(event));
}

/// Attack: framing | each field of an event stream is an endless line | the buffers stay bounded,
/// and the next event is read | No unbounded memory
#[test]
fn endless_lines_take_no_more_than_the_limit() {
    let chunk = vec![b'x'; 64 * 1024];
    for start in ["data:", "", ":", "event:", "id:", "retry:", "x:"] {
        let mut decoder = SseDecoder::new(100_000);
        let mut event_count = feed(&mut decoder, start.as_bytes()).len();
        for _ in 0..100 {
            event_count += feed(&mut decoder, &chunk).len();
            assert!(decoder.buffer_capacity() <= 400_000, "{start}: {}", decoder.buffer_capacity());
        }
        assert_eq!(event_count, usize::from(start == "data:"), "{start}");
        assert_eq!(feed(&mut decoder, b"\n\ndata: next\n\n"), [message("next")]);
    }
}

#[test]
fn a_huge_event_does_not_keep_its_buffers() {
    let mut decoder = SseDecoder::new(4 * RETAINED_CAPACITY);
    let huge = format!("data: {}\n\n", "x".repeat(2 * RETAINED_CAPACITY));
    assert_eq!(feed(&mut decoder, huge.as_bytes()).len(), 1);
    assert_eq!(feed(&mut decoder, b":\n"), []);
    assert!(decoder.buffer_capacity() < RETAINED_CAPACITY, "{}", decoder.buffer_capacity());
}

impl SseDecoder {
    fn buffer_capacity(&self) -> usize {
        self.input.capacity() + self.event.data.capacity() + self.event.name.capacity()
    }
}
