//! Tests of the table of provider limits: a tool at each limit and one past it.

use innkeeper_toolcall::{
    Aliases, Dialect, Json, LoweredSchema, NameRules, SchemaLossKind, StrictLimits, lower_schema,
    lower_schemas,
};
use serde_json::{Map, Value, json};

use crate::any_schema::{DIALECTS, effective_dialect};
use crate::schema_checker::problems;

/// The longest name of letters that the rules allow.
fn longest_name(rules: NameRules) -> String {
    let longest = (1..1000).rev().find(|length| rules.allows(&"k".repeat(*length)));
    "k".repeat(longest.unwrap())
}

/// An object with these properties; all of them are required.
fn object(properties: impl IntoIterator<Item = (String, Value)>) -> Value {
    let properties: Map<String, Value> = properties.into_iter().collect();
    let required: Vec<_> = properties.keys().cloned().collect();
    json!({"type": "object", "properties": properties, "required": required,
        "additionalProperties": false})
}

fn numbered(count: usize, schema: &Value) -> Value {
    object((0..count).map(|at| (format!("p{at}"), schema.clone())))
}

fn without_required(mut schema: Value) -> Value {
    schema["required"] = json!([]);
    schema
}

/// A list of this number of values with this number of characters in total.
fn choices(count: usize, chars: usize) -> Value {
    let mut values: Vec<String> = (0..count).map(|at| format!("{at:04}")).collect();
    let rest = chars - values.iter().map(String::len).sum::<usize>();
    values[0].push_str(&"x".repeat(rest));
    object([("a".to_owned(), json!({"type": "string", "enum": values}))])
}

/// Lowers a schema and checks that the provider takes the result.
fn lowered(schema: &Value, dialect: Dialect) -> LoweredSchema {
    let lowered = lower_schema(schema, dialect);
    let found = problems(&lowered.schema, effective_dialect(dialect, lowered.strict));
    assert!(found.is_empty(), "{dialect:?}: {found:?}\n{schema}\n{}", lowered.schema);
    lowered
}

/// The limits of one strict schema, each with a schema at the limit and one past it.
fn strict_cases(limits: &StrictLimits) -> Vec<(&'static str, Value, Value)> {
    let text = json!({"type": "string"});
    let nested = |levels: usize| {
        (1..levels).fold(text.clone(), |inside, _| object([("a".to_owned(), inside)]))
    };
    let optional = |count: usize| without_required(numbered(count, &text));
    let unions = |count: usize| numbered(count, &json!({"type": ["string", "integer"]}));
    let enums = |count: usize| {
        let many: Vec<usize> = (0..count).collect();
        object([("a".to_owned(), json!({"type": "integer", "enum": many}))])
    };
    let large = limits.enum_text.unlimited_choices.saturating_add(1);
    let name_of = |length: usize| object([("k".repeat(length), text.clone())]);
    let mut cases = Vec::new();
    let mut add = |name, limit: usize, schema: &dyn Fn(usize) -> Value| {
        if limit < usize::MAX {
            cases.push((name, schema(limit), schema(limit + 1)));
        }
    };
    add("depth", limits.max_depth, &nested);
    add("properties", limits.max_properties, &|count| numbered(count, &text));
    add("optional properties", limits.max_optional, &optional);
    add("unions", limits.max_unions, &unions);
    add("enum values", limits.max_choices, &enums);
    add("enum text", limits.enum_text.max_chars, &|chars| choices(large, chars));
    add("text", limits.max_text_chars, &name_of);
    cases
}

#[test]
fn a_strict_schema_past_a_limit_is_sent_without_strict() {
    let mut count = 0;
    for dialect in [Dialect::OpenAiStrict, Dialect::AnthropicStrict] {
        let limits = dialect.limits().strict.as_ref().unwrap();
        for (name, at_limit, past_limit) in strict_cases(limits) {
            assert!(lowered(&at_limit, dialect).strict, "{dialect:?} {name}");
            let past_limit = lowered(&past_limit, dialect);
            assert!(!past_limit.strict, "{dialect:?} {name}");
            assert_eq!(past_limit.losses[0].kind, SchemaLossKind::NotStrict, "{name}");
            count += 1;
        }
    }
    assert_eq!(count, 7, "five limits of OpenAI and two of Anthropic");
}

