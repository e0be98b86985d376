//! Property tests of call resolution for any text, value and schema.

use innkeeper_toolcall::{
    Completeness, Json, RawArguments, ResolvedCall, Tool, ToolValidator, Tools, coerce,
    coerce_text, parse_lenient, parse_strict, resolve_call,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::sloppy_json::write_sloppy;
use crate::strategies::{almost_json, any_json, any_schema, end, schema_with_values};

fn collect_scalars(json: &Json, scalars: &mut Vec<String>) {
    match json {
        Json::Number(text) | Json::String(text) => scalars.push(text.clone()),
        Json::Array(items) => items.iter().for_each(|item| collect_scalars(item, scalars)),
        Json::Object(members) => {
            members.iter().for_each(|(_, value)| collect_scalars(value, scalars));
        }
        Json::Null | Json::Bool(_) => {}
    }
}

fn collect_keys(json: &Json, keys: &mut Vec<String>) {
    match json {
        Json::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
        Json::Object(members) => members.iter().for_each(|(key, value)| {
            keys.push(key.clone());
            collect_keys(value, keys);
        }),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_printed_value_is_read_as_itself_without_repair(json in any_json(), end in end()) {
        let text = json.to_string();
        prop_assert_eq!(parse_strict(&text), Ok(json.clone()));
        let mut repairs = Vec::new();
        prop_assert_eq!(parse_lenient(&text, end, &mut repairs), Ok(json));
        prop_assert!(repairs.is_empty());
    }

    #[test]
    fn strict_reading_agrees_with_the_library(text in almost_json()) {
        let library = serde_json::from_str::<Value>(&text);
        if let Ok(json) = parse_strict(&text) {
            // The library rejects a number that no `f64` holds, unless it keeps numbers as text.
            let mut scalars = Vec::new();
            collect_scalars(&json, &mut scalars);
            let too_large =
                |text: &String| text.parse().is_ok_and(|number: f64| number.is_infinite());
            prop_assert!(library.is_ok() || scalars.iter().any(too_large), "{json}");
        }
    }

    #[test]
    fn no_text_makes_reading_panic_and_json_is_read_as_by_strict(
        text in prop_oneof![almost_json(), any::<String>()],
        end in end(),
    ) {
        let mut repairs = Vec::new();
        let read = parse_lenient(&text, end, &mut repairs);
        match (parse_strict(&text), read) {
            (Ok(json), read) => {
                prop_assert_eq!(read, Ok(json));
                prop_assert!(repairs.is_empty());
            }
            (Err(_), Ok(json)) => {
                prop_assert!(!repairs.is_empty(), "repaired in silence: {}", json);
                prop_assert_eq!(parse_strict(&json.to_string()), Ok(json));
            }
            (Err(_), Err(error)) => {
                prop_assert!(text.is_char_boundary(error.at));
                prop_assert!(repairs.is_empty());
            }
        }
    }

    #[test]
    fn slips_of_one_meaning_are_repaired_to_that_meaning_and_reported(
        json in any_json(),
        whims in prop::collection::vec(any::<u8>(), 1..20),
        end in end(),
    ) {
        let (text, slips) = write_sloppy(&json, &whims);
        let mut repairs = Vec::new();
        prop_assert_eq!(parse_lenient(&text, end, &mut repairs), Ok(json), "{}", text);
        prop_assert_eq!(repairs.is_empty(), slips == 0, "{}", text);
    }

    #[test]
    fn confused_types_are_put_right_and_right_ones_are_never_touched(
        (schema, fits, slips) in schema_with_values(),
    ) {
        let schema = json!({"type": "object", "properties": {"a": schema}});
        let tools: Tools = [Tool::new("t", "", schema)].into_iter().collect();
        let validator = ToolValidator::new(tools.clone());
        let calls = [&fits, &slips].map(|a| {
            let arguments = Json::Object(vec![("a".to_owned(), a.clone())]);
            resolve_call(&tools, "t", RawArguments::Value(arguments), Completeness::Complete).unwrap()
        });
        for call in &calls {
            prop_assert_eq!(call.arguments.get("a"), Some(&fits), "of {}", slips);
            prop_assert_eq!(validator.violations(call), Ok(vec![]));
        }
        prop_assert!(calls[0].repairs.is_empty());
        prop_assert_eq!(calls[1].repairs.is_empty(), slips == fits);
    }

    #[test]
    fn what_validates_against_any_schema_is_never_touched(
        json in any_json(),
        schema in any_schema(),
    ) {
        let arguments = Json::Object(vec![("a".to_owned(), json)]);
        let call = ResolvedCall { name: "t".to_owned(), arguments, repairs: vec![] };
        let tools: Tools = [Tool::new("t", "", schema.clone())].into_iter().collect();
        let valid = ToolValidator::new(tools).violations(&call) == Ok(vec![]);
        let mut repairs = Vec::new();
        let coerced = coerce(call.arguments.clone(), &schema, &mut repairs);
        prop_assert_eq!(repairs.is_empty(), coerced == call.arguments);
        prop_assert!(!valid || repairs.is_empty(), "{} became {}", call.arguments, coerced);
    }

    #[test]
    fn no_digit_is_changed_and_no_argument_is_added_or_dropped(
        json in any_json(),
        schema in any_schema(),
    ) {
        let coerced = coerce(json.clone(), &schema, &mut Vec::new());
        if let (Json::Object(before), Json::Object(after)) = (&json, &coerced) {
            let names = |members: &[(String, Json)]| -> Vec<String> {
                members.iter().map(|(key, _)| key.clone()).collect()
            };
            prop_assert_eq!(names(before), names(after));
        }
        let text = json.to_string().replace('\\', "");
        let (mut found, mut named) = (Vec::new(), Vec::new());
        collect_scalars(&coerced, &mut found);
        collect_keys(&coerced, &mut named);
        for part in found.into_iter().chain(named) {
            let escaped = Json::String(part.clone()).to_string().replace('\\', "");
            prop_assert!(text.contains(escaped.trim_matches('"')), "{} of {}", part, text);
        }
    }

    #[test]
    fn raw_text_is_itself_or_the_json_in_it(text in any::<String>(), schema in any_schema()) {
        match coerce_text(&text, Some(&schema), &schema) {
            Json::String(same) => prop_assert_eq!(same, text),
            json => {
                let literal = matches!(text.trim(), "True" | "False" | "None");
                prop_assert!(literal || parse_strict(text.trim()) == Ok(json));
            }
        }
    }

    #[test]
    fn resolving_a_call_gives_an_object_or_a_reason(
        said in prop_oneof![Just("t".to_owned()), Just("T".to_owned()), any::<String>()],
        json in any_json(),
        whims in prop::collection::vec(any::<u8>(), 1..20),
        cut in 0_usize..40,
        schema in any_schema(),
        end in end(),
    ) {
        let (mut text, _) = write_sloppy(&Json::Object(vec![("a".to_owned(), json)]), &whims);
        let whole = cut >= 20;
        if !whole {
            text.truncate(text.floor_char_boundary(text.len().saturating_sub(cut)));
        }
        let tools: Tools = [Tool::new("t", "", schema)].into_iter().collect();
        match resolve_call(&tools, &said, RawArguments::Text(&text), end) {
            Ok(call) => {
                prop_assert!(end != Completeness::Truncated);
                prop_assert!(matches!(call.arguments, Json::Object(_)));
                prop_assert_eq!(call.name, "t");
            }
            Err(rejected) => {
                prop_assert!(!rejected.to_string().is_empty());
                let known = said == "t" || said == "T";
                prop_assert!(!known || !whole || end == Completeness::Truncated, "{}", rejected);
            }
        }
    }
}
