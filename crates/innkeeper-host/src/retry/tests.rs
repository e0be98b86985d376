//! Which requests are sent again and when, with the clock stopped and answers made up.

use std::future::{pending, ready};

use innkeeper_protocol::ErrorObject;

use super::*;
use crate::server::process::Exit;

const DEFAULTS: Retry =
    Retry { max: 3, initial_delay: Duration::from_secs(1), max_delay: Duration::from_secs(30) };

fn plan(harmless: bool) -> Plan {
    let deadline = Instant::now() + Duration::from_secs(3600);
    Plan { policy: DEFAULTS, most: DEFAULTS.max, harmless, deadline }
}

fn busy(seconds: Option<u64>) -> Lost {
    Lost::Busy { status: 503, retry_after: seconds.map(Duration::from_secs) }
}

fn unsent(reason: Lost) -> Option<Answer> {
    Some(Err(Fault::Lost { reason, sent: false }))
}

fn sent(reason: Lost) -> Option<Answer> {
    Some(Err(Fault::Lost { reason, sent: true }))
}

fn refused() -> Option<Answer> {
    Some(Err(Fault::Answer(ErrorObject { code: -32603, message: "no".to_owned(), data: None })))
}

/// What was seen of a request with these answers in turn.
struct Seen {
    fault: Fault,
    made: u32,
    delays: Vec<f64>,
    took: Duration,
}

async fn run(plan: Plan, answers: impl IntoIterator<Item = Option<Answer>>) -> Seen {
    let (mut attempts, began, mut delays) = (Attempts::new(plan), Instant::now(), Vec::new());
    for answer in answers {
        let tell = |again: Again<'_>| {
            assert_eq!(again.attempt as usize, delays.len() + 2);
            delays.push(again.delay.as_secs_f64());
        };
        if let ControlFlow::Break(last) = attempts.after(answer, pending(), tell).await {
            let fault = last.unwrap_err();
            return Seen { fault, made: attempts.made(), delays, took: began.elapsed() };
        }
    }
    panic!("it goes on after {delays:?}");
}

/// Proves: TR6.5
#[test]
fn the_pauses_are_one_two_and_four_seconds_and_thirty_at_most_give_or_take_a_tenth() {
    let plan = Plan { most: 10, ..plan(false) };
    for (attempts, seconds) in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 16.0)] {
        let pause = |luck| plan.pause(attempts, &busy(None), false, luck).unwrap().as_secs_f64();
        assert!((pause(0.0) - seconds * 0.9).abs() < 1e-6, "{}", pause(0.0));
        assert!((pause(0.5) - seconds).abs() < 1e-6, "{}", pause(0.5));
        assert!((pause(1.0) - seconds * 1.1).abs() < 1e-6, "{}", pause(1.0));
    }
    for attempts in 6..=10 {
        let pause = |luck| plan.pause(attempts, &busy(None), false, luck).unwrap().as_secs_f64();
        assert_eq!((pause(0.0), pause(0.5), pause(1.0)), (27.0, 30.0, 30.0));
    }
    assert_eq!(plan.pause(11, &busy(None), false, 0.5), None);
    let eager = Plan { most: u32::MAX, ..plan };
    assert_eq!(eager.pause(11, &busy(None), false, 0.5), None, "ten is the most");
}

/// Proves: TR6.5, FR7.1
#[tokio::test(start_paused = true)]
async fn a_request_that_never_gets_through_is_sent_four_times_and_then_given_up() {
    let seen = run(plan(false), (0..4).map(|_| unsent(busy(None)))).await;
    assert!(matches!(seen.fault, Fault::Lost { reason: Lost::Busy { .. }, sent: false }));
    assert_eq!((seen.made, seen.delays.len()), (4, 3));
    for (delay, expected) in seen.delays.iter().zip([1.0, 2.0, 4.0]) {
        assert!((expected * 0.9..=expected * 1.1).contains(delay), "{:?}", seen.delays);
    }
    let paused: f64 = seen.delays.iter().sum();
    assert!((seen.took.as_secs_f64() - paused).abs() < 0.01, "{:?}", seen.took);
}

/// Proves: FR7.1
#[tokio::test(start_paused = true)]
async fn an_answer_ends_it_whatever_it_says() {
    let seen = run(plan(false), [unsent(busy(None)), unsent(busy(None)), refused()]).await;
    assert!(matches!(seen.fault, Fault::Answer(_)));
    assert_eq!((seen.made, seen.delays.len()), (3, 2));
    let seen = run(plan(true), [refused()]).await;
    assert_eq!((seen.made, seen.delays.len()), (1, 0));
}

