//! Properties of SSE streams: independence of chunks, agreement with a simple decoder, round trip.

use innkeeper_protocol::framing::MAX_HEAD_BYTES;
use innkeeper_protocol::sse::{
    DEFAULT_EVENT_NAME, KEEP_ALIVE, OutgoingData, OutgoingEvent, SseDecoder, SseEvent,
    write_comment, write_event,
};
use proptest::prelude::*;

use crate::json::{text, tree, written};

/// The complete output of a decoder for one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct DecodedStream {
    events: Vec<OwnedEvent>,
    last_id: Option<String>,
    retry: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OwnedEvent {
    Message(String, Vec<u8>, Option<String>),
    TooLong(Vec<u8>),
}

/// Decodes `input` in chunks of the given sizes, repeated cyclically.
fn decoded(input: &[u8], limit: usize, sizes: &[usize]) -> DecodedStream {
    let mut decoder = SseDecoder::new(limit);
    let (mut stream, mut rest) = (DecodedStream::default(), input);
    for size in sizes.iter().cycle() {
        let (chunk, remaining) = rest.split_at((*size).min(rest.len()));
        decoder.feed(chunk);
        while let Some(event) = decoder.next_event() {
            stream.events.push(match event {
                SseEvent::TooLong { head } => OwnedEvent::TooLong(head.to_vec()),
                SseEvent::Message { name, data, id } => {
                    OwnedEvent::Message(name.to_owned(), data.to_vec(), id.map(str::to_owned))
                }
            });
        }
        rest = remaining;
        if rest.is_empty() {
            break;
        }
    }
    stream.last_id = decoder.last_event_id().map(str::to_owned);
    stream.retry = decoder.retry();
    stream
}

/// Returns the terminated lines of the entire input.
fn lines(input: &[u8]) -> Vec<&[u8]> {
    let mut rest = input.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(input);
    let mut lines = Vec::new();
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        lines.push(&rest[..end]);
        let after = if rest[end..].starts_with(b"\r\n") { end + 2 } else { end + 1 };
        rest = &rest[after..];
    }
    lines
}

/// Reference implementation over the entire input. The decoder reports an event that is too long
/// before the event ends; the inputs of this test therefore end every event.
fn expected(input: &[u8], limit: usize) -> DecodedStream {
    let mut stream = DecodedStream::default();
    let (mut data, mut name, mut id) = (None::<Vec<u8>>, String::new(), None);
    for line in lines(input) {
        if line.is_empty() {
            if let Some(id) = &id {
                stream.last_id = Some(String::clone(id)).filter(|id| !id.is_empty());
            }
            let name = std::mem::take(&mut name);
            let name = if name.is_empty() { DEFAULT_EVENT_NAME.to_owned() } else { name };
            stream.events.extend(match (data.take(), id.take()) {
                (None, _) => None,
                (Some(data), _) if data.len() > limit => {
                    Some(OwnedEvent::TooLong(data[..limit.min(MAX_HEAD_BYTES)].to_vec()))
                }
                (Some(data), id) => Some(OwnedEvent::Message(name, data, id)),
            });
            continue;
        }
        let mut halves = line.splitn(2, |byte| *byte == b':');
        let field = halves.next().unwrap_or_default();
        let value = halves.next().unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = String::from_utf8_lossy(value).into_owned();
        match field {
            b"data" => match &mut data {
                Some(data) => data.extend([b"\n", value].concat()),
                None => data = Some(value.to_vec()),
            },
            b"event" => name = text,
            b"id" if !text.contains('\0') => id = Some(text),
            b"retry" if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                stream.retry = Some(text.parse().unwrap_or(u64::MAX));
            }
            _ => {}
        }
    }
    stream
}

fn input(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    let field = prop::sample::select(vec![
        "data", "data:", "data: ", "event: ", "event:", "id: ", "id", "retry: ", "retry:", ":",
        "x: ", "datas:",
    ]);
    let line_end = || prop::sample::select(vec!["\n", "\r", "\r\n"]);
    let chunk = prop_oneof![
        6 => (field, "[a-c0-9: ]{0,6}", line_end()).prop_map(|(field, value, end)| {
            [field, &value, end].concat().into_bytes()
        }),
        4 => line_end().prop_map(|end| end.as_bytes().to_vec()),
        1 => Just("\u{FEFF}".into()),
        1 => Just(b"id: a\0b\n".to_vec()),
        1 => (0..longest).prop_map(|length| [b"data: ", &vec![b'x'; length][..], b"\n"].concat()),
        1 => prop::collection::vec(any::<u8>(), 0..12),
    ];
    prop::collection::vec(chunk, 0..24).prop_map(|chunks| [&chunks.concat()[..], b"\n\n"].concat())
}

