//! Tests of forms from schemas.

use proptest::prelude::{Just, Strategy, any, prop, proptest};
use proptest::test_runner::TestCaseError;
use serde_json::json;

use super::*;

fn form(schema: &Value) -> ToolForm {
    ToolForm::from_schema(schema).unwrap()
}

fn one(schema: &Value, is_required: bool) -> ToolForm {
    let required = if is_required { vec!["a"] } else { Vec::new() };
    form(&json!({ "properties": { "a": schema }, "required": required }))
}

fn fields(pairs: &[(&str, &str)]) -> Fields {
    Fields::from_pairs(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())))
}

fn read(form: &ToolForm, value: &str) -> Result<String, String> {
    let arguments = form.read(&fields(&[("f0", value)]));
    arguments.map(|json| json.get().to_owned()).map_err(|problems| problems[0].message.clone())
}

#[test]
fn each_type_of_a_schema_has_its_kind_of_field() {
    let kind = |schema: Value| field_kind(&schema);
    assert_eq!(kind(json!({"type": "string"})), FieldKind::Text);
    assert_eq!(kind(json!({"type": ["null", "integer"]})), FieldKind::Integer);
    assert_eq!(kind(json!({"type": "number"})), FieldKind::Number);
    assert_eq!(kind(json!({"type": "boolean"})), FieldKind::Boolean);
    let options = vec![("x".to_owned(), json!("x")), ("1".to_owned(), json!(1))];
    assert_eq!(kind(json!({"enum": ["x", 1]})), FieldKind::Choice(options.clone()));
    let titled = json!({"oneOf": [{"const": 1, "title": "One"}]});
    assert_eq!(kind(titled), FieldKind::Choice(vec![("One".to_owned(), json!(1))]));
    let list = |items: Value| kind(json!({"type": "array", "items": items}));
    assert_eq!(list(json!({"type": "string"})), FieldKind::Lines(LineKind::Text));
    assert_eq!(list(json!({"type": "integer"})), FieldKind::Lines(LineKind::Integer));
    assert_eq!(list(json!({"enum": ["x", 1]})), FieldKind::Choices(options));
    for other in [
        json!({"type": "object"}),
        json!({"type": "array"}),
        json!({"type": "array", "items": {"type": "object"}}),
        json!({"type": ["string", "number"]}),
        json!({"$ref": "#/$defs/a", "type": "string"}),
        json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        json!(true),
        json!({}),
    ] {
        assert_eq!(kind(other.clone()), FieldKind::Json, "{other}");
    }
}

