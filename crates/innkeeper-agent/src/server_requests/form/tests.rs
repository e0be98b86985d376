//! Tests of forms.

use proptest::prelude::*;
use serde_json::json;

use super::parse::{MAX_FIELDS, MAX_OPTIONS};
use super::*;

fn form(properties: &Value) -> Form {
    Form::parse(&json!({"type": "object", "properties": properties})).unwrap()
}

fn field(definition: &Value) -> FormField {
    form(&json!({ "x": definition })).fields[0].clone()
}

fn field_error(definition: &Value) -> FormError {
    Form::parse(&json!({"type": "object", "properties": {"x": definition}})).unwrap_err()
}

fn text(format: Option<TextFormat>, min_length: Option<u64>, max_length: Option<u64>) -> FieldKind {
    FieldKind::Text { format, min_length, max_length }
}

fn options(options: &[(&str, Option<&str>)]) -> Vec<ChoiceOption> {
    let to_option = |(value, title): &(&str, Option<&str>)| ChoiceOption {
        value: (*value).to_owned(),
        title: title.map(str::to_owned),
    };
    options.iter().map(to_option).collect()
}

#[test]
fn each_field_of_the_specification_has_its_kind_in_the_order_of_the_server() {
    let titled = json!([{"const": "r", "title": "Red"}, {"const": "g"}]);
    let schema = json!({
        "type": "object",
        "properties": {
            "z": {"type": "string", "title": "Mail", "description": "Yours", "format": "email"},
            "name": {"type": "string", "minLength": 2, "maxLength": 5.0, "default": "Ada"},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "share": {"type": "number", "minimum": 0.5},
            "sure": {"type": "boolean", "default": true},
            "one": {"type": "string", "enum": ["r", "g"], "default": "g"},
            "named": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red"]},
            "titled": {"type": "string", "oneOf": titled},
            "many": {
                "type": "array", "minItems": 1, "maxItems": 2, "default": ["r"],
                "items": {"type": "string", "enum": ["r", "g"]},
            },
            "many_titled": {"type": "array", "items": {"anyOf": titled}},
        },
        "required": ["age", "z"],
    });
    let form = Form::parse(&schema).unwrap();
    let shown: Vec<_> = form.fields().iter().map(|field| (&*field.name, &field.kind)).collect();
    let number = |minimum: Value, maximum: Value| {
        let limit = |value: Value| serde_json::from_value::<Option<Number>>(value).unwrap();
        let is_integer = maximum.is_i64();
        FieldKind::Number { is_integer, minimum: limit(minimum), maximum: limit(maximum) }
    };
    let (plain, red) = (options(&[("r", None), ("g", None)]), ("r", Some("Red")));
    let (named, both) = (options(&[red, ("g", None)]), (Some(1), Some(2)));
    let many =
        |options, (min_items, max_items)| FieldKind::MultiChoice { options, min_items, max_items };
    assert_eq!(
        shown,
        [
            ("z", &text(Some(TextFormat::Email), None, None)),
            ("name", &text(None, Some(2), Some(5))),
            ("age", &number(json!(0), json!(150))),
            ("share", &number(json!(0.5), Value::Null)),
            ("sure", &FieldKind::Boolean),
            ("one", &FieldKind::SingleChoice { options: plain.clone() }),
            ("named", &FieldKind::SingleChoice { options: named.clone() }),
            ("titled", &FieldKind::SingleChoice { options: named.clone() }),
            ("many", &many(plain, both)),
            ("many_titled", &many(named, (None, None))),
        ]
    );
    let required: Vec<_> = form.fields().iter().filter(|field| field.is_required).collect();
    assert_eq!(required.iter().map(|field| &*field.name).collect::<Vec<_>>(), ["z", "age"]);
    assert_eq!((required[0].label(), required[1].label()), ("Mail", "age"));
    let defaults = json!({"name": "Ada", "sure": true, "one": "g", "many": ["r"]});
    assert_eq!(Value::Object(form.defaults()), defaults);
}

