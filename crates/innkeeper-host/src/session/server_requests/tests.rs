//! Tests of requests that the server cancels.

use crate::session::RequestDeadline;
use innkeeper_protocol::method;
use innkeeper_testkit::InMemoryServer;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::{
    DeadlineExtension, HostContext, OutgoingRequest, RequestError, Session, SessionContext,
    SessionLimits,
};
use serde_json::Value;

use super::*;
use crate::callback::{Callback, CallbackCapabilities};

/// The `maxTotalTimeout` of the server in these tests.
const MAX_TOTAL_TIMEOUT: Duration = Duration::from_mins(10);

/// Capacity of the channel; more than the steps of a test.
const CHANNEL_CAPACITY: usize = 16;

/// Each message names an elicitation whose callback has started (`true`) or is dropped (`false`).
type Steps = mpsc::Receiver<(String, bool)>;

struct RunningCallback(String, mpsc::Sender<(String, bool)>);

impl Drop for RunningCallback {
    fn drop(&mut self) {
        let _ = self.1.try_send((self.0.clone(), false));
    }
}

/// Opens a session whose callback never responds to an elicitation.
fn open_session() -> (InMemoryServer, Session, Steps) {
    let (sender, steps) = mpsc::channel(CHANNEL_CAPACITY);
    let callback: Arc<dyn Callback> = Arc::new(move |request: ServerRequest| {
        let name = request.params.unwrap().get().to_owned();
        sender.try_send((name.clone(), true)).unwrap();
        let running = RunningCallback(name, sender.clone());
        async move {
            let _running = running;
            pending().await
        }
    });
    let callbacks = CallbackRegistry::default();
    callbacks.set(&CallbackCapabilities::elicitation(), Some(&callback));
    let host = HostContext { callbacks, ..HostContext::default() };
    let owner = SessionContext { server: "fx".into(), host };
    let (peer, reader, writer) = InMemoryServer::new();
    let limits = SessionLimits { callback_timeout: MAX_TOTAL_TIMEOUT, ..SessionLimits::default() };
    (peer, Session::open(owner, reader, writer, limits), steps)
}

async fn elicit(peer: &mut InMemoryServer, id: &Value) {
    peer.request(id, method::ELICITATION_CREATE, json!({ "id": id })).await;
}

async fn cancel(peer: &mut InMemoryServer, id: &Value) {
    peer.notify(method::CANCELLED, json!({ "requestId": id, "reason": "test" })).await;
}

/// Checks the next steps, which happen before any timeout.
async fn expect_steps(steps: &mut Steps, expected: &[(&Value, bool)]) {
    let started = Instant::now();
    for (id, running) in expected {
        let params = json!({ "id": id }).to_string();
        assert_eq!(steps.recv().await.unwrap(), (params, *running));
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_server_cancels_ends_without_a_response_and_the_next_request_runs() {
    let (mut peer, _session, mut steps) = open_session();
    let (first, second, third) = (json!("1"), json!(1), json!(2));
    for id in [&first, &second, &third] {
        elicit(&mut peer, id).await;
    }
    expect_steps(&mut steps, &[(&first, true)]).await;
    // The second request is queued; the string and the number are different ids.
    cancel(&mut peer, &second).await;
    cancel(&mut peer, &first).await;
    expect_steps(&mut steps, &[(&first, false), (&third, true)]).await;
    cancel(&mut peer, &third).await;
    expect_steps(&mut steps, &[(&third, false)]).await;
    peer.request(&json!("ping"), method::PING, json!({})).await;
    let message = peer.next_message().await.unwrap();
    assert_eq!(message["id"], "ping", "a cancelled request has a response: {message}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_does_not_extend_the_deadline_of_a_call() {
    let (mut peer, session, mut steps) = open_session();
    let id = json!("1");
    elicit(&mut peer, &id).await;
    expect_steps(&mut steps, &[(&id, true)]).await;
    cancel(&mut peer, &id).await;
    expect_steps(&mut steps, &[(&id, false)]).await;
    let (started, idle_timeout) = (Instant::now(), Duration::from_secs(1));
    let deadline = started + MAX_TOTAL_TIMEOUT;
    let outgoing = OutgoingRequest {
        deadline: RequestDeadline {
            at: started + idle_timeout,
            extension: Some(DeadlineExtension { idle_timeout, deadline }),
        },
        ..OutgoingRequest::new(7, method::TOOLS_CALL, &(), started + idle_timeout)
    };
    let error = session.request(outgoing).await.unwrap_err();
    assert!(matches!(error, RequestError::Timeout), "{error:?}");
    assert_eq!(started.elapsed(), idle_timeout);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_of_a_request_of_the_host_or_of_no_request_is_ignored() {
    let (mut peer, session, _steps) = open_session();
    let deadline = Instant::now() + Duration::from_secs(1);
    let call = session.request(OutgoingRequest::new(7, method::TOOLS_CALL, &(), deadline));
    let serve = async {
        peer.expect(method::TOOLS_CALL).await;
        for id in [json!(7), json!("7"), json!(null)] {
            cancel(&mut peer, &id).await;
        }
        peer.notify(method::CANCELLED, json!({})).await;
        peer.respond(&json!(7), json!({})).await;
    };
    let (result, ()) = tokio::join!(call, serve);
    result.unwrap();
}

#[test]
fn the_first_sixteen_rejections_are_reported_and_then_each_power_of_two() {
    let reported: Vec<u64> = (1..=130).filter(|count| is_reported(*count)).collect();
    assert_eq!(reported, (1..=16).chain([32, 64, 128]).collect::<Vec<u64>>());
}
