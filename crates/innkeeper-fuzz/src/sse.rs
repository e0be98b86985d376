//! Fuzz target: decodes an event stream. Chunked and unchunked input give the same events, within
//! the limit, and the encoded events decode to the same events.
//!
//! The first byte of the input is the limit, the second byte the chunk size, and the third byte the
//! number of repetitions of the rest.

use innkeeper_protocol::sse::{
    MAX_FIELD_BYTES, MAX_HEAD_BYTES, OutgoingData, OutgoingEvent, SseDecoder, SseEvent, write_event,
};

/// All fields of an event. An event above the limit has only its head.
type EventFields = (Option<String>, Vec<u8>, Option<String>);

/// Result of a stream: the events, the last event ID, and the retry delay.
type DecodedStream = (Vec<EventFields>, Option<String>, Option<u64>);

/// Decodes the input into events.
pub fn sse(input: &[u8]) {
    let [limit, chunk, times, text @ ..] = input else { return };
    let stream = text.repeat(usize::from(*times) + 1);
    let limit = usize::from(*limit) * 4;
    let chunk = usize::from(*chunk) * usize::from(*chunk) + 1;
    let unsplit = decode_stream(&stream, limit, usize::MAX);
    assert_eq!(unsplit, decode_stream(&stream, limit, chunk));

    let (events, last, _) = unsplit;
    let longest = events.iter().filter_map(|(_, _, id)| id.as_deref()).map(str::len).max();
    // An invalid UTF-8 byte is replaced by up to three bytes.
    assert!(longest.max(last.map(|id| id.len())).unwrap_or(0) <= 3 * MAX_FIELD_BYTES);
    for (name, data, _) in &events {
        let max = if name.is_some() { limit } else { MAX_HEAD_BYTES };
        assert!(data.len() <= max && !data.contains(&b'\r'));
        assert!(name.as_ref().is_none_or(|name| !name.is_empty()));
    }
    reencode(&events, limit);
    let data: usize = events.iter().map(|(_, data, _)| data.len()).sum();
    assert!(data <= stream.len());
}

/// Encodes the events below the limit and decodes them again.
fn reencode(events: &[EventFields], limit: usize) {
    let mut encoded = Vec::new();
    let mut expected = Vec::new();
    for event in events {
        let (name, data, id) = event;
        let Ok(data) = std::str::from_utf8(data) else { continue };
        if name.is_none() {
            continue;
        }
        let data = OutgoingData::Text(data);
        let outgoing =
            OutgoingEvent { id: id.as_deref(), name: name.as_deref(), retry: None, data };
        match write_event(&mut encoded, &outgoing) {
            Ok(()) => expected.push(event.clone()),
            // The decoder replaces invalid UTF-8, which makes a field longer.
            Err(error) => assert!(
                [name, id]
                    .into_iter()
                    .flatten()
                    .any(|field| { field.len() > MAX_FIELD_BYTES || field.contains('\0') }),
                "{error}"
            ),
        }
    }
    assert_eq!(decode_stream(&encoded, limit, usize::MAX).0, expected);
}

fn decode_stream(stream: &[u8], limit: usize, chunk: usize) -> DecodedStream {
    let mut decoder = SseDecoder::new(limit);
    let mut events = Vec::new();
    for part in stream.chunks(chunk) {
        decoder.feed(part);
        while let Some(event) = decoder.next_event() {
            events.push(match event {
                SseEvent::Message { name, data, id } => {
                    (Some(name.to_owned()), data.to_vec(), id.map(str::to_owned))
                }
                SseEvent::TooLong { head } => (None, head.to_vec(), None),
            });
        }
    }
    (events, decoder.last_event_id().map(str::to_owned), decoder.retry())
}