/// Attack: data | an elicitation has a nested form, too many fields, or a field without a valid
/// value | the form is rejected before the user sees the form | No unbounded memory
#[test]
fn a_form_that_a_user_cannot_fill_in_is_rejected() {
    for schema in [json!(null), json!([]), json!({"type": "string"}), json!({"properties": 1})] {
        assert_eq!(Form::parse(&schema), Err(FormError::NoObjectSchema), "{schema}");
    }
    for required in [json!("x"), json!([1]), json!(["other"])] {
        let schema = json!({"properties": {"x": {"type": "boolean"}}, "required": required});
        assert_eq!(Form::parse(&schema), Err(FormError::InvalidRequired), "{schema}");
    }
    for definition in [
        json!(true),
        json!({}),
        json!({"type": "object", "properties": {}}),
        json!({"type": ["string", "null"]}),
        json!({"type": "string", "enum": []}),
        json!({"type": "string", "enum": [1]}),
        json!({"type": "string", "oneOf": [{"title": "no value"}]}),
        json!({"type": "string", "minLength": -1}),
        json!({"type": "string", "minLength": 3, "maxLength": 2}),
        json!({"type": "integer", "minimum": "0"}),
        json!({"type": "integer", "minimum": 9007199254740993_i64, "maximum": 9007199254740992_i64}),
        json!({"type": "array"}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "array", "items": {"type": "integer", "enum": ["1"]}}),
        json!({"type": "array", "items": {"enum": ["a"]}, "minItems": 2}),
    ] {
        let error = field_error(&definition);
        assert!(matches!(error, FormError::InvalidField { .. }), "{definition}: {error}");
    }
    let fields = |count| (0..count).map(|n| (n.to_string(), json!({"type": "boolean"}))).collect();
    let of = |count| Form::parse(&json!({"properties": Value::Object(fields(count))}));
    assert_eq!(of(MAX_FIELDS).unwrap().fields().len(), MAX_FIELDS);
    assert_eq!(of(MAX_FIELDS + 1), Err(FormError::TooManyFields));
    let choice = |count: usize| {
        let values: Vec<_> = (0..count).map(|number| number.to_string()).collect();
        json!({"type": "string", "enum": values})
    };
    field(&choice(MAX_OPTIONS));
    assert!(field_error(&choice(MAX_OPTIONS + 1)).to_string().contains("1,000"));
}

#[test]
fn a_default_that_the_field_rejects_is_dropped() {
    for (definition, default) in [
        (json!({"type": "integer", "default": 3}), Some(json!(3))),
        (json!({"type": "integer", "default": "3"}), None),
        (json!({"type": "integer", "maximum": 2, "default": 3}), None),
        (json!({"type": "string", "enum": ["a"], "default": "b"}), None),
    ] {
        assert_eq!(field(&definition).default, default, "{definition}");
    }
}

#[test]
fn each_rule_of_a_field_is_checked() {
    let integers = json!({"type": "integer", "minimum": 1, "maximum": 9007199254740993_u64});
    let many = json!({
        "type": "array", "minItems": 1, "maxItems": 2, "items": {"enum": ["a", "b", "c"]},
    });
    for (definition, value, expected) in [
        (json!({"type": "string", "minLength": 3}), json!("äöü"), None),
        (json!({"type": "string", "minLength": 3}), json!("ab"), Some("must have at least 3")),
        (json!({"type": "string", "maxLength": 3}), json!("äöü"), None),
        (json!({"type": "string", "maxLength": 3}), json!("abcd"), Some("must have at most 3")),
        (json!({"type": "string"}), json!(1), Some("expected a text")),
        (json!({"type": "string", "format": "email"}), json!("a@b.c"), None),
        (json!({"type": "string", "format": "email"}), json!("a@b@c"), Some("an email address")),
        (json!({"type": "string", "format": "email"}), json!("@b"), Some("an email address")),
        (json!({"type": "string", "format": "uri"}), json!("urn:a:b"), None),
        (json!({"type": "string", "format": "uri"}), json!("/a"), Some("expected a URI")),
        (json!({"type": "string", "format": "date"}), json!("2024-02-29"), None),
        (json!({"type": "string", "format": "date"}), json!("2023-02-29"), Some("expected a date")),
        (json!({"type": "string", "format": "date"}), json!("2024-2-9"), Some("expected a date")),
        (json!({"type": "string", "format": "date"}), json!("+024-02-29"), Some("expected a date")),
        (json!({"type": "string", "format": "date-time"}), json!("2024-02-29T23:59:60Z"), None),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("2024-02-29"),
            Some("expected a date and time"),
        ),
        (json!({"type": "string", "format": "invented"}), json!("anything"), None),
        (integers.clone(), json!(1), None),
        (integers.clone(), json!(0), Some("must be at least 1")),
        (integers.clone(), json!(9007199254740993_u64), None),
        (integers.clone(), json!(9007199254740994_u64), Some("must be at most 9007199254740993")),
        (integers.clone(), json!(2.0), None),
        (integers, json!(2.5), Some("expected an integer")),
        (json!({"type": "number", "maximum": 0.5}), json!(0.5), None),
        (json!({"type": "number", "maximum": 0.5}), json!(1), Some("must be at most 0.5")),
        (json!({"type": "number"}), json!("1"), Some("expected a number")),
        (json!({"type": "boolean"}), json!(false), None),
        (json!({"type": "boolean"}), json!("no"), Some("expected `yes` or `no`")),
        (json!({"type": "string", "enum": ["a"]}), json!("a"), None),
        (json!({"type": "string", "enum": ["a"]}), json!("b\u{1b}"), Some(r"`b\u{1b}` is none")),
        (many.clone(), json!(["a", "c"]), None),
        (many.clone(), json!("a"), Some("expected a list")),
        (many.clone(), json!(["a", 1]), Some("expected a list")),
        (many.clone(), json!(["a", "d"]), Some("`d` is none of the options")),
        (many.clone(), json!(["a", "a"]), Some("`a` is chosen twice")),
        (many.clone(), json!([]), Some("choose at least 1")),
        (many, json!(["a", "b", "c"]), Some("choose at most 2")),
    ] {
        let error = field(&definition).check(&value).err().map(|error| error.to_string());
        let is_expected = match (&error, expected) {
            (Some(error), Some(expected)) => error.contains(expected),
            (error, expected) => error.is_none() && expected.is_none(),
        };
        assert!(is_expected, "{definition} {value}: {error:?}, expected {expected:?}");
    }
}

