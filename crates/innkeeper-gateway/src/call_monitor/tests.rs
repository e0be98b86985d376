//! Tests of the calls of a gateway.

use serde_json::json;
use serde_json::value::to_raw_value;

use super::*;

fn subject(tool: &str) -> CallSubject {
    CallSubject {
        principal: Principal::new("ann"),
        server: "a".into(),
        tool: tool.into(),
        transport: ClientTransport::Http,
    }
}

fn result(value: &serde_json::Value) -> Result<Box<RawValue>, RpcError> {
    Ok(to_raw_value(value).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_call_is_in_flight_until_its_end_and_then_finished_with_its_duration() {
    let monitor = CallMonitor::new();
    let monitored = monitor.start(subject("t"));
    assert_eq!(&*monitor.in_flight()[0].subject.tool, "t");
    let reply = monitored.run(async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!((monitor.in_flight().len(), monitor.finished().len()), (1, 0));
        result(&json!({ "content": [] }))
    });
    reply.await.unwrap();
    let finished = &monitor.finished()[0];
    assert!(monitor.in_flight().is_empty());
    assert_eq!((finished.duration, finished.end), (Duration::from_secs(2), CallEnd::Ok));
}

#[tokio::test]
async fn each_end_of_a_call_has_its_name() {
    let monitor = CallMonitor::new();
    let run = async |reply| drop(monitor.start(subject("t")).run(async { reply }).await);
    run(result(&json!({ "isError": true }))).await;
    run(result(&json!({ "resultType": "input_required" }))).await;
    run(Err(RpcError::invalid_params("x".repeat(MAX_MESSAGE_CHARS + 1)))).await;
    let _ = monitor.start(subject("t"));
    let unfinished = monitor.start(subject("t")).run(std::future::pending());
    drop(unfinished);
    let ends: Vec<&str> = monitor.finished().iter().map(|call| call.end.as_str()).collect();
    let expected = ["cancelled", "cancelled", "invalid request", "input required", "tool error"];
    assert_eq!(ends, expected);
    assert_eq!(monitor.finished()[2].message.as_ref().unwrap().len(), MAX_MESSAGE_CHARS);
}

#[tokio::test]
async fn a_call_that_an_operator_cancels_ends_with_an_error_and_its_future_is_dropped() {
    let monitor = CallMonitor::new();
    let monitored = monitor.start(subject("t"));
    let number = monitored.call().number;
    let (dropped, is_dropped) = tokio::sync::oneshot::channel::<()>();
    let call = monitored.run(async move {
        let _dropped = dropped;
        std::future::pending().await
    });
    let cancel = async { monitor.find(number).unwrap().cancel() };
    let (reply, ()) = tokio::join!(call, cancel);
    assert_eq!(reply.unwrap_err().kind, ErrorKind::Cancelled);
    assert!(is_dropped.await.is_err());
    assert_eq!(monitor.finished()[0].end, CallEnd::CancelledByOperator);
    assert!(monitor.find(number).is_none());
}

/// Attack: remote | a client makes calls without end, with long names | the number of finished calls
/// and the length of a name have a maximum | No unbounded memory
#[tokio::test]
async fn the_finished_calls_have_a_maximum() {
    let monitor = CallMonitor::new();
    for number in 0..=MAX_FINISHED_CALLS {
        let _ = monitor.start(subject(&format!("{number}{}", "x".repeat(1000))));
    }
    let finished = monitor.finished();
    assert_eq!(finished.len(), MAX_FINISHED_CALLS);
    let last = &finished[MAX_FINISHED_CALLS - 1].call.subject.tool;
    assert!(last.starts_with("1x") && last.chars().count() < 300, "{last}");
}

#[tokio::test(start_paused = true)]
async fn the_minutes_have_a_maximum_and_contain_minutes_without_calls() {
    let monitor = CallMonitor::new();
    let run = async |reply| drop(monitor.start(subject("t")).run(async { reply }).await);
    run(result(&json!({}))).await;
    run(Err(RpcError::invalid_params("x"))).await;
    let _ = monitor.start(subject("t"));
    tokio::time::advance(Duration::from_secs(120)).await;
    let minutes = monitor.minutes();
    assert_eq!(minutes.len(), 3);
    assert_eq!((minutes[0].calls, minutes[0].errors, minutes[0].cancelled), (3, 1, 1));
    assert_eq!((minutes[1].calls, minutes[1].number), (0, 1));
    for _ in 0..MAX_MINUTES {
        let call = monitor.start(subject("t")).run(async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            result(&json!({}))
        });
        call.await.unwrap();
    }
    let minutes = monitor.minutes();
    assert_eq!((minutes.len(), minutes[0].number), (MAX_MINUTES, 3));
    assert!(minutes.iter().all(|minute| minute.calls == 1 && minute.cancelled == 0));
    assert!((minutes[0].p50_millis - 60_000.0).abs() < 1_000.0, "{minutes:?}");
}