/// Proves: FR7.1
#[tokio::test(start_paused = true)]
async fn a_time_out_is_never_repeated_not_even_where_it_may_run_twice() {
    let seen = run(plan(true), [Some(Err(Fault::Late))]).await;
    assert!(matches!(seen.fault, Fault::Late));
    assert_eq!((seen.made, seen.took), (1, Duration::ZERO));
}

/// Proves: FR7.1
#[tokio::test(start_paused = true)]
async fn what_may_have_run_is_repeated_only_where_it_may_run_twice() {
    let broken = || Lost::Broken("reset".into());
    let seen = run(plan(false), [sent(broken())]).await;
    assert_eq!((seen.made, seen.delays.len()), (1, 0));
    let seen = run(plan(false), [unsent(broken()), sent(broken())]).await;
    assert_eq!((seen.made, seen.delays.len()), (2, 1));
    let unreachable = || Lost::Unreachable("refused".into());
    let answers = [sent(broken()), unsent(unreachable()), unsent(busy(None)), unsent(broken())];
    let seen = run(plan(true), answers).await;
    let Fault::Lost { sent, .. } = seen.fault else { panic!("{:?}", seen.fault) };
    assert!(sent, "the first attempt may have run");
    assert_eq!(seen.made, 4);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_or_not_there_yet_is_not_asked_again() {
    for reason in [
        Lost::Exited(Exit::Code(1)),
        Lost::ClosedOutput,
        Lost::ClosedInput,
        Lost::Silent { calls: 1 },
        Lost::NotStarted("no".into()),
        Lost::Starting,
        Lost::Shutdown,
        Lost::ResultsNotTaken,
    ] {
        let seen = run(plan(true), [unsent(reason.clone())]).await;
        assert_eq!((seen.made, seen.delays.len()), (1, 0), "{reason:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_left_alone_as_long_as_it_asks_and_thirty_seconds_at_most() {
    let answers = [unsent(busy(Some(7))), unsent(busy(Some(9999))), unsent(busy(Some(0)))];
    let seen = run(plan(false), answers.into_iter().chain([refused()])).await;
    assert_eq!(seen.delays[..2], [7.0, 30.0]);
    assert!((3.6..=4.4).contains(&seen.delays[2]), "{:?}", seen.delays);
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_would_cross_the_deadline_is_not_begun() {
    let deadline = Instant::now() + Duration::from_millis(2500);
    let seen = run(Plan { deadline, ..plan(false) }, (0..2).map(|_| unsent(busy(None)))).await;
    assert!(matches!(seen.fault, Fault::Lost { reason: Lost::Busy { .. }, .. }));
    assert_eq!((seen.made, seen.delays.len()), (2, 1));
    assert!(seen.took < Duration::from_secs(2), "{:?}", seen.took);
    // One that finds no turn before its deadline fails with what was known before.
    let seen = run(plan(false), [unsent(busy(None)), None]).await;
    assert!(matches!(seen.fault, Fault::Lost { reason: Lost::Busy { .. }, .. }));
    assert!(matches!(run(plan(false), [None]).await.fault, Fault::Late));
}

#[tokio::test(start_paused = true)]
async fn none_is_sent_again_if_the_caller_says_so() {
    let seen = run(Plan { most: 0, ..plan(true) }, [unsent(busy(None))]).await;
    assert_eq!((seen.made, seen.took), (1, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_pause_ends_with_the_connection_and_is_not_begun_after_it() {
    let began = Instant::now();
    let mut attempts = Attempts::new(plan(true));
    let over = async {
        sleep(Duration::from_millis(100)).await;
        Lost::Shutdown
    };
    let mut told = 0;
    let after = attempts.after(unsent(busy(None)), over, |_| told += 1).await;
    assert!(matches!(after, ControlFlow::Break(Err(Fault::Lost { sent: false, .. }))));
    assert_eq!((told, began.elapsed().as_millis()), (1, 100));
    let mut attempts = Attempts::new(plan(true));
    let after = attempts.after(unsent(busy(None)), ready(Lost::Shutdown), |_| told += 1).await;
    assert!(matches!(after, ControlFlow::Break(Err(Fault::Lost { .. }))));
    assert_eq!((told, began.elapsed().as_millis()), (1, 100));
}
