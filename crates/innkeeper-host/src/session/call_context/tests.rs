//! Tests of the calls that requests of a server belong to, and of the callbacks of calls.

use std::borrow::Cow;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use innkeeper_protocol::method;
use innkeeper_testkit::InMemoryServer;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, advance};

use super::super::call_hold::CallHold;
use super::super::open_ids::MAX_OPEN_IDS;
use super::super::{
    HostContext, InboundSink, OutboundReceiver, OutgoingRequest, RequestError, Session,
    SessionContext, SessionLimits,
};
use super::*;
use crate::callback::{CallbackCapabilities, CallbackRegistry, ClientCapabilities, ServerRequest};
use crate::tasks::BackgroundTasks;

static TOOLS_CALL: Cow<'static, str> = Cow::Borrowed(method::TOOLS_CALL);

/// The `maxTotalTimeout` of the server in these tests.
const MAX_TOTAL_TIMEOUT: Duration = Duration::from_mins(10);

/// Capacity of the channels; more than the messages of a test.
const CHANNEL_CAPACITY: usize = 16;

type Requests = mpsc::Receiver<ServerRequest>;

/// Returns a callback that records each request and responds with `name`.
fn recording_callback(name: &'static str) -> (Arc<dyn Callback>, Requests) {
    let (sender, requests) = mpsc::channel(CHANNEL_CAPACITY);
    let callback = move |request: ServerRequest| {
        sender.try_send(request).unwrap();
        async move { Ok(json!({ "by": name })) }
    };
    (Arc::new(callback), requests)
}

/// Returns the context of a session whose host has a callback for sampling.
fn context() -> (SessionContext, Requests) {
    context_with(&CallbackCapabilities::sampling())
}

fn context_with(capabilities: &CallbackCapabilities) -> (SessionContext, Requests) {
    let host = HostContext::default();
    let (callback, requests) = recording_callback("host");
    host.callbacks.set(capabilities, Some(&callback));
    (SessionContext { server: "fx".into(), host }, requests)
}

fn limits() -> SessionLimits {
    SessionLimits { callback_timeout: MAX_TOTAL_TIMEOUT, ..SessionLimits::default() }
}

fn open_pipe() -> (InMemoryServer, Session, Requests, BackgroundTasks) {
    open_pipe_in(context())
}

fn open_pipe_in(
    (owner, requests): (SessionContext, Requests),
) -> (InMemoryServer, Session, Requests, BackgroundTasks) {
    let (peer, reader, writer) = InMemoryServer::new();
    let tasks = owner.host.tasks.clone();
    (peer, Session::open(owner, reader, writer, limits()), requests, tasks)
}

fn open_http() -> (InboundSink, OutboundReceiver, Session, Requests) {
    let (owner, requests) = context();
    let (session, sink, outbound) = Session::over_transport(owner, limits());
    (sink, outbound, session, requests)
}

/// Calls the tool `item` with id `id`.
async fn call(
    session: &Session,
    id: u64,
    item: &str,
    callback: Option<&CallCallback>,
) -> Result<(), RequestError> {
    let deadline = Instant::now() + Duration::from_mins(5);
    let outgoing = OutgoingRequest {
        call: Some(CallContext { id, method: &TOOLS_CALL, item, callback, caller: None }),
        ..OutgoingRequest::new(id, method::TOOLS_CALL, &(), deadline)
    };
    session.request(outgoing).await.map(drop)
}

fn call_reference(id: u64, item: &str) -> CallReference {
    CallReference::Call { id, method: TOOLS_CALL.clone(), item: item.into() }
}

/// Sends a request as the server and returns the response.
async fn ask(peer: &mut InMemoryServer, id: &str, params: Value) -> Value {
    peer.request(&json!(id), method::SAMPLING_CREATE_MESSAGE, params).await;
    peer.expect_response(&json!(id)).await
}

fn sampling_request(id: &str) -> Vec<u8> {
    let method = method::SAMPLING_CREATE_MESSAGE;
    json!({ "jsonrpc": "2.0", "id": id, "method": method }).to_string().into_bytes()
}

async fn next_call(requests: &mut Requests) -> CallReference {
    requests.recv().await.unwrap().call
}

