//! The queue in front of a transport: what fits, what does not, and what becomes of it at the end.

use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::timeout;

use super::*;

fn request(id: u64) -> What {
    What::Request { id, method: "tools/call", name: None, params: Vec::new() }
}

fn put(messages: &Messages, id: u64, bytes: usize) -> Result<(), Fault> {
    messages.send(request(id), |body| {
        body.resize(bytes, b'x');
        // As every writer of messages ends them.
        body.push(b'\n');
        Ok(())
    })
}

fn taken(orders: &Orders) -> Option<(What, Bytes)> {
    match orders.next().now_or_never()?? {
        Order::Send(parcel) => Some(parcel.take()),
        Order::Forget { .. } => None,
    }
}

#[test]
fn a_message_as_long_as_the_queue_fits_and_one_byte_more_is_refused() {
    let (messages, orders) = queue(100);
    let refused = put(&messages, 1, 101).unwrap_err();
    assert!(matches!(refused, Fault::Protocol(ProtocolFault::Unwritable(_))), "{refused:?}");
    assert!(messages.has_room() && orders.next().now_or_never().is_none());
    put(&messages, 2, 100).unwrap();
    assert_eq!(taken(&orders).unwrap().1.len(), 100, "without its line end");
}

#[test]
fn there_is_room_up_to_the_last_byte_and_again_once_something_is_taken() {
    let (messages, orders) = queue(100);
    put(&messages, 1, 99).unwrap();
    assert!(messages.has_room());
    put(&messages, 2, 1).unwrap();
    assert!(!messages.has_room());
    assert_eq!(messages.room().now_or_never(), None);
    taken(&orders).unwrap();
    assert!(messages.has_room());
    assert_eq!(messages.room().now_or_never(), Some(()));
}

#[test]
fn there_is_room_for_so_many_messages_and_for_none_more_however_short_they_are() {
    let (messages, orders) = queue(1 << 20);
    for id in 0..MESSAGES as u64 {
        assert!(messages.has_room(), "{id}");
        put(&messages, id, 1).unwrap();
    }
    assert!(!messages.has_room());
    taken(&orders).unwrap();
    assert!(messages.has_room());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_learns_of_it_and_of_the_end() {
    let (messages, orders) = queue(10);
    put(&messages, 1, 10).unwrap();
    let (waited, ()) = tokio::join!(timeout(Duration::from_secs(9), messages.room()), async {
        taken(&orders).unwrap();
    });
    waited.unwrap();
    put(&messages, 2, 10).unwrap();
    let (waited, ()) = tokio::join!(timeout(Duration::from_secs(9), messages.room()), async {
        messages.close(Lost::Shutdown);
    });
    waited.unwrap();
}

#[test]
fn a_request_that_is_given_up_in_the_queue_is_never_sent_and_frees_its_room() {
    let (messages, orders) = queue(100);
    put(&messages, 1, 60).unwrap();
    put(&messages, 2, 40).unwrap();
    messages.forget(1, true);
    assert!(messages.has_room());
    let (what, _) = taken(&orders).unwrap();
    assert!(matches!(what, What::Request { id: 2, .. }), "{what:?}");
    messages.forget(2, true);
    let told = orders.next().now_or_never().flatten();
    assert!(matches!(told, Some(Order::Forget { id: 2, tell: true })), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn at_the_end_what_is_queued_is_dropped_and_everybody_is_told_once_and_for_all() {
    let (messages, orders) = queue(100);
    put(&messages, 1, 100).unwrap();
    let (ended, ()) = tokio::join!(timeout(Duration::from_secs(9), orders.closed()), async {
        messages.close(Lost::ClosedOutput);
        messages.close(Lost::Shutdown);
    });
    ended.unwrap();
    assert!(messages.has_room(), "what is dropped takes no room");
    assert!(orders.next().await.is_none());
    orders.closed().await;
    messages.forget(1, true);
    assert!(orders.next().await.is_none(), "there is nobody to be told");
    let refused = put(&messages, 2, 1).unwrap_err();
    let Fault::Lost { reason: Lost::ClosedOutput, sent: false } = refused else {
        panic!("the first reason stays: {refused:?}");
    };
}
