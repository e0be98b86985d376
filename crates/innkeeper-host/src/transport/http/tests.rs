//! Tests of the limit of pending outgoing notifications, with a server that accepts none at first.

use std::collections::BTreeSet;

use futures_util::poll;
use innkeeper_config::Environment;
use innkeeper_protocol::Revision;
use innkeeper_testkit::{Fault, RecordedRequest, RemoteServer};
use serde_json::json;
use tokio::time::Instant;

use super::session::MAX_CONCURRENT_NOTIFICATIONS;
use super::*;
use crate::session::{HostContext, OutgoingRequest, Session, SessionContext, SessionLimits};
use crate::transport::{RemoteEndpoint, TransportKind, client};

const PROGRESS: &str = "notifications/progress";
const LAST: &str = "notifications/last";
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

fn target(server: &RemoteServer) -> Arc<HttpTarget> {
    let (environment, headers) = (Environment::from_pairs([("PATH", "")]), Default::default());
    let remote = RemoteEndpoint::new(TransportKind::Http, &server.url(), &headers, &environment);
    let remote = remote.unwrap();
    let client = client::build_client(&remote).unwrap();
    let (server, url, headers) = ("a".into(), remote.url, remote.headers);
    Arc::new(HttpTarget::new(server, client, url, headers))
}

/// Returns the numbers of the received notifications.
fn numbers(requests: &[RecordedRequest]) -> BTreeSet<u64> {
    let received = requests.iter().filter(|request| request.rpc_method() == Some(PROGRESS));
    received.map(|request| request.body["params"]["n"].as_u64().unwrap()).collect()
}

fn has_method(requests: &[RecordedRequest], method: &str) -> bool {
    requests.iter().any(|request| request.rpc_method() == Some(method))
}

#[tokio::test]
async fn notifications_wait_up_to_the_limit_and_further_ones_and_cancellations_are_dropped() {
    // The first notifications keep all permits, so that the others wait.
    let blocked =
        Fault::never_responds().on_rpc_method(PROGRESS).first_n(MAX_CONCURRENT_NOTIFICATIONS);
    let unanswered = Fault::never_responds().on_rpc_method(method::TOOLS_CALL);
    let server = RemoteServer::request_recorder().fault(blocked).fault(unanswered).start().await;
    let host = HostContext::default();
    let tasks = host.tasks.clone();
    let owner = SessionContext { server: "a".into(), host };
    let (session, inbound, outbound) = Session::over_transport(owner, SessionLimits::default());
    session.set_revision(Revision::V2025_11_25);
    let (alive, _ended) = oneshot::channel();
    tasks.spawn(run(target(&server), inbound, outbound, fuzz::unused_state(), alive));
    let limit = MAX_PENDING_NOTIFICATIONS as u64;
    for n in 0..=limit {
        session.notify_with(PROGRESS, Some(&json!({ "n": n }))).unwrap();
    }

    // No limit of notifications applies to requests: once the server has the second one, the
    // notifications and the cancellation of the first one are accepted or dropped.
    for (id, method) in [(1, method::TOOLS_CALL), (2, method::PING)] {
        let (params, deadline) = (json!({}), Instant::now() + TEST_TIMEOUT);
        let request = session.request(OutgoingRequest::new(id, method, &params, deadline));
        let mut request = Box::pin(request);
        assert!(poll!(&mut request).is_pending());
        server.wait_for(TEST_TIMEOUT, |requests| has_method(requests, method)).await;
    }

    server.reset_connections();
    server.wait_for(TEST_TIMEOUT, |requests| numbers(requests).len() as u64 >= limit).await;
    // The next notification has a place again, and is sent after all waiting ones.
    session.notify_with(LAST, None::<&()>).unwrap();
    let requests = server.wait_for(TEST_TIMEOUT, |requests| has_method(requests, LAST)).await;
    assert_eq!(numbers(&requests), (0..limit).collect());
    assert!(!has_method(&requests, method::CANCELLED));
    tasks.stop();
    server.stop().await;
}
