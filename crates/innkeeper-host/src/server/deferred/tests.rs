//! Tasks of a server in memory, with the clock stopped.

use innkeeper_protocol::Revision;
use innkeeper_protocol::view::TasksCapability;
use innkeeper_testkit::Peer;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use super::*;
use crate::cache::Cache;
use crate::callback::{Answers, Callback, Callbacks, ServerRequest};
use crate::config::{self, Retry};
use crate::error::{CallError, CallKind};
use crate::event::{CallOutcome, Events};
use crate::measure::Meter;
use crate::server::age::Ages;
use crate::server::meta::Identity;
use crate::server::session::{Limits, Owner, Session};
use crate::server::silence::Silence;
use crate::server::wishes::Wishes;
use crate::tasks::Tasks;

/// How long one call may take here, whatever happens.
const MOST: Duration = Duration::from_mins(10);

pub(in crate::server) fn connect(revision: Revision) -> (Peer, Arc<Connection>, Tasks) {
    let (peer, reader, writer) = Peer::new();
    let (events, callbacks) = (Events::new(), Callbacks::default());
    let tasks = Tasks::default();
    let owner = Owner {
        server: "fx".into(),
        callbacks: callbacks.clone(),
        events: events.clone(),
        tasks: tasks.clone(),
    };
    let session = Session::open(owner, reader, writer, Limits::default());
    (peer, Arc::new(over(session, revision, callbacks, events)), tasks)
}

/// A connection over this session that allows one call at a time.
pub(in crate::server) fn over(
    session: Session,
    revision: Revision,
    callbacks: Callbacks,
    events: Events,
) -> Connection {
    session.agree(revision);
    let delay = Duration::from_secs(1);
    Connection {
        server: "fx".into(),
        session,
        revision,
        tasks: TasksCapability { call: true, cancel: true },
        identity: Identity::default(),
        permits: Semaphore::new(1),
        most: MOST,
        retry: Retry { max: 3, initial_delay: delay, max_delay: delay },
        cache: Cache::new(config::Cache { ttl: delay, max_entries: 1, max_bytes: 1 }).into(),
        callbacks,
        wishes: Wishes::default(),
        ages: Ages::default(),
        meter: Arc::new(Meter::new()),
        silence: Silence::new(1),
        events,
        memory: Arc::default(),
        reporter: None,
    }
}

fn modern() -> (Peer, Arc<Connection>, Tasks) {
    connect(Revision::V2026_07_28)
}

/// Told whenever the server is taken for silent.
fn silences(connection: &Connection) -> std::sync::mpsc::Receiver<u32> {
    let (tell, told) = std::sync::mpsc::channel();
    connection.silence.watch(move |calls| tell.send(calls).unwrap());
    told
}

/// Has a user asked who never answers.
fn unanswered(connection: &Connection) {
    let callback = |_: ServerRequest| std::future::pending();
    let callback: Arc<dyn Callback> = Arc::new(callback);
    connection.callbacks.set(&Answers::elicitation(), Some(&callback));
}

/// The two ways in which a server of the modern era asks in the middle of a call.
async fn ask_in_a(way: &str, peer: &mut Peer) {
    let question = json!({"q": {"method": "elicitation/create", "params": {}}});
    if way == "task" {
        peer.answer(method::TOOLS_CALL, begun(json!({}))).await;
        let asks = json!({"inputRequests": question});
        peer.answer(method::TASKS_GET, task("input_required", asks)).await;
    } else {
        let asks = json!({"resultType": "input_required", "inputRequests": question});
        peer.answer(method::TOOLS_CALL, asks).await;
    }
}

/// A call of the tool `t` that may be without an answer for 3 s.
async fn call(
    connection: &Connection,
    progress: Option<&mpsc::Sender<crate::Progress>>,
) -> Result<Value, CallError> {
    let ask = Ask {
        method: method::TOOLS_CALL,
        item: "t",
        params: |_, _| json!({"name": "t"}),
        headers: &[],
        timeout: Duration::from_secs(3),
        progress,
        retries: None,
        harmless: true,
        as_task: connection.revision.era() == Era::Legacy,
    };
    let reply = connection.ask(ask, |_| Ok(CallOutcome::Ok)).await?;
    Ok(serde_json::from_str(reply.result.get()).unwrap())
}

fn late(result: Result<Value, CallError>, allowed: Duration) {
    match result.unwrap_err() {
        CallError::Timeout { after, .. } => assert_eq!(after, allowed),
        other => panic!("not late: {other}"),
    }
}

