//! Tests of the comparison: for each mismatch a run that has it, and a neighbour that passes.

use proptest::prelude::{Just, Strategy as _, any, prop, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, prop_assume, proptest};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Comparison, Verdict, compare};
use crate::rules::Rules;

/// A call as `(iteration, tool, arguments)`.
type CallCase<'c> = (u64, &'c str, Value);

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

/// Returns the result of a run with these calls.
fn output(calls: &[CallCase<'_>]) -> Value {
    let chain = calls.iter().enumerate().map(|(at, (iteration, tool, arguments))| {
        json!({
            "iteration": iteration, "tool_name": tool, "arguments": arguments, "success": true,
            "execution_time": 0.25, "tool_call_id": format!("call_{at}"),
            "visible_results": (0..at).map(|id| format!("call_{id}")).collect::<Vec<_>>(),
        })
    });
    let chain: Vec<Value> = chain.collect();
    let messages = calls.iter().enumerate().map(|(at, (_, tool, _))| {
        let call = json!({"id": format!("call_{at}"), "name": tool, "arguments": {}});
        json!({"role": "assistant", "content": "", "tool_calls": [call], "tool_call_id": null})
    });
    let messages: Vec<Value> = messages.collect();
    json!({
        "success": true, "final_result": "The total is 5.", "summary": "s", "tool_chain": chain,
        "conversation_history": messages,
        "errors": [
            {"iteration": 1, "tool_name": "fs.read", "tool_call_id": "call_0",
             "error": "timed out after 3 s", "recovery_action": "same_call"},
            {"iteration": 2, "tool_name": null, "tool_call_id": null, "error": "server `x` is gone",
             "recovery_action": null},
        ],
        "execution_metadata": {
            "total_execution_time": 2.5, "total_iterations": 3,
            "token_usage": {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100,
                            "available": true},
            "tool_times": {"fs.read": {"calls": 1, "p50": 0.1, "p95": 0.2}},
        },
    })
}

fn rules(rules: &Value) -> Rules {
    Rules::from_json(rules.to_string().as_bytes()).unwrap()
}

fn judge(golden: &Value, actual: &Value, judged: &Value) -> Comparison {
    compare(&raw(golden), &raw(actual), Some(&rules(judged))).unwrap()
}

/// Returns the lines of all mismatches.
fn lines(golden: &Value, actual: &Value, judged: &Value) -> Vec<String> {
    let comparison = judge(golden, actual, judged);
    let mismatches = comparison.judged.iter().flat_map(|judgement| match &judgement.verdict {
        Verdict::Passed => &[][..],
        Verdict::Failed(mismatches) => mismatches,
    });
    let lines: Vec<String> = mismatches.map(ToString::to_string).collect();
    assert_eq!(lines.is_empty(), comparison.passed());
    lines
}

/// Returns the result with another value at a JSON pointer.
fn with(output: &Value, pointer: &str, value: Value) -> Value {
    let mut changed = output.clone();
    *changed.pointer_mut(pointer).unwrap() = value;
    changed
}

const NONE: [&str; 0] = [];

#[test]
fn a_comparison_that_judged_nothing_has_not_passed() {
    let output = raw(&output(&[]));
    let comparison = compare(&output, &output, Some(&Rules::default())).unwrap();
    assert!(!comparison.passed());
    assert_eq!(comparison.to_string(), "failed: no rule was applied, so nothing was judged");
    assert!(compare(&output, &output, None).unwrap().passed());
}

/// Proves: G68, G71
#[test]
fn without_rules_everything_but_times_and_ids_counts() {
    let golden = output(&[(1, "fs.read", json!({"path": "a"})), (2, "fs.read", json!({}))]);
    let exact = json!({"exact": true});
    let mut actual: Value =
        serde_json::from_str(&golden.to_string().replace("\"call_", "\"toolu_")).unwrap();
    actual = with(&actual, "/execution_metadata/total_execution_time", json!(9.5));
    actual = with(&actual, "/execution_metadata/tool_times/fs.read/p95", json!(7));
    actual = with(&actual, "/tool_chain/0/execution_time", json!(1));
    assert_eq!(lines(&golden, &actual, &exact), NONE);
    assert!(compare(&raw(&golden), &raw(&actual), None).unwrap().passed());
    let wrong = with(&actual, "/tool_chain/0/arguments/path", json!("b"));
    assert_eq!(
        lines(&golden, &wrong, &exact),
        ["`/tool_chain/0/arguments/path`: expected \"a\", got \"b\""]
    );
    let wrong = with(&actual, "/execution_metadata/tool_times/fs.read/calls", json!(2));
    assert_eq!(
        lines(&golden, &wrong, &exact),
        ["`/execution_metadata/tool_times/fs.read/calls`: expected 1, got 2"]
    );
}

#[test]
fn an_id_must_stand_for_the_same_call_in_all_places() {
    let golden = output(&[(1, "a", json!({})), (2, "b", json!({})), (3, "c", json!({}))]);
    let exact = json!({"exact": true});
    let cases = [
        ("/tool_chain/2/visible_results/0", json!("call_1")),
        ("/tool_chain/1/tool_call_id", json!("call_0")),
        ("/tool_chain/1/tool_call_id", json!(null)),
        ("/tool_chain/2/visible_results", json!(["call_0"])),
        ("/tool_chain/0/visible_results", json!(["call_0"])),
        ("/errors/0/tool_call_id", json!("call_1")),
    ];
    for (pointer, value) in cases {
        let lines = lines(&golden, &with(&golden, pointer, value.clone()), &exact);
        assert_eq!(lines.len(), 1, "{pointer} {value} {lines:?}");
        assert!(lines[0].contains("expected the id"), "{lines:?}");
    }
}

/// A case of the tool chain: the order, the golden's calls, the run's calls, and the lines.
struct ChainCase<'c> {
    order: &'c str,
    golden: &'c [CallCase<'c>],
    actual: &'c [CallCase<'c>],
    lines: &'c [&'c str],
}

