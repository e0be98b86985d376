//! Tests: missing fields and small corpora are errors.

use serde_json::json;

use super::*;

fn report(value: Value) -> EvalReport {
    EvalReport { file: "refuse.json".to_owned(), value }
}

/// A report with these numbers of measured kinds and cases.
fn benchmark_result(kinds: usize, cases: usize) -> Value {
    let kind = |verified: bool| json!({"verified": verified, "robustCoverage": if verified { 0.5 } else { 0.0 }});
    let mut coverage = json!({"not-run": kind(false)});
    for number in 0..kinds {
        coverage[format!("kind-{number}")] = kind(true);
    }
    let case = |number: usize| json!({"id": format!("case/{number}"), "level": "none"});
    let cases: Vec<Value> = (0..cases).map(case).collect();
    json!({"summary": {"falsePositives": 0}, "coverage": coverage, "cases": cases})
}

#[test]
fn every_attack_has_a_row_with_what_became_of_it_in_each_mode() {
    let report_with_levels = |levels: [&str; 2]| {
        let [a, b] = levels;
        report(json!({"cases": [{"id": "a/001", "level": a}, {"id": "b", "level": b}]}))
    };
    let rows = attack_rows(&[
        report_with_levels(["none", "none"]),
        report_with_levels(["enforce", "none"]),
    ])
    .unwrap();
    assert_eq!(rows, [["a/001", "none", "enforce"], ["b", "none", "none"]]);
    let other = report(json!({"cases": [{"id": "b", "level": "none"}]}));
    let error = attack_rows(&[report_with_levels(["none", "none"]), other]).unwrap_err();
    assert_eq!(error, "`refuse.json`: `/cases/0/id` is not case `a/001`");
    let short = report(json!({"cases": [{"id": "a/001", "level": "none"}]}));
    let error = attack_rows(&[report_with_levels(["none", "none"]), short]).unwrap_err();
    assert!(error.contains("`/cases/1/id`"), "{error}");
}

#[test]
fn kinds_that_were_not_run_do_not_count_and_fewer_kinds_or_cases_than_expected_are_an_error() {
    assert_eq!(
        report(benchmark_result(MIN_ATTACK_KINDS, MIN_CASES)).stopped_and_measured_kinds(),
        Ok((7.0, MIN_ATTACK_KINDS))
    );
    let error = report(benchmark_result(MIN_ATTACK_KINDS - 1, MIN_CASES))
        .stopped_and_measured_kinds()
        .unwrap_err();
    assert_eq!(error, "`refuse.json`: 13 measured attack kinds, expected 14");
    let error = report(benchmark_result(MIN_ATTACK_KINDS, MIN_CASES - 1))
        .stopped_and_measured_kinds()
        .unwrap_err();
    assert_eq!(error, "`refuse.json`: 22 cases, expected 23");
}

#[test]
fn a_field_that_is_not_there_is_named_with_its_file() {
    for (removed, pointer) in [
        (&["coverage"][..], "/coverage"),
        (&["coverage", "kind-3", "verified"], "/coverage/kind-3/verified"),
        (&["coverage", "kind-3", "robustCoverage"], "/coverage/kind-3/robustCoverage"),
        (&["cases"], "/cases"),
        (&["summary", "falsePositives"], "/summary/falsePositives"),
        (&["summary"], "/summary/falsePositives"),
    ] {
        let mut value = benchmark_result(MIN_ATTACK_KINDS, MIN_CASES);
        let (last, before) = removed.split_last().unwrap();
        let parent = before.iter().fold(&mut value, |value, name| &mut value[*name]);
        parent.as_object_mut().unwrap().remove(*last).unwrap();
        let parsed = report(value);
        let judged = parsed
            .stopped_and_measured_kinds()
            .and_then(|_| parsed.check_false_positives("cases", 0));
        let expected = format!("`refuse.json`: missing or invalid value at `{pointer}`");
        assert_eq!(judged, Err(expected));
    }
    let mut value = benchmark_result(MIN_ATTACK_KINDS, MIN_CASES);
    value["cases"][3].as_object_mut().unwrap().remove("level");
    let error = attack_rows(&[report(value)]).unwrap_err();
    assert!(error.contains("`/cases/3/level`"), "{error}");
}

#[test]
fn false_positives_up_to_the_limit_are_accepted() {
    let report_with_count = |count: u64, items: usize| {
        report(json!({"summary": {"falsePositives": count}, "items": vec![0; items]}))
    };
    assert_eq!(report_with_count(3, 300).check_false_positives("items", 1), Ok(()));
    assert!(report_with_count(4, 300).check_false_positives("items", 1).is_err());
    assert!(report_with_count(1, 300).check_false_positives("items", 0).is_err());
    assert_eq!(
        report_with_count(2, MIN_HARMLESS_ITEMS).flagged_harmless_items(),
        Ok((2, MIN_HARMLESS_ITEMS))
    );
    let error = report_with_count(0, MIN_HARMLESS_ITEMS - 1).flagged_harmless_items().unwrap_err();
    assert_eq!(error, "`refuse.json`: 311 harmless items, expected 312");
}

/// The reports of complete corpora.
fn corpus_lines() -> Vec<Value> {
    let line = |corpus: &str, read: u64| json!({"corpus": corpus, "of": "refuse", "held": 1, "read": read, "flagged": 2});
    let corpus_lines_of = |&(corpus, lines, read)| vec![line(corpus, read); lines];
    CORPUS_MINIMUMS.iter().flat_map(corpus_lines_of).collect()
}

fn describe_lines(lines: &[Value]) -> TaskResult<Vec<String>> {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    describe_corpora(&lines.join("\n"))
}

#[test]
fn a_corpus_that_is_smaller_than_expected_or_missing_is_an_error() {
    let descriptions = describe_lines(&corpus_lines()).unwrap();
    assert_eq!(descriptions[0], "harmless items, refuse: 1 of 312 withheld, 2 findings");
    assert_eq!(descriptions.len(), 11);
    for at in 0..corpus_lines().len() {
        let mut fewer = corpus_lines();
        let read = fewer[at]["read"].as_u64().unwrap() - 1;
        fewer[at]["read"] = json!(read);
        let error = describe_lines(&fewer).unwrap_err();
        assert!(error.contains(&format!("{read} texts of ")), "{error}");
        let mut without = corpus_lines();
        without.remove(at);
        assert!(describe_lines(&without).unwrap_err().contains("expected"));
        for name in ["corpus", "of", "held", "read", "flagged"] {
            let mut without = corpus_lines();
            without[at].as_object_mut().unwrap().remove(name);
            assert!(describe_lines(&without).is_err(), "{name}");
        }
    }
    let error = describe_lines(&[json!("a trace")]).unwrap_err();
    assert!(error.contains("expected 2"), "{error}");
    assert!(describe_corpora("Traceback").unwrap_err().starts_with("line 1 of `texts.py`"));
}
