//! Calls that repeat, calls whose arguments vary, and calls that are not run.

use super::*;

const A: CallKey<'static> = CallKey { id: "", tool: "a", arguments: "{}" };
const B: CallKey<'static> = CallKey { id: "", tool: "b", arguments: "{}" };

fn run(content: &str) -> CallResult<'_> {
    CallResult { content: content.as_bytes(), was_run: true }
}

fn not_run(content: &str) -> CallResult<'_> {
    CallResult { content: content.as_bytes(), was_run: false }
}

/// Returns `n` for a new result, `w` for a warning and `r` for a refusal of the next call.
fn letters(calls: &[(CallKey<'_>, &str)]) -> String {
    let mut detector = LoopDetector::default();
    let letter = |(call, result): &(CallKey<'_>, &str)| {
        let action = detector.record(*call, run(result));
        detector.end_response();
        match action {
            None => 'n',
            Some(LoopAction::Warn(text)) => {
                assert!(text.contains(call.tool));
                'w'
            }
            Some(LoopAction::Refuse(_)) => 'r',
        }
    };
    calls.iter().map(letter).collect()
}

/// Proves: G-b10
#[test]
fn the_second_equal_result_gets_a_warning_and_the_third_stops_the_call() {
    assert_eq!(letters(&[(A, "1"), (A, "1"), (A, "1")]), "nwr");
    let mut detector = LoopDetector::default();
    for _ in 0..3 {
        assert_eq!(detector.refusal(A), None);
        detector.record(A, run("1"));
        detector.end_response();
    }
    for ends_run in [false, true] {
        // Two refused calls of one response count once.
        assert!(detector.refusal(A).is_some() && detector.refusal(A).is_some());
        assert!(detector.refusal(B).is_none());
        detector.end_response();
        assert_eq!(detector.ends_run(), ends_run);
    }
}

#[test]
fn calls_in_a_cycle_are_a_loop() {
    let cycle = [(A, "1"), (B, "2")];
    assert_eq!(letters(&cycle.repeat(4)), "nnnwwrrr");
}

#[test]
fn equal_calls_of_one_response_count_once() {
    let mut detector = LoopDetector::default();
    for _ in 0..5 {
        assert_eq!(detector.record(A, run("ok")), None);
    }
    detector.end_response();
    assert!(matches!(detector.record(A, run("ok")), Some(LoopAction::Warn(_))));
}

#[test]
fn a_poll_is_no_loop_and_a_new_result_ends_a_loop() {
    let polls: Vec<String> = (0..20).map(|at| at.to_string()).collect();
    let polls: Vec<_> = polls.iter().map(|result| (A, result.as_str())).collect();
    assert_eq!(letters(&polls), "n".repeat(20));
    assert_eq!(letters(&[(A, "1"), (A, "1"), (B, "2"), (A, "1"), (A, "1")]), "nwnnw");
    let mut detector = LoopDetector::default();
    for result in ["1", "1", "1", "2"] {
        detector.record(A, run(result));
        detector.end_response();
    }
    assert_eq!(detector.refusal(A), None);
}

/// Records calls of one tool with different arguments, one per response.
fn record_varied(detector: &mut LoopDetector, from: u32, results: &[&str]) -> Vec<char> {
    let record = |(at, result): (u32, &&str)| {
        let arguments = format!("{{\"at\":{at}}}");
        let call = CallKey { id: "", tool: "turn", arguments: &arguments };
        let action = detector.record(call, run(result));
        detector.end_response();
        match action {
            None => 'n',
            Some(LoopAction::Warn(_)) => 'w',
            Some(LoopAction::Refuse(_)) => 'r',
        }
    };
    (from..).zip(results).map(record).collect()
}

#[test]
fn the_same_result_to_ever_other_arguments_is_a_loop_after_fifteen_responses() {
    let mut detector = LoopDetector::default();
    let letters = record_varied(&mut detector, 0, &["no more pages"; 15]);
    assert_eq!(letters.into_iter().collect::<String>(), "nnnnnnnwwwwwwwr");
    let next = CallKey { id: "", tool: "turn", arguments: "{\"at\":15}" };
    for ends_run in [false, true] {
        assert!(detector.refusal(next).is_some_and(|reason| reason.contains("`turn`")));
        assert!(detector.refusal(A).is_none());
        detector.end_response();
        assert_eq!(detector.ends_run(), ends_run);
    }
}

#[test]
fn a_result_that_another_tool_did_not_have_before_ends_the_count_of_varied_calls() {
    let mut detector = LoopDetector::default();
    record_varied(&mut detector, 0, &["ok"; 9]);
    detector.record(A, run("new"));
    let letters = record_varied(&mut detector, 9, &["ok"; 4]);
    assert_eq!(letters, ['n'; 4]);
    detector.record(B, run("new"));
    record_varied(&mut detector, 13, &["ok"; 10]);
    detector.record(A, run("another"));
    let next = CallKey { id: "", tool: "turn", arguments: "{}" };
    assert_eq!(detector.refusal(next), None);
}

#[test]
fn the_calls_of_one_response_count_once_however_many_they_are() {
    let mut detector = LoopDetector::default();
    for at in 0..100 {
        let arguments = format!("[{at}]");
        let call = CallKey { id: "", tool: "note", arguments: &arguments };
        assert_eq!(detector.record(call, run("ok")), None);
    }
}

#[test]
fn equal_calls_that_are_not_run_are_a_loop_and_no_progress() {
    let mut detector = LoopDetector::default();
    for error in ["1", "1", "2", "1"] {
        detector.record(A, not_run(error));
        detector.end_response();
    }
    assert!(detector.refusal(A).is_some(), "another error is no progress");
    detector.record(B, run("new"));
    assert_eq!(detector.refusal(A), None);
}
