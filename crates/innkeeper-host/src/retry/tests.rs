//! Retry decisions and backoffs, with a paused clock and scripted results.

use std::future::{pending, ready};

use super::*;
use innkeeper_process::ExitStatus;
use innkeeper_protocol::ErrorObject;

use crate::error::ConnectFailureKind;

const DEFAULTS: RetryPolicy = RetryPolicy {
    max: 3,
    initial_delay: Duration::from_secs(1),
    max_delay: Duration::from_secs(30),
};

fn retry_plan(is_retry_safe: bool) -> RetryPlan {
    let deadline = Instant::now() + Duration::from_secs(3600);
    RetryPlan { policy: DEFAULTS, max_retries: DEFAULTS.max, retry_safe: is_retry_safe, deadline }
}

fn busy(seconds: Option<u64>) -> UnavailableReason {
    let retry_after = seconds.map(Duration::from_secs);
    UnavailableReason::Busy { status: 503, retry_after, body: "".into() }
}

fn unsent(reason: UnavailableReason) -> Option<RequestResult> {
    Some(Err(RequestError::Unavailable { reason, sent: false }))
}

fn sent(reason: UnavailableReason) -> Option<RequestResult> {
    Some(Err(RequestError::Unavailable { reason, sent: true }))
}

fn error_response() -> Option<RequestResult> {
    Some(Err(RequestError::ErrorResponse(ErrorObject {
        code: -32603,
        message: "no".to_owned(),
        data: None,
    })))
}

/// The observed course of a request with scripted results.
struct RetryRun {
    error: RequestError,
    attempts: u32,
    delays: Vec<f64>,
    elapsed: Duration,
}

async fn run(
    plan: RetryPlan,
    results: impl IntoIterator<Item = Option<RequestResult>>,
) -> RetryRun {
    let (mut attempts, started, mut delays) = (Attempts::new(plan), Instant::now(), Vec::new());
    for result in results {
        let report = |notice: RetryNotice<'_>| {
            assert_eq!(notice.attempt as usize, delays.len() + 2);
            delays.push(notice.delay.as_secs_f64());
        };
        if let ControlFlow::Break(last) = attempts.handle_result(result, pending(), report).await {
            let request_error = last.unwrap_err();
            return RetryRun {
                error: request_error,
                attempts: attempts.count(),
                delays,
                elapsed: started.elapsed(),
            };
        }
    }
    panic!("it goes on after {delays:?}");
}

/// Proves: TR6.5
#[test]
fn the_backoff_is_one_two_and_four_seconds_and_thirty_at_most_with_ten_percent_jitter() {
    let plan = RetryPlan { max_retries: 10, ..retry_plan(false) };
    for (attempts, seconds) in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 16.0)] {
        let delay =
            |jitter| plan.backoff(attempts, &busy(None), false, jitter).unwrap().as_secs_f64();
        assert!((delay(0.0) - seconds * 0.9).abs() < 1e-6, "{}", delay(0.0));
        assert!((delay(0.5) - seconds).abs() < 1e-6, "{}", delay(0.5));
        assert!((delay(1.0) - seconds * 1.1).abs() < 1e-6, "{}", delay(1.0));
    }
    for attempts in 6..=10 {
        let delay =
            |jitter| plan.backoff(attempts, &busy(None), false, jitter).unwrap().as_secs_f64();
        assert_eq!((delay(0.0), delay(0.5), delay(1.0)), (27.0, 30.0, 30.0));
    }
    assert_eq!(plan.backoff(11, &busy(None), false, 0.5), None);
    let eager = RetryPlan { max_retries: u32::MAX, ..plan };
    assert_eq!(eager.backoff(11, &busy(None), false, 0.5), None, "ten is the most");
}

/// Proves: TR6.5, FR7.1
#[tokio::test(start_paused = true)]
async fn a_request_that_never_gets_through_is_sent_four_times_and_then_given_up() {
    let outcome = run(retry_plan(false), (0..4).map(|_| unsent(busy(None)))).await;
    assert!(matches!(
        outcome.error,
        RequestError::Unavailable { reason: UnavailableReason::Busy { .. }, sent: false }
    ));
    assert_eq!((outcome.attempts, outcome.delays.len()), (4, 3));
    for (delay, expected) in outcome.delays.iter().zip([1.0, 2.0, 4.0]) {
        assert!((expected * 0.9..=expected * 1.1).contains(delay), "{:?}", outcome.delays);
    }
    let paused: f64 = outcome.delays.iter().sum();
    assert!((outcome.elapsed.as_secs_f64() - paused).abs() < 0.01, "{:?}", outcome.elapsed);
}

/// Proves: FR7.1
#[tokio::test(start_paused = true)]
async fn any_response_ends_the_retries() {
    let outcome =
        run(retry_plan(false), [unsent(busy(None)), unsent(busy(None)), error_response()]).await;
    assert!(matches!(outcome.error, RequestError::ErrorResponse(_)));
    assert_eq!((outcome.attempts, outcome.delays.len()), (3, 2));
    let outcome = run(retry_plan(true), [error_response()]).await;
    assert_eq!((outcome.attempts, outcome.delays.len()), (1, 0));
}

/// Proves: FR7.1
#[tokio::test(start_paused = true)]
async fn a_timeout_is_never_retried_not_even_where_the_request_may_run_twice() {
    let outcome = run(retry_plan(true), [Some(Err(RequestError::Timeout))]).await;
    assert!(matches!(outcome.error, RequestError::Timeout));
    assert_eq!((outcome.attempts, outcome.elapsed), (1, Duration::ZERO));
}

