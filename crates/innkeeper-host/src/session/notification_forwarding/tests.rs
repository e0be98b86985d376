//! Tests of published notifications.

use innkeeper_protocol::Revision;
use innkeeper_protocol::request_meta::META_SUBSCRIPTION_ID;
use serde_json::{Value, json};
use std::borrow::Cow;
use tokio::sync::{broadcast, mpsc};
use tokio::time::{Duration, Instant};

use super::super::{
    CallContext, Caller, HostContext, InboundSink, OutgoingRequest, Session, SessionContext,
    SessionLimits,
};
use super::*;

static TOOLS_CALL: Cow<'static, str> = Cow::Borrowed(method::TOOLS_CALL);

type Events = broadcast::Receiver<HostEvent>;

struct Fixture {
    session: Session,
    sink: InboundSink,
    events: Events,
}

impl Fixture {
    fn open(revision: Revision) -> Self {
        let host = HostContext::default();
        let events = host.events.subscribe();
        let owner = SessionContext { server: "fx".into(), host };
        let (session, sink, _outbound) = Session::over_transport(owner, SessionLimits::default());
        session.set_revision(revision);
        Self { session, sink, events }
    }

    async fn receive(&mut self, method: &str, params: Value) -> CallReference {
        self.receive_text(&notification(method, &params)).await;
        let (received_method, received_params, call) = self.next_notification();
        assert_eq!(&*received_method, method);
        assert_eq!(received_params, Some(params.to_string()));
        call
    }

    async fn receive_text(&self, text: &str) {
        self.sink.receive_message(text.as_bytes()).await;
    }

    fn next_notification(&mut self) -> (Arc<str>, Option<String>, CallReference) {
        match self.events.try_recv().unwrap() {
            HostEvent::Notification { server, method, params, call } => {
                assert_eq!(&*server, "fx");
                (method, params.map(|params| params.get().to_owned()), call)
            }
            other => panic!("not a notification: {other:?}"),
        }
    }

    /// Holds a call open, which counts as in flight like a call without a response.
    fn hold_open(
        &self,
        id: u64,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> crate::session::active_tasks::OpenTaskGuard {
        self.session.hold_open(id, progress, context(id, None))
    }
}

fn context(id: u64, caller: Option<&Arc<Caller>>) -> CallContext<'_> {
    CallContext { id, method: &TOOLS_CALL, item: "t", callback: None, caller }
}

/// Returns a caller whose channel has this capacity, and the receiver of its notifications.
fn listening_caller(capacity: usize) -> (Arc<Caller>, mpsc::Receiver<CallNotification>) {
    let (sender, notifications) = mpsc::channel(capacity);
    (Arc::new(Caller { notifications: Some(sender), ..Caller::default() }), notifications)
}

fn assert_notification(received: &CallNotification, (method, params): (&str, &str)) {
    let received_params = received.params.as_deref().map(RawValue::get);
    assert_eq!((&*received.method, received_params), (method, Some(params)));
}