#[test]
fn a_small_enum_may_have_more_text_than_a_large_one() {
    let limits = Dialect::OpenAiStrict.limits().strict.as_ref().unwrap();
    let small = choices(limits.enum_text.unlimited_choices, limits.enum_text.max_chars + 1);
    assert!(lowered(&small, Dialect::OpenAiStrict).strict);
}

#[test]
fn a_request_has_as_many_strict_tools_as_the_provider_takes() {
    for dialect in DIALECTS {
        let Some(limits) = dialect.limits().strict.filter(|limits| limits.max_tools < usize::MAX)
        else {
            continue;
        };
        let schemas = vec![object([]); limits.max_tools + 1];
        let lowered = lower_schemas(&schemas, dialect);
        let strict = lowered.iter().filter(|lowered| lowered.strict).count();
        assert_eq!(strict, limits.max_tools, "{dialect:?}");
    }
}

#[test]
fn a_name_of_a_tool_past_the_limit_gets_an_alias() {
    for dialect in DIALECTS {
        let rules = dialect.limits().tool_names;
        let longest = longest_name(rules);
        let names = [longest.clone(), format!("{longest}k"), "a.b".to_owned(), "1 $".to_owned()];
        let aliases = Aliases::new(names.clone(), rules);
        assert_eq!(aliases.alias(&longest), Some(longest.as_str()), "{dialect:?}");
        for name in names {
            let alias = aliases.alias(&name).unwrap();
            assert!(rules.allows(alias), "{dialect:?} {alias}");
            assert_eq!(aliases.canonical(alias), Some(name.as_str()), "{dialect:?}");
        }
    }
}

/// Keys that some provider rejects.
const KEYS: [&str; 8] = ["$top", "filter[name]", "", "ä", "a b", "1", "a.b", "-"];

#[test]
fn a_key_past_the_limits_is_renamed_and_restored() {
    for dialect in DIALECTS {
        let rules = dialect.limits().parameter_names;
        let longest = rules.map_or_else(|| "k".repeat(64), longest_name);
        let keys = KEYS.map(str::to_owned).into_iter();
        let keys: Vec<String> = keys.chain([longest.clone(), format!("{longest}k")]).collect();
        let integer = json!({"type": "integer"});
        let schema = object(keys.iter().map(|key| (key.clone(), integer.clone())));
        let lowered = lowered(&schema, dialect);
        let properties = lowered.schema["properties"].as_object().unwrap();
        assert_eq!(properties.len(), keys.len(), "{dialect:?}");
        let written: Map<String, Value> =
            properties.keys().enumerate().map(|(at, key)| (key.clone(), at.into())).collect();
        let restored = lowered.restore_arguments(Json::from(&Value::Object(written)));
        let restored: Value = serde_json::from_str(&restored.to_string()).unwrap();
        let expected = keys.iter().enumerate().map(|(at, key)| (key.clone(), at.into()));
        assert_eq!(restored, Value::Object(expected.collect()), "{dialect:?}");
        let is_unchanged = |key: &String| properties.contains_key(key);
        assert!(is_unchanged(&longest), "{dialect:?}");
        let renamed = keys.iter().filter(|key| !is_unchanged(key)).count();
        let refused = keys.iter().filter(|key| rules.is_some_and(|rules| !rules.allows(key)));
        assert_eq!(renamed, refused.count(), "{dialect:?}");
    }
}

