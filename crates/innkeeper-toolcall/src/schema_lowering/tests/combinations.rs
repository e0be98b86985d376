//! Tests of combined schemas over a grid of keywords and values, judged by an independent
//! validator.

use jsonschema::Validator;

use super::*;

/// Schemas with one to three keywords. Together they have each kind of keyword that two schemas
/// can combine.
fn parts() -> Vec<Value> {
    vec![
        json!({}),
        json!({"type": "integer"}),
        json!({"type": ["string", "null"]}),
        json!({"type": "number", "minimum": 2}),
        json!({"minimum": 1, "maximum": 4}),
        json!({"minimum": 0, "maximum": 3}),
        json!({"exclusiveMinimum": 1, "exclusiveMaximum": 4}),
        json!({"exclusiveMinimum": 0, "exclusiveMaximum": 3}),
        json!({"minLength": 1, "maxLength": 2}),
        json!({"minLength": 2, "maxLength": 3}),
        json!({"enum": [1, 2, "ab", null]}),
        json!({"enum": [2, 3, "ab", "abc"]}),
        json!({"minItems": 1, "maxItems": 2, "uniqueItems": true}),
        json!({"minItems": 2, "maxItems": 3, "uniqueItems": false}),
        json!({"type": ["array", "integer"], "items": {"type": "integer"}}),
        json!({"items": {"minimum": 2}}),
        json!({"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}),
        json!({"properties": {"x": {"type": "integer"}}, "required": ["x"]}),
        json!({"properties": {"x": {"minimum": 2}, "y": {}}, "additionalProperties": true}),
        json!({"properties": {"x": {}, "y": {}}, "additionalProperties": false}),
        json!({"additionalProperties": {"type": ["integer", "null"]}}),
        json!({"additionalProperties": {"minimum": 2}}),
        json!({"required": ["y", "z"]}),
        json!({"minProperties": 1, "maxProperties": 2}),
        json!({"minProperties": 2, "maxProperties": 3}),
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"anyOf": [{"minimum": 3}, {"type": "null"}]}),
        json!({"oneOf": [{"type": "integer"}, {"minimum": 3}]}),
        json!({"not": {"type": "null"}}),
        json!({"$ref": "#/$defs/low"}),
        json!({"$ref": "#/$defs/low", "minimum": 1}),
    ]
}

fn values() -> Vec<Value> {
    let mut values: Vec<Value> = (0..6).map(Value::from).collect();
    values.extend([json!(1.5), json!(null), json!(true)]);
    values.extend(["", "a", "ab", "abc", "abcd"].map(Value::from));
    values.extend([
        json!([]),
        json!([1]),
        json!([2]),
        json!([2, 2]),
        json!([1, "a"]),
        json!([2, "a"]),
        json!(["a", "a", "b"]),
        json!([2, 3, 4]),
        json!([2, 3, 4, 5]),
        json!({}),
        json!({"x": 1}),
        json!({"x": 2}),
        json!({"x": "a", "y": 1}),
        json!({"x": 2, "y": 2}),
        json!({"y": 1, "z": 3}),
        json!({"y": null, "z": 2}),
        json!({"y": null, "z": "a"}),
        json!({"x": 2, "y": 2, "z": 2}),
        json!({"x": 2, "y": 2, "z": 2, "w": 2}),
    ]);
    values
}

fn validator(schema: &Value) -> Validator {
    jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{error}: {schema}"))
}

/// A schema with the definition that the parts refer to.
fn with_definition(mut schema: Value) -> Value {
    schema["$defs"] = json!({"low": {"maximum": 3}});
    schema
}

/// The values of the property `a` that the schema accepts, as JSON.
fn accepted(schema: &Value) -> Vec<String> {
    let validator = validator(schema);
    let is_accepted = |value: &Value| validator.is_valid(&json!({"a": value}));
    values().iter().filter(|value| is_accepted(value)).map(Value::to_string).collect()
}

/// Whether a loss is reported that may make the lowered schema accept more values.
fn may_widen(lowered: &LoweredSchema) -> bool {
    lowered.losses.iter().any(|loss| match loss.kind {
        SchemaLossKind::Widened | SchemaLossKind::Described | SchemaLossKind::Dropped => true,
        SchemaLossKind::Replaced => loss.keyword == "oneOf",
        SchemaLossKind::Narrowed | SchemaLossKind::NotStrict => false,
    })
}