#[test]
fn a_response_has_the_required_values_and_no_value_without_a_field() {
    let properties = json!({"a": {"type": "boolean"}, "b": {"type": "integer"}});
    let schema = json!({"properties": properties, "required": ["a"]});
    let form = Form::parse(&schema).unwrap();
    let problems = |values: Value| match form.check(values.as_object().unwrap()) {
        Ok(()) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    };
    assert_eq!(problems(json!({"a": true})), [""; 0]);
    assert_eq!(problems(json!({"a": true, "b": 1})), [""; 0]);
    assert_eq!(
        problems(json!({"b": null, "c": 1})),
        [
            "field `a`: a value is required",
            "field `b`: expected an integer",
            "field `c`: the form has no such field",
        ]
    );
}

#[test]
fn the_input_of_a_user_becomes_a_checked_value() {
    let one = json!({"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "1"}]});
    let many = json!({"type": "array", "items": {"enum": ["a", "b", "a, b"]}});
    for (definition, input, expected) in [
        (json!({"type": "string"}), "  two words ", Ok(Some(json!("two words")))),
        (json!({"type": "string"}), " ", Ok(None)),
        (json!({"type": "string", "default": "d"}), "", Ok(Some(json!("d")))),
        (json!({"type": "string", "minLength": 2}), "a", Err("at least 2")),
        (json!({"type": "integer"}), "18446744073709551615", Ok(Some(json!(u64::MAX)))),
        (json!({"type": "integer"}), "-3", Ok(Some(json!(-3)))),
        (json!({"type": "integer"}), "1.5", Err("an integer")),
        (json!({"type": "number"}), "1.5", Ok(Some(json!(1.5)))),
        (json!({"type": "number"}), "inf", Err("a number")),
        (json!({"type": "number"}), "one", Err("a number")),
        (json!({"type": "boolean"}), "YES", Ok(Some(json!(true)))),
        (json!({"type": "boolean"}), "n", Ok(Some(json!(false)))),
        (json!({"type": "boolean"}), "maybe", Err("`yes` or `no`")),
        (one.clone(), "red", Ok(Some(json!("r")))),
        (one.clone(), "2", Ok(Some(json!("1")))),
        (one.clone(), "1", Ok(Some(json!("1")))),
        (one.clone(), "0", Err("`0` is none")),
        (one, "3", Err("`3` is none")),
        (many.clone(), "2, a", Ok(Some(json!(["b", "a"])))),
        (many.clone(), "a, b", Ok(Some(json!(["a, b"])))),
        (many.clone(), "a, a", Err("chosen twice")),
        (many, "a, x", Err("`x` is none")),
    ] {
        match (field(&definition).parse_input(input), expected) {
            (Ok(value), Ok(expected)) => assert_eq!(value, expected, "{definition} {input}"),
            (Err(error), Err(expected)) => {
                assert!(error.to_string().contains(expected), "{definition} {input}: {error}");
            }
            (found, _) => panic!("{definition} {input}: {found:?}"),
        }
    }
    let required = FormField { is_required: true, ..field(&json!({"type": "string"})) };
    assert_eq!(required.parse_input(" "), Err(FieldError::Missing));
}

/// A definition of a field that MCP permits.
fn permitted_definition() -> impl Strategy<Value = Value> {
    let option = prop::sample::subsequence(vec!["a", "b", "a,b", "1", ""], 1..=5);
    let titled = option.clone().prop_map(|values| {
        let titled = values.into_iter().map(|value| json!({"const": value, "title": "T"}));
        Value::from(titled.collect::<Vec<_>>())
    });
    let limits = (prop::option::of(0..4_u8), prop::option::of(4..6_u8));
    let with_limits =
        |definition: Value, keys: [&str; 2], (least, most): (Option<u8>, Option<u8>)| {
            let Value::Object(mut members) = definition else { unreachable!() };
            let limits = keys.into_iter().zip([least, most]);
            members.extend(limits.filter_map(|(key, limit)| Some((key.to_owned(), limit?.into()))));
            Value::Object(members)
        };
    prop_oneof![
        limits.clone().prop_map(move |limits| {
            with_limits(json!({"type": "string"}), ["minLength", "maxLength"], limits)
        }),
        (any::<bool>(), limits).prop_map(move |(is_integer, limits)| {
            let kind = if is_integer { "integer" } else { "number" };
            with_limits(json!({ "type": kind }), ["minimum", "maximum"], limits)
        }),
        Just(json!({"type": "boolean"})),
        option.clone().prop_map(|values| json!({"type": "string", "enum": values})),
        titled.clone().prop_map(|titled| json!({"type": "string", "oneOf": titled})),
        (option, prop::option::of(0..2_u8)).prop_map(move |(values, least)| {
            let items = json!({"type": "string", "enum": values});
            let definition = json!({"type": "array", "uniqueItems": true, "items": items});
            with_limits(definition, ["minItems", "maxItems"], (least, Some(4)))
        }),
        titled.prop_map(|titled| {
            json!({"type": "array", "uniqueItems": true, "items": {"anyOf": titled}})
        }),
    ]
}

/// A value that is often near the limits of [`permitted_definition`].
fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![prop::sample::select(vec!["a", "b", "a,b", "1", ""]), Just("äöüß日本")];
    prop_oneof![
        text.clone().prop_map(Value::from),
        (-1..7_i64).prop_map(Value::from),
        (-2..14_i32).prop_map(|halves| Value::from(f64::from(halves) / 2.0)),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        prop::collection::vec(text.prop_map(Value::from), 0..6).prop_map(Value::from),
        Just(Value::Null),
    ]
}

/// A JSON value with the keywords of forms in wrong places.
fn foreign_definition() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "type",
        "string",
        "integer",
        "number",
        "boolean",
        "array",
        "enum",
        "enumNames",
        "oneOf",
        "anyOf",
        "const",
        "title",
        "items",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "default",
        "format",
        "email",
        "date",
        "date-time",
        "uri",
    ]);
    let leaf = prop_oneof![
        word.clone().prop_map(Value::from),
        any_value(),
        any::<i64>().prop_map(Value::from),
        ".{0,4}".prop_map(Value::from),
    ];
    let nested = leaf.prop_recursive(4, 40, 5, move |inner| {
        let members = prop::collection::vec((word.clone(), inner.clone()), 0..6);
        let object = members.prop_map(|members| {
            members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Value>()
        });
        prop_oneof![prop::collection::vec(inner, 0..5).prop_map(Value::Array), object]
    });
    let kind = prop::sample::select(vec!["string", "integer", "number", "boolean", "array"]);
    (nested, prop::option::of(kind)).prop_map(|(mut definition, kind)| {
        if let (Some(kind), Some(members)) = (kind, definition.as_object_mut()) {
            members.insert("type".to_owned(), kind.into());
        }
        definition
    })
}

