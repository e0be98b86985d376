//! Values are read level by level, each byte once.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[test]
fn the_form_for_comparisons_sorts_members_and_keeps_digits() {
    let text = r#"{"b": 1.0, "a": [1e400, "\u0041\/"], "c": {}}"#;
    assert_eq!(canonical(&raw(text)), r#"{"a":[1e400,"A/"],"b":1.0,"c":{}}"#);
}

#[test]
fn a_very_deep_value_is_compared_as_text() {
    let deep = deep(5000);
    assert_eq!(canonical(&deep), deep.get());
}

/// Returns arrays in arrays in arrays, with a number inside.
fn deep(levels: usize) -> Box<RawValue> {
    raw(&format!("{}1{}", "[".repeat(levels), "]".repeat(levels)))
}

#[test]
fn a_level_of_a_value_has_its_items_and_its_members() {
    let raw = raw(r#" {"a\u0041" : [1, {"b]": "}\""}, [ ], "\ud800"], "c":null } "#);
    let document = Document::new(&raw);
    let Node::Object(members) = document.root().node() else { panic!("{document:?}") };
    let [(a, items), (c, null)] = &members[..] else { panic!("{members:?}") };
    assert_eq!((a.as_str(), c.as_str(), null.text()), ("aA", "c", "null"));
    let Node::Array(items) = items.node() else { panic!("{items:?}") };
    let items: Vec<_> = items.map(Value::text).collect();
    assert_eq!(items, ["1", r#"{"b]": "}\""}"#, "[ ]", r#""\ud800""#]);
}

#[expect(clippy::disallowed_methods, reason = "the time of work, which no test can pause")]
fn time(work: impl Fn()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// It takes 128 times as long if each level reads everything below it again.
#[test]
fn a_deep_value_takes_about_the_time_of_a_flat_one() {
    let [flat, other_flat] = ["0", "1"].map(|end| format!("[{}{end}]", "0,".repeat(250_000)));
    let [flat, other_flat] = [raw(&flat), raw(&other_flat)];
    let [deep, other_deep] = [deep(250_000), deep(250_001)];
    let work = |value: &RawValue, other: &RawValue| {
        assert_eq!(canonical(value), value.get());
        assert_eq!(crate::differences(value, other, &|_| false, 9).len(), 1);
    };
    let (mut best_flat, mut best_deep) = (Duration::MAX, Duration::MAX);
    for _ in 0..3 {
        best_flat = best_flat.min(time(|| work(&flat, &other_flat)));
        best_deep = best_deep.min(time(|| work(&deep, &other_deep)));
        if best_deep < best_flat * 10 {
            return;
        }
    }
    panic!("{best_deep:?} for a deep value, {best_flat:?} for a flat one");
}

#[test]
fn indentation_grows_to_a_limit_and_no_further() {
    let text = indent(&deep(MAX_DEPTH + 2), 0);
    let last = format!("\n{}[[1]]\n", "  ".repeat(MAX_DEPTH));
    assert!(text.get().contains(&last), "{text}");
    assert_eq!(on_one_line(&text), deep(MAX_DEPTH + 2).get());
    let text = indent(&deep(250_000), 3);
    assert_eq!(text.get().lines().count(), 2 * MAX_DEPTH + 1);
    assert_eq!(on_one_line(&text), deep(250_000).get());
}

#[test]
fn indentation_changes_only_blanks_between_tokens() {
    let text = r#"{"a":[1,{"b c":"x, {\"y\": [\\"}],"d":{ },"e":[]}"#;
    let expected = "{\n  \"a\": [\n    1,\n    {\n      \"b c\": \"x, {\\\"y\\\": [\\\\\"\n    \
                    }\n  ],\n  \"d\": {},\n  \"e\": []\n}";
    let indented = indent(&raw(text), 0);
    assert_eq!(indented.get(), expected);
    assert_eq!(on_one_line(&indented), text.replace("{ }", "{}"));
}

fn json_values() -> impl Strategy<Value = serde_json::Value> {
    let string = || prop_oneof!["[\\\\\"{}\\[\\]:,ä☕\n]{0,6}", "[a-c]{1,2}"];
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        string().prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 60, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::vec((string(), inner), 0..5)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Returns the form for comparisons of a parsed value.
fn sorted(value: &serde_json::Value) -> String {
    let joined = |items: Vec<String>| items.join(",");
    match value {
        serde_json::Value::Array(items) => {
            format!("[{}]", joined(items.iter().map(sorted).collect()))
        }
        serde_json::Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let member = |(key, value)| format!("{}:{}", json!(key), sorted(value));
            format!("{{{}}}", joined(members.into_iter().map(member).collect()))
        }
        other => other.to_string(),
    }
}

proptest! {
    #[test]
    fn the_form_for_comparisons_is_that_of_the_parsed_value(
        value in json_values(),
        is_pretty in any::<bool>(),
    ) {
        let text = if is_pretty { format!("{value:#}") } else { value.to_string() };
        let [written, sorted_text] = [raw(&text), raw(&sorted(&value))];
        prop_assert_eq!(canonical(&written), sorted_text.get());
        let indented = indent(&written, 0);
        prop_assert_eq!(indented.get(), format!("{value:#}"));
        prop_assert_eq!(crate::differences(&written, &sorted_text, &|_| false, 9), []);
    }
}
