//! Properties of comparisons of arbitrary definitions.

use proptest::prelude::*;
use serde_json::Map;

use super::super::canonical;
use super::*;

/// Generates values with the members of definitions, also in wrong places.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..4_i32).prop_map(Value::from),
        prop::sample::select(vec!["string", "object", "a", "Reads.", "Reads .", "x\u{200b}"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let keys = vec![
            "type",
            "properties",
            "required",
            "enum",
            "items",
            "anyOf",
            "description",
            "title",
            "default",
            "minimum",
            "maxLength",
            "additionalProperties",
            "$defs",
            "$ref",
            "a",
            "if",
            "readOnlyHint",
            "uniqueItems",
        ];
        let member = (prop::sample::select(keys), inner.clone());
        let object = prop::collection::vec(member, 0..5).prop_map(|members| {
            let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
            Value::Object(members.collect())
        });
        prop_oneof![prop::collection::vec(inner, 0..4).prop_map(Value::from), object]
    })
}

/// Generates values with strings and names of arbitrary characters.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!(null)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let object = prop::collection::btree_map("[a-c\\\\\"{}\n ]{0,2}", inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            object.prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn definition() -> impl Strategy<Value = Map<String, Value>> {
    let keys =
        vec!["title", "description", "inputSchema", "outputSchema", "annotations", "_meta", "x"];
    let members = prop::collection::vec((prop::sample::select(keys), value()), 0..5);
    members.prop_map(|members| {
        let mut tool = Map::new();
        tool.insert("name".to_owned(), json!("read"));
        tool.extend(members.into_iter().map(|(key, value)| (key.to_owned(), value)));
        tool
    })
}

fn lock_with_tool(definition: &str) -> Lock {
    let mut server = server("one", &[]);
    server.tools.insert("read".to_owned(), PinnedTool::new(&raw(definition)));
    lock([("one", server)])
}

/// Returns the value with the members of every object in reverse order.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().rev();
            Value::Object(members.map(|(key, value)| (key.clone(), reversed(value))).collect())
        }
        Value::Array(items) => items.iter().map(reversed).collect(),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn order_and_white_space_are_no_change(tool in definition()) {
        let tool = Value::Object(tool);
        let pinned = lock_with_tool(&tool.to_string());
        let again = lock_with_tool(&serde_json::to_string_pretty(&reversed(&tool)).unwrap());
        prop_assert_eq!(descriptions(&pinned.compare(&pinned)), [""; 0]);
        prop_assert_eq!(descriptions(&pinned.compare(&again)), [""; 0]);
    }

    #[test]
    fn the_canonical_form_means_the_same_and_is_its_own(value in any_value()) {
        let given = serde_json::to_string_pretty(&value).unwrap();
        let form = canonical::compact(&given);
        prop_assert_eq!(serde_json::from_str::<Value>(&form).unwrap(), value);
        prop_assert_eq!(&canonical::compact(&form), &form);
        prop_assert_eq!(&canonical::compact(&canonical::pretty(&given)), &form);
    }

    #[test]
    fn every_change_of_a_definition_is_told(before in definition(), after in definition()) {
        let (old, new) = (Value::Object(before), Value::Object(after));
        let changes = lock_with_tool(&old.to_string()).compare(&lock_with_tool(&new.to_string()));
        prop_assert_eq!(changes.is_empty(), old == new, "{} to {}", old, new);
        let unexplained = changes.iter().any(|change| change.description == "definition changed");
        prop_assert!(!unexplained, "{} to {}", old, new);
    }
}
