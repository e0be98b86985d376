//! Tests of the turns of clients.

use std::future::pending;
use std::task::Poll;

use futures_util::{FutureExt, poll};
use innkeeper_host::{CallReference, ServerRequest};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::*;
use crate::sink::MessageSink;

fn client(principal: &str) -> TurnClient {
    TurnClient::new(Principal::new(principal), None)
}

fn callback() -> Arc<dyn Callback> {
    Arc::new(|_: ServerRequest| async { Ok(json!({})) })
}

/// Waits for a turn, which must be free.
fn take(turns: &Turns, principal: &str, answers: bool) -> Option<Turn> {
    turns.wait(client(principal), answers, Some(callback())).now_or_never()
}

#[test]
fn clients_that_answer_no_requests_have_turns_together() {
    let turns = Turns::default();
    let both = [take(&turns, "a", false), take(&turns, "b", false)];
    assert!(both.iter().all(Option::is_some));
    assert!(take(&turns, "c", true).is_none(), "a client that answers waits for them");
    drop(both);
    assert!(take(&turns, "c", true).is_some());
}

/// Attack: remote | a second client calls while a call of the first may ask | the second call waits |
/// Own response
#[test]
fn a_client_that_answers_requests_has_the_server_for_itself_and_one_running_call() {
    let turns = Turns::default();
    let first = take(&turns, "a", true).unwrap();
    for (principal, answers) in [("b", true), ("b", false), ("a", true)] {
        assert!(take(&turns, principal, answers).is_none(), "{principal} {answers}");
    }
    assert!(turns.callback(|_| true).is_some());
    drop(first);
    assert!(turns.callback(|_| true).is_none());
    assert!(take(&turns, "b", true).is_some());
}

#[tokio::test]
async fn while_a_call_waits_for_its_client_only_other_calls_of_the_client_run() {
    let turns = Turns::default();
    let parked = ParkableTurn::default();
    parked.set(take(&turns, "a", true));
    parked.pause();
    assert!(turns.callback(|_| true).is_none(), "nothing runs");
    assert!(take(&turns, "b", true).is_none());
    let second = take(&turns, "a", true).unwrap();
    let mut resuming = Box::pin(parked.resume());
    assert!(poll!(&mut resuming).is_pending(), "one call of a client runs");
    drop(second);
    resuming.await;
    assert!(turns.callback(|_| true).is_some());
}

/// A session of a principal.
fn session(principal: &str) -> TurnClient {
    let principal = Principal::new(principal);
    let client = Arc::new(Client::new(principal.clone(), 0, MessageSink::None));
    TurnClient::new(principal, Some(client))
}

/// Ends the turn, and each turn after it as soon as it starts. Returns the order of the turns.
async fn turn_order(
    turns: &Turns,
    first: TurnClient,
    others: &[(&'static str, TurnClient)],
) -> Vec<&'static str> {
    let mut running = turns.wait(first, true, None).now_or_never();
    let mut waiting: Vec<_> = others
        .iter()
        .map(|(name, client)| (*name, Box::pin(turns.wait(client.clone(), true, None))))
        .collect();
    for (_, call) in &mut waiting {
        assert!(poll!(call).is_pending());
    }
    let mut order = Vec::new();
    while running.take().is_some() {
        // Twice, since a turn can end with a call that is polled later.
        for index in (0..waiting.len()).chain(0..waiting.len()) {
            if let Poll::Ready(turn) = poll!(&mut waiting[index].1) {
                order.push(waiting.remove(index).0);
                running = Some(turn);
                break;
            }
        }
        for (_, call) in &mut waiting {
            assert!(poll!(call).is_pending());
        }
    }
    drop(waiting);
    assert!(turns.gates().is_empty() && !turns.are_awaited(), "nothing stays of clients that left");
    order
}

/// Attack: remote | a client calls over many sessions, or many times in one, before another client
/// calls once | the principals take turns | Isolation
#[tokio::test]
async fn principals_take_turns_however_many_calls_they_have() {
    let others = || [("b", client("b")), ("c", client("c"))];
    let sessions = ["a1", "a2", "a3"].map(|name| (name, session("a")));
    let calls = [sessions.to_vec(), others().to_vec()].concat();
    let order = turn_order(&Turns::default(), session("a"), &calls).await;
    assert_eq!(order, ["a1", "b", "c", "a2", "a3"]);
    let one = ["a1", "a2", "a3"].map(|name| (name, client("a")));
    let calls = [one.to_vec(), others().to_vec()].concat();
    let order = turn_order(&Turns::default(), client("a"), &calls).await;
    assert_eq!(order, ["b", "c", "a1", "a2", "a3"]);
}

/// Attack: remote | a client leaves a request of a server unanswered | the calls of other clients of the
/// server wait for about a minute | No unbounded wait
#[tokio::test(start_paused = true)]
async fn a_request_to_a_client_ends_after_a_minute_if_other_clients_wait() {
    let turns = Turns::default();
    let silent: Arc<dyn Callback> = Arc::new(|_: ServerRequest| pending::<Result<Value, _>>());
    let callback = turns.limited(silent);
    let request = || ServerRequest {
        server: "a".into(),
        key: None,
        method: "elicitation/create".into(),
        params: None,
        call: CallReference::Unknown,
    };
    let mut alone = callback.respond(request());
    assert!(timeout(10 * MAX_ANSWER_TIME_WHILE_AWAITED, &mut alone).await.is_err());
    let _turn = take(&turns, "a", true);
    let mut waiting = Box::pin(turns.wait(client("b"), true, None));
    assert!(poll!(&mut waiting).is_pending());
    let started = Instant::now();
    assert!(callback.respond(request()).await.is_err());
    assert_eq!(started.elapsed(), MAX_ANSWER_TIME_WHILE_AWAITED);
    assert!(alone.now_or_never().is_some_and(|answer| answer.is_err()));
}
