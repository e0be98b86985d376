//! Tests of the outbound queue: limits, order, close.

use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::timeout;

use super::*;

fn request(id: u64) -> MessageKind {
    MessageKind::Request { id, method: "tools/call".into(), name: None, header_params: Vec::new() }
}

fn send(messages: &OutboundSender, id: u64, bytes: usize) -> Result<(), RequestError> {
    messages.send(request(id), |body| {
        body.resize(bytes, b'x');
        // Every message writer appends a line end.
        body.push(b'\n');
        Ok(())
    })
}

fn take_next(receiver: &OutboundReceiver) -> Option<(MessageKind, Bytes)> {
    match receiver.next().now_or_never()?? {
        OutboundCommand::Send(parcel) => Some(parcel.into_parts()),
        OutboundCommand::Forget { .. } => None,
    }
}

#[test]
fn a_message_as_long_as_the_queue_fits_and_one_byte_more_is_refused() {
    let (messages, receiver) = channel(100);
    let rejected = send(&messages, 1, 101).unwrap_err();
    assert!(matches!(rejected, RequestError::TooLarge { bytes: 101, limit: 100 }), "{rejected:?}");
    assert!(messages.has_capacity() && receiver.next().now_or_never().is_none());
    send(&messages, 2, 100).unwrap();
    assert_eq!(take_next(&receiver).unwrap().1.len(), 100, "without its line end");
}

#[test]
fn there_is_room_up_to_the_last_byte_and_again_once_something_is_taken() {
    let (messages, receiver) = channel(100);
    send(&messages, 1, 99).unwrap();
    assert!(messages.has_capacity());
    send(&messages, 2, 1).unwrap();
    assert!(!messages.has_capacity());
    assert_eq!(messages.wait_for_capacity().now_or_never(), None);
    take_next(&receiver).unwrap();
    assert!(messages.has_capacity());
    assert_eq!(messages.wait_for_capacity().now_or_never(), Some(()));
}

#[test]
fn there_is_room_for_so_many_messages_and_for_none_more_however_short_they_are() {
    let (messages, receiver) = channel(1 << 20);
    for id in 0..MAX_QUEUED_MESSAGES as u64 {
        assert!(messages.has_capacity(), "{id}");
        send(&messages, id, 1).unwrap();
    }
    assert!(!messages.has_capacity());
    take_next(&receiver).unwrap();
    assert!(messages.has_capacity());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_learns_of_it_and_of_the_end() {
    let (messages, receiver) = channel(10);
    send(&messages, 1, 10).unwrap();
    let (wait_result, ()) =
        tokio::join!(timeout(Duration::from_secs(9), messages.wait_for_capacity()), async {
            take_next(&receiver).unwrap();
        });
    wait_result.unwrap();
    send(&messages, 2, 10).unwrap();
    let (wait_result, ()) =
        tokio::join!(timeout(Duration::from_secs(9), messages.wait_for_capacity()), async {
            messages.close(UnavailableReason::Shutdown);
        });
    wait_result.unwrap();
}

#[test]
fn a_request_that_is_given_up_in_the_queue_is_never_sent_and_frees_its_room() {
    let (messages, receiver) = channel(100);
    send(&messages, 1, 60).unwrap();
    send(&messages, 2, 40).unwrap();
    messages.forget(1, true);
    assert!(messages.has_capacity());
    let (kind, _) = take_next(&receiver).unwrap();
    assert!(matches!(kind, MessageKind::Request { id: 2, .. }), "{kind:?}");
    messages.forget(2, true);
    let command = receiver.next().now_or_never().flatten();
    assert!(
        matches!(command, Some(OutboundCommand::Forget { id: 2, notify_server: true })),
        "{command:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn at_the_end_what_is_queued_is_dropped_and_everybody_is_told_once_and_for_all() {
    let (messages, receiver) = channel(100);
    send(&messages, 1, 100).unwrap();
    let (ended, ()) = tokio::join!(timeout(Duration::from_secs(9), receiver.closed()), async {
        messages.close(UnavailableReason::ClosedOutput);
        messages.close(UnavailableReason::Shutdown);
    });
    ended.unwrap();
    assert!(messages.has_capacity(), "what is dropped takes no room");
    assert!(receiver.next().await.is_none());
    receiver.closed().await;
    messages.forget(1, true);
    assert!(receiver.next().await.is_none(), "there is nobody to be told");
    let rejected = send(&messages, 2, 1).unwrap_err();
    let RequestError::Unavailable { reason: UnavailableReason::ClosedOutput, sent: false } =
        rejected
    else {
        panic!("the first reason stays: {rejected:?}");
    };
}