/// Proves: FR7.1
#[tokio::test(start_paused = true)]
async fn a_request_that_may_have_run_is_retried_only_where_it_may_run_twice() {
    let connection_lost = || UnavailableReason::ConnectionLost("reset".into());
    let outcome = run(retry_plan(false), [sent(connection_lost())]).await;
    assert_eq!((outcome.attempts, outcome.delays.len()), (1, 0));
    let outcome =
        run(retry_plan(false), [unsent(connection_lost()), sent(connection_lost())]).await;
    assert_eq!((outcome.attempts, outcome.delays.len()), (2, 1));
    let unreachable = || UnavailableReason::Unreachable {
        kind: ConnectFailureKind::Refused,
        cause: "refused".into(),
    };
    let results = [
        sent(connection_lost()),
        unsent(unreachable()),
        unsent(busy(None)),
        unsent(connection_lost()),
    ];
    let outcome = run(retry_plan(true), results).await;
    let RequestError::Unavailable { sent, .. } = outcome.error else {
        panic!("{:?}", outcome.error)
    };
    assert!(sent, "the first attempt may have run");
    assert_eq!(outcome.attempts, 4);
}

#[tokio::test(start_paused = true)]
async fn a_request_to_a_server_that_is_gone_or_not_ready_is_not_retried() {
    for reason in [
        UnavailableReason::Exited { status: ExitStatus::Code(1), stderr_line: "".into() },
        UnavailableReason::ClosedOutput,
        UnavailableReason::ClosedInput,
        UnavailableReason::Unresponsive { calls: 1 },
        UnavailableReason::NotStarted("no".into()),
        UnavailableReason::Starting { after: None },
        UnavailableReason::Shutdown,
        UnavailableReason::ResultBufferFull,
    ] {
        let outcome = run(retry_plan(true), [unsent(reason.clone())]).await;
        assert_eq!((outcome.attempts, outcome.delays.len()), (1, 0), "{reason:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_left_alone_for_its_retry_after_and_thirty_seconds_at_most() {
    let results = [unsent(busy(Some(7))), unsent(busy(Some(9999))), unsent(busy(Some(0)))];
    let outcome = run(retry_plan(false), results.into_iter().chain([error_response()])).await;
    assert_eq!(outcome.delays[..2], [7.0, 30.0]);
    assert!((3.6..=4.4).contains(&outcome.delays[2]), "{:?}", outcome.delays);
}

#[tokio::test(start_paused = true)]
async fn a_backoff_that_would_cross_the_deadline_is_not_started() {
    let deadline = Instant::now() + Duration::from_millis(2500);
    let outcome =
        run(RetryPlan { deadline, ..retry_plan(false) }, (0..2).map(|_| unsent(busy(None)))).await;
    assert!(matches!(
        outcome.error,
        RequestError::Unavailable { reason: UnavailableReason::Busy { .. }, .. }
    ));
    assert_eq!((outcome.attempts, outcome.delays.len()), (2, 1));
    assert!(outcome.elapsed < Duration::from_secs(2), "{:?}", outcome.elapsed);
    // A retry that gets no permit before its deadline fails with the earlier error.
    let outcome = run(retry_plan(false), [unsent(busy(None)), None]).await;
    assert!(matches!(
        outcome.error,
        RequestError::Unavailable { reason: UnavailableReason::Busy { .. }, .. }
    ));
    assert!(matches!(run(retry_plan(false), [None]).await.error, RequestError::Timeout));
}

#[tokio::test(start_paused = true)]
async fn none_is_sent_again_if_the_caller_says_so() {
    let outcome = run(RetryPlan { max_retries: 0, ..retry_plan(true) }, [unsent(busy(None))]).await;
    assert_eq!((outcome.attempts, outcome.elapsed), (1, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_backoff_ends_with_the_connection_and_is_not_started_after_it() {
    let started = Instant::now();
    let mut attempts = Attempts::new(retry_plan(true));
    let closed = async {
        sleep(Duration::from_millis(100)).await;
        UnavailableReason::Shutdown
    };
    let mut notices = 0;
    let after = attempts.handle_result(unsent(busy(None)), closed, |_| notices += 1).await;
    assert!(matches!(
        after,
        ControlFlow::Break(Err(RequestError::Unavailable { sent: false, .. }))
    ));
    assert_eq!((notices, started.elapsed().as_millis()), (1, 100));
    let mut attempts = Attempts::new(retry_plan(true));
    let after = attempts
        .handle_result(unsent(busy(None)), ready(UnavailableReason::Shutdown), |_| notices += 1)
        .await;
    assert!(matches!(after, ControlFlow::Break(Err(RequestError::Unavailable { .. }))));
    assert_eq!((notices, started.elapsed().as_millis()), (1, 100));
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_that_ends_at_the_deadline_is_not_waited_for() {
    for (seconds, attempts) in [(2, 1), (1, 2)] {
        let policy = RetryPolicy { initial_delay: Duration::ZERO, ..DEFAULTS };
        let deadline = Instant::now() + Duration::from_secs(2);
        let plan = RetryPlan { policy, deadline, ..retry_plan(true) };
        let results = [unsent(busy(Some(seconds))), unsent(busy(Some(9)))];
        assert_eq!(run(plan, results).await.attempts, attempts, "{seconds} s");
    }
}
