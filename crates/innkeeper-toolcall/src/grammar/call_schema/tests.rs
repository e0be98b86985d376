//! Tests of the call schema and of its reported losses.

use super::*;

fn sanitized_arguments(schema: Value) -> (Value, Vec<String>) {
    let tools: Tools = [Tool::new("t", "", schema)].into_iter().collect();
    let CallSchema { mut schema, losses } =
        call_schema(&tools, CallSchemaOptions::default()).unwrap();
    let arguments = schema["anyOf"][0]["properties"]["arguments"].take();
    (arguments, losses.iter().map(ToString::to_string).collect())
}

#[test]
fn each_tool_is_one_branch_with_its_name_first_and_its_strings_capped() {
    let schema = json!({"type": "object", "properties": {
        "q": {"type": "string", "description": "what"},
        "n": {"type": ["string", "null"], "minLength": 3},
        "m": {"type": "string", "maxLength": 5},
        "e": {"type": "string", "enum": ["a"]},
    }, "required": ["q"]});
    let tools: Tools =
        [Tool::new("find", "", schema), Tool::new("now", "", json!(null))].into_iter().collect();
    let options = CallSchemaOptions {
        string_limit: Some(60),
        allow_answer: true,
        ..CallSchemaOptions::default()
    };
    let CallSchema { schema, losses } = call_schema(&tools, options).unwrap();
    assert_eq!(
        schema.to_string(),
        concat!(
            r#"{"anyOf":[{"type":"object","properties":{"name":{"const":"find"},"arguments":{"type":"object","properties":{"#,
            r#""q":{"type":"string","maxLength":60},"n":{"type":["string","null"],"minLength":3,"maxLength":60},"#,
            r#""m":{"type":"string","maxLength":5},"e":{"type":"string","enum":["a"]}},"required":["q"]}},"#,
            r#""required":["name","arguments"],"additionalProperties":false},"#,
            r#"{"type":"object","properties":{"name":{"const":"now"},"arguments":{"type":"object","properties":{}}},"#,
            r#""required":["name","arguments"],"additionalProperties":false},"#,
            r#"{"type":"object","properties":{"answer":{"type":"string","maxLength":60}},"#,
            r#""required":["answer"],"additionalProperties":false}]}"#,
        )
    );
    assert_eq!(losses.len(), 1, "null is no schema: {losses:?}");
    assert!(call_schema(&Tools::default(), options).is_none());
}