/// Every place of a schema in which properties may stand, around an object with these members.
fn places(inside: &Value) -> Vec<(Value, Value)> {
    let object_at = |schema: Value| object([("a".to_owned(), schema)]);
    let key = "$k";
    let value = json!({key: 7});
    let mut recursive = object_at(json!({"$ref": "#/$defs/d"}));
    recursive["$defs"] = json!({"d": {"type": "object", "properties": {
        key: {"type": "integer"}, "next": {"$ref": "#/$defs/d"}}}});
    let other =
        json!({"type": "object", "properties": {"_k": {"type": "integer"}}, "required": ["_k"]});
    vec![
        (object_at(inside.clone()), json!({"a": value})),
        (object_at(json!({"type": "array", "items": inside})), json!({"a": [value]})),
        (object_at(json!({"anyOf": [other, inside]})), json!({"a": value})),
        (object_at(json!({"oneOf": [other, {"type": "null"}, inside]})), json!({"a": value})),
        (object_at(json!({"allOf": [inside, {"minProperties": 1}]})), json!({"a": value})),
        (
            object_at(json!({"type": "object", "if": {"required": [key]}, "then": inside})),
            json!({"a": value}),
        ),
        (
            object_at(json!({"type": "object", "additionalProperties": inside})),
            json!({"a": {"free": value}}),
        ),
        (
            object_at(json!({"type": "object", "patternProperties": {"^x": inside}})),
            json!({"a": {"x1": value}}),
        ),
        (
            object_at(json!({"type": "array", "prefixItems": [true, inside]})),
            json!({"a": [1, value]}),
        ),
        (recursive, json!({"a": value})),
    ]
}

#[test]
fn a_key_is_renamed_and_restored_wherever_it_stands() {
    let inside = object([("$k".to_owned(), json!({"type": "integer"}))]);
    for (schema, value) in places(&inside) {
        assert!(jsonschema::is_valid(&schema, &value), "{schema} {value}");
        for dialect in [Dialect::Anthropic, Dialect::AnthropicStrict, Dialect::Gemini] {
            let lowered = lowered(&schema, dialect);
            // A constraint in a description does not say how the provider sees the key.
            let Some(alias) = ["_k_", "_k"].into_iter().find_map(|start| {
                let text = lowered.schema.to_string();
                let (_, rest) = text.split_once(&format!("\"{start}"))?;
                Some(format!("{start}{}", rest.split('"').next()?))
            }) else {
                continue;
            };
            let written = value.to_string().replace("$k", &alias);
            let written: Value = serde_json::from_str(&written).unwrap();
            let restored = lowered.restore_arguments(Json::from(&written)).to_string();
            assert_eq!(restored, value.to_string(), "{dialect:?} {}", lowered.schema);
            // A model that writes the original name, as it stands in a result, is right too.
            let restored = lowered.restore_arguments(Json::from(&value)).to_string();
            assert_eq!(restored, value.to_string(), "{dialect:?}");
        }
    }
}

#[test]
fn a_key_of_a_recursive_schema_is_restored_at_every_level() {
    let mut schema = object([("a".to_owned(), json!({"$ref": "#/$defs/d"}))]);
    schema["$defs"] = json!({"d": {"type": "object", "properties": {
        "$k": {"type": "integer"}, "next": {"$ref": "#/$defs/d"}}}});
    let lowered = lowered(&schema, Dialect::Anthropic);
    let written = json!({"a": {"_k": 7, "next": {"_k": 8, "next": {"_k": 9}}}});
    let restored = lowered.restore_arguments(Json::from(&written)).to_string();
    assert_eq!(restored, written.to_string().replace("_k", "$k"));
}

#[test]
fn required_names_follow_their_renamed_properties() {
    let schema = json!({"type": "object", "properties": {"q": {
        "type": "object",
        "properties": {"$top": {"type": "integer"}, "b": {"type": "integer"}},
        "anyOf": [{"required": ["$top"]}, {"required": ["b"]}],
        "dependentRequired": {"$top": ["b"], "b": ["$top"]},
        "dependentSchemas": {"$top": {"required": ["$top"]}},
    }}});
    let lowered = lowered(&schema, Dialect::Anthropic);
    let inside = &lowered.schema["properties"]["q"];
    assert_eq!(inside["anyOf"], json!([{"required": ["_top"]}, {"required": ["b"]}]));
    assert_eq!(inside["dependentRequired"], json!({"_top": ["b"], "b": ["_top"]}));
    assert_eq!(inside["dependentSchemas"], json!({"_top": {"required": ["_top"]}}));
    assert_eq!(inside["properties"]["_top"]["description"], "(name: $top)");
}