#[tokio::test(start_paused = true)]
async fn over_a_pipe_a_request_belongs_to_the_only_call_in_flight_and_never_to_one_of_two() {
    let (mut peer, session, mut requests, _tasks) = open_pipe();
    ask(&mut peer, "none", json!({})).await;
    assert_eq!(next_call(&mut requests).await, CallReference::Unknown, "no call is in flight");
    let serve = async {
        let first = peer.expect(method::TOOLS_CALL).await;
        ask(&mut peer, "one", json!({})).await;
        assert_eq!(next_call(&mut requests).await, call_reference(1, "first"));
        let second = async {
            tokio::task::yield_now().await;
            call(&session, 2, "second", None).await.unwrap();
        };
        let serve_second = async {
            let second = peer.expect(method::TOOLS_CALL).await;
            ask(&mut peer, "two", json!({})).await;
            assert_eq!(next_call(&mut requests).await, CallReference::Unknown);
            peer.respond(&second["id"], json!({})).await;
        };
        tokio::join!(second, serve_second);
        ask(&mut peer, "one again", json!({})).await;
        assert_eq!(next_call(&mut requests).await, call_reference(1, "first"));
        peer.respond(&first["id"], json!({})).await;
    };
    let (result, ()) = tokio::join!(call(&session, 1, "first", None), serve);
    result.unwrap();
}

/// Attack: data | after its response to one client, a server over a pipe asks while the call of another
/// client is the only call | the host does not pass the request to that call | Own response
#[tokio::test(start_paused = true)]
async fn with_many_clients_a_request_over_a_pipe_does_not_belong_to_the_only_call() {
    let capabilities = CallbackCapabilities::sampling().for_many_clients();
    let (mut peer, session, mut requests, _tasks) = open_pipe_in(context_with(&capabilities));
    let (callback, mut own_requests) = recording_callback("call");
    let callback = CallCallback::new(&callback);
    let serve = async {
        let called = peer.expect(method::TOOLS_CALL).await;
        assert!(!callback.is_used());
        ask(&mut peer, "a", json!({})).await;
        assert_eq!(next_call(&mut requests).await, CallReference::Unknown);
        peer.respond(&called["id"], json!({})).await;
    };
    tokio::join!(call(&session, 1, "t", Some(&callback)), serve).0.unwrap();
    assert!(own_requests.try_recv().is_err());
    assert!(callback.is_used(), "the result may depend on the answer, and is not cached");
    let task = CallContext { id: 5, method: &TOOLS_CALL, item: "t", callback: None, caller: None };
    let open = session.hold_open(5, None, task);
    open.set_task_id("task-5");
    let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": "task-5" } });
    ask(&mut peer, "b", json!({ "_meta": related })).await;
    assert_eq!(next_call(&mut requests).await, call_reference(5, "t"));
}

/// Counts what the host forgets.
#[derive(Debug, Default)]
struct CountingHold(AtomicUsize);