fn assert_chains(cases: &[ChainCase<'_>]) {
    for ChainCase { order, golden, actual, lines: expected } in cases {
        let judged = json!({"tool_chain": {"order": order}});
        let lines = lines(&output(golden), &output(actual), &judged);
        assert_eq!(lines, *expected, "{order}: {golden:?} {actual:?}");
    }
}

#[test]
fn under_the_strict_order_calls_are_the_same_response_by_response() {
    let [a, b, c] = ["a", "b", "c"].map(|path| json!({"path": path}));
    let read = |iteration, path: &Value| (iteration, "read", path.clone());
    let golden = [read(1, &a), read(1, &b), read(2, &c)];
    let case = |actual, lines| ChainCase { order: "strict", golden: &golden, actual, lines };
    assert_chains(&[
        case(&golden.clone(), &[]),
        // The order within a response, and the numbers of iterations.
        case(&[read(2, &b), read(2, &a), read(7, &c)], &[]),
        case(
            &[read(1, &a), read(2, &b), read(3, &c)],
            &[
                "`read {\"path\":\"b\"}`: expected as call 2 (response 1), got as call 2 (response 2)",
            ],
        ),
        case(
            &[read(1, &c), read(2, &a), read(2, &b)],
            &[
                "`read {\"path\":\"c\"}`: expected as call 3 (response 2), got as call 1 (response 1)",
            ],
        ),
        case(
            &[read(1, &a), read(1, &b)],
            &["call 3 (response 2): expected `read {\"path\":\"c\"}`, got no such call"],
        ),
        case(
            &[read(1, &a), read(1, &b), (2, "list", json!({})), read(3, &c)],
            &["call 3 (response 2): expected no such call, got `list {}`"],
        ),
        case(
            &[read(1, &a), read(1, &b), read(2, &b)],
            &["call 3 (response 2) of `read`, argument `/path`: expected \"c\", got \"b\""],
        ),
        case(
            &[read(1, &a), read(1, &b), (2, "list", c.clone())],
            &[
                "call 3 (response 2): expected `read {\"path\":\"c\"}`, got no such call",
                "call 3 (response 2): expected no such call, got `list {\"path\":\"c\"}`",
            ],
        ),
    ]);
}

#[test]
fn unordered_subset_and_superset_count_calls() {
    let read = |iteration, path: &str| (iteration, "read", json!({"path": path}));
    let list = (9, "list", json!({}));
    let two = [read(1, "a"), read(2, "b")];
    let swapped = [read(1, "b"), read(2, "a")];
    let more = [read(1, "b"), list.clone(), read(2, "a")];
    let less = [read(5, "b")];
    let twice = [read(1, "a"), read(2, "a")];
    let case = |order, actual, lines| ChainCase { order, golden: &two, actual, lines };
    let missing = "call 1 (response 1): expected `read {\"path\":\"a\"}`, got no such call";
    let extra = "call 2 (response 2): expected no such call, got `list {}`";
    let other = "call 2 (response 2) of `read`, argument `/path`: expected \"b\", got \"a\"";
    assert_chains(&[
        case("unordered", &swapped, &[]),
        case("unordered", &more, &[extra]),
        case("unordered", &less, &[missing]),
        case("unordered", &twice, &[other]),
        case("subset", &swapped, &[]),
        case("subset", &less, &[]),
        case("subset", &[], &[]),
        case("subset", &more, &[extra]),
        case("subset", &twice, &[other]),
        case("superset", &swapped, &[]),
        case("superset", &more, &[]),
        case("superset", &less, &[missing]),
        case("superset", &twice, &[other]),
    ]);
}

#[test]
fn arguments_count_as_the_policy_of_the_tool_says() {
    let golden = output(&[
        (1, "write", json!({"path": "a", "meta": {"stamp": 1, "items": [{"id": 1, "n": 1}]}})),
        (2, "now", json!({"zone": "utc"})),
    ]);
    let mut actual = with(&golden, "/tool_chain/0/arguments/meta/stamp", json!(2));
    actual = with(&actual, "/tool_chain/0/arguments/meta/items/0/id", json!(2));
    actual = with(&actual, "/tool_chain/1/arguments", json!({}));
    let tools = json!({
        "write": {"ignored_paths": ["/meta/stamp", "/meta/items/*/id"]},
        "now": {"arguments": "ignore"},
    });
    let kept = with(&tools, "/write", json!({"ignored_paths": ["/meta/stamp"]}));
    for order in ["strict", "unordered", "subset", "superset"] {
        let all = json!({"tool_chain": {"order": order, "tools": tools}});
        assert_eq!(lines(&golden, &actual, &all), NONE);
        let ignored = json!({"tool_chain": {"order": order, "arguments": "ignore"}});
        assert_eq!(lines(&golden, &actual, &ignored), NONE);
        let kept = json!({"tool_chain": {"order": order, "tools": kept}});
        assert_eq!(
            lines(&golden, &actual, &kept),
            ["call 1 (response 1) of `write`, argument `/meta/items/0/id`: expected 1, got 2"]
        );
        // A policy of the tool wins over that of all tools.
        let exact = json!({"tool_chain": {"order": order, "arguments": "ignore",
            "tools": {"now": {"arguments": "exact"}}}});
        assert_eq!(
            lines(&golden, &actual, &exact),
            ["call 2 (response 2) of `now`, argument `/zone`: expected \"utc\", got nothing"]
        );
    }
}

#[test]
fn forbidden_and_new_tools_are_named_once() {
    let golden = output(&[(1, "read", json!({}))]);
    let actual = output(&[(1, "read", json!({})), (2, "rm", json!({})), (2, "rm", json!({}))]);
    let cases = [
        (
            json!({"forbidden_tools": ["rm"]}),
            "`rm`: expected no call, got 2 calls from call 2 (response 2) on",
        ),
        (
            json!({"allow_new_tools": false}),
            "`rm`: expected no call of a new tool, got 2 calls from call 2 (response 2) on",
        ),
    ];
    for (judged, expected) in cases {
        assert_eq!(lines(&golden, &actual, &judged), [expected]);
        assert_eq!(lines(&golden, &golden, &judged), NONE);
    }
    assert_eq!(lines(&golden, &actual, &json!({"forbidden_tools": ["r", "rmdir"]})), NONE);
}

#[test]
fn the_tool_chain_is_compared_without_new_tools_if_they_are_allowed() {
    let golden = output(&[(1, "read", json!({})), (2, "read", json!({}))]);
    let actual = output(&[(1, "read", json!({})), (2, "list", json!({})), (3, "read", json!({}))]);
    for order in ["strict", "unordered", "subset"] {
        let chain = json!({"tool_chain": {"order": order}});
        assert_eq!(lines(&golden, &actual, &chain).len(), 1);
        let allowed = json!({"tool_chain": {"order": order}, "allow_new_tools": true});
        assert_eq!(lines(&golden, &actual, &allowed), NONE);
    }
}

#[test]
fn the_outcome_is_success_or_the_same_failure() {
    let success = output(&[]);
    let failure = |error: &str| {
        let mut failure = with(&success, "/success", json!(false));
        failure["error"] = json!(error);
        failure
    };
    let outcome = json!({"outcome": true});
    let cases = [
        (success.clone(), failure("no credit"), "expected success, got the failure \"no credit\""),
        (failure("no credit"), success.clone(), "expected the failure \"no credit\", got success"),
        (failure("a"), failure("b"), "expected the failure \"a\", got the failure \"b\""),
    ];
    for (golden, actual, expected) in cases {
        assert_eq!(lines(&golden, &actual, &outcome), [expected]);
        assert_eq!(lines(&golden, &golden, &outcome), NONE);
    }
    let [golden, actual] = ["Late after 3 s", "late after 4 s"].map(failure);
    assert_eq!(lines(&golden, &actual, &outcome), NONE);
}

#[test]
fn errors_have_the_same_tool_message_and_reaction() {
    let golden = output(&[]);
    let errors = json!({"errors": "pattern"});
    let same = with(&golden, "/errors/0/error", json!("Timed out after 12 s"));
    let same = with(&same, "/errors/0/tool_call_id", json!("toolu_1"));
    assert_eq!(lines(&golden, &same, &errors), NONE);
    let first =
        "error 1: expected \"timed out after <duration>\" of `fs.read`, then `same_call`, got ";
    let cases = [
        (
            "/errors/0/error",
            json!("no such file"),
            format!("{first}\"no such file\" of `fs.read`, then `same_call`"),
        ),
        (
            "/errors/0/tool_name",
            json!("fs.list"),
            format!("{first}\"timed out after <duration>\" of `fs.list`, then `same_call`"),
        ),
        (
            "/errors/0/recovery_action",
            json!(null),
            format!("{first}\"timed out after <duration>\" of `fs.read`"),
        ),
    ];
    for (pointer, value, expected) in cases {
        assert_eq!(lines(&golden, &with(&golden, pointer, value), &errors), [expected]);
    }
    let one = with(&golden, "/errors", json!([golden["errors"][0]]));
    let gone = "\"server `x` is gone\"";
    assert_eq!(lines(&golden, &one, &errors), [format!("error 2: expected {gone}, got no error")]);
    assert_eq!(lines(&one, &golden, &errors), [format!("error 2: expected no error, got {gone}")]);
    let last = &golden["errors"][1];
    let [two, three] = [2, 3].map(|count| with(&golden, "/errors", json!(vec![last; count])));
    assert_eq!(lines(&two, &three, &errors), [format!("error 3: expected no error, got {gone}")]);
    assert_eq!(lines(&three, &two, &errors), [format!("error 3: expected {gone}, got no error")]);
}

#[test]
fn bounds_are_inclusive() {
    let run = output(&[(1, "a", json!({})), (2, "b", json!({}))]);
    let cases = [
        (
            json!({"max_tokens": 100}),
            json!({"max_tokens": 99}),
            "`max_tokens`: expected at most 99, got 100",
        ),
        (
            json!({"max_calls": 2}),
            json!({"max_calls": 1}),
            "`max_calls`: expected at most 1, got 2",
        ),
        (
            json!({"max_iterations": 3}),
            json!({"max_iterations": 2}),
            "`max_iterations`: expected at most 2, got 3",
        ),
        (
            json!({"max_seconds": 2.5}),
            json!({"max_seconds": 2.25}),
            "`max_seconds`: expected at most 2.25, got 2.5",
        ),
    ];
    for (enough, too_small, expected) in cases {
        assert_eq!(lines(&run, &run, &json!({"bounds": enough})), NONE);
        assert_eq!(lines(&run, &run, &json!({"bounds": too_small})), [expected]);
    }
}

#[test]
fn a_bound_of_tokens_fails_if_the_tokens_are_not_known() {
    let run = output(&[]);
    let unknown = with(&run, "/execution_metadata/token_usage/available", json!(false));
    let bounds = json!({"bounds": {"max_tokens": 500}});
    assert_eq!(lines(&run, &run, &bounds), NONE);
    assert_eq!(
        lines(&run, &unknown, &bounds),
        ["`max_tokens`: expected a count of tokens, but the provider did not report all of them"]
    );
    assert_eq!(lines(&run, &unknown, &json!({"bounds": {"max_calls": 5}})), NONE);
}

#[test]
fn the_final_text_is_similar_or_contains_texts() {
    let golden = output(&[]);
    let similar = json!({"final_text": {"min_similarity": 0.8}});
    let contains = json!({"final_text": {"contains": ["total", "5"]}});
    let text = |text: Value| with(&golden, "/final_result", text);
    let same = text(json!("the **total** is 5"));
    assert_eq!(lines(&golden, &same, &similar), NONE);
    assert_eq!(lines(&golden, &same, &contains), NONE);
    let other = text(json!("The total is 7."));
    assert_eq!(
        lines(&golden, &other, &similar),
        ["expected a text like \"The total is 5.\", got \"The total is 7.\" \
          (similarity 0.06, required 0.8)"]
    );
    assert_eq!(
        lines(&golden, &other, &contains),
        ["expected a text with \"5\", got \"The total is 7.\""]
    );
    let none = text(json!(null));
    assert_eq!(lines(&golden, &none, &contains).len(), 2);
    assert_eq!(lines(&golden, &none, &similar).len(), 1);
    assert_eq!(lines(&none, &golden, &similar).len(), 1);
    assert_eq!(lines(&none, &none, &similar), NONE);
}

#[test]
fn the_report_reads_like_a_failed_test() {
    let golden = output(&[(1, "read", json!({"path": "a"}))]);
    let calls: Vec<CallCase<'_>> = (0..14).map(|at| (at + 1, "list", json!({}))).collect();
    let judged = json!({"tool_chain": {}, "outcome": true, "bounds": {"max_calls": 9}});
    let report = judge(&golden, &output(&calls), &judged).to_string();
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines.len(), 16, "{report}");
    assert_eq!(lines[0], "failed: 2 of 3 rules");
    assert_eq!(lines[1], "tool_chain:");
    assert_eq!(
        lines[2],
        "  call 1 (response 1): expected `read {\"path\":\"a\"}`, got no such call"
    );
    assert_eq!(lines[3], "  call 1 (response 1): expected no such call, got `list {}`");
    assert_eq!(lines[12], "  and 5 more");
    assert_eq!(lines[13], "bounds:");
    assert_eq!(lines[14], "  `max_calls`: expected at most 9, got 14");
    assert_eq!(lines[15], "passed: outcome");
    let passed = judge(&golden, &golden, &json!({"tool_chain": {}, "outcome": true}));
    assert_eq!(passed.to_string(), "passed: tool_chain, outcome");
}

