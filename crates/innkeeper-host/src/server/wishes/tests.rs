//! Wishes and their limit, and asking for them anew, with the clock stopped.

use std::collections::BTreeSet;

use innkeeper_protocol::Revision;
use serde_json::Value;

use super::*;
use crate::callback::Callbacks;
use crate::event::Events;
use crate::server::deferred::tests::over;
use crate::server::session::{Inlet, Limits, Order, Orders, Owner, Session};
use crate::tasks::Tasks;

const LIMIT: Duration = Duration::from_secs(5);

#[test]
fn a_thousand_and_twenty_four_resources_may_be_wished_for_and_no_more() {
    let wishes = Wishes::default();
    for number in 0..WISHES {
        assert_eq!(wishes.set(&number.to_string(), true), Wished::Anew);
    }
    assert_eq!(wishes.set("one more", true), Wished::TooMany);
    assert_eq!(wishes.set("0", true), Wished::Already);
    assert_eq!(wishes.set("one more", false), Wished::Already);
    assert_eq!(wishes.set("0", false), Wished::Anew);
    assert_eq!(wishes.set("one more", true), Wished::Anew);
    assert_eq!(wishes.all().len(), WISHES);
}

/// A server that begins anew when it is told to.
fn connect() -> (Connection, Inlet, Orders) {
    let (callbacks, events) = (Callbacks::default(), Events::new());
    let owner = Owner {
        server: "fx".into(),
        callbacks: callbacks.clone(),
        events: events.clone(),
        tasks: Tasks::default(),
    };
    let (session, inlet, orders) = Session::carried(owner, Limits::default());
    (over(session, Revision::LATEST_LEGACY, callbacks, events), inlet, orders)
}

/// The next request: its id, and the resource that is subscribed to.
async fn subscribed(orders: &Orders) -> (u64, String) {
    loop {
        let Some(Order::Send(parcel)) = orders.next().await else { continue };
        let (_, body) = parcel.take();
        let request: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(request["method"], method::RESOURCES_SUBSCRIBE);
        let uri = request["params"]["uri"].as_str().unwrap().to_owned();
        return (request["id"].as_u64().unwrap(), uri);
    }
}

async fn answer(inlet: &Inlet, id: u64, member: &str, value: Value) {
    let answer = json!({"jsonrpc": "2.0", "id": id, member: value});
    inlet.message(answer.to_string().as_bytes()).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_subscribed_to_is_subscribed_to_anew_when_a_server_begins_anew() {
    let (connection, inlet, orders) = connect();
    for uri in ["fx://a", "fx://b", "fx://c"] {
        connection.wishes.set(uri, true);
    }
    connection.wishes.set("fx://b", false);
    let course = async {
        inlet.renewed();
        let mut seen = BTreeSet::new();
        for _ in 0..2 {
            let (id, uri) = subscribed(&orders).await;
            // What is refused is not asked for again, and keeps no other from it.
            answer(&inlet, id, "error", json!({"code": -32602, "message": "unknown"})).await;
            seen.insert(uri);
        }
        assert_eq!(seen, BTreeSet::from(["fx://a".to_owned(), "fx://c".to_owned()]));
        // It does not answer any more; later it does.
        connection.wishes.set("fx://c", false);
        inlet.renewed();
        let (silent, _) = subscribed(&orders).await;
        let (id, uri) = loop {
            let (id, uri) = subscribed(&orders).await;
            if id != silent {
                break (id, uri);
            }
        };
        assert_eq!(uri, "fx://a");
        answer(&inlet, id, "result", json!({})).await;
    };
    tokio::select! {
        () = subscribe_anew(&connection, LIMIT) => {}
        () = course => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_begins_anew_at_every_subscription_is_asked_less_and_less_often() {
    let (connection, inlet, orders) = connect();
    connection.wishes.set("fx://a", true);
    let course = async {
        inlet.renewed();
        let mut pauses = Vec::new();
        let mut last = Instant::now();
        for _ in 0..8 {
            let (id, _) = subscribed(&orders).await;
            pauses.push(last.elapsed().as_secs());
            last = Instant::now();
            inlet.renewed();
            answer(&inlet, id, "result", json!({})).await;
        }
        assert_eq!(pauses, [0, 2, 4, 8, 16, 30, 30, 30]);
    };
    tokio::select! {
        () = subscribe_anew(&connection, LIMIT) => {}
        () = course => {}
    }
}
