//! Tests of plans.

use serde_json::json;

use super::*;
use crate::run::tests::config;

fn plan(steps: &serde_json::Value) -> Plan {
    let mut plan = Plan::default();
    plan.parse(&format!("My plan:\n```json\n{}\n```", json!({"steps": steps}))).unwrap();
    plan
}

#[test]
fn a_call_waits_for_the_calls_of_the_steps_that_its_step_names() {
    let mut plan = plan(&json!([
        {"id": "1", "tool": "read"},
        {"id": "2", "tool": "write", "after": ["1"]},
        {"id": "3", "tool": "list"},
    ]));
    for (id, tool) in [("a", "read"), ("b", "write"), ("c", "list"), ("d", "other")] {
        plan.assign(id, tool, false);
    }
    let decisions = |plan: &Plan| ["a", "b", "c", "d"].map(|id| plan.decide(id));
    use PlanDecision::{Defer, Start};
    assert_eq!(decisions(&plan), [Start, Defer, Start, Start]);
    plan.record("a", false, true);
    assert_eq!(plan.decide("b"), Start, "a failed step has ended");
}

#[test]
fn a_step_whose_condition_is_not_met_is_skipped_and_so_is_what_depends_on_it() {
    let steps = json!([
        {"id": "look", "tool": "read"},
        {"id": "found", "tool": "write", "if": {"step": "look", "succeeded": true}},
        {"id": "lost", "tool": "create", "if": {"step": "look", "succeeded": false}},
        {"id": "after", "tool": "list", "if": {"step": "found", "succeeded": true}},
    ]);
    let skipped = |succeeded: bool| -> Vec<String> {
        let mut plan = plan(&steps);
        for tool in ["read", "write", "create", "list"] {
            plan.assign(tool, tool, false);
        }
        assert_eq!(plan.decide("write"), PlanDecision::Defer);
        plan.record("read", succeeded, true);
        let mut reasons = Vec::new();
        for tool in ["write", "create", "list"] {
            match plan.decide(tool) {
                PlanDecision::Skip(reason) => {
                    plan.record(tool, false, false);
                    reasons.push(reason);
                }
                PlanDecision::Start => plan.record(tool, true, true),
                PlanDecision::Defer => panic!("{tool} waits"),
            }
        }
        reasons
    };
    assert_eq!(
        skipped(true),
        ["step `lost` of the plan is skipped, because step `look` succeeded"]
    );
    assert_eq!(
        skipped(false),
        [
            "step `found` of the plan is skipped, because step `look` failed",
            "step `after` of the plan is skipped, because step `found` was skipped",
        ]
    );
}

#[test]
fn a_condition_on_a_step_that_was_not_run_is_not_met() {
    let mut plan = plan(&json!([
        {"id": "1", "tool": "read"},
        {"id": "2", "tool": "write", "if": {"step": "1", "succeeded": false}},
    ]));
    plan.assign("b", "write", false);
    let reason = "step `2` of the plan is skipped, because step `1` was not run".to_owned();
    assert_eq!(plan.decide("b"), PlanDecision::Skip(reason));
}

#[test]
fn a_further_attempt_belongs_to_the_failed_step_and_not_to_the_next_step_of_the_tool() {
    let mut plan = plan(&json!([
        {"id": "1", "tool": "read"},
        {"id": "2", "tool": "read", "if": {"step": "1", "succeeded": false}},
    ]));
    plan.assign("a", "read", false);
    plan.record("a", false, true);
    plan.assign("b", "read", true);
    plan.record("b", true, true);
    plan.assign("c", "read", false);
    assert!(matches!(plan.decide("c"), PlanDecision::Skip(_)));
}

#[test]
fn a_call_belongs_to_the_step_whose_condition_is_met() {
    let mut plan = plan(&json!([
        {"id": "1", "tool": "stat"},
        {"id": "2", "tool": "write", "if": {"step": "1", "succeeded": true}},
        {"id": "3", "tool": "write", "if": {"step": "1", "succeeded": false}},
    ]));
    plan.assign("a", "stat", false);
    plan.record("a", false, true);
    plan.assign("b", "write", false);
    assert_eq!(plan.decide("b"), PlanDecision::Start);
}

#[test]
fn a_step_whose_call_was_refused_is_open_for_the_next_call() {
    let mut plan = plan(&json!([
        {"id": "1", "tool": "write"},
        {"id": "2", "tool": "read", "if": {"step": "1", "succeeded": true}},
    ]));
    plan.assign("a", "write", false);
    plan.record("a", false, false);
    plan.assign("b", "write", true);
    plan.record("b", true, true);
    plan.assign("c", "read", false);
    assert_eq!(plan.decide("c"), PlanDecision::Start);
}

#[test]
fn a_plan_that_cannot_be_followed_says_why() {
    for (text, problem) in [
        ("I read the file.", "the text contains no JSON object"),
        ("} and {", "the JSON object has no end"),
        (r#"{"steps": [{"id": "1"}]}"#, "missing field `tool`"),
        (
            r#"{"steps": [{"id": "1", "tool": "a", "after": ["2"]}, {"id": "2", "tool": "a"}]}"#,
            "step `1` names step `2`, which is not before it",
        ),
        (
            r#"{"steps": [{"id": "1", "tool": "a", "if": {"step": "1", "succeeded": true}}]}"#,
            "step `1` names step `1`, which is not before it",
        ),
        (
            r#"{"steps": [{"id": "1", "tool": "a"}, {"id": "1", "tool": "a"}]}"#,
            "two steps have the id `1`",
        ),
    ] {
        let error = Plan::default().parse(text).unwrap_err();
        assert!(error.starts_with(problem), "{error}");
    }
    let steps = |count: usize| -> Vec<_> {
        (0..count).map(|id| json!({"id": id.to_string(), "tool": "a"})).collect()
    };
    let read = |count| Plan::default().parse(&json!({"steps": steps(count)}).to_string());
    assert_eq!(read(MAX_STEPS), Ok(()));
    assert_eq!(read(MAX_STEPS + 1), Err("the plan has 65 steps, the limit is 64".to_owned()));
}

#[test]
fn the_request_for_a_plan_has_the_system_prompt_and_the_limits_of_the_run_and_no_tools() {
    let config = RunConfig { max_tokens: 77, context_tokens: Some(5000), ..config() }
        .with(|settings| "Be brief.".clone_into(&mut settings.system));
    let request = plan_request(&config, &Conversation::new());
    assert_eq!((request.max_tokens, request.context_tokens), (Some(77), Some(5000)));
    assert_eq!(request.system, "Be brief.");
    assert!(request.tools.is_empty());
}