/// The fields of an event for the encoder: id, name and retry.
type EventFields = (Option<String>, Option<String>, Option<u64>);

fn event_fields() -> impl Strategy<Value = EventFields> {
    let field = || prop::option::of("[^\\r\\n\\x00]{0,12}");
    (field(), field(), prop::option::of(any::<u64>()))
}

/// Encodes `data` after a comment and a keep-alive, and decodes the stream.
fn read_back((id, name, retry): &EventFields, data: OutgoingData<'_>) -> DecodedStream {
    let mut stream = Vec::new();
    write_comment(&mut stream, "a\n\ndata: b");
    stream.extend_from_slice(KEEP_ALIVE);
    let event = OutgoingEvent { id: id.as_deref(), name: name.as_deref(), retry: *retry, data };
    write_event(&mut stream, &event).expect("fields without line breaks");
    decoded(&stream, 100_000, &[7])
}

/// The stream of one event with `data` and the fields, or without the event.
fn stream_of((id, name, retry): EventFields, data: Option<Vec<u8>>) -> DecodedStream {
    let default_name = || DEFAULT_EVENT_NAME.to_owned();
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(default_name);
    let last_id = id.clone().filter(|id| !id.is_empty());
    let event = data.map(|data| OwnedEvent::Message(name, data, id));
    DecodedStream { events: Vec::from_iter(event), last_id, retry }
}

proptest! {
    #[test]
    fn a_text_event_that_is_written_is_read_back(
        fields in event_fields(),
        text in prop_oneof![text(), "[a:\\r\\n ]{0,20}"],
    ) {
        let expected = text.replace("\r\n", "\n").replace('\r', "\n").into_bytes();
        let stream = read_back(&fields, OutgoingData::Text(&text));
        prop_assert_eq!(stream, stream_of(fields, Some(expected)));
    }

    #[test]
    fn a_json_event_that_is_written_is_read_back(
        fields in event_fields(), value in tree(), pretty: bool, end in "[\r\n]{0,3}",
    ) {
        let json = written(&value, pretty);
        let expected = json.replace('\n', " ").into_bytes();
        let stream = read_back(&fields, OutgoingData::Json((json + &end).as_bytes()));
        prop_assert_eq!(stream, stream_of(fields, Some(expected)));
    }

    #[test]
    fn an_event_without_data_sets_the_id_and_the_delay(fields in event_fields()) {
        prop_assert_eq!(read_back(&fields, OutgoingData::Absent), stream_of(fields, None));
    }

    #[test]
    fn events_do_not_depend_on_the_chunks(
        input in input(60),
        limit in 0_usize..80,
        sizes in prop::collection::vec(1_usize..40, 1..8),
    ) {
        let expected = expected(&input, limit);
        prop_assert_eq!(&decoded(&input, limit, &[usize::MAX]), &expected);
        prop_assert_eq!(&decoded(&input, limit, &[1]), &expected);
        prop_assert_eq!(&decoded(&input, limit, &sizes), &expected);
    }

    /// A truncated stream yields a prefix of the events of the complete stream.
    #[test]
    fn a_stream_cut_off_anywhere_tells_the_beginning(input in input(60), limit in 0_usize..80, cut: u16) {
        let whole = decoded(&input, limit, &[usize::MAX]).events;
        let cut = usize::from(cut) % input.len();
        let events = decoded(&input[..cut], limit, &[7]).events;
        prop_assert_eq!(&events[..], &whole[..events.len()]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn long_events_do_not_depend_on_the_chunks(
        input in input(300_000),
        limit in 60_000_usize..400_000,
        sizes in prop::collection::vec(1_usize..100_000, 1..8),
    ) {
        let expected = expected(&input, limit);
        prop_assert!(decoded(&input, limit, &[usize::MAX]) == expected);
        prop_assert!(decoded(&input, limit, &sizes) == expected);
    }
}
