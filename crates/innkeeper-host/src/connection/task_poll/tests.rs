//! Tasks of an in-memory server with a paused clock.

use crate::connection::Negotiated;
use innkeeper_config::{CacheConfig, RetryPolicy};
use innkeeper_protocol::Revision;
use innkeeper_protocol::view::TasksCapability;
use innkeeper_testkit::InMemoryServer;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;

use super::*;
use crate::cache::Cache;
use crate::callback::{Callback, CallbackCapabilities, ServerRequest};
use crate::connection::call_permits::CallPermits;
use crate::connection::meta::ClientMeta;
use crate::connection::timeout_streak::TimeoutStreak;
use crate::connection::{ConnectionNumber, Freshness, Instruments, RequestLimits};
use crate::connection::{RequestOptions, RequestParams, TaskUse};
use crate::error::{CallError, CallErrorKind};
use crate::event::{CallOutcome, CallReference};
use crate::metrics::MetricsRecorder;
use crate::session::{HostContext, Session, SessionContext, SessionLimits};
use crate::tasks::BackgroundTasks;

/// Maximum total duration of a call in these tests.
const MAX_TOTAL_TIMEOUT: Duration = Duration::from_mins(10);

pub(in crate::connection) fn connect(
    revision: Revision,
) -> (InMemoryServer, Arc<Connection>, BackgroundTasks) {
    let (peer, reader, writer) = InMemoryServer::new();
    let host = HostContext::default();
    let tasks = host.tasks.clone();
    let owner = SessionContext { server: "fx".into(), host: host.clone() };
    let session = Session::open(owner, reader, writer, SessionLimits::default());
    (peer, Arc::new(connection_over(session, revision, host)), tasks)
}

/// Creates a connection over this session that allows one concurrent call.
pub(in crate::connection) fn connection_over(
    session: Session,
    revision: Revision,
    host: HostContext,
) -> Connection {
    session.set_revision(revision);
    let delay = Duration::from_secs(1);
    Connection {
        server: "fx".into(),
        number: ConnectionNumber::next(),
        session,
        negotiated: Negotiated {
            revision,
            tasks: TasksCapability { call: true, cancel: true },
            capabilities: Box::default(),
            declares_logging: false,
            client_meta: ClientMeta::default(),
        },
        limits: RequestLimits {
            permits: CallPermits::new(1),
            max_total_timeout: MAX_TOTAL_TIMEOUT,
            retry: RetryPolicy { max: 3, initial_delay: delay, max_delay: delay },
        },
        freshness: Freshness::new(
            Cache::new(CacheConfig { ttl: delay, max_entries: 1, max_bytes: 1 }).into(),
        ),
        instruments: Instruments {
            metrics: Arc::new(MetricsRecorder::new()),
            timeout_streak: TimeoutStreak::new(1),
            telemetry: None,
        },
        host,
    }
}

fn connect_modern() -> (InMemoryServer, Arc<Connection>, BackgroundTasks) {
    connect(Revision::V2026_07_28)
}

/// Returns a receiver for each report that the server is unresponsive.
fn timeout_streaks(connection: &Connection) -> std::sync::mpsc::Receiver<u32> {
    let (sender, receiver) = std::sync::mpsc::channel();
    connection.instruments.timeout_streak.set_callback(move |calls| sender.send(calls).unwrap());
    receiver
}

/// Registers a callback that never responds.
fn set_unanswered_callback(connection: &Connection) {
    let callback = |_: ServerRequest| std::future::pending();
    let callback: Arc<dyn Callback> = Arc::new(callback);
    connection.host.callbacks.set(&CallbackCapabilities::elicitation(), Some(&callback));
}

/// Requests input during a call in one of the two ways of the modern era.
async fn request_input_in(mode: &str, peer: &mut InMemoryServer) {
    let requests = json!({"q": {"method": "elicitation/create", "params": {}}});
    if mode == "task" {
        peer.respond_to(method::TOOLS_CALL, created_task(json!({}))).await;
        let result = json!({"inputRequests": requests});
        peer.respond_to(method::TASKS_GET, task("input_required", result)).await;
    } else {
        let result = json!({"resultType": "input_required", "inputRequests": requests});
        peer.respond_to(method::TOOLS_CALL, result).await;
    }
}