#[test]
fn a_value_that_is_no_result_is_named_with_its_side_and_place() {
    let run = output(&[(1, "a", json!({}))]);
    let broken = with(&run, "/tool_chain/0/iteration", json!("one"));
    let outcome = rules(&json!({"outcome": true}));
    let error = compare(&raw(&run), &raw(&broken), Some(&outcome)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the output to compare is not the result of a run: invalid value at `/tool_chain/0/iteration`"
    );
    let error = compare(&raw(&json!([])), &raw(&run), Some(&outcome)).unwrap_err();
    assert!(error.to_string().starts_with("the recorded output is not"), "{error}");
    // Equality needs no result of a run.
    assert!(compare(&raw(&json!([1])), &raw(&json!([1])), None).unwrap().passed());
}

fn calls() -> impl proptest::strategy::Strategy<Value = Vec<(u64, &'static str, Value)>> {
    let arguments = prop_oneof![
        Just(json!({})),
        (0..3).prop_map(|number| json!({"a": number, "b": [1, {"c": null}]})),
    ];
    let call = (any::<bool>(), prop::sample::select(vec!["x", "y", "z"]), arguments);
    prop::collection::vec(call, 0..7).prop_map(|calls| {
        let mut iteration = 1;
        let numbered = calls.into_iter().map(|(is_next, tool, arguments)| {
            iteration += u64::from(is_next);
            (iteration, tool, arguments)
        });
        numbered.collect()
    })
}

