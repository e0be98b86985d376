//! Tests of the estimated sizes.

use serde_json::json;

use super::size::estimate_bytes;
use super::*;
use crate::schema_lowering::rules;

#[test]
fn a_value_counts_its_texts_its_brackets_and_eight_bytes_per_scalar() {
    for (value, bytes) in [
        (json!(null), 8),
        (json!(true), 8),
        (json!(1.25), 8),
        (json!(""), 2),
        (json!("abc"), 5),
        (json!([]), 2),
        (json!([1, "ab"]), 2 + 8 + 4),
        (json!({}), 2),
        (json!({"k": 1, "lm": ["ab", {}]}), 2 + (1 + 8) + (2 + 2 + 4 + 2)),
    ] {
        assert_eq!(estimate_bytes(&value), bytes, "{value}");
    }
}

#[test]
fn a_schema_pays_for_its_place_and_its_keywords_and_not_for_its_subschemas() {
    let large = json!({"description": "x".repeat(500)});
    for (schema, bytes) in [
        (json!({}), 0),
        (json!(true), 0),
        (json!({"type": "null"}), 4 + 6),
        (json!({"title": "ab", "enum": [1, 2]}), 5 + 4 + 4 + 18),
        (json!({"items": large}), 5),
        (json!({"items": [large]}), 5),
        (json!({"items": true}), 5),
        (json!({"not": large}), 3),
        (json!({"not": true}), 3 + 8),
        (json!({"properties": {"a": large}}), 10),
        (json!({"properties": true}), 10 + 8),
        (json!({"additionalProperties": large}), 20),
        (json!({"additionalProperties": false}), 20 + 8),
        (json!({"patternProperties": {"a": large}}), 17),
        (json!({"anyOf": [large], "$defs": {"a": large}}), 5 + 5),
        (json!({"default": large}), 7 + 2 + 11 + 502),
    ] {
        let at = "/properties/a";
        let paid = at.len() + NODE_BASE_BYTES + bytes;
        for (remaining, left) in [(paid + 1, 1), (paid, 0), (paid - 1, 0)] {
            let mut losses = LossCollector::default();
            let mut reader = SchemaReader {
                root: &schema,
                default_mode: ReadMode { merge_schemas: true, inline_references: true },
                losses: &mut losses,
                remaining_bytes: remaining,
                kept_references: Vec::new(),
                definition_indexes: HashMap::new(),
                definition_names: HashSet::new(),
                open_references: Vec::new(),
            };
            assert_eq!(reader.charge(&schema, at), remaining >= paid, "{schema}");
            assert_eq!(reader.remaining_bytes, left, "{schema}");
        }
    }
}

#[test]
fn a_contradicting_type_gives_way_to_the_values() {
    for (schema, lowered, lost) in [
        (json!({"type": "string", "enum": [1, "a"]}), json!({"type": "string", "enum": ["a"]}), 0),
        (json!({"type": "string", "enum": [1, 2]}), json!({"type": "integer", "enum": [1, 2]}), 1),
    ] {
        let root = json!({"properties": {"a": schema}});
        let mut losses = LossCollector::default();
        let tree = read(&root, &rules::JSON_SCHEMA, &mut losses);
        let written = crate::schema_lowering::write::write_tree(&tree, true);
        assert_eq!(written["properties"]["a"], lowered);
        let replaced = losses.list.iter().filter(|loss| loss.kind == SchemaLossKind::Replaced);
        assert_eq!(replaced.count(), lost, "{:?}", losses.list);
    }
}

#[test]
fn an_exclusive_bound_of_an_old_draft_replaces_its_bound() {
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        for (schema, lowered) in [
            (json!({bound: 5, exclusive: true}), json!({exclusive: 5})),
            (json!({bound: 5, exclusive: false}), json!({bound: 5})),
            (json!({bound: "x", exclusive: true}), json!({})),
            (json!({exclusive: true}), json!({})),
            (json!({bound: 5, exclusive: 6}), json!({bound: 5, exclusive: 6})),
        ] {
            let root = json!({"properties": {"a": schema}});
            let tree = read(&root, &rules::JSON_SCHEMA, &mut LossCollector::default());
            let written = crate::schema_lowering::write::write_tree(&tree, true);
            assert_eq!(written["properties"]["a"], lowered, "{schema}");
        }
    }
}
