//! Events in a store and their readers.

use std::time::Duration;

use bytes::Bytes;
use innkeeper_gateway::connections::store::{
    ConnectionStore, EventCursor, NextEvents, OpenedEvents, StoreOptions,
};
use innkeeper_gateway::connections::{ConnectionId, LifecycleMessage};
use tokio::time::timeout;

use super::stores::{advance, next, next_messages, open, over_each, publish, wait_until};

/// Maximum number of events in a store.
const MAX_EVENTS: u64 = 256;

/// Maximum size of the events in a store apart from the newest one.
const MAX_EVENT_BYTES: usize = 1 << 20;

/// Waits for events that do not come.
async fn is_waiting(store: &dyn ConnectionStore, cursor: &mut EventCursor) -> bool {
    timeout(Duration::from_millis(100), store.next_events(cursor)).await.is_err()
}

async fn publish_numbers(store: &dyn ConnectionStore, id: ConnectionId, count: u64) {
    for number in 1..=count {
        publish(store, id, number.to_string()).await;
    }
}

#[tokio::test]
async fn each_message_arrives_byte_for_byte() {
    let messages: Vec<Bytes> = vec![
        "".into(),
        "\n\r\n\0: event\n\ndata: x".into(),
        "é 😀 \u{2028}".into(),
        Bytes::from_iter(0..=255_u8),
        vec![b'x'; 3 << 20].into(),
        "$-1\r\n*2\r\n".into(),
    ];
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create_active().await;
        let mut cursor = open(&*stores.first, id, None).await;
        for (position, message) in (1..).zip(&messages) {
            publish(&*stores.second, id, message.clone()).await;
            let events = next_messages(&*stores.first, &mut cursor).await;
            assert!(events == [(position, message.clone())], "message {position}");
        }
    })
    .await;
}

#[tokio::test]
async fn events_of_all_replicas_come_in_order_without_gap_or_repeat() {
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create_active().await;
        let publishing = async {
            for number in 1..=500_u64 {
                let store = if number % 3 == 0 { &stores.first } else { &stores.second };
                publish(&**store, id, number.to_string()).await;
                tokio::task::yield_now().await;
            }
        };
        let reading = async {
            let mut cursor = open(&*stores.first, id, Some(0)).await;
            let mut last = 0;
            while last < 500 {
                for (position, message) in next_messages(&*stores.first, &mut cursor).await {
                    last += 1;
                    assert_eq!((position, message), (last, last.to_string().into()));
                }
                assert_eq!(cursor.position, last);
            }
        };
        tokio::join!(publishing, reading);
    })
    .await;
}

/// Proves: B-b4
#[tokio::test]
async fn a_reader_resumes_after_a_position_on_another_replica() {
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create_active().await;
        publish_numbers(&*stores.first, id, 5).await;
        for after in 0..5 {
            let mut cursor = open(&*stores.second, id, Some(after)).await;
            let events = next_messages(&*stores.second, &mut cursor).await;
            let positions: Vec<_> = events.iter().map(|(position, _)| *position).collect();
            assert_eq!(positions, (after + 1..=5).collect::<Vec<_>>());
        }
        let mut cursor = open(&*stores.second, id, Some(5)).await;
        assert!(is_waiting(&*stores.second, &mut cursor).await);
        publish(&*stores.first, id, "6").await;
        let events = next_messages(&*stores.second, &mut cursor).await;
        assert_eq!(events, [(6, "6".into())]);
    })
    .await;
}

#[tokio::test]
async fn a_reader_without_a_position_starts_after_the_events_that_were_taken() {
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create_active().await;
        publish_numbers(&*stores.first, id, 2).await;
        let mut cursor = open(&*stores.first, id, None).await;
        assert_eq!(next_messages(&*stores.first, &mut cursor).await.len(), 2);
        // The reader can have failed to send the events: only its next call says that it took them.
        let mut again = open(&*stores.second, id, None).await;
        assert_eq!(again.position, 0);
        assert_eq!(next_messages(&*stores.second, &mut again).await.len(), 2);
        assert!(is_waiting(&*stores.second, &mut again).await);
        publish(&*stores.first, id, "3").await;
        let mut third = open(&*stores.first, id, None).await;
        assert_eq!(third.position, 2);
        assert_eq!(next_messages(&*stores.first, &mut third).await, [(3, "3".into())]);
        // A resumption does not lose what was taken.
        let mut earlier = open(&*stores.first, id, Some(0)).await;
        assert_eq!(next_messages(&*stores.first, &mut earlier).await.len(), 3);
        assert_eq!(open(&*stores.first, id, None).await.position, 2);
    })
    .await;
}

/// Attack: remote | a client resumes after positions that do not exist | the client hears that the
/// events are lost | No unbounded wait
#[tokio::test]
async fn a_position_that_does_not_exist_is_lost() {
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create_active().await;
        publish_numbers(&*stores.first, id, 2).await;
        for after in [3, 1 << 53, u64::MAX] {
            let opened = stores.second.open_events(id, Some(after)).await.unwrap();
            assert_eq!(opened, OpenedEvents::Lost, "{after}");
        }
        // A failed attempt does not end the reader.
        let mut cursor = open(&*stores.first, id, None).await;
        assert_eq!(stores.second.open_events(id, Some(9)).await.unwrap(), OpenedEvents::Lost);
        assert_eq!(next_messages(&*stores.first, &mut cursor).await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn only_an_active_connection_has_readers() {
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create().await;
        let opened = stores.first.open_events(id, None).await.unwrap();
        assert_eq!(opened, OpenedEvents::NotActive);
        let unknown = stores.first.open_events(ConnectionId::random(), Some(0)).await.unwrap();
        assert_eq!(unknown, OpenedEvents::NotActive);
        advance(&*stores.first, id, LifecycleMessage::Initialized).await;
        let mut cursor = open(&*stores.first, id, None).await;
        let ending = async {
            assert!(is_waiting(&*stores.second, &mut cursor.clone()).await);
            advance(&*stores.second, id, LifecycleMessage::Shutdown).await;
        };
        let reader = &mut cursor.clone();
        let (ended, ()) = tokio::join!(next(&*stores.first, reader), ending);
        assert_eq!(ended, NextEvents::Ended);
        assert_eq!(next(&*stores.first, &mut cursor).await, NextEvents::Ended);
        let opened = stores.first.open_events(id, Some(0)).await.unwrap();
        assert_eq!(opened, OpenedEvents::NotActive);
    })
    .await;
}

