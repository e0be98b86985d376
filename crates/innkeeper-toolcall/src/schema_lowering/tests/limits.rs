//! Tests of each limit of schema lowering: at the limit, and one above.

use super::*;
use crate::schema_lowering::lower::{MAX_COPIED_SCHEMAS, MAX_NOTE_BYTES};
use crate::schema_lowering::read::{MAX_DEPTH, MAX_SCHEMA_BYTES};

/// Nested objects; the innermost object has a string at this level.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({"type": "string"}), |inside, _| schema_with_property(inside))
}

/// Numbered optional strings.
fn strings(count: usize) -> Value {
    let all = (0..count).map(|at| (format!("p{at}"), json!({"type": "string"})));
    json!({"type": "object", "properties": all.collect::<Map<_, _>>()})
}

#[test]
fn ten_levels_are_strict_at_openai_and_eleven_are_not() {
    assert!(lower_schema(&nested(10), Dialect::OpenAiStrict).strict);
    let lowered = lower_schema(&nested(11), Dialect::OpenAiStrict);
    assert!(!lowered.strict);
    assert_eq!(lowered.losses[0].pointer, "/properties/a".repeat(10));
}

#[test]
fn five_thousand_properties_are_strict_at_openai_and_one_more_is_not() {
    assert!(lower_schema(&strings(5000), Dialect::OpenAiStrict).strict);
    assert!(!lower_schema(&strings(5001), Dialect::OpenAiStrict).strict);
}

#[test]
fn a_request_to_anthropic_has_twenty_strict_tools() {
    let none = json!({"type": "object"});
    let lowered = lower_schemas(vec![&none; 21], Dialect::AnthropicStrict);
    assert!(lowered[..20].iter().all(|it| it.strict) && !lowered[20].strict);
    assert_eq!(lowered[20].losses[0].to_string(), "`#` `strict`: prevents the strict form");
}

#[test]
fn a_request_to_anthropic_has_24_optional_parameters() {
    assert!(lower_schema(&strings(24), Dialect::AnthropicStrict).strict);
    assert!(!lower_schema(&strings(25), Dialect::AnthropicStrict).strict);
    let (ten, four, five) = (strings(10), strings(4), strings(5));
    let strict = |last| {
        let lowered = lower_schemas([&ten, &ten, last], Dialect::AnthropicStrict);
        lowered.iter().map(|lowered_schema| lowered_schema.strict).collect::<Vec<_>>()
    };
    assert_eq!(strict(&four), [true, true, true]);
    assert_eq!(strict(&five), [true, true, false]);
}

#[test]
fn a_request_to_anthropic_has_sixteen_union_parameters() {
    let unions = |count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("p{at}")).collect();
        let two = json!({"type": ["string", "null"]});
        let all = names.iter().map(|name| (name.clone(), two.clone()));
        json!({"type": "object", "properties": all.collect::<Map<_, _>>(), "required": names})
    };
    assert!(lower_schema(&unions(16), Dialect::AnthropicStrict).strict);
    assert!(!lower_schema(&unions(17), Dialect::AnthropicStrict).strict);
    let (sixteen, single) = (unions(16), unions(1));
    let lowered = lower_schemas([&sixteen, &single], Dialect::AnthropicStrict);
    assert!(lowered[0].strict && !lowered[1].strict);
}

#[test]
fn a_schema_is_read_so_deep_and_what_is_deeper_accepts_everything() {
    assert_eq!(lower_schema(&nested(MAX_DEPTH + 1), Dialect::OpenAi).schema, nested(MAX_DEPTH + 1));
    let lowered = lower_schema(&nested(MAX_DEPTH + 2), Dialect::OpenAi);
    let pointer = "/properties/a".repeat(MAX_DEPTH + 1);
    assert_eq!(lowered.schema.pointer(&pointer), Some(&json!({})));
    let truncation = SchemaLoss { pointer, keyword: String::new(), kind: SchemaLossKind::Widened };
    assert_eq!(lowered.losses, [truncation]);
}

#[test]
fn a_schema_is_read_so_large_and_what_is_behind_accepts_everything() {
    let long = |length: usize| schema_with_property(json!({"description": "x".repeat(length)}));
    let (mut fitting, mut too_much) = (0, MAX_SCHEMA_BYTES);
    while too_much - fitting > 1 {
        let middle = usize::midpoint(fitting, too_much);
        let is_lossless = lower_schema(&long(middle), Dialect::OpenAi).losses.is_empty();
        *(if is_lossless { &mut fitting } else { &mut too_much }) = middle;
    }
    assert!(fitting > MAX_SCHEMA_BYTES - 1000, "{fitting}");
    assert_eq!(lower_schema(&long(fitting), Dialect::OpenAi).schema, long(fitting));
    assert_eq!(lower_schema(&long(too_much), Dialect::OpenAi).schema["properties"]["a"], json!({}));
}

#[test]
fn references_that_double_at_each_step_end_at_the_same_size() {
    let definition = |at: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        (format!("d{at}"), json!({"type": "object", "properties": {"l": next, "r": next}}))
    };
    let mut schema = schema_with_property(json!({"$ref": "#/$defs/d0"}));
    schema["$defs"] = Value::Object((0..50).map(definition).collect());
    let lowered = lower_schema(&schema, Dialect::JsonSchema);
    assert!(lowered.schema.to_string().len() < 4 * MAX_SCHEMA_BYTES);
    assert!(
        lowered.losses.iter().any(|it| it.keyword.is_empty() && it.kind == SchemaLossKind::Widened)
    );
    assert!(lower_schema(&schema, Dialect::OpenAi).losses.len() < 5);
}