fn notification(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

fn call_reference(id: u64) -> CallReference {
    CallReference::Call { id, method: TOOLS_CALL.clone(), item: "t".into() }
}

#[tokio::test]
async fn every_notification_is_an_event_with_its_raw_parameters() {
    let mut fixture = Fixture::open(Revision::V2025_11_25);
    for method in [
        "notifications/elicitation/complete",
        "custom/event",
        method::TOOLS_LIST_CHANGED,
        method::RESOURCES_UPDATED,
        method::CANCELLED,
        method::TASKS_STATUS,
        method::SUBSCRIPTIONS_ACKNOWLEDGED,
        method::PROGRESS,
    ] {
        let params = json!({ "uri": "a:b", "n": 1, "_meta": { META_SUBSCRIPTION_ID: 3 } });
        assert_eq!(fixture.receive(method, params).await, CallReference::Unknown, "{method}");
    }
    let number = r#"{ "big": 123456789012345678901234567890 }"#;
    fixture.receive_text(&format!(r#"{{"jsonrpc":"2.0","method":"x/y","params":{number}}}"#)).await;
    assert_eq!(fixture.next_notification().1.as_deref(), Some(number));
    fixture.receive_text(r#"{"jsonrpc":"2.0","method":"x/y"}"#).await;
    assert_eq!(fixture.next_notification(), ("x/y".into(), None, CallReference::Unknown));
    assert!(fixture.events.try_recv().is_err());
}

#[tokio::test]
async fn a_log_message_is_an_event_with_its_raw_form_and_then_an_event_with_its_level() {
    let mut fixture = Fixture::open(Revision::V2025_11_25);
    let log = json!({ "level": "error", "data": [1], "x": true, "_meta": { "a/b": 7 } });
    assert_eq!(fixture.receive(method::MESSAGE, log.clone()).await, CallReference::Unknown);
    let HostEvent::Message { level, data, meta, params, .. } = fixture.events.try_recv().unwrap()
    else {
        panic!("not a log message");
    };
    let data = data.unwrap();
    assert_eq!((&*level, data.get()), ("error", "[1]"));
    assert_eq!(meta.unwrap().get(), r#"{"a/b":7}"#);
    assert_eq!(params.get(), log.to_string());
}

#[tokio::test]
async fn a_notification_over_64_kib_is_not_published() {
    let mut fixture = Fixture::open(Revision::V2025_11_25);
    let padding = MAX_NOTIFICATION_BYTES - "x/y".len() - json!({ "p": "" }).to_string().len();
    let at_limit = json!({ "p": "x".repeat(padding) });
    fixture.receive("x/y", at_limit).await;
    let over_limit = json!({ "p": "x".repeat(padding + 1) });
    fixture.receive_text(&notification("x/y", &over_limit)).await;
    let long_method = "m".repeat(MAX_NOTIFICATION_BYTES);
    fixture.receive_text(&notification(&long_method, &json!({}))).await;
    assert!(fixture.events.try_recv().is_err());
}

#[tokio::test]
async fn progress_belongs_to_the_call_of_its_token_and_keeps_its_raw_form() {
    let mut fixture = Fixture::open(Revision::V2025_11_25);
    let (sender, mut progress) = mpsc::channel(1);
    let _open = [fixture.hold_open(5, Some(sender)), fixture.hold_open(6, None)];
    for (token, expected) in [
        (json!(5), call_reference(5)),
        (json!(6), call_reference(6)),
        (json!(7), CallReference::Unknown),
        (json!("x"), CallReference::Unknown),
    ] {
        let params = json!({ "progressToken": token, "progress": 1, "_meta": { "a": [] }, "y": 2 });
        assert_eq!(fixture.receive(method::PROGRESS, params).await, expected);
    }
    let step = progress.try_recv().unwrap();
    assert_eq!(step.meta.unwrap().get(), r#"{"a":[]}"#);
    let raw: Value = serde_json::from_str(step.params.get()).unwrap();
    assert_eq!((&raw["progressToken"], &raw["y"]), (&json!(5), &json!(2)));
}

#[tokio::test]
async fn over_a_pipe_a_log_message_belongs_to_the_only_call_and_to_none_of_two() {
    let log = || json!({ "level": "info", "data": 1 });
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let mut fixture = Fixture::open(revision);
        let open = fixture.hold_open(5, None);
        open.set_task_id("t-5");
        assert_eq!(fixture.receive(method::MESSAGE, log()).await, call_reference(5));
        fixture.events.try_recv().unwrap();
        let changed = fixture.receive(method::TOOLS_LIST_CHANGED, json!({})).await;
        assert_eq!(changed, CallReference::Unknown);
        let other = fixture.hold_open(6, None);
        other.set_task_id("t-6");
        assert_eq!(fixture.receive(method::MESSAGE, log()).await, CallReference::Unknown);
    }
}

/// Attack: data | a log message and progress arrive while the calls of two callers run | each caller
/// receives the progress of its call, and neither receives the log message | Own response
#[tokio::test]
async fn a_caller_receives_the_notifications_of_its_call_in_order_and_of_no_other_call() {
    let fixture = Fixture::open(Revision::V2025_11_25);
    drop(fixture.events);
    let (first, mut of_first) = listening_caller(8);
    let (second, mut of_second) = listening_caller(8);
    let open = fixture.session.hold_open(5, None, context(5, Some(&first)));
    open.set_task_id("t-5");
    let log = r#"{ "level": "info", "data": 1.50 }"#;
    let step = r#"{ "progressToken": 5, "progress": 1.0, "x": 1e2 }"#;
    let text = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
    };
    let messages = [(method::MESSAGE, log), (method::PROGRESS, step), (method::MESSAGE, log)];
    for (method, params) in messages {
        fixture.sink.receive_message(text(method, params).as_bytes()).await;
    }
    fixture.sink.receive_message(text(method::TOOLS_LIST_CHANGED, "{}").as_bytes()).await;
    for expected in messages {
        let received = of_first.try_recv().unwrap();
        assert_notification(&received, expected);
        assert_eq!(received.is_assumed, expected.0 == method::MESSAGE);
    }
    let other = fixture.session.hold_open(6, None, context(6, Some(&second)));
    other.set_task_id("t-6");
    for params in [step, r#"{ "progressToken": 6, "progress": 1 }"#] {
        fixture.sink.receive_message(text(method::PROGRESS, params).as_bytes()).await;
    }
    fixture.sink.receive_message(text(method::MESSAGE, log).as_bytes()).await;
    assert_notification(&of_first.try_recv().unwrap(), (method::PROGRESS, step));
    let expected = (method::PROGRESS, r#"{ "progressToken": 6, "progress": 1 }"#);
    assert_notification(&of_second.try_recv().unwrap(), expected);
    assert!(of_first.try_recv().is_err() && of_second.try_recv().is_err());
}

#[tokio::test]
async fn a_caller_with_a_full_channel_loses_the_notification_and_a_cancellation_is_not_forwarded() {
    let fixture = Fixture::open(Revision::V2025_11_25);
    let (caller, mut notifications) = listening_caller(1);
    let _open = fixture.session.hold_open(5, None, context(5, Some(&caller)));
    for (method, number) in [(method::CANCELLED, 0), ("x/y", 1), ("x/y", 2)] {
        let text = notification(method, &json!({ "requestId": "q", "n": number }));
        fixture.sink.receive_http_message(text.as_bytes(), Some(5)).await;
    }
    let received = notifications.try_recv().unwrap();
    assert_notification(&received, ("x/y", &json!({ "requestId": "q", "n": 1 }).to_string()));
    assert!(notifications.try_recv().is_err());
    let over_limit = json!({ "p": "x".repeat(MAX_NOTIFICATION_BYTES) });
    let over_limit = notification("x/y", &over_limit);
    fixture.sink.receive_http_message(over_limit.as_bytes(), Some(5)).await;
    assert!(notifications.try_recv().is_err());
}

#[tokio::test]
async fn the_status_of_a_task_belongs_to_the_call_that_created_the_task() {
    let mut fixture = Fixture::open(Revision::V2025_11_25);
    let open = [5, 6].map(|id| fixture.hold_open(id, None));
    open[1].set_task_id("t-6");
    let status = json!({ "taskId": "t-6", "status": "working" });
    assert_eq!(fixture.receive(method::TASKS_STATUS, status).await, call_reference(6));
    let other = json!({ "taskId": "t-5", "status": "working" });
    assert_eq!(fixture.receive(method::TASKS_STATUS, other).await, CallReference::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_notification_on_an_http_response_belongs_to_the_call_of_the_response() {
    let fixture = Fixture::open(Revision::V2025_11_25);
    let mut fixture = fixture;
    let deadline = Instant::now() + Duration::from_mins(1);
    let outgoing = OutgoingRequest {
        call: Some(context(1, None)),
        ..OutgoingRequest::new(1, method::TOOLS_CALL, &(), deadline)
    };
    let session = fixture.session.clone();
    let text = notification("x/y", &json!({}));
    let serve = async {
        for (id, expected) in [(Some(1), call_reference(1)), (None, CallReference::Unknown)] {
            fixture.sink.receive_http_message(text.as_bytes(), id).await;
            assert_eq!(fixture.next_notification().2, expected);
        }
    };
    tokio::select! {
        biased;
        _ = session.request(outgoing) => panic!("no response was sent"),
        () = serve => {}
    }
}

#[tokio::test(start_paused = true)]
async fn flooding_notifications_are_throttled() {
    let fixture = Fixture::open(Revision::V2025_11_25);
    for _ in 0..2000 {
        super::super::SessionState::receive_message(
            &fixture.session.0,
            notification("x/y", &json!({})).as_bytes(),
            MessageSource::Pipe,
        );
    }
    assert!(fixture.session.0.reading.rate.should_throttle());
}