#[test]
fn a_number_keeps_its_digits_and_a_wrong_value_has_a_problem() {
    let integer = one(&json!({"type": "integer"}), true);
    let large = "123456789012345678901234567890";
    assert_eq!(read(&integer, large).unwrap(), format!("{{\"a\":{large}}}"));
    for wrong in ["1.5", "x", "1 2", "--1", "01", "-"] {
        assert!(read(&integer, wrong).is_err(), "{wrong}");
    }
    assert_eq!(read(&integer, " ").unwrap_err(), "required");
    let number = one(&json!({"type": "number"}), false);
    assert_eq!(read(&number, "1.50e3").unwrap(), r#"{"a":1.50e3}"#);
    assert_eq!(read(&number, "").unwrap(), "{}");
    for wrong in ["NaN", "\"1\"", "true", "1,5", "[1]"] {
        assert!(read(&number, wrong).is_err(), "{wrong}");
    }
    let json = one(&json!({"type": "object"}), false);
    assert_eq!(read(&json, " {\"x\": 1.0} ").unwrap(), "{\"a\":{\"x\": 1.0}}");
    assert!(read(&json, "{").unwrap_err().starts_with("no valid JSON"));
}

/// Attack: remote | a value of a form closes its member and adds another | the value stays one value |
/// Foreign text stays text
#[test]
fn no_value_adds_a_member() {
    let attack = r#"1,"b":2"#;
    for schema in ["integer", "number", "boolean", "object"] {
        assert!(read(&one(&json!({ "type": schema }), true), attack).is_err(), "{schema}");
    }
    let text = read(&one(&json!({"type": "string"}), true), r#"","b":"x"#).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"a": r#"","b":"x"#}));
    let named = form(&json!({ "properties": { "a\",\"b": { "type": "integer" } } }));
    let value: Value = serde_json::from_str(&read(&named, "1").unwrap()).unwrap();
    assert_eq!(value, json!({ "a\",\"b": 1 }));
}

/// Attack: remote | the default of a number is a text with direction marks | the field of the number is
/// empty | Foreign text stays text
#[test]
fn a_default_of_another_type_or_with_hidden_characters_is_not_shown() {
    let text = "\u{202e}001";
    for (schema, expected) in [
        (json!({"type": "number", "default": text}), None),
        (json!({"type": "integer", "default": [text]}), None),
        (json!({"type": "boolean", "default": text}), None),
        (json!({"type": "string", "default": {text: 1}}), None),
        (json!({"type": "string", "default": "a\u{202e}b"}), None),
        (json!({"type": "object", "default": {"a": "\u{200b}"}}), None),
        (json!({"type": "array", "items": {"type": "number"}, "default": [1, text]}), Some("1")),
        (json!({"type": "number", "default": 1.5}), Some("1.5")),
    ] {
        assert_eq!(one(&schema, false).defaults().get("f0"), expected, "{schema}");
    }
}

#[test]
fn an_optional_text_is_absent_and_a_required_one_is_empty() {
    let text = json!({"type": "string"});
    assert_eq!(read(&one(&text, false), "").unwrap(), "{}");
    assert_eq!(read(&one(&text, true), "").unwrap(), r#"{"a":""}"#);
    assert_eq!(read(&one(&text, true), "a\r\nb").unwrap(), r#"{"a":"a\nb"}"#);
    let list = json!({"type": "array", "items": {"type": "string"}});
    assert_eq!(read(&one(&list, true), "").unwrap(), r#"{"a":[]}"#);
    assert_eq!(read(&one(&list, false), "").unwrap(), "{}");
}

#[test]
fn a_schema_with_more_fields_than_a_form_has_no_form() {
    let schema = |count: usize| {
        let properties: Map<_, _> = (0..count).map(|at| (at.to_string(), json!({}))).collect();
        json!({ "properties": properties })
    };
    assert!(ToolForm::from_schema(&schema(MAX_FORM_FIELDS)).is_some());
    assert!(ToolForm::from_schema(&schema(MAX_FORM_FIELDS + 1)).is_none());
    let many: Vec<_> = (0..=MAX_OPTIONS).collect();
    assert_eq!(field_kind(&json!({ "enum": many })), FieldKind::Json);
}

#[test]
fn a_default_is_the_value_of_its_field() {
    let schema = json!({ "properties": {
        "a": {"type": "string", "default": "x"},
        "b": {"enum": ["p", "q"], "default": "q"},
        "c": {"type": "array", "items": {"enum": [1, 2, 3]}, "default": [1, 3]},
        "d": {"type": "object", "default": {"k": [1]}},
        "e": {"type": "boolean", "default": false},
    } });
    let form = form(&schema);
    let arguments: Value =
        serde_json::from_str(form.read(&form.defaults()).unwrap().get()).unwrap();
    let expected = json!({"a": "x", "b": "q", "c": [1, 3], "d": {"k": [1]}, "e": false});
    assert_eq!(arguments, expected);
}

/// A schema with a value of it that a form can express.
fn argument() -> impl Strategy<Value = (Value, Value)> {
    // A browser sends every line break as two characters, and omits NUL.
    let text = || "[^\r\0]{0,12}";
    let line = || "[^\r\n\0\u{b}\u{c}\u{85}\u{2028}\u{2029}]{0,6}x";
    let integer = || any::<i64>().prop_map(|number| json!(number));
    let number = || (-1.0e9..1.0e9).prop_map(|number: f64| json!(number));
    let choice = prop::collection::vec(line(), 1..5);
    proptest::prop_oneof![
        text().prop_map(|text| (json!({"type": "string"}), json!(text))),
        integer().prop_map(|number| (json!({"type": "integer"}), number)),
        number().prop_map(|number| (json!({"type": "number"}), number)),
        any::<bool>().prop_map(|known| (json!({"type": "boolean"}), json!(known))),
        choice.prop_flat_map(|options| {
            (Just(json!({ "enum": options })), 0..options.len()).prop_map(|(schema, at)| {
                let value = schema["enum"][at].clone();
                (schema, value)
            })
        }),
        prop::collection::vec(line(), 1..5).prop_map(|lines| {
            (json!({"type": "array", "items": {"type": "string"}}), json!(lines))
        }),
        prop::collection::vec(integer(), 1..5).prop_map(|numbers| {
            (json!({"type": "array", "items": {"type": "integer"}}), json!(numbers))
        }),
        prop::collection::btree_map(line(), number(), 0..3)
            .prop_map(|object| (json!({"type": "object"}), json!(object))),
    ]
}

/// Returns what a browser sends for the fields of a page: it decodes the values of the controls, and
/// sends line breaks as two characters.
fn sent_by_browser(page: &str) -> Vec<u8> {
    let decode = |text: &str| {
        let pairs =
            [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
        pairs.iter().fold(text.to_owned(), |text, (entity, plain)| text.replace(entity, plain))
    };
    let mut pairs = url::form_urlencoded::Serializer::new(String::new());
    for part in page.split("<div class=\"field\">").skip(1) {
        let name = part.split("name=\"").nth(1).unwrap().split('"').next().unwrap();
        let value = if let Some(area) = part.split("<textarea").nth(1) {
            let content = area.split_once('>').unwrap().1.split("</textarea>").next().unwrap();
            decode(content.strip_prefix('\n').unwrap_or(content))
        } else if let Some(select) = part.split("<select").nth(1) {
            let chosen = select.split(" selected>").next().unwrap();
            chosen.rsplit("value=\"").next().unwrap().split('"').next().unwrap().to_owned()
        } else {
            decode(part.split("value=\"").nth(1).unwrap().split('"').next().unwrap())
        };
        pairs.append_pair(name, &value.replace('\n', "\r\n"));
    }
    pairs.finish().into_bytes()
}

proptest! {
    #[test]
    fn arguments_pass_through_a_form_and_a_browser_unchanged(
        arguments in prop::collection::btree_map("[^\0]{0,8}", argument(), 0..6),
    ) {
        let properties: Map<_, _> =
            arguments.iter().map(|(name, (schema, _))| (name.clone(), schema.clone())).collect();
        let required: Vec<&String> = arguments.keys().collect();
        let form = form(&json!({ "properties": properties, "required": required }));
        let values = arguments.values().enumerate();
        let fields = Fields::from_pairs(values.flat_map(|(at, (_, value))| form.field_values(at, value)));
        let mut page = Html::new();
        form.write(&mut page, &fields, &[]);
        let sent = Fields::parse(&sent_by_browser(page.as_str()));
        let read = form.read(&sent).map_err(|problems| TestCaseError::fail(format!("{problems:?}")))?;
        let expected: Map<_, _> =
            arguments.into_iter().map(|(name, (_, value))| (name, value)).collect();
        proptest::prop_assert_eq!(serde_json::from_str::<Value>(read.get()).unwrap(), Value::from(expected));
    }
}