/// Returns the calls of each response, sorted.
fn responses(calls: &[CallCase<'_>]) -> Vec<Vec<String>> {
    let responses = calls.chunk_by(|left, right| left.0 == right.0).map(|calls| {
        let mut calls: Vec<String> =
            calls.iter().map(|(_, tool, arguments)| format!("{tool} {arguments}")).collect();
        calls.sort();
        calls
    });
    responses.collect()
}

proptest! {
    #[test]
    fn a_result_compared_with_itself_passes_every_rule(
        calls in calls(),
        order in prop::sample::select(vec!["strict", "unordered", "subset", "superset"]),
        text in "\\PC{0,30}",
    ) {
        let run = with(&output(&calls), "/final_result", json!(text));
        let judged = json!({
            "exact": true, "tool_chain": {"order": order}, "forbidden_tools": ["other"],
            "allow_new_tools": false, "outcome": true, "errors": "pattern",
            "bounds": {"max_calls": calls.len()}, "final_text": {"min_similarity": 1.0},
        });
        let comparison = judge(&run, &run, &judged);
        prop_assert_eq!(comparison.judged.len(), 8);
        prop_assert!(comparison.passed(), "{}", comparison);
    }

    #[test]
    fn each_order_judges_as_its_definition_says(golden in calls(), actual in calls()) {
        let passes = |order| {
            judge(&output(&golden), &output(&actual), &json!({"tool_chain": {"order": order}})).passed()
        };
        let [golden_responses, actual_responses] = [&golden, &actual].map(|calls| responses(calls));
        let [golden_calls, actual_calls] = [&golden_responses, &actual_responses].map(|responses| {
            let mut calls = responses.concat();
            calls.sort();
            calls
        });
        let includes = |all: &[String], part: &[String]| {
            let mut rest = all.to_vec();
            part.iter().all(|call| match rest.iter().position(|other| other == call) {
                Some(at) => {
                    rest.swap_remove(at);
                    true
                }
                None => false,
            })
        };
        prop_assert_eq!(passes("strict"), golden_responses == actual_responses);
        prop_assert_eq!(passes("unordered"), golden_calls == actual_calls);
        prop_assert_eq!(passes("subset"), includes(&golden_calls, &actual_calls));
        prop_assert_eq!(passes("superset"), includes(&actual_calls, &golden_calls));
    }

    #[test]
    fn any_change_of_a_field_that_does_not_vary_is_found(
        calls in calls(),
        at in any::<prop::sample::Index>(),
    ) {
        let run = output(&calls);
        let mut pointers = Vec::new();
        leaves(&run, String::new(), &mut pointers);
        let pointer = &pointers[at.index(pointers.len())];
        prop_assume!(!crate::is_varying_in_output(pointer));
        let changed = with(&run, pointer, json!("another value"));
        prop_assert!(!compare(&raw(&run), &raw(&changed), None).unwrap().passed(), "{}", pointer);
    }
}

/// Finds the JSON pointers of all values without members or items.
fn leaves(value: &Value, path: String, pointers: &mut Vec<String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                leaves(member, format!("{path}/{name}"), pointers);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                leaves(item, format!("{path}/{at}"), pointers);
            }
        }
        _ => pointers.push(path),
    }
}