/// Calls the tool `t` with a timeout of 3 s.
async fn call(
    connection: &Connection,
    progress: Option<&mpsc::Sender<crate::Progress>>,
) -> Result<Value, CallError> {
    let params = json!({"name": "t"});
    let params = RequestParams::Whole(&params);
    let task = match connection.negotiated.revision.era() {
        Era::Legacy => TaskUse::Creates,
        Era::Modern => TaskUse::None,
    };
    let spec = RequestSpec {
        task,
        options: RequestOptions { progress, ..RequestOptions::default() },
        ..RequestSpec::new(method::TOOLS_CALL, "t", params, Duration::from_secs(3))
    };
    let reply = connection.request(&spec, |_, _| Ok(CallOutcome::Ok)).await?;
    Ok(serde_json::from_str(reply.result.get()).unwrap())
}

fn assert_timed_out(result: Result<Value, CallError>, allowed: Duration) {
    match result.unwrap_err() {
        CallError::Timeout { timeout, .. } => assert_eq!(timeout, allowed),
        other => panic!("not late: {other}"),
    }
}

fn assert_unavailable(result: Result<Value, CallError>) {
    match result.unwrap_err() {
        CallError::Unavailable { may_have_run, reason, .. } => {
            assert!(may_have_run && reason == UnavailableReason::Shutdown);
        }
        other => panic!("not lost: {other}"),
    }
}

fn task(status: &str, rest: Value) -> Value {
    let mut task = json!({"resultType": "complete", "taskId": "t-1", "status": status});
    if let Value::Object(rest) = rest {
        task.as_object_mut().unwrap().extend(rest);
    }
    task
}

fn created_task(rest: Value) -> Value {
    let mut created = task("working", rest);
    created["resultType"] = json!("task");
    created
}

