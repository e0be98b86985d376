//! Each limit of fitting: what is at it, and what is one past it.

use super::*;
use crate::fit::lower::{LONGEST_NOTE, MOST_COPIES};
use crate::fit::read::{DEEPEST, HEAVIEST};

/// Objects in objects; the innermost has a string, at this level.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({"type": "string"}), |inside, _| with(inside))
}

/// Optional strings, numbered.
fn strings(count: usize) -> Value {
    let all = (0..count).map(|at| (format!("p{at}"), json!({"type": "string"})));
    json!({"type": "object", "properties": all.collect::<Map<_, _>>()})
}

#[test]
fn ten_levels_are_strict_at_openai_and_eleven_are_not() {
    assert!(fit(&nested(10), Dialect::OpenAiStrict).strict);
    let fitted = fit(&nested(11), Dialect::OpenAiStrict);
    assert!(!fitted.strict);
    assert_eq!(fitted.losses[0].pointer, "/properties/a".repeat(10));
}

#[test]
fn five_thousand_properties_are_strict_at_openai_and_one_more_is_not() {
    assert!(fit(&strings(5000), Dialect::OpenAiStrict).strict);
    assert!(!fit(&strings(5001), Dialect::OpenAiStrict).strict);
}

#[test]
fn a_request_to_anthropic_has_twenty_strict_tools() {
    let none = json!({"type": "object"});
    let fitted = fit_all(vec![&none; 21], Dialect::AnthropicStrict);
    assert!(fitted[..20].iter().all(|it| it.strict) && !fitted[20].strict);
    assert_eq!(
        fitted[20].losses[0].to_string(),
        "`#` `strict`: keeps the schema from being strict"
    );
}

#[test]
fn a_request_to_anthropic_has_24_optional_parameters() {
    assert!(fit(&strings(24), Dialect::AnthropicStrict).strict);
    assert!(!fit(&strings(25), Dialect::AnthropicStrict).strict);
    let (ten, four, five) = (strings(10), strings(4), strings(5));
    let strict = |last| {
        let fitted = fit_all([&ten, &ten, last], Dialect::AnthropicStrict);
        fitted.iter().map(|it| it.strict).collect::<Vec<_>>()
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
    assert!(fit(&unions(16), Dialect::AnthropicStrict).strict);
    assert!(!fit(&unions(17), Dialect::AnthropicStrict).strict);
    let (sixteen, one) = (unions(16), unions(1));
    let fitted = fit_all([&sixteen, &one], Dialect::AnthropicStrict);
    assert!(fitted[0].strict && !fitted[1].strict);
}

#[test]
fn a_schema_is_read_so_deep_and_what_is_deeper_accepts_everything() {
    assert_eq!(fit(&nested(DEEPEST + 1), Dialect::OpenAi).schema, nested(DEEPEST + 1));
    let fitted = fit(&nested(DEEPEST + 2), Dialect::OpenAi);
    let place = "/properties/a".repeat(DEEPEST + 1);
    assert_eq!(fitted.schema.pointer(&place), Some(&json!({})));
    let cut = Loss { pointer: place, keyword: String::new(), change: Change::Widened };
    assert_eq!(fitted.losses, [cut]);
}

#[test]
fn a_schema_is_read_so_large_and_what_is_behind_accepts_everything() {
    let long = |length: usize| with(json!({"description": "x".repeat(length)}));
    let (mut most, mut too_much) = (0, HEAVIEST);
    while too_much - most > 1 {
        let middle = usize::midpoint(most, too_much);
        let whole = fit(&long(middle), Dialect::OpenAi).losses.is_empty();
        *(if whole { &mut most } else { &mut too_much }) = middle;
    }
    assert!(most > HEAVIEST - 1000, "{most}");
    assert_eq!(fit(&long(most), Dialect::OpenAi).schema, long(most));
    assert_eq!(fit(&long(too_much), Dialect::OpenAi).schema["properties"]["a"], json!({}));
}

#[test]
fn references_that_double_at_each_step_end_at_the_same_size() {
    let step = |at: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        (format!("d{at}"), json!({"type": "object", "properties": {"l": next, "r": next}}))
    };
    let mut schema = with(json!({"$ref": "#/$defs/d0"}));
    schema["$defs"] = Value::Object((0..50).map(step).collect());
    let fitted = fit(&schema, Dialect::JsonSchema);
    assert!(fitted.schema.to_string().len() < 4 * HEAVIEST);
    assert!(fitted.losses.iter().any(|it| it.keyword.is_empty() && it.change == Change::Widened));
    assert!(fit(&schema, Dialect::OpenAi).losses.len() < 5);
}

