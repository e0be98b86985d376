//! Session tests with an in-memory server and a paused clock.

use futures_util::FutureExt;
use innkeeper_protocol::method;
use innkeeper_testkit::InMemoryServer;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;
use crate::error::ProtocolError;

pub(super) fn open_session(limits: SessionLimits) -> (InMemoryServer, Session, BackgroundTasks) {
    let (peer, reader, writer) = InMemoryServer::new();
    let host = HostContext::default();
    let tasks = host.tasks.clone();
    let owner = SessionContext { server: "fx".into(), host };
    let session = Session::open(owner, reader, writer, limits);
    (peer, session, tasks)
}

fn open_default() -> (InMemoryServer, Session, BackgroundTasks) {
    open_session(SessionLimits::default())
}

async fn call(session: &Session, params: Value, seconds: u64) -> Result<Value, RequestError> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let outgoing = OutgoingRequest::new(session.next_id(), method::TOOLS_CALL, &params, deadline);
    let raw = session.request(outgoing).await?.into_inner();
    Ok(serde_json::from_str(raw.get()).unwrap())
}

fn spawn_call(
    session: &Session,
    params: Value,
    seconds: u64,
) -> tokio::task::JoinHandle<Result<Value, RequestError>> {
    let session = session.clone();
    #[expect(clippy::disallowed_methods, reason = "the test owns and awaits the task")]
    tokio::spawn(async move { call(&session, params, seconds).await })
}

/// Proves: TR3.3
#[tokio::test(start_paused = true)]
async fn ten_thousand_requests_answered_in_reverse_each_get_their_own_answer() {
    let (mut peer, session, _tasks) = open_default();
    let calls: Vec<_> = (0..10_000).map(|n| spawn_call(&session, json!({ "n": n }), 60)).collect();
    let mut sent_calls = Vec::new();
    for _ in 0..10_000 {
        sent_calls.push(peer.expect(method::TOOLS_CALL).await);
    }
    let ids: std::collections::HashSet<u64> =
        sent_calls.iter().map(|request| request["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), 10_000, "an id was used twice");
    for request in sent_calls.iter().rev() {
        peer.respond(&request["id"], json!({ "echo": request["params"]["n"] })).await;
    }
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap(), json!({ "echo": n }));
    }
    assert_eq!(session.in_flight(), 0);
}

/// Proves: N21, TR3.5
#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_ends_at_its_deadline_and_the_server_is_told() {
    let (mut peer, session, _tasks) = open_default();
    let started = Instant::now();
    let waiting = spawn_call(&session, json!({}), 3);
    let request = peer.expect(method::TOOLS_CALL).await;
    assert!(matches!(waiting.await.unwrap(), Err(RequestError::Timeout)));
    assert_eq!(started.elapsed(), Duration::from_secs(3));
    let cancelled = peer.expect(method::CANCELLED).await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    peer.respond(&request["id"], json!({ "late": true })).await;
    let next = spawn_call(&session, json!({}), 3);
    let request = peer.expect(method::TOOLS_CALL).await;
    peer.respond(&request["id"], json!({ "late": false })).await;
    assert_eq!(next.await.unwrap().unwrap(), json!({ "late": false }));
}

