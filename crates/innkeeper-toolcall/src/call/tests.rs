//! Tests of call resolution.

use serde_json::json;

use super::*;
use crate::repair::SyntaxSlip;
use crate::validate::ToolValidator;

fn offered_tools() -> Tools {
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

fn resolve_offered(
    raw_name: &str,
    arguments: RawArguments<'_>,
    completeness: Completeness,
) -> Result<ResolvedCall, RejectedCall> {
    resolve_call(&offered_tools(), raw_name, arguments, completeness)
}

fn resolve_text(text: &str, completeness: Completeness) -> Result<ResolvedCall, RejectedCall> {
    resolve_offered("get_time", RawArguments::Text(text), completeness)
}

#[test]
fn a_call_as_it_should_be_needs_no_repair() {
    let call = resolve_offered(
        "clock.set_alarm",
        RawArguments::Text(r#"{"hour": 7}"#),
        Completeness::Complete,
    )
    .unwrap();
    assert_eq!(call.arguments.to_string(), r#"{"hour":7}"#);
    assert_eq!((call.name.as_str(), call.repairs.len()), ("clock.set_alarm", 0));
}

#[test]
fn every_repair_is_listed_in_its_order() {
    let call =
        resolve_offered("Set-Alarm", RawArguments::Text("{'hour': '7', }"), Completeness::Complete);
    assert!(call.is_err(), "a name that needs two repairs is ambiguous");
    let call =
        resolve_offered("set_alarm", RawArguments::Text("{'hour': '7', }"), Completeness::Complete)
            .unwrap();
    assert_eq!(call.arguments.to_string(), r#"{"hour":7}"#);
    let messages: Vec<String> = call.repairs.iter().map(Repair::to_string).collect();
    assert_eq!(
        messages,
        [
            "`set_alarm` resolved to `clock.set_alarm`: missing server name",
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
    let call =
        resolve_offered("clock.set_alarm", RawArguments::TextPairs(pairs), Completeness::Complete)
            .unwrap();
    assert_eq!(
        call.arguments.to_string(),
        r#"{"hour":6,"repeat":true,"label":null,"zip":"02139","x":"1"}"#
    );
    let duplicates = vec![("x".to_owned(), "1".to_owned()), ("x".to_owned(), "1".to_owned())];
    let rejected =
        resolve_offered("get_time", RawArguments::TextPairs(duplicates), Completeness::Complete)
            .unwrap_err();
    assert_eq!(rejected.to_string(), "the argument `x` of `get_time` is given twice");
}

#[test]
fn no_arguments_are_an_empty_object() {
    let none = [RawArguments::Text(" \n"), RawArguments::Text(r#""""#), RawArguments::Text("null")];
    let values =
        [RawArguments::Value(Json::Null), RawArguments::Value(Json::String(String::new()))];
    for arguments in none.into_iter().chain(values) {
        let call = resolve_offered("get_time", arguments, Completeness::Complete).unwrap();
        assert_eq!(call.arguments, Json::Object(Vec::new()));
        let kind = CoercionKind::EmptyToObject;
        assert_eq!(call.repairs, [Repair::Coercion { pointer: String::new(), kind }]);
    }
    assert!(matches!(
        resolve_text("", Completeness::Stopped).unwrap_err().reason,
        RejectReason::InvalidJson(_)
    ));
}

#[test]
fn an_object_inside_a_string_is_read_once() {
    let call = resolve_text(r#""{\"a\": 1,}""#, Completeness::Complete).unwrap();
    assert_eq!(call.arguments.to_string(), r#"{"a":1}"#);
    let slip =
        Repair::EmbeddedSyntax { pointer: String::new(), at: 7, slip: SyntaxSlip::TrailingComma };
    assert_eq!(call.repairs[1], slip);
    let doubly_encoded = Json::String(Json::String("{}".to_owned()).to_string()).to_string();
    assert_eq!(
        resolve_text(&doubly_encoded, Completeness::Complete).unwrap_err().reason,
        RejectReason::NotAnObject("a string")
    );
}

#[test]
fn truncated_text_is_never_a_call_and_stopped_text_may_be() {
    for arguments in ["{}", r#"{"a": "rm -rf /"#, r#"{"a": "x""#, ""] {
        let rejected = resolve_text(arguments, Completeness::Truncated).unwrap_err();
        assert_eq!(rejected.reason, RejectReason::Truncated, "{arguments}");
    }
    let call = resolve_text(r#"{"a": "x""#, Completeness::Stopped).unwrap();
    assert_eq!(call.repairs, [Repair::Syntax { at: 9, slip: SyntaxSlip::MissingCloser }]);
    for arguments in [r#"{"a": "x""#, r#"{"a": "rm -rf /"#] {
        assert!(resolve_text(arguments, Completeness::Complete).is_err());
    }
    assert!(resolve_text(r#"{"a": "rm -rf /"#, Completeness::Stopped).is_err());
}

#[test]
fn an_unknown_tool_is_rejected_with_what_may_be_meant() {
    let rejected =
        resolve_offered("get_tim", RawArguments::Text("{}"), Completeness::Complete).unwrap_err();
    assert_eq!(rejected.reason, RejectReason::UnknownTool);
    assert_eq!(rejected.to_string(), "there is no tool `get_tim`; did you mean `get_time`?");
    let rejected =
        resolve_offered("rm", RawArguments::Text("{}"), Completeness::Complete).unwrap_err();
    assert_eq!(rejected.to_string(), "there is no tool `rm`");
}

#[test]
fn arguments_that_are_no_object_are_rejected_with_what_they_are() {
    for (arguments, found) in
        [("[1]", "an array"), ("3", "a number"), ("true", "a boolean"), (r#""x""#, "a string")]
    {
        let rejected = resolve_text(arguments, Completeness::Complete).unwrap_err();
        assert_eq!(
            rejected.to_string(),
            format!("the arguments of `get_time` must be a JSON object, found {found}")
        );
    }
    assert_eq!(
        resolve_text("{\"a\" 1}", Completeness::Complete).unwrap_err().to_string(),
        "the arguments of `get_time` are not valid JSON: line 1, column 6 (byte 5): expected `:` after the key, found `1`"
    );
}

#[test]
fn a_value_at_the_limit_of_depth_is_a_call_and_one_past_it_is_not() {
    let nested = |levels: usize| {
        let inside = (2..=levels).fold(Json::Null, |inside, _| Json::Array(vec![inside]));
        RawArguments::Value(Json::Object(vec![("a".to_owned(), inside)]))
    };
    assert!(resolve_offered("get_time", nested(MAX_DEPTH), Completeness::Complete).is_ok());
    let rejected =
        resolve_offered("get_time", nested(MAX_DEPTH + 1), Completeness::Complete).unwrap_err();
    assert_eq!(rejected.reason, RejectReason::TooDeep);
}

#[test]
fn a_call_that_does_not_fit_its_schema_is_a_call_with_violations() {
    let arguments = RawArguments::Text(r#"{"repeat": "maybe"}"#);
    let call = resolve_offered("clock.set_alarm", arguments, Completeness::Complete).unwrap();
    let violations = ToolValidator::new(offered_tools()).violations(&call).unwrap();
    let messages: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert_eq!(messages.len(), 2);
    assert!(messages.contains(&"missing required property `hour`".to_owned()), "{messages:?}");
    assert!(
        messages.contains(&"`/repeat`: expected boolean, found string".to_owned()),
        "{messages:?}"
    );
}

/// Attack: model | a server reads the markup of the next argument as part of a string | the call is
/// refused | No guessed call
#[test]
fn a_string_with_the_markup_of_a_missing_argument_is_refused() {
    let schema = json!({"properties": {
        "command": {"type": "string"}, "timeout": {"type": "integer"},
    }});
    let tools = Tools::from_iter([Tool::new("run", "", schema)]);
    let call = |arguments: serde_json::Value| {
        let arguments = RawArguments::Value(Json::from(&arguments));
        resolve_call(&tools, "run", arguments, Completeness::Complete)
    };
    for markup in [
        "<parameter=timeout>",
        r#"<parameter name="timeout">"#,
        r#"<｜DSML｜parameter name="timeout" string="false">"#,
        r#"<param name="timeout">"#,
        "<arg_key>timeout</arg_key>",
        r#"<|open|>argument key="timeout" type="number"<|sep|>"#,
    ] {
        let command = format!("ls\n{markup}5");
        assert_eq!(
            call(json!({"command": command})).unwrap_err().to_string(),
            "the argument `command` of `run` contains the markup of `timeout`, which is missing; \
             write `timeout` as an argument of its own"
        );
        // The argument was given, so the string only mentions it.
        assert!(call(json!({"command": command, "timeout": 1})).is_ok(), "{markup}");
        let example = format!("<invoke name=\"f\">{markup}");
        assert!(call(json!({"command": example})).is_ok(), "{example}");
    }
    assert!(call(json!({"command": "echo '<parameter=other>'"})).is_ok());
}
