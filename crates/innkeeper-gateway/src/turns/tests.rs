//! Tests of the turns of clients.

use futures_util::{FutureExt, poll};
use innkeeper_host::ServerRequest;
use serde_json::json;

use super::*;

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