/// Proves: FR4.11
#[tokio::test(start_paused = true)]
async fn dropping_a_request_tells_the_server_and_discards_the_late_answer() {
    let (mut peer, session, _tasks) = open_default();
    let waiting = spawn_call(&session, json!({}), 30);
    let request = peer.expect(method::TOOLS_CALL).await;
    waiting.abort();
    let cancelled = peer.expect(method::CANCELLED).await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    peer.respond(&request["id"], json!({})).await;
    assert_eq!(session.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_is_given_up_is_never_cancelled_at_the_server() {
    let (mut peer, session, _tasks) = open_default();
    let (id, params) = (session.next_id(), json!({}));
    let deadline = Instant::now() + Duration::from_secs(1);
    let outgoing = OutgoingRequest::new(id, method::INITIALIZE, &params, deadline);
    let outgoing = OutgoingRequest { cancellable: false, ..outgoing };
    assert!(matches!(session.request(outgoing).await, Err(RequestError::Timeout)));
    peer.expect(method::INITIALIZE).await;
    session.notify(method::INITIALIZED);
    peer.expect(method::INITIALIZED).await;
}

/// Proves: TR3.5
#[tokio::test(start_paused = true)]
async fn each_request_ends_at_its_own_deadline_and_a_longer_one_still_gets_its_answer() {
    let (mut peer, session, _tasks) = open_default();
    let started = Instant::now();
    let timed = |seconds: u64| {
        let waiting = spawn_call(&session, json!({ "seconds": seconds }), seconds);
        async move { (waiting.await.unwrap(), started.elapsed()) }
    };
    let waiting = (timed(9), timed(1), timed(4), timed(30));
    let mut last = Value::Null;
    for _ in 0..4 {
        last = peer.expect(method::TOOLS_CALL).await;
    }
    assert_eq!(last["params"]["seconds"], 30);
    let serve = async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        peer.respond(&last["id"], json!({ "for": 30 })).await;
    };
    let (nine, one, four, thirty, ()) =
        tokio::join!(waiting.0, waiting.1, waiting.2, waiting.3, serve);
    for ((result, elapsed), seconds) in [(nine, 9), (one, 1), (four, 4)] {
        assert!(matches!(result, Err(RequestError::Timeout)), "{seconds}: {result:?}");
        assert_eq!(elapsed, Duration::from_secs(seconds));
    }
    assert_eq!((thirty.0.unwrap(), thirty.1.as_secs()), (json!({ "for": 30 }), 20));
}

/// Attack: flow control | the server stops reading while 20 calls send 100 KiB each | each call
/// ends at its deadline, and the queue stays at its limit | No unbounded wait
/// Proves: TR4.2
#[tokio::test(start_paused = true)]
async fn a_server_that_stops_reading_costs_each_call_its_deadline_and_bounded_memory() {
    let (mut peer, session, _tasks) = open_session(SessionLimits {
        max_write_queue_bytes: 256 << 10,
        ..SessionLimits::default()
    });
    let first = spawn_call(&session, json!({}), 60);
    let request = peer.expect(method::TOOLS_CALL).await;
    let started = Instant::now();
    let large = "x".repeat(100 << 10);
    let stuck: Vec<_> =
        (0..20).map(|_| spawn_call(&session, json!({ "large": large }), 2)).collect();
    for call in stuck {
        assert!(matches!(call.await.unwrap(), Err(RequestError::Timeout)));
    }
    assert_eq!(started.elapsed(), Duration::from_secs(2));
    let queued = session.0.outbound.queued_bytes();
    assert!(queued >= 256 << 10, "the queue is not full: {queued} bytes");
    assert!(queued <= (256 << 10) + (101 << 10), "the queue grew past its limit: {queued} bytes");
    peer.respond(&request["id"], json!({ "still": "read" })).await;
    assert_eq!(first.await.unwrap().unwrap(), json!({ "still": "read" }));
}

#[tokio::test(start_paused = true)]
async fn a_request_over_the_write_limit_is_refused_and_the_next_one_goes_out() {
    let limit = 64 << 10;
    let (mut peer, session, _tasks) =
        open_session(SessionLimits { max_write_queue_bytes: limit, ..SessionLimits::default() });
    let rejected = call(&session, json!({ "large": "x".repeat(limit) }), 1).await;
    let Err(RequestError::TooLarge { bytes, limit: reported }) = rejected else {
        panic!("{rejected:?}")
    };
    assert!(reported == limit && (limit..limit + 200).contains(&bytes), "{bytes} {reported}");
    let next = spawn_call(&session, json!({}), 1);
    peer.respond_to(method::TOOLS_CALL, json!({ "ok": true })).await;
    assert_eq!(next.await.unwrap().unwrap(), json!({ "ok": true }));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_serialized_fails_and_the_next_request_is_sent_whole() {
    struct Unserializable;
    impl Serialize for Unserializable {
        fn serialize<S: serde::Serializer>(&self, _serializer: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no value"))
        }
    }
    let (mut peer, session, _tasks) = open_default();
    let deadline = Instant::now() + Duration::from_secs(1);
    let outgoing = OutgoingRequest::new(7, method::TOOLS_CALL, &[Unserializable], deadline);
    let error = session.request(outgoing).await.unwrap_err();
    assert!(
        matches!(&error, RequestError::Protocol(ProtocolError::Serialization(reason)) if reason.contains("no value")),
        "{error:?}"
    );
    let next = spawn_call(&session, json!({}), 1);
    peer.respond_to(method::TOOLS_CALL, json!({ "ok": true })).await;
    assert_eq!(next.await.unwrap().unwrap(), json!({ "ok": true }));
}

/// Proves: TR3.7
#[tokio::test(start_paused = true)]
async fn characters_split_across_reads_arrive_whole_and_invalid_bytes_fail_one_call_only() {
    let (mut peer, session, _tasks) = open_default();
    let waiting = spawn_call(&session, json!({ "text": "🦀" }), 9);
    let request = peer.expect(method::TOOLS_CALL).await;
    assert_eq!(request["params"]["text"], "🦀");
    let reply =
        format!("{}\n", json!({"jsonrpc": "2.0", "id": request["id"], "result": {"a": "🦀"}}));
    for byte in reply.as_bytes() {
        peer.send_raw(&[*byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(waiting.await.unwrap().unwrap(), json!({ "a": "🦀" }));

    let waiting = spawn_call(&session, json!({}), 9);
    let request = peer.expect(method::TOOLS_CALL).await;
    let mut reply = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"a\":\"", request["id"])
        .into_bytes();
    reply.extend_from_slice(b"\xff\xfe\"}}\n");
    peer.send_raw(&reply).await;
    let error = waiting.await.unwrap();
    assert!(matches!(error, Err(RequestError::Protocol(ProtocolError::Malformed(_)))), "{error:?}");
    let next = spawn_call(&session, json!({}), 9);
    peer.respond_to(method::TOOLS_CALL, json!({})).await;
    assert!(next.await.unwrap().is_ok());
}

/// Proves: TR3.4, N26
#[tokio::test(start_paused = true)]
async fn pings_are_answered_other_requests_refused_and_none_is_sent_when_idle() {
    let (mut peer, session, _tasks) = open_default();
    peer.request(&json!("p-1"), method::PING, json!({})).await;
    assert_eq!(peer.expect_response(&json!("p-1")).await["result"], json!({}));
    peer.request(&json!(7), method::ROOTS_LIST, json!({})).await;
    assert_eq!(peer.expect_response(&json!(7)).await["error"]["code"], -32601);
    tokio::time::sleep(Duration::from_secs(60)).await;
    session.notify(method::INITIALIZED);
    peer.expect(method::INITIALIZED).await;
    session.set_revision(Revision::LATEST);
    peer.request(&json!(8), method::PING, json!({})).await;
    session.notify(method::INITIALIZED);
    peer.expect(method::INITIALIZED).await;
}

/// Attack: framing | the server sends a request with the id of a waiting call | the request gets a
/// response; the call waits for its own | Own response
#[tokio::test(start_paused = true)]
async fn a_request_of_the_server_with_an_id_of_ours_is_not_taken_for_an_answer() {
    let (mut peer, session, _tasks) = open_default();
    let waiting = spawn_call(&session, json!({}), 9);
    let request = peer.expect(method::TOOLS_CALL).await;
    peer.request(&request["id"], method::PING, json!({})).await;
    peer.expect_response(&request["id"]).await;
    peer.respond(&request["id"], json!({ "real": 1 })).await;
    assert_eq!(waiting.await.unwrap().unwrap(), json!({ "real": 1 }));
}

#[tokio::test(start_paused = true)]
async fn progress_arrives_in_order_and_before_the_answer() {
    let (mut peer, session, _tasks) = open_default();
    let (sender, mut receiver) = mpsc::channel(512);
    let id = session.next_id();
    let deadline = Instant::now() + Duration::from_secs(9);
    let progress = Some(sender);
    let params = json!({ "_meta": { "progressToken": id } });
    let outgoing = OutgoingRequest::new(id, method::TOOLS_CALL, &params, deadline);
    let outgoing = OutgoingRequest { progress, ..outgoing };
    let server = async {
        let request = peer.expect(method::TOOLS_CALL).await;
        for step in 0..300 {
            let progress_params = json!({ "progressToken": id, "progress": step, "total": 300 });
            peer.notify(method::PROGRESS, progress_params).await;
        }
        peer.respond(&request["id"], json!({})).await;
    };
    let (response, ()) = tokio::join!(session.request(outgoing), server);
    assert!(response.is_ok());
    let mut steps = Vec::new();
    while let Ok(progress) = receiver.try_recv() {
        steps.push(progress.progress);
    }
    assert_eq!(steps, (0..300).map(f64::from).collect::<Vec<_>>());
}

/// Proves: FR7.6
#[tokio::test(start_paused = true)]
async fn a_malformed_answer_with_a_readable_id_fails_its_call_at_once() {
    let (mut peer, session, _tasks) = open_default();
    for reply in [
        r#"{"id":ID,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":ID}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"a":}"#,
    ] {
        let started = Instant::now();
        let waiting = spawn_call(&session, json!({}), 30);
        let request = peer.expect(method::TOOLS_CALL).await;
        peer.send_raw(b"npm WARN not json at all\n").await;
        peer.send_raw(format!("{}\n", reply.replace("ID", &request["id"].to_string())).as_bytes())
            .await;
        let failure = waiting.await.unwrap();
        assert!(matches!(failure, Err(RequestError::Protocol(_))), "{reply}: {failure:?}");
        assert!(started.elapsed() < Duration::from_millis(250), "{reply}");
    }
}

/// Attack: framing | a response is longer than the line limit | the call fails, and the next call
/// succeeds | No unbounded memory
#[tokio::test(start_paused = true)]
async fn an_answer_over_the_line_limit_fails_its_call_and_the_connection_lives() {
    let (mut peer, session, _tasks) =
        open_session(SessionLimits { max_line_bytes: 64 << 10, ..SessionLimits::default() });
    let waiting = spawn_call(&session, json!({}), 30);
    let request = peer.expect(method::TOOLS_CALL).await;
    peer.respond(&request["id"], json!({ "large": "x".repeat(200 << 10) })).await;
    let error = waiting.await.unwrap();
    assert!(
        matches!(error, Err(RequestError::Protocol(ProtocolError::TooLarge { .. }))),
        "{error:?}"
    );
    let next = spawn_call(&session, json!({}), 30);
    peer.respond_to(method::TOOLS_CALL, json!({ "large": "x".repeat(60 << 10) })).await;
    assert!(next.await.unwrap().is_ok());
}

/// Attack: flow control | large results come faster than the application takes them | the reading
/// pauses at the limit of held bytes | No unbounded memory
#[tokio::test(start_paused = true)]
async fn results_nobody_takes_hold_up_reading_and_not_the_memory() {
    let limit = 256 << 10;
    let (mut peer, session, _tasks) =
        open_session(SessionLimits { max_result_bytes: limit, ..SessionLimits::default() });
    let mut calls: Vec<_> = (0..8).map(|_| Box::pin(call(&session, json!({}), 300))).collect();
    for call in &mut calls {
        let mut idle = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(call.as_mut().poll(&mut idle).is_pending());
    }
    #[expect(clippy::disallowed_methods, reason = "the test owns and awaits the task")]
    let server = tokio::spawn(async move {
        for _ in 0..8 {
            peer.respond_to(method::TOOLS_CALL, json!({ "large": "x".repeat(100 << 10) })).await;
        }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let reserved = session.0.reading.results.held_bytes();
    assert!((limit..limit + (101 << 10)).contains(&reserved), "{reserved} bytes held");
    assert!(!server.is_finished(), "reading went on past the limit");
    for call in calls {
        assert!(call.await.is_ok(), "taking results lets reading go on");
    }
    server.await.unwrap();
    assert_eq!(session.0.reading.results.held_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_large_result_is_refused_if_nobody_takes_the_earlier_ones_for_30_seconds() {
    let limits = SessionLimits { max_result_bytes: 32 << 10, ..SessionLimits::default() };
    let (mut peer, session, _tasks) = open_session(limits);
    let large = json!({ "large": "x".repeat(40 << 10) });
    let mut untaken = Box::pin(call(&session, json!({}), 300));
    assert!((&mut untaken).now_or_never().is_none());
    peer.respond_to(method::TOOLS_CALL, large.clone()).await;
    let sent_at = Instant::now();
    let refused = spawn_call(&session, json!({}), 300);
    peer.respond_to(method::TOOLS_CALL, large).await;
    let Err(RequestError::Unavailable { reason, sent: true }) = refused.await.unwrap() else {
        panic!("the result was not refused");
    };
    assert_eq!(reason, UnavailableReason::ResultBufferFull);
    assert_eq!(sent_at.elapsed().as_secs(), 30);
    assert!(untaken.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn results_that_come_in_one_piece_are_held_up_and_not_refused() {
    let (mut peer, session, _tasks) =
        open_session(SessionLimits { max_result_bytes: 30 << 10, ..SessionLimits::default() });
    let mut calls: Vec<_> = (0..6).map(|_| Box::pin(call(&session, json!({}), 300))).collect();
    for call in &mut calls {
        let mut idle = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(call.as_mut().poll(&mut idle).is_pending());
    }
    let mut responses = String::new();
    for _ in 0..6 {
        let id = peer.expect(method::TOOLS_CALL).await["id"].clone();
        let large = "x".repeat(17 << 10);
        let response = json!({ "jsonrpc": "2.0", "id": id, "result": { "large": large } });
        responses.push_str(&format!("{response}\n"));
    }
    let sending = async { peer.send_raw(responses.as_bytes()).await };
    let taking = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for call in calls {
            call.await.expect("it waited for its turn");
        }
    };
    tokio::join!(sending, taking);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_output_fails_what_waits_and_refuses_what_comes() {
    let (mut peer, session, _tasks) = open_default();
    let started = Instant::now();
    let waiting = spawn_call(&session, json!({}), 30);
    peer.expect(method::TOOLS_CALL).await;
    peer.close();
    let error = waiting.await.unwrap();
    assert!(matches!(error, Err(RequestError::Unavailable { sent: true, .. })), "{error:?}");
    assert!(started.elapsed() <= EXIT_STATUS_GRACE);
    let rejected = call(&session, json!({}), 30).await;
    assert!(matches!(rejected, Err(RequestError::Unavailable { sent: false, .. })), "{rejected:?}");
}

/// Proves: TR3.4
#[tokio::test(start_paused = true)]
async fn a_burst_of_changes_is_reported_once() {
    let (mut peer, session, _tasks) = open_default();
    for _ in 0..1_000 {
        peer.notify(method::TOOLS_LIST_CHANGED, json!({})).await;
    }
    peer.notify(method::PROMPTS_LIST_CHANGED, json!({})).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let change = session.changed().await;
    assert_eq!(
        change,
        ListChanges { tools: true, prompts: true, resources: false, notified: true }
    );
    let more = tokio::time::timeout(Duration::from_secs(5), session.changed()).await;
    assert!(more.is_err(), "{more:?}");
}

/// Faults 30 and 31: progress out of order, and endless progress.
#[tokio::test(start_paused = true)]
async fn progress_moves_a_deadline_as_far_as_the_hard_end_and_going_back_does_not() {
    let (mut peer, session, _tasks) = open_default();
    let started = Instant::now();
    let seconds = Duration::from_secs;
    let (id, params) = (session.next_id(), json!({}));
    let outgoing = OutgoingRequest::new(id, method::TOOLS_CALL, &params, started + seconds(10));
    let deadline_extension =
        Some(DeadlineExtension { idle_timeout: seconds(10), deadline: started + seconds(35) });
    let outgoing = OutgoingRequest {
        deadline: RequestDeadline { extension: deadline_extension, ..outgoing.deadline },
        ..outgoing
    };
    let server = async {
        peer.expect(method::TOOLS_CALL).await;
        for (second, progress) in [(8, json!(1)), (16, json!(2)), (24, json!(3)), (32, json!(4))] {
            tokio::time::sleep_until(started + seconds(second)).await;
            peer.notify(method::PROGRESS, json!({ "progressToken": id, "progress": progress }))
                .await;
        }
    };
    let (response, ()) = tokio::join!(session.request(outgoing), server);
    assert!(matches!(response, Err(RequestError::Timeout)));
    assert_eq!(started.elapsed(), seconds(35), "it did not end at its hard end");
    let (started, id) = (Instant::now(), session.next_id());
    let outgoing = OutgoingRequest::new(id, method::TOOLS_CALL, &params, started + seconds(10));
    let deadline_extension =
        Some(DeadlineExtension { idle_timeout: seconds(10), deadline: started + seconds(60) });
    let outgoing = OutgoingRequest {
        deadline: RequestDeadline { extension: deadline_extension, ..outgoing.deadline },
        ..outgoing
    };
    let server = async {
        peer.expect(method::CANCELLED).await;
        peer.expect(method::TOOLS_CALL).await;
        for progress in [json!(5), json!(5), json!(4), json!("6")] {
            tokio::time::sleep(seconds(3)).await;
            peer.notify(method::PROGRESS, json!({ "progressToken": id, "progress": progress }))
                .await;
        }
    };
    let (response, ()) = tokio::join!(session.request(outgoing), server);
    assert!(matches!(response, Err(RequestError::Timeout)));
    assert_eq!(started.elapsed(), seconds(13), "the one step forward was after three seconds");
}

/// Fault 1: invalid lines are tolerated while valid messages arrive in between.
/// Attack: framing | 1,001 lines in a row are no message | the session ends, and the waiting call
/// learns the reason | No unbounded wait
#[tokio::test(start_paused = true)]
async fn a_thousand_invalid_lines_in_a_row_are_tolerated_and_the_next_ends_the_session() {
    let (mut peer, session, _tasks) = open_default();
    let noise = "npm WARN not json\n".repeat(unusable_output::MAX_INVALID_LINES as usize);
    for _ in 0..2 {
        let waiting = spawn_call(&session, json!({}), 60);
        let request = peer.expect(method::TOOLS_CALL).await;
        peer.send_raw(noise.as_bytes()).await;
        peer.respond(&request["id"], json!({ "ok": true })).await;
        assert_eq!(waiting.await.unwrap().unwrap(), json!({ "ok": true }));
    }
    let waiting = spawn_call(&session, json!({}), 60);
    peer.expect(method::TOOLS_CALL).await;
    peer.send_raw(noise.as_bytes()).await;
    peer.send_raw(b"one more\n").await;
    let error = waiting.await.unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            RequestError::Unavailable { reason: UnavailableReason::InvalidMessages, .. }
        ),
        "{error:?}"
    );
}

/// Fault 3: the number of discarded bytes of endless lines is limited.
/// Attack: framing | the server writes oversized lines without end | the session ends when the
/// discarded bytes exceed the limit | No unbounded memory
#[tokio::test(start_paused = true)]
async fn a_server_that_writes_endless_lines_is_given_up_after_so_many_bytes() {
    let limits = SessionLimits {
        max_line_bytes: 10 << 10,
        max_discarded_bytes: 1 << 20,
        ..SessionLimits::default()
    };
    let (mut peer, session, _tasks) = open_session(limits);
    let chunk = vec![b'x'; 64 << 10];
    for _ in 0..16 {
        peer.send_raw(&chunk).await;
    }
    let waiting = spawn_call(&session, json!({}), 60);
    let request = peer.expect(method::TOOLS_CALL).await;
    peer.send_raw(b"\n").await;
    peer.respond(&request["id"], json!({ "ok": true })).await;
    assert_eq!(waiting.await.unwrap().unwrap(), json!({ "ok": true }), "it is at the limit");
    peer.send_raw(&chunk).await;
    assert_eq!(session.closed().await, UnavailableReason::InvalidMessages);
}

#[tokio::test(start_paused = true)]
async fn a_request_counts_as_open_until_its_caller_has_the_answer_or_is_gone() {
    for takes in [true, false] {
        let (mut peer, session, _tasks) = open_default();
        let mut calling = Box::pin(call(&session, json!({}), 60));
        let request = tokio::select! {
            _ = &mut calling => panic!("it has no answer"),
            request = peer.expect(method::TOOLS_CALL) => request,
        };
        let id = request["id"].as_u64().unwrap();
        peer.respond(&request["id"], json!({})).await;
        while session.0.pending.is_awaited(id) {
            tokio::task::yield_now().await;
        }
        assert_eq!(session.in_flight(), 1);
        assert!(session.idle().now_or_never().is_none(), "its caller may go on with it");
        let progress = json!({ "progressToken": id, "progress": 1 });
        peer.notify(method::PROGRESS, progress).await;
        peer.respond(&request["id"], json!({ "again": true })).await;
        let finish_call = async {
            if takes {
                assert_eq!(calling.await.unwrap(), json!({}));
            } else {
                drop(calling);
            }
        };
        tokio::join!(session.idle(), session.idle(), finish_call);
        assert_eq!(session.in_flight(), 0);
    }
}

/// Opens a session whose server can write a whole flood at once.
fn open_with_wide_pipe() -> (tokio::io::DuplexStream, Session) {
    open_beside_others("fx", &SessionDirectory::default())
}

/// Opens a session of a host with these sessions, whose server can write a whole flood at once.
fn open_beside_others(
    server: &str,
    sessions: &SessionDirectory,
) -> (tokio::io::DuplexStream, Session) {
    let host = HostContext { sessions: sessions.clone(), ..HostContext::default() };
    let owner = SessionContext { server: server.into(), host };
    let (server, client) = tokio::io::duplex(16 << 20);
    let (reader, writer) = tokio::io::split(client);
    (server, Session::open(owner, reader, writer, SessionLimits::default()))
}

/// Attack: flow control | a flood of log messages is always ready to read | other tasks get a turn
/// for each read | Isolation
#[tokio::test(start_paused = true)]
async fn a_flood_that_is_always_ready_to_read_lets_other_tasks_run() {
    let (mut server, session) = open_with_wide_pipe();
    let (id, params) = (session.next_id(), json!({}));
    let deadline = Instant::now() + Duration::from_secs(60);
    let calling = session.request(OutgoingRequest::new(id, method::TOOLS_CALL, &params, deadline));
    // The rate limiter does not throttle this amount.
    let params = json!({"data": "x".repeat(30 << 10)});
    let line = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
    let response = json!({"jsonrpc": "2.0", "id": id, "result": {}});
    let flood = format!("{line}\n").repeat(60) + &format!("{response}\n");
    let reads = flood.len() / (64 << 10);
    server.write_all(flood.as_bytes()).await.unwrap();
    let mut yields = 0;
    let others = async {
        loop {
            tokio::task::yield_now().await;
            yields += 1;
        }
    };
    tokio::select! {
        answer = calling => drop(answer.unwrap()),
        () = others => {}
    }
    assert!(yields >= reads, "{yields} turns beside {reads} reads");
}

/// Writes notices and then the response to a request, and returns the time until the response.
async fn time_behind_flood(
    server: &mut tokio::io::DuplexStream,
    session: &Session,
    notices: usize,
    bytes: usize,
) -> Duration {
    let (id, started, params) = (session.next_id(), Instant::now(), json!({}));
    let line = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
    let result = json!({"text": "x".repeat(bytes)});
    let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
    let flood = format!("{line}\n").repeat(notices) + &format!("{response}\n");
    server.write_all(flood.as_bytes()).now_or_never().unwrap().unwrap();
    let deadline = started + Duration::from_mins(10);
    session.request(OutgoingRequest::new(id, method::TOOLS_CALL, &params, deadline)).await.unwrap();
    started.elapsed()
}

/// Attack: flow control | 10,000 notifications while another server has a call | the notifications
/// are read at a limited rate; responses are not delayed | Isolation
#[tokio::test(start_paused = true)]
async fn a_flood_is_read_at_a_limited_rate_while_another_server_has_a_call_and_responses_are_not() {
    let sessions = SessionDirectory::default();
    let (mut server, session) = open_beside_others("flood", &sessions);
    let floods = async {
        let asked_for = time_behind_flood(&mut server, &session, 0, 15 << 20).await;
        assert_eq!(asked_for, Duration::ZERO, "15 MiB that were asked for");
        let took = time_behind_flood(&mut server, &session, 10_000, 0).await;
        assert!((280..320).contains(&took.as_millis()), "10 000 notices took {took:?}");
        session.stop_throttling();
        let took = time_behind_flood(&mut server, &session, 100_000, 0).await;
        assert_eq!(took, Duration::ZERO, "its process has ended");
    };
    beside_open_call(&sessions, floods).await;
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_read_without_a_pause_while_no_other_server_has_a_request() {
    let sessions = SessionDirectory::default();
    let (mut server, session) = open_beside_others("flood", &sessions);
    let (mut quiet, other) = open_beside_others("other", &sessions);
    assert_eq!(time_behind_flood(&mut server, &session, 100_000, 0).await, Duration::ZERO);
    time_behind_flood(&mut quiet, &other, 0, 0).await;
    let after_call = time_behind_flood(&mut server, &session, 100_000, 0).await.as_millis();
    assert!((100..120).contains(&after_call), "another server had a request: {after_call} ms");
    assert_eq!(time_behind_flood(&mut server, &session, 100_000, 0).await, Duration::ZERO);
}

/// Does work while a call to another server waits for its response.
async fn beside_open_call<T>(sessions: &SessionDirectory, work: impl Future<Output = T>) -> T {
    let (_silent, other) = open_beside_others("other", sessions);
    let (id, params) = (other.next_id(), json!({}));
    let deadline = Instant::now() + Duration::from_mins(10);
    tokio::select! {
        biased;
        _ = other.request(OutgoingRequest::new(id, method::TOOLS_CALL, &params, deadline)) => {
            panic!("no response was sent")
        }
        done = work => done,
    }
}

/// Sends these bytes and then a response beside an open call, and returns the time until the caller
/// has the response.
async fn time_to_read(before_response: &[u8]) -> Duration {
    let sessions = SessionDirectory::default();
    beside_open_call(&sessions, time_to_read_alone(&sessions, before_response)).await
}

async fn time_to_read_alone(sessions: &SessionDirectory, before_response: &[u8]) -> Duration {
    let (mut server, session) = open_beside_others("flood", sessions);
    let (id, params) = (session.next_id(), json!({}));
    let deadline = Instant::now() + Duration::from_mins(10);
    let response = json!({"jsonrpc": "2.0", "id": id, "result": {}});
    let bytes = [before_response, format!("\n{response}\n").as_bytes()].concat();
    server.write_all(&bytes).now_or_never().unwrap().unwrap();
    let started = Instant::now();
    session.request(OutgoingRequest::new(id, method::TOOLS_CALL, &params, deadline)).await.unwrap();
    started.elapsed()
}

/// Attack: flow control | 8 MiB of line ends or blanks | the bytes count as unsolicited and are
/// read at a limited rate | Isolation
#[tokio::test(start_paused = true)]
async fn blank_bytes_are_read_at_the_rate_of_unsolicited_ones() {
    let took = time_to_read(&vec![b'\n'; 8 << 20]).await;
    assert!((90..200).contains(&took.as_millis()), "8 MiB of line ends took {took:?}");
    let took = time_to_read(&vec![b' '; 8 << 20]).await;
    assert!(took.as_millis() < 200, "8 MiB of blanks in one line took {took:?}");
}

/// Attack: flow control | batches of notifications or of responses that nobody requested | the
/// batches are read at the rate of their messages and bytes | Isolation
#[tokio::test(start_paused = true)]
async fn batches_that_answer_nothing_are_read_at_the_rate_of_their_messages_and_bytes() {
    let notice = |text: usize| {
        let params = json!({"data": "x".repeat(text)});
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}).to_string()
    };
    let large = format!("[{}]", notice(8 << 20));
    let took = time_to_read(large.as_bytes()).await;
    assert!((90..110).contains(&took.as_millis()), "a batch of 8 MiB took {took:?}");
    let thousand = format!("[{}]\n", vec![notice(0); 1000].join(","));
    let took = time_to_read(thousand.repeat(10).as_bytes()).await;
    assert!((280..330).contains(&took.as_millis()), "10 batches of 1000 notices took {took:?}");
    let unknown = r#"{"jsonrpc":"2.0","id":99,"result":{}}"#;
    let thousand = format!("[{}]\n", vec![unknown; 1000].join(","));
    let took = time_to_read(thousand.repeat(10).as_bytes()).await;
    assert!((280..330).contains(&took.as_millis()), "10 000 unasked responses took {took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_a_batch_with_an_awaited_response_are_free() {
    let sessions = SessionDirectory::default();
    let (mut server, session) = open_beside_others("flood", &sessions);
    let (ids, params) = ([session.next_id(), session.next_id()], json!({}));
    let deadline = Instant::now() + Duration::from_mins(10);
    let result = json!({"text": "x".repeat(8 << 20)});
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
    let batch = json!([notice, {"jsonrpc": "2.0", "id": ids[0], "result": result}, notice]);
    let next = json!({"jsonrpc": "2.0", "id": ids[1], "result": {}});
    let started = Instant::now();
    server.write_all(format!("{batch}\n{next}\n").as_bytes()).now_or_never().unwrap().unwrap();
    let requests = ids
        .map(|id| session.request(OutgoingRequest::new(id, method::TOOLS_CALL, &params, deadline)));
    let responses = futures_util::future::join_all(requests);
    for response in beside_open_call(&sessions, responses).await {
        response.unwrap();
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
}

/// Attack: flow control | bytes that a transport discards, and messages above the size limit | the
/// bytes count as unsolicited and slow the stream down | Isolation
#[tokio::test(start_paused = true)]
async fn bytes_that_a_transport_discards_are_counted_at_the_rate_of_unsolicited_ones() {
    let sessions = SessionDirectory::default();
    let (_server, session) = open_beside_others("flood", &sessions);
    let sink = InboundSink::new(session.0.clone());
    let discards = async {
        let started = Instant::now();
        for _ in 0..8 {
            sink.count_discarded(1 << 20).await;
        }
        started.elapsed().as_millis()
    };
    let took = beside_open_call(&sessions, discards).await;
    assert!((90..110).contains(&took), "8 MiB took {took} ms");
    let too_long = async {
        let started = Instant::now();
        sink.receive_too_long(b"{").await;
        started.elapsed()
    };
    assert!(beside_open_call(&sessions, too_long).await > Duration::ZERO);
}

/// Attack: data | a server cancels a call of the host as if it were a subscription | the call stays
/// open and gets its response | Isolation
#[tokio::test(start_paused = true)]
async fn a_server_cannot_cancel_a_call_of_the_host() {
    let (mut peer, session, _tasks) = open_default();
    session.set_revision(Revision::LATEST);
    let waiting = spawn_call(&session, json!({}), 60);
    let request = peer.expect(method::TOOLS_CALL).await;
    let params = json!({"requestId": request["id"]});
    let cancel = json!({"jsonrpc": "2.0", "method": method::CANCELLED, "params": params});
    let sink = InboundSink::new(session.0.clone());
    sink.receive_message(cancel.to_string().as_bytes()).await;
    assert_eq!(session.in_flight(), 1);
    peer.respond(&request["id"], json!({"done": true})).await;
    assert_eq!(waiting.await.unwrap().unwrap(), json!({"done": true}));
}