#[tokio::test(start_paused = true)]
async fn a_task_is_polled_as_often_as_it_wants_within_limits() {
    let hour = 3_600_000;
    for (fields, expected) in [
        (json!({"pollIntervalMs": 5000}), Duration::from_secs(5)),
        (json!({}), DEFAULT_POLL_INTERVAL),
        (json!({"pollIntervalMs": 0}), MIN_POLL_INTERVAL),
        (json!({"pollIntervalMs": hour}), MAX_POLL_INTERVAL),
    ] {
        let (mut peer, connection, _tasks) = connect_modern();
        let server_side = async {
            peer.respond_to(method::TOOLS_CALL, created_task(fields.clone())).await;
            let started = Instant::now();
            let polled =
                peer.respond_to(method::TASKS_GET, task("pondering", fields.clone())).await;
            assert_eq!(polled["params"]["taskId"], "t-1");
            assert_eq!(started.elapsed(), expected, "{fields}");
            let result = json!({"result": {"content": [], "n": 1}});
            peer.respond_to(method::TASKS_GET, task("completed", result)).await;
            assert_eq!(started.elapsed(), 2 * expected, "{fields}");
        };
        let (result, ()) = tokio::join!(call(&connection, None), server_side);
        assert_eq!(result.unwrap(), json!({"content": [], "n": 1}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_reported_as_changed_is_polled_at_once_and_not_more_often() {
    for notification in [method::TASKS_STATUS, method::TASKS_CHANGED] {
        let (mut peer, connection, _tasks) = connect_modern();
        let server_side = async {
            peer.respond_to(method::TOOLS_CALL, created_task(json!({"pollIntervalMs": 30_000})))
                .await;
            let started = Instant::now();
            sleep(Duration::from_secs(7)).await;
            for _ in 0..100 {
                peer.notify(notification, json!({})).await;
            }
            let result = json!({"result": {"content": []}});
            let last = peer.expect(method::TASKS_GET).await;
            assert_eq!(started.elapsed(), Duration::from_secs(7));
            peer.respond(&last["id"], task("completed", result)).await;
        };
        let (result, ()) = tokio::join!(call(&connection, None), server_side);
        assert_eq!(result.unwrap(), json!({"content": []}));
    }
}

#[tokio::test(start_paused = true)]
async fn every_response_restarts_the_idle_timeout_of_a_task_and_silence_ends_the_call_and_the_task()
{
    let (mut peer, connection, _tasks) = connect_modern();
    let silences = timeout_streaks(&connection);
    let server_side = async {
        peer.respond_to(method::TOOLS_CALL, created_task(json!({}))).await;
        for _ in 0..20 {
            let poll = peer.expect(method::TASKS_GET).await;
            sleep(Duration::from_secs(2)).await;
            peer.respond(&poll["id"], task("working", json!({}))).await;
        }
        let started = Instant::now();
        peer.expect(method::TASKS_GET).await;
        started
    };
    let (result, started) = tokio::join!(call(&connection, None), server_side);
    assert_timed_out(result, Duration::from_secs(3));
    assert_eq!(silences.try_recv(), Ok(1), "it was silent");
    assert_eq!(started.elapsed(), DEFAULT_POLL_INTERVAL + Duration::from_secs(3));
    assert!(peer.expect(method::CANCELLED).await["params"]["requestId"].is_u64());
    let stop = peer.respond_to(method::TASKS_CANCEL, json!({})).await;
    assert_eq!(stop["params"], json!({"taskId": "t-1"}));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_never_ends_costs_the_longest_time_of_a_call_and_counts_as_no_timeout() {
    let (modern, legacy) = (Revision::V2026_07_28, Revision::V2025_11_25);
    // The last poll of the longest interval has the least time for its response.
    for (revision, delay) in [(modern, 59_000), (legacy, 59_000), (modern, 59_900)] {
        let (mut peer, connection, _tasks) = connect(revision);
        let silences = timeout_streaks(&connection);
        let started = Instant::now();
        let server_side = async {
            let delay = json!({"pollIntervalMs": delay});
            let first = created_task(delay.clone());
            let first = if revision.has_core_tasks() { json!({"task": first}) } else { first };
            peer.respond_to(method::TOOLS_CALL, first).await;
            while let Some(next) = peer.next_message().await {
                if next["method"] == method::TASKS_CANCEL {
                    return peer;
                }
                if started.elapsed() < Duration::from_secs(595) {
                    assert_eq!(next["method"], method::TASKS_GET);
                    peer.respond(&next["id"], task("working", delay.clone())).await;
                }
            }
            panic!("the task was not stopped");
        };
        let (result, mut peer) = tokio::join!(call(&connection, None), server_side);
        assert_timed_out(result, MAX_TOTAL_TIMEOUT);
        assert_eq!(started.elapsed(), MAX_TOTAL_TIMEOUT);
        assert!(silences.try_recv().is_err(), "it answered whenever it had the time to");
        connection.session.notify("notifications/last");
        peer.expect("notifications/last").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_stops_its_task_even_from_outside_of_the_runtime() {
    let (mut peer, connection, _tasks) = connect_modern();
    let mut calling = Box::pin({
        let connection = connection.clone();
        async move { call(&connection, None).await }
    });
    let start_task = peer.respond_to(method::TOOLS_CALL, created_task(json!({})));
    tokio::select! {
        _ = &mut calling => panic!("it has no result"),
        () = async { start_task.await; sleep(DEFAULT_POLL_INTERVAL / 2).await } => {}
    }
    std::thread::spawn(move || drop(calling)).join().unwrap();
    assert_eq!(peer.expect(method::TASKS_CANCEL).await["params"]["taskId"], "t-1");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_a_call_under_way_with_its_permit_and_the_progress_of_its_call() {
    let (mut peer, connection, _tasks) = connect_modern();
    let (sender, mut progress) = mpsc::channel::<crate::Progress>(8);
    let server_side = async {
        let request = peer.respond_to(method::TOOLS_CALL, created_task(json!({}))).await;
        sleep(DEFAULT_POLL_INTERVAL / 2).await;
        assert_eq!(connection.session.in_flight(), 1);
        assert_eq!(connection.limits.permits.available(), 0);
        let progress_params = json!({"progressToken": request["id"], "progress": 1});
        peer.notify(method::PROGRESS, progress_params).await;
        assert_eq!(progress.recv().await.unwrap().progress, 1.0);
        peer.respond_to(method::TASKS_GET, task("completed", json!({"result": {"x": 1}}))).await;
    };
    let (result, ()) = tokio::join!(call(&connection, Some(&sender)), server_side);
    assert_eq!(result.unwrap(), json!({"x": 1}));
    assert_eq!((connection.session.in_flight(), connection.limits.permits.available()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_away_ends_the_call_at_once_and_it_is_not_sent_again() {
    let (mut peer, connection, _tasks) = connect_modern();
    let server_side = async {
        peer.respond_to(method::TOOLS_CALL, created_task(json!({"pollIntervalMs": 60_000}))).await;
        sleep(DEFAULT_POLL_INTERVAL).await;
        connection.session.close(UnavailableReason::Shutdown);
        Instant::now()
    };
    let (result, closed) = tokio::join!(call(&connection, None), server_side);
    assert!(closed.elapsed().is_zero());
    assert_unavailable(result);
}

#[tokio::test(start_paused = true)]
async fn a_user_who_takes_all_the_time_of_a_call_counts_as_no_timeout_of_the_server_and_holds_no_permit()
 {
    for mode in ["task", "round"] {
        let (mut peer, connection, _tasks) = connect_modern();
        let silences = timeout_streaks(&connection);
        set_unanswered_callback(&connection);
        let started = Instant::now();
        let server_side = async {
            request_input_in(mode, &mut peer).await;
            sleep(DEFAULT_POLL_INTERVAL).await;
            assert_eq!(connection.limits.permits.available(), 1, "{mode}");
        };
        let (result, ()) = tokio::join!(call(&connection, None), server_side);
        assert_timed_out(result, MAX_TOTAL_TIMEOUT);
        assert_eq!(started.elapsed(), MAX_TOTAL_TIMEOUT, "{mode}");
        assert!(silences.try_recv().is_err(), "{mode}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_is_not_asked_any_longer_for_a_server_that_is_gone() {
    for mode in ["task", "round"] {
        let (mut peer, connection, _tasks) = connect_modern();
        set_unanswered_callback(&connection);
        let server_side = async {
            request_input_in(mode, &mut peer).await;
            sleep(DEFAULT_POLL_INTERVAL).await;
            connection.session.close(UnavailableReason::Shutdown);
            Instant::now()
        };
        let (result, closed) = tokio::join!(call(&connection, None), server_side);
        assert!(closed.elapsed().is_zero(), "{mode}");
        assert_unavailable(result);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_sent_cancellations_of_its_tasks_before_it_is_disconnected_for_a_bounded_time()
{
    let limit = Duration::from_millis(500);
    for hears in [true, false] {
        let (mut peer, connection, _tasks) = connect_modern();
        let server_side = async {
            peer.respond_to(method::TOOLS_CALL, created_task(json!({}))).await;
            sleep(DEFAULT_POLL_INTERVAL / 2).await;
            let started = Instant::now();
            let hear = async {
                let stop = peer.expect(method::TASKS_CANCEL).await;
                assert_eq!(stop["params"], json!({"taskId": "t-1"}));
                if hears {
                    peer.respond(&stop["id"], json!({})).await;
                }
            };
            tokio::join!(connection.session.cancel_tasks(limit), hear);
            assert_eq!(started.elapsed(), if hears { Duration::ZERO } else { limit });
        };
        let (result, ()) = tokio::join!(call(&connection, None), server_side);
        assert_unavailable(result);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_of_which_no_more_than_its_id_can_be_read_is_stopped() {
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let (mut peer, connection, _tasks) = connect(revision);
        let odd = created_task(json!({"status": 5}));
        let odd = if revision.has_core_tasks() { json!({"task": odd}) } else { odd };
        let server_side = peer.respond_to(method::TOOLS_CALL, odd);
        let (result, _) = tokio::join!(call(&connection, None), server_side);
        assert_eq!(result.unwrap_err().kind(), CallErrorKind::Protocol);
        let stop = peer.expect(method::TASKS_CANCEL).await;
        assert_eq!(stop["params"], json!({"taskId": "t-1"}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_that_cannot_cancel_tasks_is_not_requested_to_cancel_one() {
    let (modern, legacy) = (Revision::V2026_07_28, Revision::V2025_11_25);
    for (revision, cancel, is_requested) in
        [(modern, false, true), (legacy, true, true), (legacy, false, false)]
    {
        let (mut peer, mut connection, _tasks) = connect(revision);
        Arc::get_mut(&mut connection).unwrap().negotiated.tasks.cancel = cancel;
        let odd = created_task(json!({"status": 5}));
        let odd = if revision.has_core_tasks() { json!({"task": odd}) } else { odd };
        let server_side = peer.respond_to(method::TOOLS_CALL, odd);
        let (result, _) = tokio::join!(call(&connection, None), server_side);
        result.unwrap_err();
        // The request is sent in the background.
        sleep(Duration::from_millis(1)).await;
        connection.session.notify("notifications/last");
        let next = peer.next_message().await.unwrap();
        assert_eq!(next["method"] == method::TASKS_CANCEL, is_requested, "{revision:?} {next}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ended_without_a_result_says_how() {
    let error_message = async |last: Value| {
        let (mut peer, connection, _tasks) = connect_modern();
        let server_side = async {
            peer.respond_to(method::TOOLS_CALL, created_task(json!({}))).await;
            peer.respond_to(method::TASKS_GET, last).await;
        };
        let (result, ()) = tokio::join!(call(&connection, None), server_side);
        match result.unwrap_err() {
            CallError::Protocol { source, .. } => source.to_string(),
            other => other.to_string(),
        }
    };
    let fields = json!({"statusMessage": "no \u{1b}[31mmore"});
    let cancelled = error_message(task("cancelled", fields)).await;
    assert_eq!(cancelled, "task is `cancelled` without a result: no \\u{1b}[31mmore");
    let failed = error_message(task("failed", json!({"error": "odd"}))).await;
    assert_eq!(failed, "task is `failed` without a result");
    let completed = error_message(task("completed", json!({"result": 5}))).await;
    assert_eq!(completed, "task is `completed` without a result");
    let error = json!({"error": {"code": -7, "message": "not today"}});
    let rejected = error_message(task("failed", error)).await;
    assert_eq!(rejected, "server `fx` returned an error for `t`: not today (code -7)");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_not_known_any_more_has_expired_only_after_its_time() {
    for (ttl, expected) in [(500, "task expired after 0.5 s"), (5000, "no such task")] {
        let (mut peer, connection, _tasks) = connect_modern();
        let server_side = async {
            peer.respond_to(method::TOOLS_CALL, created_task(json!({"ttlMs": ttl}))).await;
            let poll = peer.expect(method::TASKS_GET).await;
            peer.respond_error(&poll["id"], -32602, "no such task").await;
        };
        let (result, ()) = tokio::join!(call(&connection, None), server_side);
        let said = match result.unwrap_err() {
            CallError::Protocol { source, .. } => source.to_string(),
            CallError::Server { error, .. } => error.message,
            other => panic!("{other}"),
        };
        assert_eq!(said, expected);
        connection.session.notify("notifications/last");
        peer.expect("notifications/last").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_result_that_waits_for_input_is_watched_and_silence_ends_it() {
    let (mut peer, connection, _tasks) = connect(Revision::V2025_11_25);
    let server_side = async {
        peer.respond_to(method::TOOLS_CALL, json!({"task": created_task(json!({}))})).await;
        peer.respond_to(method::TASKS_GET, task("input_required", json!({}))).await;
        peer.expect(method::TASKS_RESULT).await;
        for _ in 0..20 {
            peer.respond_to(method::TASKS_GET, task("working", json!({}))).await;
        }
        peer.expect(method::TASKS_GET).await;
        Instant::now()
    };
    let (result, last) = tokio::join!(call(&connection, None), server_side);
    assert_eq!(result.unwrap_err().kind(), CallErrorKind::Timeout);
    assert_eq!(last.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_legacy_result_that_comes_with_or_after_the_end_of_its_task_is_not_lost() {
    let second = Duration::from_secs(1);
    // The result arrives with the error, some time after it, or never.
    for delay in [Some(Duration::ZERO), Some(second), None] {
        let (mut peer, connection, _tasks) = connect(Revision::V2025_11_25);
        let server_side = async {
            peer.respond_to(method::TOOLS_CALL, json!({"task": created_task(json!({}))})).await;
            peer.respond_to(method::TASKS_GET, task("input_required", json!({}))).await;
            let result_request = peer.expect(method::TASKS_RESULT).await;
            let poll = peer.expect(method::TASKS_GET).await;
            let error = json!({"code": -32602, "message": "no such task"});
            let error_response = json!({"jsonrpc": "2.0", "id": poll["id"], "error": error});
            let result = json!({"jsonrpc": "2.0", "id": result_request["id"], "result": {"n": 1}});
            let lines = match delay {
                Some(Duration::ZERO) => format!("{error_response}\n{result}\n"),
                _ => format!("{error_response}\n"),
            };
            peer.send_raw(lines.as_bytes()).await;
            if delay == Some(second) {
                sleep(second).await;
                peer.send(&result).await;
            }
        };
        let (result, ()) = tokio::join!(call(&connection, None), server_side);
        match (delay, result) {
            (Some(_), result) => assert_eq!(result.unwrap(), json!({"n": 1})),
            (None, result) => assert_eq!(result.unwrap_err().kind(), CallErrorKind::Server),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_who_is_asked_by_a_request_of_the_server_counts_as_no_timeout_of_it_either() {
    let (mut peer, connection, _tasks) = connect(Revision::V2025_11_25);
    let silences = timeout_streaks(&connection);
    set_unanswered_callback(&connection);
    let server_side = async {
        peer.expect(method::TOOLS_CALL).await;
        sleep(Duration::from_secs(1)).await;
        peer.request(&json!("q"), method::ELICITATION_CREATE, json!({})).await;
    };
    let (result, ()) = tokio::join!(call(&connection, None), server_side);
    assert_timed_out(result, MAX_TOTAL_TIMEOUT);
    assert!(silences.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_needs_input_again_and_again_is_given_eight_round_trips() {
    for (rounds, succeeds) in [(8, true), (9, false)] {
        let (mut peer, connection, _tasks) = connect_modern();
        let callback: Arc<dyn Callback> =
            Arc::new(|_: ServerRequest| async { Ok(json!({"action": "accept"})) });
        connection.host.callbacks.set(&CallbackCapabilities::elicitation(), Some(&callback));
        let server_side = async {
            peer.respond_to(method::TOOLS_CALL, created_task(json!({}))).await;
            for round in 1..=rounds {
                let key = format!("q{round}");
                let requests = json!({key: {"method": "elicitation/create", "params": {}}});
                let result = task("input_required", json!({"inputRequests": requests}));
                peer.respond_to(method::TASKS_GET, result).await;
                if round <= MAX_ROUND_TRIPS {
                    peer.respond_to(method::TASKS_UPDATE, json!({})).await;
                }
            }
            if succeeds {
                let result = task("completed", json!({"result": {"n": 1}}));
                peer.respond_to(method::TASKS_GET, result).await;
            }
        };
        let (result, ()) = tokio::join!(call(&connection, None), server_side);
        match result {
            Ok(result) => assert!(succeeds && result["n"] == 1, "{result}"),
            Err(CallError::Protocol { source, .. }) => {
                assert!(!succeeds, "{source}");
                assert!(matches!(source, ProtocolError::TooManyRoundTrips { limit: 8 }));
            }
            Err(other) => panic!("{rounds} round trips: {other}"),
        }
    }
}

#[test]
fn an_unfinished_task_of_the_application_is_open_for_its_time_and_at_most_the_maximum() {
    let lifetime = |status: &str, ttl: Value| {
        let task = json!({ "taskId": "t", "status": status, "ttl": ttl,
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z" });
        let raw = RawValue::from_string(json!({ "task": task }).to_string()).unwrap();
        open_lifetime(&parse_task(&raw).unwrap())
    };
    let maximum = u64::try_from(MAX_TASK_LIFETIME.as_millis()).unwrap();
    assert_eq!(lifetime("working", json!(1000)), Some(Duration::from_secs(1)));
    assert_eq!(lifetime("input_required", json!(maximum + 1)), Some(MAX_TASK_LIFETIME));
    assert_eq!(lifetime("working", Value::Null), Some(MAX_TASK_LIFETIME));
    for status in ["completed", "failed", "cancelled"] {
        assert_eq!(lifetime(status, json!(1000)), None, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_of_the_server_during_the_poll_of_a_task_belongs_to_the_call_of_the_task() {
    let (mut peer, connection, _tasks) = connect(Revision::V2025_11_25);
    let (sender, mut calls) = mpsc::channel(1);
    let callback: Arc<dyn Callback> = Arc::new(move |request: ServerRequest| {
        sender.try_send(request.call).unwrap();
        std::future::pending()
    });
    connection.host.callbacks.set(&CallbackCapabilities::elicitation(), Some(&callback));
    let server_side = async {
        let request = peer.expect(method::TOOLS_CALL).await;
        let created = json!({ "taskId": "t", "status": "working", "ttl": null,
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z" });
        peer.respond(&request["id"], json!({ "task": created })).await;
        peer.expect(method::TASKS_GET).await;
        peer.request(&json!("q"), method::ELICITATION_CREATE, json!({})).await;
        (request["id"].clone(), calls.recv().await.unwrap())
    };
    tokio::select! {
        result = call(&connection, None) => panic!("{result:?}"),
        (id, reference) = server_side => {
            let CallReference::Call { id: found, item, .. } = reference else {
                panic!("{reference:?}")
            };
            assert_eq!((json!(found), &*item), (id, "t"));
        }
    }
}