#[test]
fn keywords_beside_a_union_are_copied_up_to_a_limit_and_past_it_the_union_becomes_a_description() {
    let schema = |count: usize| {
        let mut schema = strings(count);
        schema["anyOf"] = (0..10).map(|at| json!({"properties": {format!("x{at}"): {}}})).collect();
        schema
    };
    assert_eq!(MAX_COPIED_SCHEMAS, 5000);
    let (lowered, _) = lower_property(schema(499), Dialect::Gemini);
    assert_eq!(lowered["anyOf"].as_array().map(Vec::len), Some(10));
    let (lowered, losses) = lower_property(schema(500), Dialect::Gemini);
    assert_eq!(lowered["properties"].as_object().map(Map::len), Some(500));
    assert_eq!(losses, ["`#/properties/a` `anyOf`: moved into the description"]);
}

#[test]
fn a_note_may_be_so_long_and_a_longer_one_is_dropped() {
    let pattern = |length: usize| json!({"type": "string", "pattern": "x".repeat(length)});
    let (lowered, _) = lower_property(pattern(MAX_NOTE_BYTES), Dialect::Gemini);
    assert!(lowered["description"].is_string());
    let (lowered, losses) = lower_property(pattern(MAX_NOTE_BYTES + 1), Dialect::Gemini);
    assert_eq!(lowered, json!({"type": "string"}));
    assert_eq!(losses, ["`#/properties/a` `pattern`: dropped"]);
}

#[test]
fn a_thousand_losses_are_listed_and_the_others_counted() {
    let keys = |count: usize| {
        let all = (0..count).map(|at| (format!("x{at}"), json!(1)));
        Value::Object(all.collect::<Map<_, _>>())
    };
    let lowered = lower_schema(&keys(MAX_LOSSES), Dialect::OpenAi);
    assert_eq!((lowered.losses.len(), lowered.omitted_losses), (MAX_LOSSES, 0));
    let lowered = lower_schema(&keys(MAX_LOSSES + 1), Dialect::OpenAi);
    assert_eq!((lowered.losses.len(), lowered.omitted_losses), (MAX_LOSSES, 1));
}

#[test]
fn large_schemas_of_every_kind_are_lowered_without_quadratic_time() {
    const MANY: usize = 10_000;
    let all = |make: &dyn Fn(usize) -> Value| (0..MANY).map(make).collect::<Vec<Value>>();
    let loss_count = |make: &dyn Fn(usize) -> Value| {
        (0..MANY).map(|at| (format!("n{at}"), make(at))).collect::<Map<String, Value>>()
    };
    let choices = all(&|at| json!(at));
    let names = all(&|at| json!(format!("n{at}")));
    let schemas = [
        json!({"allOf": [{"properties": loss_count(&|_| json!({}))}, {"properties": loss_count(&|_| json!({}))}]}),
        json!({"allOf": [{"required": names}, {"required": names}]}),
        json!({"oneOf": all(&|at| json!({"properties": {"a": {"const": at}}}))}),
        json!({"oneOf": all(&|at| json!({"properties": {format!("p{at}"): {}}}))}),
        schema_with_property(json!({"allOf": [{"enum": choices}, {"enum": choices}]})),
        schema_with_property(
            json!({"type": "array", "prefixItems": all(&|at| json!({"const": at}))}),
        ),
        schema_with_property(json!({"anyOf": all(&|at| json!({"required": [format!("p{at}")]}))})),
        json!({"properties": loss_count(&|at| json!({"$ref": format!("#/$defs/n{at}/not")})),
            "$defs": loss_count(&|_| json!({"not": {"type": "null"}}))}),
        json!({"properties": all(&|at| json!(at)).iter().map(|at| (format!("${at}"), json!({}))).collect::<Map<_, _>>()}),
    ];
    for schema in &schemas {
        for dialect in
            [Dialect::OpenAi, Dialect::OpenAiStrict, Dialect::Gemini, Dialect::JsonSchema]
        {
            let lowered = lower_schema(schema, dialect);
            assert!(lowered.schema["properties"].is_object(), "{dialect:?}");
        }
    }
}

#[test]
fn every_keyword_with_subschemas_counts_as_one_level() {
    for (place, wrap) in [
        ("/not", (|inside| json!({"not": inside})) as fn(Value) -> Value),
        ("/contains", |inside| json!({"contains": inside})),
        ("/patternProperties/x", |inside| json!({"patternProperties": {"x": inside}})),
        ("/dependentSchemas/x", |inside| json!({"dependentSchemas": {"x": inside}})),
        ("/dependencies/x", |inside| json!({"dependencies": {"x": inside}})),
        ("/properties/x", |inside| json!({"properties": {"x": inside}})),
        ("/additionalProperties", |inside| json!({"additionalProperties": inside})),
        ("/items", |inside| json!({"items": inside})),
        ("/prefixItems/0", |inside| json!({"prefixItems": [inside]})),
        ("/items/0", |inside| json!({"items": [inside]})),
        ("/additionalItems", |inside| json!({"items": [], "additionalItems": inside})),
        ("/anyOf/0", |inside| json!({"anyOf": [inside]})),
        ("/oneOf/0", |inside| json!({"oneOf": [inside]})),
        ("/allOf/0", |inside| json!({"allOf": [inside]})),
    ] {
        let nested = (0..MAX_DEPTH + 5).fold(json!({"minimum": 1}), |inside, _| wrap(inside));
        let lowered = lower_schema(&schema_with_property(nested), Dialect::JsonSchema);
        let truncated: Vec<&str> = lowered
            .losses
            .iter()
            .filter(|loss| loss.kind == SchemaLossKind::Widened && loss.keyword.is_empty())
            .map(|loss| loss.pointer.as_str())
            .collect();
        assert_eq!(truncated, [format!("/properties/a{}", place.repeat(MAX_DEPTH))]);
    }
}
