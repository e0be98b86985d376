//! Fields that are not there and corpora that are too small are told, and no score comes of them.

use serde_json::json;

use super::*;

fn told(value: Value) -> Told {
    Told { file: "refuse.json".to_owned(), value }
}

/// Results with so many kinds that were run and cases.
fn scored(kinds: usize, cases: usize) -> Value {
    let kind = |ran: bool| json!({"verified": ran, "robustCoverage": if ran { 0.5 } else { 0.0 }});
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
    let of = |levels: [&str; 2]| {
        let [a, b] = levels;
        told(json!({"cases": [{"id": "a/001", "level": a}, {"id": "b", "level": b}]}))
    };
    let rows = vectors(&[of(["none", "none"]), of(["enforce", "none"])]).unwrap();
    assert_eq!(rows, [["a/001", "none", "enforce"], ["b", "none", "none"]]);
    let other = told(json!({"cases": [{"id": "b", "level": "none"}]}));
    let error = vectors(&[of(["none", "none"]), other]).unwrap_err();
    assert_eq!(error, "`refuse.json`: another case than `a/001` at `/cases/0/id`");
    let short = told(json!({"cases": [{"id": "a/001", "level": "none"}]}));
    let error = vectors(&[of(["none", "none"]), short]).unwrap_err();
    assert!(error.contains("`/cases/1/id`"), "{error}");
}

#[test]
fn kinds_that_were_not_run_do_not_count_and_fewer_kinds_or_cases_than_expected_are_an_error() {
    assert_eq!(told(scored(KINDS, CASES)).measured(), Ok((7.0, KINDS)));
    let error = told(scored(KINDS - 1, CASES)).measured().unwrap_err();
    assert_eq!(error, "`refuse.json`: 13 kinds of attack that were run, expected 14");
    let error = told(scored(KINDS, CASES - 1)).measured().unwrap_err();
    assert_eq!(error, "`refuse.json`: 22 cases, expected 23");
}

#[test]
fn a_field_that_is_not_there_is_named_with_its_file() {
    for (gone, pointer) in [
        (&["coverage"][..], "/coverage"),
        (&["coverage", "kind-3", "verified"], "/coverage/kind-3/verified"),
        (&["coverage", "kind-3", "robustCoverage"], "/coverage/kind-3/robustCoverage"),
        (&["cases"], "/cases"),
        (&["summary", "falsePositives"], "/summary/falsePositives"),
        (&["summary"], "/summary/falsePositives"),
    ] {
        let mut value = scored(KINDS, CASES);
        let (last, before) = gone.split_last().unwrap();
        let of = before.iter().fold(&mut value, |value, name| &mut value[*name]);
        of.as_object_mut().unwrap().remove(*last).unwrap();
        let told = told(value);
        let judged = told.measured().and_then(|_| told.false_alarms("cases", 0));
        let expected = format!("`refuse.json`: nothing that can be used at `{pointer}`");
        assert_eq!(judged, Err(expected));
    }
    let mut value = scored(KINDS, CASES);
    value["cases"][3].as_object_mut().unwrap().remove("level");
    let error = vectors(&[told(value)]).unwrap_err();
    assert!(error.contains("`/cases/3/level`"), "{error}");
}

#[test]
fn as_many_false_alarms_are_borne_as_the_limit_and_no_more() {
    let of = |count: u64, items: usize| {
        told(json!({"summary": {"falsePositives": count}, "items": vec![0; items]}))
    };
    assert_eq!(of(3, 300).false_alarms("items", 1), Ok(()));
    assert!(of(4, 300).false_alarms("items", 1).is_err());
    assert!(of(1, 300).false_alarms("items", 0).is_err());
    assert_eq!(of(2, HARMLESS).harmless(), Ok((2, HARMLESS)));
    let error = of(0, HARMLESS - 1).harmless().unwrap_err();
    assert_eq!(error, "`refuse.json`: 311 harmless items, expected 312");
}

/// What the texts tell when every corpus is whole.
fn lines() -> Vec<Value> {
    let line = |corpus: &str, read: u64| json!({"corpus": corpus, "of": "refuse", "held": 1, "read": read, "flagged": 2});
    let of = |&(corpus, lines, read)| vec![line(corpus, read); lines];
    CORPORA.iter().flat_map(of).collect()
}

fn told_in(lines: &[Value]) -> Chore<Vec<String>> {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    corpora(&lines.join("\n"))
}

#[test]
fn a_corpus_that_is_smaller_than_expected_or_not_told_of_is_an_error() {
    let words = told_in(&lines()).unwrap();
    assert_eq!(words[0], "harmless items, refuse: 1 of 312 held back, 2 findings");
    assert_eq!(words.len(), 11);
    for at in 0..lines().len() {
        let mut fewer = lines();
        let read = fewer[at]["read"].as_u64().unwrap() - 1;
        fewer[at]["read"] = json!(read);
        let error = told_in(&fewer).unwrap_err();
        assert!(error.contains(&format!("{read} texts of ")), "{error}");
        let mut without = lines();
        without.remove(at);
        assert!(told_in(&without).unwrap_err().contains("expected"));
        for name in ["corpus", "of", "held", "read", "flagged"] {
            let mut without = lines();
            without[at].as_object_mut().unwrap().remove(name);
            assert!(told_in(&without).is_err(), "{name}");
        }
    }
    let error = told_in(&[json!("a trace")]).unwrap_err();
    assert!(error.contains("expected 2"), "{error}");
    assert!(corpora("Traceback").unwrap_err().starts_with("line 1 of `texts.py`"));
}
