//! Tests of the selection of a value.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const TEXT: &str = r#" {"a": [1.50, {"b/c": "x\u00e9", "~": null}], "" : true, "a": [2, 3.0e1] } "#;

fn selected(text: &str, pointer: &str) -> String {
    text[select(text, pointer).unwrap().range].to_owned()
}

#[test]
fn a_pointer_selects_the_bytes_of_a_value() {
    let text = TEXT.replace(", \"a\": [2, 3.0e1]", "");
    let text = text.as_str();
    assert_eq!(selected(text, ""), text.trim());
    assert_eq!(selected(text, "/a/0"), "1.50");
    assert_eq!(selected(text, "/a/1/b~1c"), r#""x\u00e9""#);
    assert_eq!(selected(text, "/a/1/~0"), "null");
    assert_eq!(selected(text, "/"), "true");
}

#[test]
fn of_members_with_one_name_the_last_is_selected() {
    assert_eq!(selected(TEXT, "/a/1"), "3.0e1");
}

#[test]
fn the_type_and_the_size_of_a_value_are_returned() {
    let kind = |text: &str| {
        let selection = select(text, "").unwrap();
        (selection.kind, selection.count, selection.keys)
    };
    assert_eq!(kind("[1,2]"), ("array", Some(2), None));
    let keys = vec!["k".to_owned(), "é".to_owned()];
    assert_eq!(kind(r#"{"k":1,"\u00e9":{"x":1}}"#), ("object", Some(2), Some(keys)));
    for (text, name) in
        [("\"\"", "string"), ("-1", "number"), ("true", "boolean"), ("null", "null")]
    {
        assert_eq!(kind(text), (name, None, None));
    }
}

#[test]
fn the_keys_of_a_large_object_have_a_limit() {
    let object = |members: usize, key_bytes: usize| {
        let keys = (0..members).map(|index| format!("{index:0key_bytes$}"));
        let object: serde_json::Map<_, _> = keys.map(|key| (key, json!(0))).collect();
        let selection = select(&Value::from(object).to_string(), "").unwrap();
        (selection.count.unwrap(), selection.keys.unwrap().len())
    };
    assert_eq!(object(MAX_KEYS, 3), (MAX_KEYS, MAX_KEYS));
    assert_eq!(object(MAX_KEYS + 1, 3), (MAX_KEYS + 1, MAX_KEYS));
    assert_eq!(object(3, MAX_KEY_BYTES / 2), (3, 2));
}

#[test]
fn a_pointer_without_a_value_names_the_last_value_before() {
    let error = |pointer: &str| select(TEXT, pointer).unwrap_err().to_string();
    assert_eq!(
        error("/b/c"),
        r#"no value at `/b`: the result is an object with the keys "a", "", "a""#
    );
    assert_eq!(error("/a/2"), "no value at `/a/2`: `/a` is an array with 2 elements");
    assert_eq!(error("/a/1/x"), "no value at `/a/1/x`: `/a/1` is a number");
    for index in ["01", "-1", "+1", "1.0", "", "-", "99999999999999999999999"] {
        assert!(error(&format!("/a/{index}")).contains("array"), "{index}");
    }
}

#[test]
fn an_invalid_pointer_and_a_text_that_is_not_json_are_errors() {
    for pointer in ["a", "#/a", "/~", "/~2", "/a~"] {
        assert_eq!(select(TEXT, pointer), Err(SelectionError::InvalidPointer), "{pointer}");
    }
    let nested = format!("{}1{}", "[".repeat(50), "]".repeat(50));
    assert_eq!(selected(&nested, &"/0".repeat(MAX_POINTER_TOKENS)).len(), 1 + 2 * (50 - 32));
    let too_long = select(&nested, &"/0".repeat(MAX_POINTER_TOKENS + 1));
    assert_eq!(too_long, Err(SelectionError::InvalidPointer));
    let long = |bytes: usize| select("{}", &format!("/{}", "x".repeat(bytes - 1))).unwrap_err();
    assert!(matches!(long(MAX_POINTER_BYTES), SelectionError::NotFound { .. }));
    assert_eq!(long(MAX_POINTER_BYTES + 1), SelectionError::InvalidPointer);
    for text in ["", "plain", "{\"a\": 1} x", "{\"a\": tru}", "{\"a\": 1"] {
        assert_eq!(select(text, "/a"), Err(SelectionError::NotJson), "{text}");
    }
}

proptest! {
    #[test]
    fn a_selection_is_the_value_that_the_parsed_tree_has(
        keys in prop::collection::vec("[a-c/~é\"]{0,3}", 1..4),
        index in 0_usize..3,
    ) {
        let mut value = json!([1, "x", {"y": null}]);
        for key in &keys {
            value = json!({ "before": 0, key.as_str(): value, "z": [] });
        }
        let tokens = keys.iter().rev().map(|key| key.replace('~', "~0").replace('/', "~1"));
        let mut pointer: String = tokens.map(|token| format!("/{token}")).collect();
        pointer.push_str(&format!("/{index}"));
        let text = serde_json::to_string_pretty(&value).unwrap();
        let found: Value = serde_json::from_str(&selected(&text, &pointer)).unwrap();
        prop_assert_eq!(Some(&found), value.pointer(&pointer));
    }
}