#[test]
fn what_stands_beside_a_union_is_written_so_often_and_else_the_union_becomes_words() {
    let schema = |count: usize| {
        let mut schema = strings(count);
        schema["anyOf"] = (0..10).map(|at| json!({"properties": {format!("x{at}"): {}}})).collect();
        schema
    };
    assert_eq!(MOST_COPIES, 5000);
    let (fitted, _) = property(schema(499), Dialect::Gemini);
    assert_eq!(fitted["anyOf"].as_array().map(Vec::len), Some(10));
    let (fitted, told) = property(schema(500), Dialect::Gemini);
    assert_eq!(fitted["properties"].as_object().map(Map::len), Some(500));
    assert_eq!(told, ["`#/properties/a` `anyOf`: moved into the description"]);
}

#[test]
fn a_note_may_be_so_long_and_a_longer_one_is_dropped() {
    let pattern = |length: usize| json!({"type": "string", "pattern": "x".repeat(length)});
    let (fitted, _) = property(pattern(LONGEST_NOTE), Dialect::Gemini);
    assert!(fitted["description"].is_string());
    let (fitted, told) = property(pattern(LONGEST_NOTE + 1), Dialect::Gemini);
    assert_eq!(fitted, json!({"type": "string"}));
    assert_eq!(told, ["`#/properties/a` `pattern`: dropped"]);
}

#[test]
fn a_thousand_losses_are_listed_and_the_others_counted() {
    let keys = |count: usize| {
        let all = (0..count).map(|at| (format!("x{at}"), json!(1)));
        Value::Object(all.collect::<Map<_, _>>())
    };
    let fitted = fit(&keys(MOST_LOSSES), Dialect::OpenAi);
    assert_eq!((fitted.losses.len(), fitted.unlisted), (MOST_LOSSES, 0));
    let fitted = fit(&keys(MOST_LOSSES + 1), Dialect::OpenAi);
    assert_eq!((fitted.losses.len(), fitted.unlisted), (MOST_LOSSES, 1));
}

#[test]
fn large_schemas_of_every_kind_are_fitted_without_squares() {
    const MANY: usize = 10_000;
    let all = |make: &dyn Fn(usize) -> Value| (0..MANY).map(make).collect::<Vec<Value>>();
    let named = |make: &dyn Fn(usize) -> Value| {
        (0..MANY).map(|at| (format!("n{at}"), make(at))).collect::<Map<String, Value>>()
    };
    let choices = all(&|at| json!(at));
    let names = all(&|at| json!(format!("n{at}")));
    let schemas = [
        json!({"allOf": [{"properties": named(&|_| json!({}))}, {"properties": named(&|_| json!({}))}]}),
        json!({"allOf": [{"required": names}, {"required": names}]}),
        json!({"oneOf": all(&|at| json!({"properties": {"a": {"const": at}}}))}),
        json!({"oneOf": all(&|at| json!({"properties": {format!("p{at}"): {}}}))}),
        with(json!({"allOf": [{"enum": choices}, {"enum": choices}]})),
        with(json!({"type": "array", "prefixItems": all(&|at| json!({"const": at}))})),
        with(json!({"anyOf": all(&|at| json!({"required": [format!("p{at}")]}))})),
        json!({"properties": named(&|at| json!({"$ref": format!("#/$defs/n{at}/not")})),
            "$defs": named(&|_| json!({"not": {"type": "null"}}))}),
        json!({"properties": all(&|at| json!(at)).iter().map(|at| (format!("${at}"), json!({}))).collect::<Map<_, _>>()}),
    ];
    for schema in &schemas {
        for dialect in
            [Dialect::OpenAi, Dialect::OpenAiStrict, Dialect::Gemini, Dialect::JsonSchema]
        {
            let fitted = fit(schema, dialect);
            assert!(fitted.schema["properties"].is_object(), "{dialect:?}");
        }
    }
}
