//! Tests of subscriptions, their limit and their renewal, with a paused clock.

use std::collections::BTreeSet;

use innkeeper_protocol::Revision;
use serde_json::Value;

use super::*;
use crate::connection::task_poll::tests::connection_over;
use crate::session::{
    HostContext, InboundSink, OutboundCommand, OutboundReceiver, Session, SessionContext,
    SessionLimits,
};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

#[test]
fn a_thousand_and_twenty_four_resources_may_be_subscribed_to_and_no_more() {
    let subscriptions = Subscriptions::default();
    for number in 0..MAX_SUBSCRIPTIONS {
        assert_eq!(subscriptions.set(&number.to_string(), true), SubscribeOutcome::Changed);
    }
    assert_eq!(subscriptions.set("one more", true), SubscribeOutcome::TooMany);
    assert_eq!(subscriptions.set("0", true), SubscribeOutcome::Unchanged);
    assert_eq!(subscriptions.set("one more", false), SubscribeOutcome::Unchanged);
    assert_eq!(subscriptions.set("0", false), SubscribeOutcome::Changed);
    assert_eq!(subscriptions.set("one more", true), SubscribeOutcome::Changed);
    assert_eq!(subscriptions.all().len(), MAX_SUBSCRIPTIONS);
}

/// Connects to a server whose session can be re-established.
fn connect() -> (Connection, InboundSink, OutboundReceiver) {
    let host = HostContext::default();
    let owner = SessionContext { server: "fx".into(), host: host.clone() };
    let (session, inbound, outbound) = Session::over_transport(owner, SessionLimits::default());
    (connection_over(session, Revision::LATEST_LEGACY, host), inbound, outbound)
}

/// Returns the id of the next subscribe request and its resource.
async fn next_subscribe(outbound: &OutboundReceiver) -> (u64, String) {
    loop {
        let Some(OutboundCommand::Send(parcel)) = outbound.next().await else { continue };
        let (_, body) = parcel.into_parts();
        let request: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(request["method"], method::RESOURCES_SUBSCRIBE);
        let uri = request["params"]["uri"].as_str().unwrap().to_owned();
        return (request["id"].as_u64().unwrap(), uri);
    }
}

async fn respond(inbound: &InboundSink, id: u64, member: &str, value: Value) {
    let response = json!({"jsonrpc": "2.0", "id": id, member: value});
    inbound.receive_message(response.to_string().as_bytes()).await;
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_repeated_when_a_session_is_reinitialized() {
    let (connection, inbound, outbound) = connect();
    for uri in ["fx://a", "fx://b", "fx://c"] {
        connection.freshness.subscriptions.set(uri, true);
    }
    connection.freshness.subscriptions.set("fx://b", false);
    let course = async {
        inbound.mark_reinitialized();
        let mut subscribed = BTreeSet::new();
        for _ in 0..2 {
            let (id, uri) = next_subscribe(&outbound).await;
            // A rejected subscription is not repeated and does not block the others.
            respond(&inbound, id, "error", json!({"code": -32602, "message": "unknown"})).await;
            subscribed.insert(uri);
        }
        assert_eq!(subscribed, BTreeSet::from(["fx://a".to_owned(), "fx://c".to_owned()]));
        // The server does not respond at first; later it does.
        connection.freshness.subscriptions.set("fx://c", false);
        inbound.mark_reinitialized();
        let (silent, _) = next_subscribe(&outbound).await;
        let (id, uri) = loop {
            let (id, uri) = next_subscribe(&outbound).await;
            if id != silent {
                break (id, uri);
            }
        };
        assert_eq!(uri, "fx://a");
        respond(&inbound, id, "result", json!({})).await;
    };
    tokio::select! {
        () = resubscribe(&connection, REQUEST_TIMEOUT) => {}
        () = course => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reinitializes_at_every_subscription_is_asked_less_and_less_often() {
    let (connection, inbound, outbound) = connect();
    connection.freshness.subscriptions.set("fx://a", true);
    let course = async {
        inbound.mark_reinitialized();
        let mut delays = Vec::new();
        let mut last = Instant::now();
        for _ in 0..8 {
            let (id, _) = next_subscribe(&outbound).await;
            delays.push(last.elapsed().as_secs());
            last = Instant::now();
            inbound.mark_reinitialized();
            respond(&inbound, id, "result", json!({})).await;
        }
        assert_eq!(delays, [0, 2, 4, 8, 16, 30, 30, 30]);
    };
    tokio::select! {
        () = resubscribe(&connection, REQUEST_TIMEOUT) => {}
        () = course => {}
    }
}
