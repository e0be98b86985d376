//! Tests of the whole ladder.

use serde_json::json;

use super::*;
use crate::repair::Slip;
use crate::validate::Toolbox;

fn offered() -> Tools {
    let alarm = json!({
        "type": "object",
        "properties": {
            "hour": {"type": "integer"},
            "repeat": {"type": "boolean"},
            "label": {"type": ["string", "null"]},
            "zip": {"type": "string"},
        },
        "required": ["hour"],
    });
    [Tool::new("clock.set_alarm", "", alarm), Tool::new("get_time", "", json!({"type": "object"}))]
        .into_iter()
        .collect()
}

fn climb(said: &str, arguments: Arguments<'_>, end: End) -> Result<Call, Rejected> {
    ladder(&offered(), said, arguments, end)
}

fn text(text: &str, end: End) -> Result<Call, Rejected> {
    climb("get_time", Arguments::Text(text), end)
}

#[test]
fn a_call_as_it_should_be_needs_no_repair() {
    let call = climb("clock.set_alarm", Arguments::Text(r#"{"hour": 7}"#), End::Complete).unwrap();
    assert_eq!(call.arguments.to_string(), r#"{"hour":7}"#);
    assert_eq!((call.name.as_str(), call.repairs.len()), ("clock.set_alarm", 0));
}

#[test]
fn every_step_is_told_in_its_order() {
    let call = climb("Set-Alarm", Arguments::Text("{'hour': '7', }"), End::Complete);
    assert!(call.is_err(), "two rungs at once are a guess");
    let call = climb("set_alarm", Arguments::Text("{'hour': '7', }"), End::Complete).unwrap();
    assert_eq!(call.arguments.to_string(), r#"{"hour":7}"#);
    let told: Vec<String> = call.repairs.iter().map(Repair::to_string).collect();
    assert_eq!(
        told,
        [
            "`set_alarm` is taken as `clock.set_alarm`: the server's name was left out",
            "single quotes read as double quotes (byte 1)",
            "single quotes read as double quotes (byte 9)",
            "trailing comma removed (byte 12)",
            "`/hour`: string read as a number",
        ]
    );
}

#[test]
fn raw_values_are_read_by_their_schemas() {
    let pairs =
        [("hour", "6"), ("repeat", "True"), ("label", "null"), ("zip", "02139"), ("x", "1")];
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let call = climb("clock.set_alarm", Arguments::Raw(pairs), End::Complete).unwrap();
    assert_eq!(
        call.arguments.to_string(),
        r#"{"hour":6,"repeat":true,"label":null,"zip":"02139","x":"1"}"#
    );
    let twice = vec![("x".to_owned(), "1".to_owned()), ("x".to_owned(), "1".to_owned())];
    let rejected = climb("get_time", Arguments::Raw(twice), End::Complete).unwrap_err();
    assert_eq!(rejected.to_string(), "the argument `x` of `get_time` is given twice");
}

#[test]
fn no_arguments_are_an_empty_object() {
    let none = [Arguments::Text(" \n"), Arguments::Text(r#""""#), Arguments::Text("null")];
    let values = [Arguments::Value(Json::Null), Arguments::Value(Json::String(String::new()))];
    for arguments in none.into_iter().chain(values) {
        let call = climb("get_time", arguments, End::Complete).unwrap();
        assert_eq!(call.arguments, Json::Object(Vec::new()));
        let change = Change::Empty;
        assert_eq!(call.repairs, [Repair::Value { pointer: String::new(), change }]);
    }
    assert!(matches!(text("", End::Stopped).unwrap_err().reason, Reason::Unreadable(_)));
}

#[test]
fn an_object_inside_a_string_is_read_once() {
    let call = text(r#""{\"a\": 1,}""#, End::Complete).unwrap();
    assert_eq!(call.arguments.to_string(), r#"{"a":1}"#);
    let slip = Repair::Encoded { pointer: String::new(), at: 7, slip: Slip::TrailingComma };
    assert_eq!(call.repairs[1], slip);
    let twice = Json::String(Json::String("{}".to_owned()).to_string()).to_string();
    assert_eq!(text(&twice, End::Complete).unwrap_err().reason, Reason::NotAnObject("a string"));
}

#[test]
fn what_was_cut_is_never_a_call_and_what_stopped_may_be() {
    for arguments in ["{}", r#"{"a": "rm -rf /"#, r#"{"a": "x""#, ""] {
        let rejected = text(arguments, End::Cut).unwrap_err();
        assert_eq!(rejected.reason, Reason::Cut, "{arguments}");
    }
    let call = text(r#"{"a": "x""#, End::Stopped).unwrap();
    assert_eq!(call.repairs, [Repair::Text { at: 9, slip: Slip::MissingCloser }]);
    for arguments in [r#"{"a": "x""#, r#"{"a": "rm -rf /"#] {
        assert!(text(arguments, End::Complete).is_err());
    }
    assert!(text(r#"{"a": "rm -rf /"#, End::Stopped).is_err());
}

#[test]
fn an_unknown_tool_is_rejected_with_what_may_be_meant() {
    let rejected = climb("get_tim", Arguments::Text("{}"), End::Complete).unwrap_err();
    assert_eq!(rejected.reason, Reason::UnknownTool);
    assert_eq!(rejected.to_string(), "there is no tool `get_tim`; did you mean `get_time`?");
    let rejected = climb("rm", Arguments::Text("{}"), End::Complete).unwrap_err();
    assert_eq!(rejected.to_string(), "there is no tool `rm`");
}

#[test]
fn arguments_that_are_no_object_are_rejected_with_what_they_are() {
    for (arguments, found) in
        [("[1]", "an array"), ("3", "a number"), ("true", "a boolean"), (r#""x""#, "a string")]
    {
        let rejected = text(arguments, End::Complete).unwrap_err();
        assert_eq!(
            rejected.to_string(),
            format!("the arguments of `get_time` must be a JSON object, found {found}")
        );
    }
    assert_eq!(
        text("{\"a\" 1}", End::Complete).unwrap_err().to_string(),
        "the arguments of `get_time` are not valid JSON: line 1, column 6 (byte 5): expected `:` after the key, found `1`"
    );
}

#[test]
fn a_value_at_the_limit_of_depth_is_a_call_and_one_past_it_is_not() {
    let nested = |levels: usize| {
        let inside = (2..=levels).fold(Json::Null, |inside, _| Json::Array(vec![inside]));
        Arguments::Value(Json::Object(vec![("a".to_owned(), inside)]))
    };
    assert!(climb("get_time", nested(DEPTH), End::Complete).is_ok());
    let rejected = climb("get_time", nested(DEPTH + 1), End::Complete).unwrap_err();
    assert_eq!(rejected.reason, Reason::TooDeep);
}

#[test]
fn a_call_that_does_not_fit_its_schema_is_a_call_with_violations() {
    let arguments = Arguments::Text(r#"{"repeat": "maybe"}"#);
    let call = climb("clock.set_alarm", arguments, End::Complete).unwrap();
    let violations = Toolbox::new(offered()).violations(&call).unwrap();
    let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2);
    assert!(told.contains(&"arguments: missing required property `hour`".to_owned()), "{told:?}");
    assert!(told.contains(&"`/repeat`: expected boolean, found string".to_owned()), "{told:?}");
}
