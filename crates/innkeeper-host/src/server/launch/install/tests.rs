//! A handshake with a server of which the system does not tell whether it runs yet.

use std::sync::Arc;

use innkeeper_testkit::Peer;
use serde_json::json;
use tokio::time::sleep;

use super::super::Limit;
use super::*;
use crate::callback::Callbacks;
use crate::event::Events;
use crate::server::session::{Limits, Outgoing, Owner};
use crate::tasks::Tasks;

const OWN: Duration = Duration::from_secs(1);
const INSTALL: Duration = Duration::from_secs(60);

fn clock(all: Duration) -> Clock {
    let limit = |allowed: Duration| Limit { ends: Instant::now() + allowed, allowed };
    Clock { own: limit(OWN), installs: INSTALL, install_timeout: INSTALL, all: limit(all) }
}

/// Asks a server that says something unasked after `fetching`, and answers `slow` after that.
async fn ask(
    fetching: Duration,
    slow: Duration,
    clock: &mut Clock,
) -> Result<(), (Phase, StartReason)> {
    let (mut peer, reader, writer) = Peer::new();
    let server: Arc<str> = "fx".into();
    let (callbacks, tasks) = (Callbacks::default(), Tasks::default());
    let owner = Owner { server, callbacks, events: Events::new(), tasks };
    let session = Session::open(owner, reader, writer, Limits::default());
    let params = json!({});
    let asked = Outgoing::new(session.next_id(), "initialize", &params, latest(clock));
    let handshake = async {
        let answer = session.request(asked).await;
        assert!(answer.is_ok(), "{answer:?}");
        Ok(())
    };
    let mut body = Body::Connection(None);
    let play = async {
        let request = peer.expect("initialize").await;
        sleep(fetching).await;
        peer.notify("notifications/message", json!({})).await;
        sleep(slow).await;
        peer.reply(&request["id"], json!({})).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        result = unseen(&mut body, &session, clock, handshake) => result,
        () = play => unreachable!(),
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_until_the_first_message_is_not_taken_from_the_start_of_the_server() {
    let mut clock = clock(INSTALL * 3);
    ask(INSTALL - OWN, OWN / 2, &mut clock).await.unwrap();
    assert!(clock.installs <= OWN);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_heard_of_has_its_own_time_and_no_more() {
    let (phase, reason) = ask(INSTALL - OWN, OWN * 2, &mut clock(INSTALL * 3)).await.unwrap_err();
    assert_eq!(phase, Phase::Handshake);
    assert!(matches!(reason, StartReason::TimedOut(OWN)), "{reason:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_never_heard_of_fails_at_the_limit_for_installing_or_that_of_all() {
    let (phase, reason) = ask(INSTALL * 2, OWN, &mut clock(INSTALL * 3)).await.unwrap_err();
    assert_eq!(phase, Phase::Install);
    assert!(matches!(reason, StartReason::TimedOut(INSTALL)), "{reason:?}");
    let (phase, reason) = ask(INSTALL * 2, OWN, &mut clock(INSTALL / 2)).await.unwrap_err();
    assert_eq!(phase, Phase::Install);
    assert!(matches!(reason, StartReason::StartLimit(_)), "{reason:?}");
}