#[test]
fn a_crafted_schema_cannot_make_the_way_back_slow() {
    // Each branch of each level is the same definition, and each may apply to the same value.
    let all: Vec<Value> = (0..200).map(|at| json!({"$ref": format!("#/$defs/d{at}")})).collect();
    let definitions: Map<String, Value> = (0..200)
        .map(|at| {
            let properties = json!({"$x": {"anyOf": all}, format!("p{at}"): {}});
            (format!("d{at}"), json!({"type": "object", "properties": properties}))
        })
        .collect();
    let mut schema = object([("$x".to_owned(), json!({"anyOf": all}))]);
    schema["$defs"] = Value::Object(definitions);
    let lowered = lower_schema(&schema, Dialect::Anthropic);
    let deep = (0..100).fold("1".to_owned(), |inside, _| format!("{{\"_x\":{inside}}}"));
    let arguments: Value = serde_json::from_str(&deep).unwrap();
    let restored = lowered.restore_arguments(Json::from(&arguments)).to_string();
    // Either every name or none is restored.
    assert!(!restored.contains("_x") || !restored.contains("$x"));
}

/// Arrays without `items`, in every place of a schema.
#[test]
fn every_array_has_items_where_the_provider_requires_them() {
    let array = json!({"type": "array"});
    let nullable = json!({"type": ["array", "null"], "minItems": 1});
    let mut defined = object([("a".to_owned(), json!({"$ref": "#/$defs/d"}))]);
    defined["$defs"] = json!({"d": {"type": "object", "properties": {"x": array}}});
    let tuple = json!({"type": "array", "prefixItems": [{"type": "string"}]});
    let inside = [
        array.clone(),
        nullable.clone(),
        tuple,
        json!({"anyOf": [{"type": "string"}, array]}),
        json!({"oneOf": [{"type": "string"}, nullable]}),
        json!({"allOf": [array, {"minItems": 1}]}),
        json!({"type": "array", "items": array}),
        json!({"type": "object", "additionalProperties": array}),
        json!({"type": "object", "patternProperties": {"^x": array}}),
        json!({"not": array}),
        json!({"if": array, "then": array, "else": array}),
        json!({"type": "array", "contains": array}),
    ];
    let schemas = inside.into_iter().map(|schema| object([("a".to_owned(), schema)]));
    for schema in schemas.chain([defined]) {
        for dialect in DIALECTS {
            lowered(&schema, dialect);
        }
        let lowered = lower_schema(&schema, Dialect::OpenAi);
        assert!(lowered.schema.to_string().contains(r#""items":"#), "{schema}");
    }
}

#[test]
fn an_empty_choice_stands_in_the_description_for_gemini() {
    let schema =
        |values: Value| object([("a".to_owned(), json!({"type": "string", "enum": values}))]);
    let some = lowered(&schema(json!(["x", "", "y"])), Dialect::Gemini);
    assert_eq!(some.schema["properties"]["a"]["enum"], json!(["x", "y"]));
    let text = some.schema["properties"]["a"]["description"].as_str().unwrap();
    assert!(text.contains(r#"["x","","y"]"#), "{text}");
    let only = lowered(&schema(json!([""])), Dialect::Gemini);
    assert_eq!(only.schema["properties"]["a"].get("enum"), None);
    let nullable = json!({"enum": ["x", "", null]});
    lowered(&object([("a".to_owned(), nullable)]), Dialect::Gemini);
    let other = lowered(&schema(json!(["x", ""])), Dialect::OpenAi);
    assert_eq!(other.schema["properties"]["a"]["enum"], json!(["x", ""]));
}