fn is_narrowed(lowered: &LoweredSchema) -> bool {
    lowered.losses.iter().any(|loss| loss.kind == SchemaLossKind::Narrowed)
}

/// The schemas of a property that both branches of the root's `allOf` declare are merged in every
/// dialect.
#[test]
fn two_schemas_of_one_property_accept_together_what_both_accept() {
    let mut wrong = Vec::new();
    for first in parts() {
        for second in parts() {
            let branch = |part: &Value| json!({"properties": {"a": part}});
            let schema = with_definition(json!({"allOf": [branch(&first), branch(&second)]}));
            let both = accepted(&schema);
            let lowered = lower_schema(&schema, Dialect::JsonSchema);
            let merged = accepted(&lowered.schema);
            let lost: Vec<&String> = both.iter().filter(|value| !merged.contains(value)).collect();
            let added: Vec<&String> = merged.iter().filter(|value| !both.contains(value)).collect();
            if !lost.is_empty() || !added.is_empty() && !may_widen(&lowered) {
                wrong.push(format!("{first} and {second}: without {lost:?}, with {added:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Gemini and Ollama get no `allOf`, no `oneOf` and no keywords beside `anyOf`.
#[test]
fn a_combined_property_accepts_the_same_values_or_its_losses_say_otherwise() {
    let with = |mut schema: Value, key: &str, branches: Vec<&Value>| {
        schema[key] = json!(branches);
        schema
    };
    let mut wrong = Vec::new();
    let mut check = |property: Value, dialect: Dialect| {
        let schema = with_definition(schema_with_property(property));
        let original = accepted(&schema);
        let lowered = lower_schema(&schema, dialect);
        let now = accepted(&lowered.schema);
        let lost: Vec<&String> = original.iter().filter(|value| !now.contains(value)).collect();
        let added: Vec<&String> = now.iter().filter(|value| !original.contains(value)).collect();
        if !lost.is_empty() && !is_narrowed(&lowered) || !added.is_empty() && !may_widen(&lowered) {
            let property = &schema["properties"]["a"];
            wrong.push(format!("{dialect:?}: {property} lost {lost:?}, added {added:?}"));
        }
    };
    for (at, first) in parts().iter().enumerate() {
        for (other_at, second) in parts().iter().enumerate() {
            let both = vec![first, second];
            check(with(json!({}), "allOf", both.clone()), Dialect::Gemini);
            let boolean = json!({"type": "boolean"});
            check(with(first.clone(), "anyOf", vec![second, &boolean]), Dialect::Gemini);
            if at <= other_at {
                check(with(json!({}), "allOf", both.clone()), Dialect::Ollama);
                check(with(json!({}), "anyOf", both.clone()), Dialect::Gemini);
                check(with(json!({}), "oneOf", both), Dialect::Ollama);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_root_is_closed_only_if_there_are_branches_and_all_are_closed() {
    let closed = |name: &str| json!({"type": "object", "properties": {name: {}}, "additionalProperties": false});
    let open = json!({"type": "object", "properties": {"o": {}}});
    for (schema, additional) in [
        (json!({"anyOf": [closed("a"), closed("b")]}), json!(false)),
        (json!({"oneOf": [closed("a")]}), json!(false)),
        (json!({"anyOf": [closed("a"), open]}), json!(null)),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), json!(null)),
        (json!({"anyOf": [closed("a")], "additionalProperties": true}), json!(true)),
    ] {
        let lowered = lower_schema(&schema, Dialect::JsonSchema).schema;
        assert_eq!(lowered["additionalProperties"], additional, "{schema}");
    }
}

#[test]
fn a_property_of_the_root_is_required_by_its_only_branch_or_by_all_branches() {
    let requires = json!({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]});
    let allows = json!({"properties": {"a": {}, "b": {}}});
    let own = json!({"a": {"type": "integer"}});
    for (branches, required) in [
        (vec![&requires], json!(["a", "b"])),
        (vec![&allows], json!(null)),
        (vec![&requires, &requires], json!(["b"])),
        (vec![&requires, &allows], json!(null)),
    ] {
        let schema = json!({"properties": own, "anyOf": branches});
        let lowered = lower_schema(&schema, Dialect::JsonSchema).schema;
        assert_eq!(lowered["required"], required, "{schema}");
        assert_eq!(lowered["properties"]["a"], own["a"]);
    }
}

#[test]
fn a_union_beside_another_union_stands_in_the_description() {
    let schema = json!({
        "anyOf": [{"type": "string"}, {"type": "integer"}], "oneOf": [{"type": "null"}, {"const": 1}]
    });
    let (lowered, losses) = lower_property(schema, Dialect::Gemini);
    let text = r#"(oneOf: [{"type":"null"},{"enum":[1]}])"#;
    assert_eq!(
        lowered,
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}], "description": text})
    );
    assert!(losses.contains(&"`#/properties/a` `oneOf`: moved into the description".to_owned()));
    let alone = json!({"oneOf": [{"type": "null"}, {"type": "integer"}]});
    let (lowered, losses) = lower_property(alone.clone(), Dialect::Gemini);
    assert_eq!(lowered["anyOf"], alone["oneOf"]);
    assert_eq!(losses, ["`#/properties/a` `oneOf`: replaced"]);
}

#[test]
fn the_branches_of_a_union_repeat_no_default_of_the_whole() {
    let schema = json!({
        "minimum": 2, "default": 3, "anyOf": [{"type": "integer"}, {"type": "number", "default": 4}]
    });
    let (lowered, _) = lower_property(schema, Dialect::Gemini);
    let integer = json!({"type": "integer", "minimum": 2});
    let number = json!({"type": "number", "minimum": 2, "description": "(default: 4)"});
    assert_eq!(lowered, json!({"anyOf": [integer, number], "description": "(default: 3)"}));
}

#[test]
fn a_nullable_union_has_a_branch_for_null() {
    let schema = |key: &str, branches: Value| json!({key: branches, "nullable": true});
    let types =
        |names: &[&str]| json!(names.iter().map(|name| json!({"type": name})).collect::<Vec<_>>());
    for key in ["anyOf", "oneOf"] {
        let (lowered, _) =
            lower_property(schema(key, types(&["string", "integer"])), Dialect::JsonSchema);
        assert_eq!(lowered[key], types(&["string", "integer", "null"]));
        let (lowered, _) =
            lower_property(schema(key, types(&["string", "null"])), Dialect::JsonSchema);
        assert_eq!(lowered[key], types(&["string", "null"]));
    }
    let not = json!({"not": {"type": "string"}, "nullable": true});
    let (lowered, _) = lower_property(not, Dialect::JsonSchema);
    assert_eq!(lowered, json!({"not": {"type": "string"}}));
}

#[test]
fn the_required_properties_of_branches_are_described_only_if_they_differ_and_each_has_some() {
    let branch =
        |required: &[&str]| json!({"properties": {"a": {}, "b": {}}, "required": required});
    for (branches, description) in [
        (vec![branch(&["a"]), branch(&["b"])], json!("(anyOf: a, or b)")),
        (vec![branch(&["a"]), branch(&["b"]), branch(&["a"])], json!("(anyOf: a, or b, or a)")),
        (vec![branch(&["a"]), branch(&["a", "b"])], json!("(anyOf: a, or a + b)")),
        (vec![branch(&["a"]), branch(&["a"])], json!(null)),
        (vec![branch(&["a"]), branch(&[])], json!(null)),
        (vec![branch(&["a"])], json!(null)),
        (vec![branch(&[]), branch(&[])], json!(null)),
    ] {
        let lowered = lower_schema(&json!({"anyOf": branches}), Dialect::JsonSchema).schema;
        assert_eq!(lowered["description"], description, "{branches:?}");
    }
}

#[test]
fn a_property_with_different_schemas_in_the_branches_of_the_root_is_a_union() {
    let (string, integer, none) =
        (json!({"type": "string"}), json!({"type": "integer"}), json!({"type": "null"}));
    let (first, second) = (json!({"$ref": "#/$defs/first"}), json!({"$ref": "#/$defs/second"}));
    let union = json!({"anyOf": [string, integer]});
    for (schemas, lowered) in [
        (vec![&string, &integer], union.clone()),
        (vec![&string, &string], string.clone()),
        (vec![&string, &integer, &none], json!({"anyOf": [string, integer, none]})),
        (vec![&string, &integer, &string], union.clone()),
        (vec![&union, &none], json!({"anyOf": [string, integer, none]})),
        (vec![&none, &union], json!({"anyOf": [none, union]})),
        (vec![&first, &second], json!({"anyOf": [first, second]})),
    ] {
        let branch = |schema: &&Value| json!({"properties": {"a": schema}});
        let branches: Vec<Value> = schemas.iter().map(branch).collect();
        let schema = json!({
            "anyOf": branches,
            "$defs": {
                "first": {"type": "object", "properties": {"next": first}},
                "second": {"type": "object", "properties": {"next": second}},
            },
        });
        let now = lower_schema(&schema, Dialect::OpenAi).schema;
        assert_eq!(now["properties"]["a"], lowered, "{schema}");
    }
}

#[test]
fn each_branch_of_several_strict_types_has_the_values_and_keywords_of_its_type() {
    let schema = json!({
        "type": ["string", "array"], "enum": ["a", ["b"], 1], "items": {"type": "string"},
        "minItems": 1, "pattern": "^a", "description": "D"
    });
    let (lowered, _) = lower_property(schema, Dialect::OpenAiStrict);
    let text = json!({"type": "string", "enum": ["a"], "pattern": "^a"});
    let list =
        json!({"type": "array", "enum": [["b"]], "items": {"type": "string"}, "minItems": 1});
    assert_eq!(lowered, json!({"description": "D", "anyOf": [text, list]}));
}

#[test]
fn a_merge_reports_exactly_what_one_schema_cannot_express() {
    let (integer, string) = (json!({"type": "integer"}), json!({"type": "string"}));
    let (list, least) = (json!({"type": "array"}), json!({"minimum": 2}));
    let items = |items: &Value| json!({"items": items});
    let tuple = |parts: &[&Value]| json!({"prefixItems": parts});
    let tuple_and_items = |parts: &[&Value]| json!({"prefixItems": parts, "items": integer});
    let others = |schema: &Value| json!({"additionalProperties": schema});
    let named = |name: &str| json!({"properties": {name: {}}});
    let closed = json!({"properties": {"x": {}}, "additionalProperties": false});
    for (first, second, lost) in [
        (items(&integer), items(&least), ""),
        (items(&string), items(&integer), "items"),
        (tuple(&[&integer]), tuple(&[&least]), ""),
        (tuple(&[&integer]), tuple(&[&string]), "type"),
        (tuple(&[&integer]), list.clone(), ""),
        (list, tuple(&[&integer]), ""),
        (tuple(&[&integer]), items(&integer), "items"),
        (items(&integer), tuple(&[&integer]), "items"),
        (tuple(&[&integer]), tuple(&[&integer, &integer]), ""),
        (tuple_and_items(&[&integer]), tuple(&[&integer]), ""),
        (tuple_and_items(&[&integer]), tuple(&[&integer, &integer]), "items"),
        (tuple(&[&integer, &integer]), tuple_and_items(&[&integer]), "items"),
        (tuple(&[&integer]), tuple_and_items(&[&integer, &integer]), ""),
        (tuple_and_items(&[&integer, &integer]), tuple(&[&integer]), ""),
        (others(&integer), others(&least), ""),
        (others(&integer), others(&string), "type"),
        (others(&integer), named("x"), "additionalProperties"),
        (named("x"), others(&integer), "additionalProperties"),
        (closed.clone(), named("x"), ""),
        (named("x"), closed.clone(), ""),
        (closed.clone(), named("y"), "additionalProperties"),
        (closed.clone(), closed, ""),
        (integer.clone(), string.clone(), "type"),
        (integer, least, ""),
    ] {
        let branch = |part: &Value| json!({"properties": {"a": part}});
        let schema = json!({"allOf": [branch(&first), branch(&second)]});
        let lowered = lower_schema(&schema, Dialect::JsonSchema);
        let losses: Vec<&str> = lowered.losses.iter().map(|loss| loss.keyword.as_str()).collect();
        assert_eq!(losses.join(" "), lost, "{schema}");
    }
}

#[test]
fn different_descriptions_are_joined_and_equal_descriptions_are_not_repeated() {
    for (first, second, joined) in [
        (json!("A"), json!("B"), json!("A\nB")),
        (json!("A"), json!("A"), json!("A")),
        (json!("A"), json!(null), json!("A")),
        (json!(null), json!("B"), json!("B")),
    ] {
        let branch = |text: &Value| match text {
            Value::Null => json!({"properties": {"a": {}}}),
            text => json!({"properties": {"a": {"description": text}}}),
        };
        let schema = json!({"allOf": [branch(&first), branch(&second)]});
        let lowered = lower_schema(&schema, Dialect::JsonSchema).schema;
        assert_eq!(lowered["properties"]["a"]["description"], joined);
    }
}
