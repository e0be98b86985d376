//! The keywords of JSON Schema that hold no schema: what they must look like, whom they concern.

use serde_json::Value;

use super::types::Types;

/// What a keyword's value must be.
#[derive(Debug, Clone, Copy)]
enum Form {
    Count,
    Number,
    Positive,
    Text,
    Flag,
    List,
    /// Lists of names, by name.
    Names,
    Any,
}

struct Keyword {
    name: &'static str,
    form: Form,
    /// The types it says something about.
    about: Types,
    asserts: bool,
}

const fn assertion(name: &'static str, form: Form, about: Types) -> Keyword {
    Keyword { name, form, about, asserts: true }
}

const fn annotation(name: &'static str, form: Form) -> Keyword {
    Keyword { name, form, about: Types::ANY, asserts: false }
}

const ALL: &[Keyword] = &[
    assertion("minLength", Form::Count, Types::STRING),
    assertion("maxLength", Form::Count, Types::STRING),
    assertion("pattern", Form::Text, Types::STRING),
    assertion("format", Form::Text, Types::STRING.or(Types::NUMBER)),
    assertion("minimum", Form::Number, Types::NUMBER),
    assertion("maximum", Form::Number, Types::NUMBER),
    assertion("exclusiveMinimum", Form::Number, Types::NUMBER),
    assertion("exclusiveMaximum", Form::Number, Types::NUMBER),
    assertion("multipleOf", Form::Positive, Types::NUMBER),
    assertion("minItems", Form::Count, Types::ARRAY),
    assertion("maxItems", Form::Count, Types::ARRAY),
    assertion("uniqueItems", Form::Flag, Types::ARRAY),
    assertion("minContains", Form::Count, Types::ARRAY),
    assertion("maxContains", Form::Count, Types::ARRAY),
    assertion("minProperties", Form::Count, Types::OBJECT),
    assertion("maxProperties", Form::Count, Types::OBJECT),
    assertion("dependentRequired", Form::Names, Types::OBJECT),
    assertion("const", Form::Any, Types::ANY),
    annotation("title", Form::Text),
    annotation("default", Form::Any),
    annotation("examples", Form::List),
    annotation("deprecated", Form::Flag),
    annotation("readOnly", Form::Flag),
    annotation("writeOnly", Form::Flag),
    annotation("contentEncoding", Form::Text),
    annotation("contentMediaType", Form::Text),
];

fn find(name: &str) -> Option<&'static Keyword> {
    ALL.iter().find(|keyword| keyword.name == name)
}

/// Whether the keyword is known and its value is what it must be.
pub(super) fn well_formed(name: &str, value: &Value) -> bool {
    find(name).is_some_and(|keyword| match keyword.form {
        Form::Count => value.is_u64(),
        Form::Number => value.is_number(),
        Form::Positive => value.as_f64().is_some_and(|it| it > 0.0),
        Form::Text => value.is_string(),
        Form::Flag => value.is_boolean(),
        Form::List => value.is_array(),
        Form::Names => value.as_object().is_some_and(|all| all.values().all(names)),
        Form::Any => true,
    })
}

/// A list of different strings.
fn names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| {
        let mut seen = std::collections::HashSet::new();
        names.iter().all(|name| name.as_str().is_some_and(|name| seen.insert(name)))
    })
}

/// Whether the keyword refuses anything.
pub(super) fn asserts(name: &str) -> bool {
    find(name).is_some_and(|keyword| keyword.asserts)
}

/// Whether the keyword says something about one of these types.
pub(super) fn is_about(name: &str, types: Types) -> bool {
    find(name).is_some_and(|keyword| keyword.about.meets(types))
}
