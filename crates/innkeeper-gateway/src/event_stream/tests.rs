//! Tests of the log of a stream, and of its store for other replicas.

use std::sync::Arc;

use futures_util::FutureExt;

use super::*;
use crate::replicas::EntryKind;
use crate::replicas::StreamLog;

fn message(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

#[tokio::test]
async fn a_reader_gets_all_messages_in_order_and_then_the_end() {
    let stream = Arc::new(EventStream::new(3));
    assert!(stream.push(message("one")));
    let mut reader = stream.read_after(0).unwrap();
    assert!(stream.push_droppable(message("two")));
    stream.close();
    assert!(!stream.push(message("late")), "a closed stream takes no message");
    let mut read = Vec::new();
    while let Some(event) = reader.next().await {
        read.push((event.position, event.message));
    }
    assert_eq!(read, [(1, message("one")), (2, message("two"))]);
}

#[tokio::test]
async fn a_second_reader_continues_after_a_position_and_ends_the_first() {
    let stream = Arc::new(EventStream::new(1));
    for text in ["one", "two", "three"] {
        stream.push(message(text));
    }
    let mut first = stream.read_after(0).unwrap();
    assert_eq!(first.next().await.unwrap().message, message("one"));
    let mut second = stream.read_after(1).unwrap();
    assert_eq!(first.next().await, None, "replaced");
    assert_eq!(second.next().await.unwrap().message, message("two"));
}

#[tokio::test]
async fn messages_over_the_limit_are_dropped_only_if_they_may_be() {
    let stream = Arc::new(EventStream::new(1));
    for _ in 0..MAX_LOGGED_EVENTS {
        assert!(stream.push_droppable(message("n")));
    }
    assert!(!stream.push_droppable(message("n")), "one past the limit");
    assert!(stream.push(message("response")));
    let mut reader = stream.read_after(0).unwrap();
    let mut last = None;
    for _ in 0..=MAX_LOGGED_EVENTS {
        last = reader.next().await;
    }
    assert_eq!(last.unwrap().message, message("response"));
    assert!(stream.push_droppable(message("n")), "all messages are read");
    let oldest = stream.read_after(0).unwrap().next().await.unwrap().position;
    assert_eq!(oldest, 3, "messages that a reader took make room");
}

#[tokio::test]
async fn messages_that_must_arrive_have_twice_the_limit_without_a_reader() {
    let stream = Arc::new(EventStream::new(1));
    for _ in 0..2 * MAX_LOGGED_EVENTS {
        assert!(stream.push(message("q")));
    }
    assert_eq!(first_position(&stream), 1, "at the limit");
    assert!(stream.push(message("q")));
    assert_eq!(first_position(&stream), 2, "one past the limit");
}

/// Returns the position of the oldest message.
fn first_position(stream: &EventStream) -> u64 {
    stream.log().events.front().unwrap().position
}

#[tokio::test]
async fn a_reader_that_missed_more_messages_than_the_log_has_gets_the_response() {
    let stream = Arc::new(EventStream::new(1));
    for _ in 0..3 * MAX_LOGGED_EVENTS {
        stream.push(message("progress"));
    }
    stream.push(message("response"));
    stream.close();
    let mut reader = stream.read_after(3).unwrap();
    let mut last = None;
    while let Some(event) = reader.next().await {
        last = Some(event.message);
    }
    assert_eq!(last, Some(message("response")));
    stream.discard();
    assert!(stream.read_after(3).is_none(), "the response is gone");
}

#[tokio::test]
async fn a_large_response_arrives_after_messages_that_nobody_has_read() {
    let stream = Arc::new(EventStream::new(1));
    stream.push_droppable(message("progress"));
    let large = Bytes::from(vec![b'x'; 3 * MAX_LOGGED_BYTES]);
    stream.push(large.clone());
    stream.close();
    let mut reader = stream.read_after(0).unwrap();
    assert_eq!(reader.next().await.unwrap().message, message("progress"));
    assert_eq!(reader.next().await.unwrap().message, large);
}

#[tokio::test]
async fn the_newest_message_stays_at_any_size() {
    let stream = Arc::new(EventStream::new(1));
    stream.push(Bytes::from(vec![b'x'; MAX_LOGGED_BYTES + 1]));
    let mut reader = stream.read_after(0).unwrap();
    reader.next().await.unwrap();
    stream.push(message("small"));
    assert_eq!(stream.log().events.len(), 1, "one past the limit");
    assert!(stream.read_after(1).is_some());
    assert!(stream.read_after(2).is_some(), "nothing is missing");
    assert!(stream.read_after(3).is_none(), "no such position yet");
}

/// Returns a stream whose messages are stored by the receiver of the queue.
fn stored_stream() -> (Arc<EventStream>, mpsc::UnboundedReceiver<Arc<EventStream>>) {
    #[expect(clippy::disallowed_methods, reason = "each stream is in the queue at most once")]
    let (queue, queued) = mpsc::unbounded_channel();
    let stream = Arc::new(EventStream::new(1));
    let (ownership, session) = (Arc::new(Ownership::for_test()), "s".into());
    stream.store_in(StreamStore { ownership, session, requests: None, queue });
    (stream, queued)
}

fn store(queued: &mut mpsc::UnboundedReceiver<Arc<EventStream>>) -> Vec<LogEntry> {
    let stream = queued.try_recv().unwrap();
    let mut entries = Vec::new();
    while let Some(part) = stream.unstored() {
        entries.extend(part.entries.iter().cloned());
        stream.mark_stored(&part, true);
    }
    entries
}

#[tokio::test]
async fn a_reader_gets_a_message_only_when_it_is_stored() {
    let (stream, mut queued) = stored_stream();
    stream.push(message("one"));
    stream.push(message("two"));
    let mut reader = stream.read_after(0).unwrap();
    assert_eq!(reader.next().now_or_never(), None, "nothing is stored");
    let part = stream.unstored().unwrap();
    stream.push(message("three"));
    stream.close();
    stream.mark_stored(&part, true);
    assert_eq!(reader.next().await.unwrap().message, message("one"));
    assert_eq!(reader.next().await.unwrap().message, message("two"));
    assert_eq!(reader.next().now_or_never(), None, "the third message is not stored");
    let kinds: Vec<_> =
        store(&mut queued).iter().map(|entry| (entry.position, entry.kind)).collect();
    assert_eq!(kinds, [(3, EntryKind::Message), (3, EntryKind::Closed)]);
    assert!(queued.try_recv().is_err(), "a stream is in the queue once");
    assert_eq!(reader.next().await.unwrap().message, message("three"));
    assert_eq!(reader.next().await, None, "the end is stored");
    assert!(stream.wait_stored().await, "all of it");
}

#[tokio::test]
async fn another_replica_continues_a_stored_stream_after_each_position() {
    let (stream, mut queued) = stored_stream();
    for text in ["one", "two", "three"] {
        stream.push(message(text));
    }
    stream.close();
    let log = StreamLog { requests: Vec::new(), entries: store(&mut queued) };
    for position in 0..=3 {
        let restored = Arc::new(EventStream::restored(1, log.clone()));
        let mut reader = restored.read_after(position).unwrap();
        for expected in position + 1..=3 {
            assert_eq!(reader.next().await.unwrap().position, expected);
        }
        assert_eq!(reader.next().await, None);
    }
    let restored = Arc::new(EventStream::restored(1, log));
    assert!(restored.read_after(4).is_none(), "no client has seen a fourth message");
}

#[tokio::test]
async fn a_message_that_is_too_long_for_the_store_is_missing_elsewhere_and_the_others_are_not() {
    let (stream, mut queued) = stored_stream();
    stream.push(message("one"));
    stream.push(Bytes::from(vec![b'x'; MAX_STORED_BYTES + 1]));
    stream.push(message("three"));
    let mut here = stream.read_after(0).unwrap();
    let log = StreamLog { requests: Vec::new(), entries: store(&mut queued) };
    assert_eq!(here.next().await.unwrap().position, 1);
    assert_eq!(here.next().await.unwrap().message.len(), MAX_STORED_BYTES + 1, "the client here");
    let restored = Arc::new(EventStream::restored(1, log));
    for position in [1, 2] {
        let mut reader = restored.read_after(position).unwrap();
        assert_eq!(reader.next().await.unwrap().message, message("three"));
    }
}

#[tokio::test]
async fn a_stream_without_its_last_message_cannot_be_resumed() {
    let entry = |position, kind| LogEntry { position, kind, message: message("m") };
    let gap = [(1, EntryKind::Message), (2, EntryKind::Message), (4, EntryKind::Message)];
    let no_end = [(1, EntryKind::Message), (2, EntryKind::Closed)];
    for (entries, last, next) in [(&gap[..], 4, Some(4)), (&no_end[..], 2, None)] {
        let entries = entries.iter().map(|(position, kind)| entry(*position, *kind)).collect();
        let stored = StreamLog { requests: Vec::new(), entries };
        let stream = Arc::new(EventStream::restored(5, stored));
        let first = match stream.read_after(1) {
            Some(mut reader) => reader.next().await.map(|event| event.position),
            None => None,
        };
        assert_eq!(first, next, "the last message is the response");
        assert!(stream.read_after(last).is_some());
    }
}
