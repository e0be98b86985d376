//! Recovery actions and attempt numbers.

use super::*;

fn key<'c>((tool, arguments): (&'c str, &'c str)) -> CallKey<'c> {
    CallKey { id: "", tool, arguments }
}

fn error(call_id: &str) -> ErrorRecord {
    ErrorRecord {
        iteration: 1,
        tool: None,
        call_id: Some(call_id.to_owned()),
        error: "no".to_owned(),
        recovery_action: None,
    }
}

/// Records failures of these calls, and returns the actions and attempts of the next response.
fn recover(
    failed: &[(&str, &str)],
    next: &[(&str, &str)],
    text: &str,
) -> (Vec<Option<RecoveryAction>>, Vec<u32>) {
    let mut recovery = Recovery::default();
    for call in failed {
        recovery.record_failure(error(""), key(*call), 0);
    }
    let next: Vec<_> = next.iter().copied().map(key).collect();
    let attempts = recovery.on_response(&next, text);
    (recovery.errors().iter().map(|error| error.recovery_action).collect(), attempts)
}

/// Proves: G28
#[test]
fn the_next_response_names_the_recovery_of_a_failure() {
    use RecoveryAction::{OtherArguments, OtherTool, Question, SameCall, SeveralCalls};
    let failed = [("read", "{1}")];
    for (next, text, action, attempts) in [
        (&[("read", "{2}")][..], "", Some(OtherArguments), &[1][..]),
        (&[("read", "{1}")], "", Some(SameCall), &[1]),
        (&[("list", "{1}")], "", Some(OtherTool), &[1]),
        (&[("read", "{2}"), ("read", "{3}")], "", Some(SeveralCalls), &[1, 1]),
        (&[("list", "{}"), ("stat", "{}")], "", Some(SeveralCalls), &[1, 1]),
        (&[("read", "{2}"), ("list", "{}")], "", Some(OtherArguments), &[1, 0]),
        (&[], "Which file do you mean? ", Some(Question), &[]),
        (&[], "I cannot read the file.", None, &[]),
    ] {
        let expected = (vec![action], attempts.to_vec());
        assert_eq!(recover(&failed, next, text), expected, "{next:?} {text}");
    }
}

#[test]
fn each_of_several_failures_has_its_own_recovery() {
    use RecoveryAction::{OtherArguments, OtherTool};
    let failed = [("read", "{1}"), ("find", "{1}")];
    let (actions, attempts) = recover(&failed, &[("find", "{2}"), ("list", "{}")], "");
    assert_eq!(actions, [Some(OtherTool), Some(OtherArguments)]);
    assert_eq!(attempts, [1, 1]);
    let twice = [("read", "{1}"), ("read", "{2}")];
    let (actions, _) = recover(&twice, &[("read", "{3}"), ("read", "{4}")], "");
    assert_eq!(actions, [Some(OtherArguments); 2], "one call for each failure");
    let (actions, _) = recover(&twice, &[("read", "{2}"), ("read", "{1}")], "");
    assert_eq!(actions, [Some(RecoveryAction::SameCall); 2]);
    let (actions, attempts) = recover(&failed, &[("find", "{2}")], "");
    assert_eq!((actions, attempts), (vec![None, Some(OtherArguments)], vec![1]));
}

#[test]
fn attempts_count_the_chain_of_failures_and_end_with_it() {
    let mut recovery = Recovery::default();
    let calls = [key(("read", "{1}")), key(("read", "{2}")), key(("list", "{}"))];
    for (attempt, call) in (0..).zip(calls) {
        assert_eq!(recovery.on_response(&[call], ""), [attempt]);
        recovery.record_failure(error(""), call, attempt);
    }
    assert_eq!(recovery.on_response(&[calls[0]], ""), [3]);
    recovery.record_success("read");
    assert_eq!(recovery.on_response(&[calls[0]], ""), [0], "the goal was reached");
}

/// Runs calls one per response; the letter `f` lets a call fail. Returns the attempt numbers.
fn attempts(calls: &str) -> Vec<u32> {
    let mut recovery = Recovery::default();
    let calls: Vec<&str> = calls.split(' ').collect();
    let ids: Vec<String> = (0..calls.len()).map(|at| at.to_string()).collect();
    let attempt = |(id, call): (&String, &&str)| {
        let tool = call.trim_end_matches('f');
        let key = CallKey { id, tool, arguments: id };
        let attempt = recovery.on_response(&[key], "")[0];
        match call.ends_with('f') {
            true => recovery.record_failure(error(id), key, attempt),
            false => recovery.record_success(tool),
        }
        attempt
    };
    let attempts: Vec<u32> = ids.iter().zip(&calls).map(attempt).collect();
    let is_no_attempt = |id: &String| recovery.looked_around(id);
    let revise = |(id, attempt)| if is_no_attempt(id) { 0 } else { attempt };
    ids.iter().zip(attempts).map(revise).collect()
}

#[test]
fn a_failed_tool_called_again_after_a_look_around_is_the_next_attempt() {
    for (calls, expected) in [
        ("Af B A", vec![0, 0, 1]),
        ("Af B C A", vec![0, 0, 0, 1]),
        ("Af B Af B A", vec![0, 0, 1, 0, 2]),
        ("Af Bf A", vec![0, 1, 2]),
        ("Af B A A B", vec![0, 0, 1, 0, 0]),
    ] {
        assert_eq!(attempts(calls), expected, "{calls}");
    }
}

#[test]
fn another_tool_right_after_a_failure_is_an_attempt_and_later_calls_are_not() {
    assert_eq!(attempts("Af B"), [0, 1]);
    assert_eq!(attempts("Af B B C"), [0, 1, 0, 0]);
    assert_eq!(attempts("Af Bf B C"), [0, 1, 2, 0]);
    assert_eq!(attempts("A B C"), [0, 0, 0]);
}