impl CallHold for CountingHold {
    fn forget(&self, open_for: Duration) {
        assert_eq!(open_for, MAX_TOTAL_TIMEOUT);
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Cancels a call whose caller has given the host something to hold.
async fn cancel_with_hold(
    session: &Session,
    peer: &mut InMemoryServer,
    hold: &Arc<CountingHold>,
) -> Value {
    let hold: Arc<dyn CallHold> = hold.clone();
    let caller = Arc::new(Caller { hold: Some(hold), ..Caller::default() });
    let (id, deadline) = (session.next_id(), Instant::now() + Duration::from_mins(5));
    let (callback, caller) = (None, Some(&caller));
    let call = CallContext { id, method: &TOOLS_CALL, item: "t", callback, caller };
    let outgoing = OutgoingRequest::new(id, method::TOOLS_CALL, &(), deadline);
    let request = tokio::select! {
        _ = session.request(OutgoingRequest { call: Some(call), ..outgoing }) => panic!("no response"),
        request = peer.expect(method::TOOLS_CALL) => request,
    };
    peer.expect(method::CANCELLED).await;
    request
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_held_until_its_response_or_its_maximum_duration() {
    let capabilities = CallbackCapabilities::sampling().for_many_clients();
    let (mut peer, session, mut requests, _tasks) = open_pipe_in(context_with(&capabilities));
    let [responded, silent] = [(); 2].map(|()| Arc::<CountingHold>::default());
    let request = cancel_with_hold(&session, &mut peer, &responded).await;
    cancel_with_hold(&session, &mut peer, &silent).await;
    let is_held = |hold: &Arc<CountingHold>| Arc::strong_count(hold) > 1;
    assert!(is_held(&responded) && is_held(&silent));
    peer.respond(&request["id"], json!({})).await;
    ask(&mut peer, "a", json!({})).await;
    assert!(!is_held(&responded) && is_held(&silent));
    advance(MAX_TOTAL_TIMEOUT).await;
    ask(&mut peer, "b", json!({})).await;
    assert!(!is_held(&silent), "the next request of the server");
    assert!(requests.try_recv().is_ok());
}

#[tokio::test(start_paused = true)]
async fn of_too_many_cancelled_calls_the_application_learns_that_the_host_forgets_them() {
    let (mut peer, session, _requests, _tasks) = open_pipe();
    let hold = Arc::<CountingHold>::default();
    for _ in 0..MAX_OPEN_IDS + 2 {
        cancel_with_hold(&session, &mut peer, &hold).await;
    }
    assert_eq!(hold.0.load(Ordering::Relaxed), 2);
    assert_eq!(Arc::strong_count(&hold), 1 + MAX_OPEN_IDS);
}

#[tokio::test(start_paused = true)]
async fn over_a_pipe_a_request_of_the_host_itself_is_no_call_and_hides_the_only_call() {
    let (mut peer, session, mut requests, _tasks) = open_pipe();
    let deadline = Instant::now() + Duration::from_mins(5);
    let list = session.request(OutgoingRequest::new(7, method::TOOLS_LIST, &(), deadline));
    let serve = async {
        let list = peer.expect(method::TOOLS_LIST).await;
        ask(&mut peer, "list", json!({})).await;
        assert_eq!(next_call(&mut requests).await, CallReference::Unknown);
        let serve = async {
            let called = peer.expect(method::TOOLS_CALL).await;
            ask(&mut peer, "both", json!({})).await;
            assert_eq!(next_call(&mut requests).await, CallReference::Unknown);
            peer.respond(&called["id"], json!({})).await;
        };
        tokio::join!(call(&session, 1, "t", None), serve).0.unwrap();
        peer.respond(&list["id"], json!({})).await;
    };
    tokio::join!(list, serve).0.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_counts_as_in_flight_until_its_response_or_its_maximum_duration() {
    let (mut peer, session, mut requests, _tasks) = open_pipe();
    let mut cancelled = Vec::new();
    for id in [1, 2] {
        tokio::select! {
            _ = call(&session, id, "cancelled", None) => panic!("no response was sent"),
            request = peer.expect(method::TOOLS_CALL) => cancelled.push(request),
        }
        peer.expect(method::CANCELLED).await;
    }
    let serve = async {
        let request = peer.expect(method::TOOLS_CALL).await;
        ask(&mut peer, "a", json!({})).await;
        assert_eq!(next_call(&mut requests).await, CallReference::Unknown);
        peer.respond(&cancelled[0]["id"], json!({})).await;
        ask(&mut peer, "b", json!({})).await;
        assert_eq!(next_call(&mut requests).await, CallReference::Unknown, "one is left");
        peer.respond(&cancelled[1]["id"], json!({})).await;
        ask(&mut peer, "c", json!({})).await;
        assert_eq!(next_call(&mut requests).await, call_reference(3, "t"));
        peer.respond(&request["id"], json!({})).await;
    };
    tokio::join!(call(&session, 3, "t", None), serve).0.unwrap();
    tokio::select! {
        _ = call(&session, 4, "cancelled", None) => panic!("no response was sent"),
        _ = peer.expect(method::TOOLS_CALL) => {}
    }
    peer.expect(method::CANCELLED).await;
    let millisecond = Duration::from_millis(1);
    for (elapsed, expected) in [
        (MAX_TOTAL_TIMEOUT - millisecond, CallReference::Unknown),
        (2 * millisecond, call_reference(5, "t")),
    ] {
        advance(elapsed).await;
        let serve = async {
            let request = peer.expect(method::TOOLS_CALL).await;
            ask(&mut peer, "d", json!({})).await;
            assert_eq!(next_call(&mut requests).await, expected);
            peer.respond(&request["id"], json!({})).await;
        };
        tokio::join!(call(&session, 5, "t", None), serve).0.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn over_a_pipe_a_request_after_the_response_to_the_only_call_belongs_to_no_call() {
    let (mut peer, session, mut requests, _tasks) = open_pipe();
    let (callback, mut own_requests) = recording_callback("call");
    let callback = CallCallback::new(&callback);
    let serve = async {
        let called = peer.expect(method::TOOLS_CALL).await;
        // One write, so that the host reads the request before the call ends.
        let response = json!({ "jsonrpc": "2.0", "id": called["id"], "result": {} });
        let request =
            json!({ "jsonrpc": "2.0", "id": "late", "method": method::SAMPLING_CREATE_MESSAGE });
        peer.send_raw(format!("{response}\n{request}\n").as_bytes()).await;
        let request = tokio::select! {
            request = requests.recv() => request,
            _ = own_requests.recv() => panic!("the callback of the call received the request"),
        };
        assert_eq!(request.unwrap().call, CallReference::Unknown);
    };
    tokio::join!(call(&session, 1, "t", Some(&callback)), serve).0.unwrap();
    assert!(!callback.is_used());
}

#[tokio::test(start_paused = true)]
async fn a_request_on_an_http_response_belongs_to_its_call_and_on_another_stream_to_none() {
    let (sink, _outbound, session, mut requests) = open_http();
    let serve = async {
        for (id, item) in [(2, "second"), (1, "first")] {
            sink.receive_http_message(&sampling_request("a"), Some(id)).await;
            assert_eq!(next_call(&mut requests).await, call_reference(id, item));
        }
        for id in [None, Some(99)] {
            sink.receive_http_message(&sampling_request("b"), id).await;
            assert_eq!(next_call(&mut requests).await, CallReference::Unknown);
        }
    };
    tokio::select! {
        biased;
        _ = call(&session, 1, "first", None) => panic!("no response was sent"),
        _ = call(&session, 2, "second", None) => panic!("no response was sent"),
        () = serve => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_with_a_related_task_belongs_to_the_call_that_created_the_task() {
    let (mut peer, session, mut requests, _tasks) = open_pipe();
    let context =
        |id| CallContext { id, method: &TOOLS_CALL, item: "t", callback: None, caller: None };
    let open = [5, 6].map(|id| session.hold_open(id, None, context(id)));
    open[0].set_task_id("task-5");
    open[1].set_task_id("task-6");
    let related = |task_id: &str| json!({ "_meta": { "io.modelcontextprotocol/related-task": { "taskId": task_id } } });
    for (task_id, expected) in [
        ("task-6", call_reference(6, "t")),
        ("task-5", call_reference(5, "t")),
        ("task-7", CallReference::Unknown),
    ] {
        ask(&mut peer, task_id, related(task_id)).await;
        assert_eq!(next_call(&mut requests).await, expected);
    }
    drop(open);
    ask(&mut peer, "ended", related("task-5")).await;
    assert_eq!(next_call(&mut requests).await, CallReference::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_request_with_a_related_task_belongs_to_the_request_for_its_result_and_to_none_of_two() {
    let (mut peer, session, mut requests, _tasks) = open_pipe();
    let context =
        |id| CallContext { id, method: &TOOLS_CALL, item: "t", callback: None, caller: None };
    let deadline = Instant::now() + Duration::from_mins(5);
    let result_of_task = |id| {
        let outgoing = OutgoingRequest::new(id, method::TASKS_RESULT, &(), deadline);
        let (call, task_id) = (Some(context(id)), Some("task-1"));
        session.request(OutgoingRequest { call, task_id, ..outgoing })
    };
    let params =
        json!({ "_meta": { "io.modelcontextprotocol/related-task": { "taskId": "task-1" } } });
    let other = OutgoingRequest::new(8, method::TOOLS_CALL, &(), deadline);
    let serve = async {
        peer.expect(method::TASKS_RESULT).await;
        peer.expect(method::TOOLS_CALL).await;
        ask(&mut peer, "one", params.clone()).await;
        assert_eq!(next_call(&mut requests).await, call_reference(6, "t"));
        let ask_both = async {
            peer.expect(method::TASKS_RESULT).await;
            ask(&mut peer, "two", params).await;
            assert_eq!(next_call(&mut requests).await, CallReference::Unknown);
        };
        tokio::select! { _ = result_of_task(7) => panic!("no response"), () = ask_both => {} }
    };
    tokio::select! {
        biased;
        _ = result_of_task(6) => panic!("no response was sent"),
        _ = session.request(OutgoingRequest { call: Some(context(8)), ..other }) => {
            panic!("no response was sent")
        }
        () = serve => {}
    }
}

/// Attack: data | a task of one client runs, and the server sends a request without the task while
/// the call of another client is the only call | the request belongs to no call | Own response
#[tokio::test(start_paused = true)]
async fn while_a_task_of_the_application_runs_a_request_without_the_task_belongs_to_no_call() {
    let (mut peer, session, mut requests, _tasks) = open_pipe();
    session.detach_task("task-1", Duration::from_secs(60));
    session.detach_task("task-2", Duration::from_secs(60));
    let status = |task_id: &str, status: &str| json!({ "taskId": task_id, "status": status });
    let serve = async {
        peer.expect(method::TOOLS_CALL).await;
        for (task_id, state) in [("task-1", "working"), ("task-1", "completed")] {
            peer.notify(method::TASKS_STATUS, status(task_id, state)).await;
            ask(&mut peer, state, json!({})).await;
            assert_eq!(next_call(&mut requests).await, CallReference::Unknown);
        }
        session.end_task("task-2");
        ask(&mut peer, "ended", json!({})).await;
        assert_eq!(next_call(&mut requests).await, call_reference(1, "t"));
        session.detach_task("task-3", Duration::from_secs(60));
        advance(Duration::from_secs(59)).await;
        ask(&mut peer, "running", json!({})).await;
        assert_eq!(next_call(&mut requests).await, CallReference::Unknown);
        advance(Duration::from_secs(1)).await;
        ask(&mut peer, "expired", json!({})).await;
        assert_eq!(next_call(&mut requests).await, call_reference(1, "t"));
    };
    tokio::select! {
        biased;
        _ = call(&session, 1, "t", None) => panic!("no response was sent"),
        () = serve => {}
    }
}

fn caller(capabilities: &Value) -> Arc<Caller> {
    let raw = serde_json::value::to_raw_value(capabilities).unwrap();
    let capabilities = Some(ClientCapabilities::from_raw(&raw).unwrap());
    Arc::new(Caller { capabilities, ..Caller::default() })
}

/// Attack: data | a server sends a request that the client of the call does not declare | the server
/// receives an error, and no callback is called | Own response
#[tokio::test(start_paused = true)]
async fn a_request_that_the_client_of_the_call_does_not_declare_is_refused() {
    let (mut peer, session, mut requests, _tasks) = open_pipe();
    let deadline = Instant::now() + Duration::from_mins(5);
    let tools = json!({ "tools": [] });
    for (capabilities, params, expected) in [
        (json!({ "elicitation": {} }), json!({}), Some(-32601)),
        (json!({ "sampling": {} }), tools, Some(-32602)),
        (json!({ "sampling": {} }), json!({}), None),
    ] {
        let (id, caller) = (session.next_id(), caller(&capabilities));
        let (callback, caller) = (None, Some(&caller));
        let context = CallContext { id, method: &TOOLS_CALL, item: "t", callback, caller };
        let outgoing = OutgoingRequest::new(id, method::TOOLS_CALL, &(), deadline);
        let outgoing = OutgoingRequest { call: Some(context), ..outgoing };
        let serve = async {
            let called = peer.expect(method::TOOLS_CALL).await;
            let response = ask(&mut peer, "a", params).await;
            assert_eq!(response["error"]["code"].as_i64(), expected, "{capabilities}: {response}");
            assert_eq!(requests.try_recv().is_ok(), expected.is_none(), "{capabilities}");
            peer.respond(&called["id"], json!({})).await;
        };
        tokio::join!(session.request(outgoing), serve).0.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn polls_of_a_task_belong_to_the_call_that_created_the_task() {
    let (mut peer, session, mut requests, _tasks) = open_pipe();
    let call = CallContext { id: 5, method: &TOOLS_CALL, item: "t", callback: None, caller: None };
    let _open = session.hold_open(5, None, call);
    let deadline = Instant::now() + Duration::from_mins(5);
    let poll = OutgoingRequest::new(6, method::TASKS_GET, &(), deadline);
    let poll = session.request(OutgoingRequest { call: Some(call), ..poll });
    let serve = async {
        let poll = peer.expect(method::TASKS_GET).await;
        ask(&mut peer, "a", json!({})).await;
        assert_eq!(next_call(&mut requests).await, call_reference(5, "t"));
        peer.respond(&poll["id"], json!({})).await;
    };
    tokio::join!(poll, serve).0.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_callback_of_a_call_receives_its_requests_and_the_callback_of_the_host_the_others() {
    let (sink, outbound, session, mut host_requests) = open_http();
    let (callback, mut requests) = recording_callback("call");
    let callback = CallCallback::new(&callback);
    let serve = async {
        sink.receive_http_message(&sampling_request("a"), Some(1)).await;
        assert_eq!(next_call(&mut requests).await, call_reference(1, "own"));
        sink.receive_http_message(&sampling_request("b"), Some(2)).await;
        assert_eq!(next_call(&mut host_requests).await, call_reference(2, "host"));
        sink.receive_http_message(&sampling_request("c"), None).await;
        assert_eq!(next_call(&mut host_requests).await, CallReference::Unknown);
        // The host declares only sampling.
        let undeclared = json!({ "jsonrpc": "2.0", "id": "d", "method": method::ROOTS_LIST });
        sink.receive_http_message(undeclared.to_string().as_bytes(), Some(1)).await;
        next_response(&outbound, "d").await
    };
    assert!(!callback.is_used());
    let rejection = tokio::select! {
        biased;
        _ = call(&session, 1, "own", Some(&callback)) => panic!("no response was sent"),
        _ = call(&session, 2, "host", None) => panic!("no response was sent"),
        rejection = serve => rejection,
    };
    assert_eq!(rejection["error"]["code"], -32601);
    assert!(callback.is_used());
    assert!(requests.try_recv().is_err() && host_requests.try_recv().is_err());
}

/// Returns the host's response to a request of the server.
async fn next_response(outbound: &OutboundReceiver, id: &str) -> Value {
    loop {
        let Some(super::super::OutboundCommand::Send(message)) = outbound.next().await else {
            continue;
        };
        let message: Value = serde_json::from_slice(&message.into_parts().1).unwrap();
        if message["id"] == id {
            return message;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_call_drops_its_callback_and_the_server_receives_an_error() {
    struct NotifyOnDrop(mpsc::Sender<&'static str>);
    impl Drop for NotifyOnDrop {
        fn drop(&mut self) {
            self.0.try_send("dropped").unwrap();
        }
    }
    let (mut peer, session, _requests, _tasks) = open_pipe();
    let (sender, mut progress) = mpsc::channel(CHANNEL_CAPACITY);
    let callback: Arc<dyn Callback> = Arc::new(move |_: ServerRequest| {
        let dropped = NotifyOnDrop(sender.clone());
        async move {
            dropped.0.try_send("started").unwrap();
            std::future::pending().await
        }
    });
    let callback = CallCallback::new(&callback);
    let serve = async {
        peer.expect(method::TOOLS_CALL).await;
        peer.request(&json!("a"), method::SAMPLING_CREATE_MESSAGE, json!({})).await;
        assert_eq!(progress.recv().await, Some("started"));
    };
    let started = Instant::now();
    tokio::select! {
        _ = call(&session, 1, "t", Some(&callback)) => panic!("no response was sent"),
        () = serve => {}
    }
    drop(callback);
    peer.expect(method::CANCELLED).await;
    let response = peer.expect_response(&json!("a")).await;
    assert_eq!(response["error"]["message"], "the call has ended");
    assert_eq!(progress.recv().await, Some("dropped"));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn without_a_callback_and_a_subscriber_a_pending_request_does_not_store_its_call() {
    for (subscribed, stored) in [(false, false), (true, true)] {
        let (owner, _requests) = context();
        let host = HostContext { callbacks: CallbackRegistry::default(), ..owner.host };
        let events = host.events.clone();
        let owner = SessionContext { host, ..owner };
        let _subscriber = subscribed.then(|| events.subscribe());
        let (session, _sink, outbound) = Session::over_transport(owner, limits());
        let check = async {
            outbound.next().await.unwrap();
            assert_eq!(session.0.pending.call(1).is_some(), stored);
        };
        tokio::select! {
            biased;
            _ = call(&session, 1, "t", None) => panic!("no response was sent"),
            () = check => {}
        }
    }
}