fn lost(result: Result<Value, CallError>) {
    match result.unwrap_err() {
        CallError::Unavailable { may_have_run, reason, .. } => {
            assert!(may_have_run && reason == Lost::Shutdown);
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

fn begun(rest: Value) -> Value {
    let mut begun = task("working", rest);
    begun["resultType"] = json!("task");
    begun
}

#[tokio::test(start_paused = true)]
async fn a_task_is_asked_after_as_often_as_it_wants_within_limits() {
    let hour = 3_600_000;
    for (said, expected) in [
        (json!({"pollIntervalMs": 5000}), Duration::from_secs(5)),
        (json!({}), PAUSE),
        (json!({"pollIntervalMs": 0}), PAUSE_LEAST),
        (json!({"pollIntervalMs": hour}), PAUSE_MOST),
    ] {
        let (mut peer, connection, _tasks) = modern();
        let play = async {
            peer.answer(method::TOOLS_CALL, begun(said.clone())).await;
            let began = Instant::now();
            let polled = peer.answer(method::TASKS_GET, task("pondering", said.clone())).await;
            assert_eq!(polled["params"]["taskId"], "t-1");
            assert_eq!(began.elapsed(), expected, "{said}");
            let result = json!({"result": {"content": [], "n": 1}});
            peer.answer(method::TASKS_GET, task("completed", result)).await;
            assert_eq!(began.elapsed(), 2 * expected, "{said}");
        };
        let (result, ()) = tokio::join!(call(&connection, None), play);
        assert_eq!(result.unwrap(), json!({"content": [], "n": 1}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_said_to_have_changed_is_asked_after_at_once_and_not_more_often() {
    for told in [method::TASKS_STATUS, method::TASKS_CHANGED] {
        let (mut peer, connection, _tasks) = modern();
        let play = async {
            peer.answer(method::TOOLS_CALL, begun(json!({"pollIntervalMs": 30_000}))).await;
            let began = Instant::now();
            sleep(Duration::from_secs(7)).await;
            for _ in 0..100 {
                peer.notify(told, json!({})).await;
            }
            let result = json!({"result": {"content": []}});
            let last = peer.expect(method::TASKS_GET).await;
            assert_eq!(began.elapsed(), Duration::from_secs(7));
            peer.reply(&last["id"], task("completed", result)).await;
        };
        let (result, ()) = tokio::join!(call(&connection, None), play);
        assert_eq!(result.unwrap(), json!({"content": []}));
    }
}

#[tokio::test(start_paused = true)]
async fn every_answer_gives_a_task_its_time_anew_and_silence_ends_the_call_and_the_task() {
    let (mut peer, connection, _tasks) = modern();
    let silences = silences(&connection);
    let play = async {
        peer.answer(method::TOOLS_CALL, begun(json!({}))).await;
        for _ in 0..20 {
            let poll = peer.expect(method::TASKS_GET).await;
            sleep(Duration::from_secs(2)).await;
            peer.reply(&poll["id"], task("working", json!({}))).await;
        }
        let began = Instant::now();
        peer.expect(method::TASKS_GET).await;
        began
    };
    let (result, began) = tokio::join!(call(&connection, None), play);
    late(result, Duration::from_secs(3));
    assert_eq!(silences.try_recv(), Ok(1), "it was silent");
    assert_eq!(began.elapsed(), PAUSE + Duration::from_secs(3));
    assert!(peer.expect(method::CANCELLED).await["params"]["requestId"].is_u64());
    let stop = peer.answer(method::TASKS_CANCEL, json!({})).await;
    assert_eq!(stop["params"], json!({"taskId": "t-1"}));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_never_ends_costs_the_longest_time_of_a_call_and_is_no_silence() {
    let (modern, legacy) = (Revision::V2026_07_28, Revision::V2025_11_25);
    // The last question of the longer pause has less time for its answer than any other.
    for (revision, pause) in [(modern, 59_000), (legacy, 59_000), (modern, 59_900)] {
        let (mut peer, connection, _tasks) = connect(revision);
        let silences = silences(&connection);
        let began = Instant::now();
        let play = async {
            let pause = json!({"pollIntervalMs": pause});
            let first = begun(pause.clone());
            let first = if revision.has_core_tasks() { json!({"task": first}) } else { first };
            peer.answer(method::TOOLS_CALL, first).await;
            while let Some(next) = peer.next().await {
                if next["method"] == method::TASKS_CANCEL {
                    return peer;
                }
                if began.elapsed() < Duration::from_secs(595) {
                    assert_eq!(next["method"], method::TASKS_GET);
                    peer.reply(&next["id"], task("working", pause.clone())).await;
                }
            }
            panic!("the task was not stopped");
        };
        let (result, mut peer) = tokio::join!(call(&connection, None), play);
        late(result, MOST);
        assert_eq!(began.elapsed(), MOST);
        assert!(silences.try_recv().is_err(), "it answered whenever it had the time to");
        connection.session.notify("notifications/last");
        peer.expect("notifications/last").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_stops_its_task_even_from_outside_of_the_runtime() {
    let (mut peer, connection, _tasks) = modern();
    let mut calling = Box::pin({
        let connection = connection.clone();
        async move { call(&connection, None).await }
    });
    let begin = peer.answer(method::TOOLS_CALL, begun(json!({})));
    tokio::select! {
        _ = &mut calling => panic!("it has no result"),
        () = async { begin.await; sleep(PAUSE / 2).await } => {}
    }
    std::thread::spawn(move || drop(calling)).join().unwrap();
    assert_eq!(peer.expect(method::TASKS_CANCEL).await["params"]["taskId"], "t-1");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_a_call_under_way_with_its_permit_and_the_progress_of_its_call() {
    let (mut peer, connection, _tasks) = modern();
    let (sender, mut progress) = mpsc::channel::<crate::Progress>(8);
    let play = async {
        let request = peer.answer(method::TOOLS_CALL, begun(json!({}))).await;
        sleep(PAUSE / 2).await;
        assert_eq!(connection.session.in_flight(), 1);
        assert_eq!(connection.permits.available_permits(), 0);
        let told = json!({"progressToken": request["id"], "progress": 1});
        peer.notify(method::PROGRESS, told).await;
        assert_eq!(progress.recv().await.unwrap().progress, 1.0);
        peer.answer(method::TASKS_GET, task("completed", json!({"result": {"x": 1}}))).await;
    };
    let (result, ()) = tokio::join!(call(&connection, Some(&sender)), play);
    assert_eq!(result.unwrap(), json!({"x": 1}));
    assert_eq!((connection.session.in_flight(), connection.permits.available_permits()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_away_ends_the_call_at_once_and_it_is_not_sent_again() {
    let (mut peer, connection, _tasks) = modern();
    let play = async {
        peer.answer(method::TOOLS_CALL, begun(json!({"pollIntervalMs": 60_000}))).await;
        sleep(PAUSE).await;
        connection.session.close(Lost::Shutdown);
        Instant::now()
    };
    let (result, closed) = tokio::join!(call(&connection, None), play);
    assert!(closed.elapsed().is_zero());
    lost(result);
}

#[tokio::test(start_paused = true)]
async fn a_user_who_takes_all_the_time_of_a_call_is_no_silence_of_the_server_and_holds_no_permit() {
    for way in ["task", "round"] {
        let (mut peer, connection, _tasks) = modern();
        let silences = silences(&connection);
        unanswered(&connection);
        let began = Instant::now();
        let play = async {
            ask_in_a(way, &mut peer).await;
            sleep(PAUSE).await;
            assert_eq!(connection.permits.available_permits(), 1, "{way}");
        };
        let (result, ()) = tokio::join!(call(&connection, None), play);
        late(result, MOST);
        assert_eq!(began.elapsed(), MOST, "{way}");
        assert!(silences.try_recv().is_err(), "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_is_not_asked_any_longer_for_a_server_that_is_gone() {
    for way in ["task", "round"] {
        let (mut peer, connection, _tasks) = modern();
        unanswered(&connection);
        let play = async {
            ask_in_a(way, &mut peer).await;
            sleep(PAUSE).await;
            connection.session.close(Lost::Shutdown);
            Instant::now()
        };
        let (result, closed) = tokio::join!(call(&connection, None), play);
        assert!(closed.elapsed().is_zero(), "{way}");
        lost(result);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_left_hears_first_that_its_tasks_are_to_stop_for_a_bounded_time() {
    let limit = Duration::from_millis(500);
    for hears in [true, false] {
        let (mut peer, connection, _tasks) = modern();
        let play = async {
            peer.answer(method::TOOLS_CALL, begun(json!({}))).await;
            sleep(PAUSE / 2).await;
            let began = Instant::now();
            let hear = async {
                let stop = peer.expect(method::TASKS_CANCEL).await;
                assert_eq!(stop["params"], json!({"taskId": "t-1"}));
                if hears {
                    peer.reply(&stop["id"], json!({})).await;
                }
            };
            tokio::join!(connection.session.leave(limit), hear);
            assert_eq!(began.elapsed(), if hears { Duration::ZERO } else { limit });
        };
        let (result, ()) = tokio::join!(call(&connection, None), play);
        lost(result);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_of_which_no_more_than_its_id_can_be_read_is_stopped() {
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let (mut peer, connection, _tasks) = connect(revision);
        let odd = begun(json!({"status": 5}));
        let odd = if revision.has_core_tasks() { json!({"task": odd}) } else { odd };
        let play = peer.answer(method::TOOLS_CALL, odd);
        let (result, _) = tokio::join!(call(&connection, None), play);
        assert_eq!(result.unwrap_err().kind(), CallKind::Protocol);
        let stop = peer.expect(method::TASKS_CANCEL).await;
        assert_eq!(stop["params"], json!({"taskId": "t-1"}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ended_without_a_result_says_how() {
    let says = async |last: Value| {
        let (mut peer, connection, _tasks) = modern();
        let play = async {
            peer.answer(method::TOOLS_CALL, begun(json!({}))).await;
            peer.answer(method::TASKS_GET, last).await;
        };
        let (result, ()) = tokio::join!(call(&connection, None), play);
        match result.unwrap_err() {
            CallError::Protocol { source, .. } => source.to_string(),
            other => other.to_string(),
        }
    };
    let why = json!({"statusMessage": "no \u{1b}[31mmore"});
    let cancelled = says(task("cancelled", why)).await;
    assert_eq!(cancelled, "its task is `cancelled` and has no result: no \\u{1b}[31mmore");
    let failed = says(task("failed", json!({"error": "odd"}))).await;
    assert_eq!(failed, "its task is `failed` and has no result");
    let completed = says(task("completed", json!({"result": 5}))).await;
    assert_eq!(completed, "its task is `completed` and has no result");
    let error = json!({"error": {"code": -7, "message": "not today"}});
    let refused = says(task("failed", error)).await;
    assert_eq!(refused, "server `fx` refused `t`: not today (code -7)");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_not_known_any_more_has_expired_only_after_its_time() {
    for (ttl, expected) in [(500, "it kept its task for 0.5 s only"), (5000, "no such task")] {
        let (mut peer, connection, _tasks) = modern();
        let play = async {
            peer.answer(method::TOOLS_CALL, begun(json!({"ttlMs": ttl}))).await;
            let poll = peer.expect(method::TASKS_GET).await;
            peer.reply_error(&poll["id"], -32602, "no such task").await;
        };
        let (result, ()) = tokio::join!(call(&connection, None), play);
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
    let play = async {
        peer.answer(method::TOOLS_CALL, json!({"task": begun(json!({}))})).await;
        peer.answer(method::TASKS_GET, task("input_required", json!({}))).await;
        peer.expect(method::TASKS_RESULT).await;
        for _ in 0..20 {
            peer.answer(method::TASKS_GET, task("working", json!({}))).await;
        }
        peer.expect(method::TASKS_GET).await;
        Instant::now()
    };
    let (result, last) = tokio::join!(call(&connection, None), play);
    assert_eq!(result.unwrap_err().kind(), CallKind::Timeout);
    assert_eq!(last.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_legacy_result_that_comes_with_or_after_the_end_of_its_task_is_not_lost() {
    let second = Duration::from_secs(1);
    // With the refusal, a while after it, and not at all.
    for pause in [Some(Duration::ZERO), Some(second), None] {
        let (mut peer, connection, _tasks) = connect(Revision::V2025_11_25);
        let play = async {
            peer.answer(method::TOOLS_CALL, json!({"task": begun(json!({}))})).await;
            peer.answer(method::TASKS_GET, task("input_required", json!({}))).await;
            let asked = peer.expect(method::TASKS_RESULT).await;
            let poll = peer.expect(method::TASKS_GET).await;
            let error = json!({"code": -32602, "message": "no such task"});
            let refusal = json!({"jsonrpc": "2.0", "id": poll["id"], "error": error});
            let result = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"n": 1}});
            let said = match pause {
                Some(Duration::ZERO) => format!("{refusal}\n{result}\n"),
                _ => format!("{refusal}\n"),
            };
            peer.raw(said.as_bytes()).await;
            if pause == Some(second) {
                sleep(second).await;
                peer.send(&result).await;
            }
        };
        let (result, ()) = tokio::join!(call(&connection, None), play);
        match (pause, result) {
            (Some(_), result) => assert_eq!(result.unwrap(), json!({"n": 1})),
            (None, result) => assert_eq!(result.unwrap_err().kind(), CallKind::Server),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_who_is_asked_by_a_request_of_the_server_is_no_silence_of_it_either() {
    let (mut peer, connection, _tasks) = connect(Revision::V2025_11_25);
    let silences = silences(&connection);
    unanswered(&connection);
    let play = async {
        peer.expect(method::TOOLS_CALL).await;
        sleep(Duration::from_secs(1)).await;
        peer.request(&json!("q"), method::ELICITATION_CREATE, json!({})).await;
    };
    let (result, ()) = tokio::join!(call(&connection, None), play);
    late(result, MOST);
    assert!(silences.try_recv().is_err());
}
