//! Tests of tasks in both forms.

use super::raw;
use crate::view::{MAX_TASK_ID_BYTES, Task, TaskStatus};

fn parse_task(json: &str) -> Task {
    Task::from_raw(&raw(json)).unwrap_or_else(|error| panic!("{json}: {error}"))
}

#[test]
fn a_task_of_2025_11_25_is_read_in_full() {
    let task = r#"{"taskId":"t-1","status":"working","statusMessage":"soon","createdAt":"x",
        "lastUpdatedAt":"y","ttl":60000,"pollInterval":5000.0}"#;
    for response in [task.to_owned(), format!(r#"{{"_meta":{{}},"task":{task}}}"#)] {
        let task = parse_task(&response);
        assert_eq!((task.id.as_str(), task.status), ("t-1", TaskStatus::Working));
        assert_eq!(task.status_message.as_deref(), Some("soon"));
        assert_eq!((task.ttl_ms, task.poll_interval_ms), (Some(60_000), Some(5_000)));
        assert!(task.result.is_none() && task.error.is_none() && task.input_requests.is_empty());
    }
}

#[test]
fn a_task_of_the_extension_is_read_in_full() {
    let task = |rest: &str| {
        parse_task(&format!(
            r#"{{"resultType":"complete","taskId":"t","ttlMs":null,"pollIntervalMs":9,{rest}}}"#
        ))
    };
    let done = task(r#""status":"completed","result":{"content":[], "n":1e999}"#);
    assert_eq!((done.status, done.ttl_ms), (TaskStatus::Completed, None));
    assert_eq!(done.poll_interval_ms, Some(9));
    assert_eq!(done.result.unwrap().get(), r#"{"content":[], "n":1e999}"#);
    let failed = task(r#""status":"failed","error":{"code":-1,"message":"no"}"#);
    assert_eq!(failed.status, TaskStatus::Failed);
    assert_eq!(failed.error.unwrap().get(), r#"{"code":-1,"message":"no"}"#);
    let waiting =
        task(r#""status":"input_required","inputRequests":{"n":{"method":"roots/list"}}"#);
    assert_eq!(waiting.status, TaskStatus::InputRequired);
    assert_eq!((waiting.input_requests[0].key.as_str(), waiting.input_requests.len()), ("n", 1));
}

#[test]
fn only_a_task_that_ended_is_terminal() {
    let status = |name: &str| parse_task(&format!(r#"{{"taskId":"t","status":"{name}"}}"#)).status;
    for name in ["completed", "failed", "cancelled"] {
        assert!(status(name).is_terminal(), "{name}");
    }
    for name in ["working", "input_required", "Completed", ""] {
        assert!(!status(name).is_terminal(), "{name}");
    }
    assert_eq!(status("paused"), TaskStatus::Other("paused".to_owned()));
}

#[test]
fn what_a_task_may_get_wrong_is_absent() {
    let task = parse_task(
        r#"{"taskId":"t","task":5,"status":"working","ttl":-1,"pollInterval":"5",
            "statusMessage":{},"result":[],"error":"no","inputRequests":null}"#,
    );
    assert!(task.ttl_ms.is_none() && task.poll_interval_ms.is_none());
    assert!(task.status_message.is_none() && task.result.is_none() && task.error.is_none());
}

/// Proves: FR7.5
#[test]
fn a_task_without_id_or_status_is_an_error_that_says_where() {
    let pointer = |json: &str| Task::from_raw(&raw(json)).unwrap_err().pointer;
    assert_eq!(pointer("5"), "");
    assert_eq!(pointer("{}"), "/taskId");
    assert_eq!(pointer(r#"{"taskId":"t"}"#), "/status");
    assert_eq!(pointer(r#"{"task":5}"#), "/task");
    assert_eq!(pointer(r#"{"task":{"taskId":7,"status":"working"}}"#), "/task/taskId");
    let waiting = r#"{"taskId":"t","status":"input_required","inputRequests":{"a":{}}}"#;
    assert_eq!(pointer(waiting), "/inputRequests/a/method");
}

#[test]
fn an_id_may_be_as_long_as_the_limit_and_no_longer() {
    let read = |bytes: usize| {
        let id = "x".repeat(bytes);
        Task::from_raw(&raw(&format!(r#"{{"task":{{"taskId":"{id}","status":"working"}}}}"#)))
    };
    assert_eq!(read(MAX_TASK_ID_BYTES).unwrap().id.len(), MAX_TASK_ID_BYTES);
    let error = read(MAX_TASK_ID_BYTES + 1).unwrap_err();
    assert_eq!(error.to_string(), "expected at most 1024 bytes at `/task/taskId`, found more");
}