proptest! {
    #[test]
    fn a_field_accepts_the_values_that_its_schema_permits(
        definition in permitted_definition(),
        value in any_value(),
    ) {
        let is_valid = jsonschema::is_valid(&definition, &value);
        match Form::parse(&json!({"properties": {"x": definition}})) {
            Ok(form) => {
                let checked = form.field("x").unwrap().check(&value);
                prop_assert_eq!(checked.is_ok(), is_valid, "{} {}: {:?}", definition, value, checked);
            }
            Err(error) => {
                prop_assert!(error.to_string().contains("more options than"), "{}", error);
            }
        }
    }

    /// Attack: data | the schema of an elicitation has arbitrary keywords and values | the parser
    /// returns an error, or a form whose defaults and inputs satisfy the form | Foreign text stays
    /// text
    #[test]
    fn any_schema_gives_an_error_or_a_form_whose_defaults_and_inputs_are_valid(
        definition in foreign_definition(),
        input in ".{0,12}",
    ) {
        if let Ok(form) = Form::parse(&json!({"type": "object", "properties": {"x": definition}})) {
            let field = form.field("x").unwrap();
            let values = field.default.clone().into_iter();
            for value in values.chain(field.parse_input(&input).ok().flatten()) {
                prop_assert_eq!(field.check(&value), Ok(()));
            }
        }
    }
}