#[test]
fn what_is_referred_to_moves_and_may_refer_to_itself() {
    let schema = json!({"type": "object", "properties": {"tree": {"$ref": "#/definitions/node"}},
    "definitions": {"node": {"type": "object", "properties": {
        "next": {"$ref": "#/definitions/node"}, "all": {"$ref": "#"}, "gone": {"$ref": "other.json"},
    }}}});
    let tools: Tools = [Tool::new("t", "", schema)].into_iter().collect();
    let CallSchema { schema, losses } = call_schema(&tools, CallSchemaOptions::default()).unwrap();
    assert_eq!(
        schema["$defs"],
        json!({
            "tool0-0": {"type": "object", "properties": {
                "next": {"$ref": "#/$defs/tool0-0"}, "all": {"$ref": "#/$defs/tool0-1"}, "gone": {},
            }},
            "tool0-1": {"type": "object", "properties": {"tree": {"$ref": "#/$defs/tool0-0"}}},
        })
    );
    let expected =
        "`$ref` at `/definitions/node/properties/gone` in the input schema of `t` is not enforced";
    assert_eq!(losses.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
}

#[test]
fn what_the_converters_do_not_take_is_left_out_and_reported_with_its_place() {
    let (arguments, losses) = sanitized_arguments(json!({"properties": {"a": {
        "type": "string", "pattern": "^a", "format": "email", "maxLength": MAX_REPEATS + 1, "x-own": 1,
    }, "b": {"type": "array", "items": {"not": {}}, "maxItems": MAX_REPEATS},
    "c": {"type": "integer", "minimum": 1}, "d": {"type": "number", "minimum": 1}}}));
    assert_eq!(
        arguments,
        json!({"properties": {
            "a": {"type": "string", "maxLength": MAX_REPEATS},
            "b": {"type": "array", "items": {}, "maxItems": MAX_REPEATS},
            "c": {"type": "integer", "minimum": 1}, "d": {"type": "number"},
        }, "type": "object"})
    );
    let reported: Vec<&str> =
        losses.iter().map(|loss| loss.split(" in ").next().unwrap()).collect();
    assert_eq!(
        reported,
        [
            "`pattern` at `/properties/a`",
            "`format` at `/properties/a`",
            "`maxLength` at `/properties/a`",
            "`x-own` at `/properties/a`",
            "`not` at `/properties/b/items`",
            "`minimum` at `/properties/d`",
        ]
    );
}

#[test]
fn beside_names_the_converters_do_not_escape_there_are_no_others() {
    let with = |name: &str| json!({"properties": {name: {}}, "additionalProperties": true});
    assert_eq!(
        sanitized_arguments(with("a_1")),
        (
            json!({"properties": {"a_1": {}}, "additionalProperties": true, "type": "object"}),
            vec![]
        )
    );
    let (arguments, losses) = sanitized_arguments(with("a-b"));
    assert_eq!(arguments["additionalProperties"], false);
    let expected =
        "`additionalProperties` at `` in the input schema of `t` is enforced too strictly";
    assert_eq!(losses, [expected]);
}

#[test]
fn a_schema_at_the_limits_is_taken_whole_and_past_them_is_any_object() {
    let wide = |values: usize| json!({"enum": vec![json!({}); values - 2]});
    assert!(sanitized_arguments(wide(MAX_SCHEMA_VALUES)).1.is_empty());
    let (arguments, losses) = sanitized_arguments(wide(MAX_SCHEMA_VALUES + 1));
    assert_eq!(arguments, json!({"type": "object", "additionalProperties": true}));
    assert!(losses[0].contains("too deep or too large"));
    let nested = |depth| (1..depth).fold(json!({}), |inner, _| json!({"items": inner}));
    assert!(
        sanitized_arguments(json!({"properties": {"a": nested(MAX_SCHEMA_DEPTH - 1)}}))
            .1
            .is_empty()
    );
    assert_eq!(
        sanitized_arguments(json!({"properties": {"a": nested(MAX_SCHEMA_DEPTH)}})).1.len(),
        1
    );
}

#[test]
fn the_formats_that_servers_enforce_are_kept_and_their_names_elsewhere_are_not() {
    for (format, kept) in
        [("date", true), ("time", true), ("date-time", true), ("uuid", true), ("email", false)]
    {
        let schema = json!({"properties": {"a": {"type": "integer", "format": format}}});
        let (arguments, losses) = sanitized_arguments(schema);
        let expected = if kept { json!(format) } else { json!(null) };
        assert_eq!(arguments["properties"]["a"]["format"], expected);
        assert_eq!(losses.len(), usize::from(!kept), "{losses:?}");
    }
    let (arguments, losses) = sanitized_arguments(json!({"properties": {"a": {"x-own": "date"}}}));
    assert_eq!((&arguments["properties"]["a"], losses.len()), (&json!({}), 1));
}

#[test]
fn every_bound_of_an_integer_is_kept_if_the_bound_is_an_integer() {
    for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        for (type_name, bound, kept) in [
            ("integer", json!(3), true),
            ("integer", json!(-3), true),
            ("integer", json!(2.5), false),
            ("integer", json!(true), false),
            ("number", json!(3), false),
        ] {
            let schema = json!({"properties": {"a": {"type": type_name, keyword: bound}}});
            let (arguments, losses) = sanitized_arguments(schema);
            let expected = if kept { bound } else { json!(null) };
            assert_eq!(arguments["properties"]["a"][keyword], expected, "{keyword}");
            assert_eq!(losses.len(), usize::from(!kept));
        }
    }
}
