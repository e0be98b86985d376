//! The same bytes whole and in chunks must make the same events, none above its limit.
//!
//! The first byte of the input sets the limit, the second the size of a chunk, the third how often
//! the rest is repeated.

use innkeeper_protocol::sse::{FIELD_LIMIT, HEAD_LIMIT, SseDecoder, SseEvent};

/// An event with everything it carries; of one that is too long, its head alone.
type Event = (Option<String>, Vec<u8>, Option<String>);

/// What a stream comes to: its events, the last id, the pause.
type Read = (Vec<Event>, Option<String>, Option<u64>);

/// Cuts the input into events.
pub fn sse(input: &[u8]) {
    let [limit, chunk, times, text @ ..] = input else { return };
    let stream = text.repeat(usize::from(*times) + 1);
    let limit = usize::from(*limit) * 4;
    let chunk = usize::from(*chunk) * usize::from(*chunk) + 1;
    let whole = read(&stream, limit, usize::MAX);
    assert_eq!(whole, read(&stream, limit, chunk));

    let (events, last, _) = whole;
    let longest = events.iter().filter_map(|(_, _, id)| id.as_deref()).map(str::len).max();
    // What is no UTF-8 becomes up to three bytes for each of its own.
    assert!(longest.max(last.map(|id| id.len())).unwrap_or(0) <= 3 * FIELD_LIMIT);
    for (name, data, _) in &events {
        let most = if name.is_some() { limit } else { HEAD_LIMIT };
        assert!(data.len() <= most && !data.contains(&b'\r'));
        assert!(name.as_ref().is_none_or(|name| !name.is_empty()));
    }
    let data: usize = events.iter().map(|(_, data, _)| data.len()).sum();
    assert!(data <= stream.len());
}

fn read(stream: &[u8], limit: usize, chunk: usize) -> Read {
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