#[tokio::test]
async fn a_new_reader_ends_the_previous_one_on_each_replica() {
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create_active().await;
        let mut first = open(&*stores.first, id, None).await;
        let taking_over = async {
            assert!(is_waiting(&*stores.first, &mut first.clone()).await);
            open(&*stores.second, id, None).await
        };
        let reader = &mut first.clone();
        let (ended, mut second) = tokio::join!(next(&*stores.first, reader), taking_over);
        assert_eq!(ended, NextEvents::Ended);
        publish(&*stores.first, id, "event").await;
        assert_eq!(next(&*stores.first, &mut first).await, NextEvents::Ended);
        assert_eq!(next_messages(&*stores.second, &mut second).await, [(1, "event".into())]);
        // The end of a reader takes no event from the other one.
        assert_eq!(open(&*stores.first, id, None).await.position, 0);
    })
    .await;
}

#[tokio::test]
async fn a_waiting_reader_is_woken_by_each_replica() {
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create_active().await;
        let mut cursor = open(&*stores.first, id, None).await;
        for (position, publisher) in (1..).zip([&stores.first, &stores.second].repeat(20)) {
            let publishing = async {
                tokio::task::yield_now().await;
                publish(&**publisher, id, "event").await;
            };
            // Less than the interval at which a reader looks by itself.
            let woken = timeout(Duration::from_secs(4), stores.first.next_events(&mut cursor));
            let (events, ()) = tokio::join!(woken, publishing);
            let NextEvents::Events(events) = events.expect("a notice").unwrap() else {
                panic!("no events");
            };
            assert_eq!(events.len(), 1);
            assert_eq!(events[0].position, position);
        }
    })
    .await;
}

#[tokio::test]
async fn a_dropped_wait_takes_no_event() {
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create_active().await;
        let mut cursor = open(&*stores.first, id, None).await;
        publish(&*stores.second, id, "event").await;
        let mut attempts = 0;
        // A future that is polled a few times and dropped, until one is ready.
        wait_until(async || {
            attempts += 1;
            let before = cursor.clone();
            let waiting = stores.first.next_events(&mut cursor);
            let polls = async {
                for _ in 0..attempts {
                    tokio::task::yield_now().await;
                }
            };
            let done = tokio::select! { biased; _ = waiting => true, () = polls => false };
            assert!(done || cursor == before);
            done
        })
        .await;
        assert_eq!(cursor.position, 1);
        let mut again = open(&*stores.second, id, None).await;
        assert_eq!(next_messages(&*stores.second, &mut again).await, [(1, "event".into())]);
    })
    .await;
}

/// Attack: flow control | a client does not read its events | the store keeps 256 events, and the client
/// hears that others are lost | No unbounded memory
#[tokio::test]
async fn the_oldest_events_above_the_maximum_number_are_lost() {
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create_active().await;
        let mut slow = open(&*stores.first, id, None).await;
        publish_numbers(&*stores.second, id, MAX_EVENTS + 10).await;
        assert_eq!(next(&*stores.first, &mut slow).await, NextEvents::Lost);
        assert_eq!(slow.position, 0);
        let lost = stores.first.open_events(id, Some(9)).await.unwrap();
        assert_eq!(lost, OpenedEvents::Lost);
        let mut oldest = open(&*stores.first, id, Some(10)).await;
        let events = next_messages(&*stores.first, &mut oldest).await;
        assert_eq!(events.len(), 256);
        assert_eq!(events[0], (11, "11".into()));
        assert_eq!(open(&*stores.second, id, None).await.position, 10);
    })
    .await;
}

/// Attack: flow control | large events for a client that does not read | the store keeps one MiB of
/// events and the newest one | No unbounded memory
#[tokio::test]
async fn the_oldest_events_above_the_maximum_size_are_lost() {
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create_active().await;
        let positions = async || {
            let mut cursor = open(&*stores.first, id, None).await;
            let events = next_messages(&*stores.first, &mut cursor).await;
            events.into_iter().map(|(position, _)| position).collect::<Vec<_>>()
        };
        let half = Bytes::from(vec![b'x'; MAX_EVENT_BYTES / 2]);
        for _ in 0..2 {
            publish(&*stores.second, id, half.clone()).await;
        }
        // The newest event does not count, whatever its size.
        publish(&*stores.second, id, vec![b'x'; 2 * MAX_EVENT_BYTES]).await;
        assert_eq!(positions().await, [1, 2, 3]);
        // The large event is not the newest any more.
        publish(&*stores.second, id, "small").await;
        assert_eq!(positions().await, [4]);
        for _ in 0..2 {
            publish(&*stores.second, id, half.clone()).await;
        }
        assert_eq!(positions().await, [4, 5, 6]);
        publish(&*stores.second, id, "small").await;
        assert_eq!(positions().await, [5, 6, 7]);
    })
    .await;
}
