//! Keywords of JSON Schema without subschemas: valid values and affected types.

use serde_json::Value;

use super::type_set::TypeSet;

/// The valid values of a keyword.
#[derive(Debug, Clone, Copy)]
enum ValueConstraint {
    Count,
    Number,
    PositiveNumber,
    String,
    Boolean,
    Array,
    /// An object whose values are lists of names.
    StringLists,
    Any,
}

struct Keyword {
    name: &'static str,
    value_constraint: ValueConstraint,
    /// The types that the keyword restricts.
    types: TypeSet,
    is_assertion: bool,
}

const fn assertion(
    name: &'static str,
    value_constraint: ValueConstraint,
    types: TypeSet,
) -> Keyword {
    Keyword { name, value_constraint, types, is_assertion: true }
}

const fn annotation(name: &'static str, value_constraint: ValueConstraint) -> Keyword {
    Keyword { name, value_constraint, types: TypeSet::ANY, is_assertion: false }
}

const KEYWORDS: &[Keyword] = &[
    assertion("minLength", ValueConstraint::Count, TypeSet::STRING),
    assertion("maxLength", ValueConstraint::Count, TypeSet::STRING),
    assertion("pattern", ValueConstraint::String, TypeSet::STRING),
    assertion("format", ValueConstraint::String, TypeSet::STRING.union(TypeSet::NUMBER)),
    assertion("minimum", ValueConstraint::Number, TypeSet::NUMBER),
    assertion("maximum", ValueConstraint::Number, TypeSet::NUMBER),
    assertion("exclusiveMinimum", ValueConstraint::Number, TypeSet::NUMBER),
    assertion("exclusiveMaximum", ValueConstraint::Number, TypeSet::NUMBER),
    assertion("multipleOf", ValueConstraint::PositiveNumber, TypeSet::NUMBER),
    assertion("minItems", ValueConstraint::Count, TypeSet::ARRAY),
    assertion("maxItems", ValueConstraint::Count, TypeSet::ARRAY),
    assertion("uniqueItems", ValueConstraint::Boolean, TypeSet::ARRAY),
    assertion("minContains", ValueConstraint::Count, TypeSet::ARRAY),
    assertion("maxContains", ValueConstraint::Count, TypeSet::ARRAY),
    assertion("minProperties", ValueConstraint::Count, TypeSet::OBJECT),
    assertion("maxProperties", ValueConstraint::Count, TypeSet::OBJECT),
    assertion("dependentRequired", ValueConstraint::StringLists, TypeSet::OBJECT),
    assertion("const", ValueConstraint::Any, TypeSet::ANY),
    annotation("title", ValueConstraint::String),
    annotation("default", ValueConstraint::Any),
    annotation("examples", ValueConstraint::Array),
    annotation("deprecated", ValueConstraint::Boolean),
    annotation("readOnly", ValueConstraint::Boolean),
    annotation("writeOnly", ValueConstraint::Boolean),
    annotation("contentEncoding", ValueConstraint::String),
    annotation("contentMediaType", ValueConstraint::String),
];

fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name)
}

/// Whether the keyword is known and has a valid value.
pub(super) fn is_well_formed(name: &str, value: &Value) -> bool {
    find(name).is_some_and(|keyword| match keyword.value_constraint {
        ValueConstraint::Count => value.is_u64(),
        ValueConstraint::Number => value.is_number(),
        ValueConstraint::PositiveNumber => value.as_f64().is_some_and(|number| number > 0.0),
        ValueConstraint::String => value.is_string(),
        ValueConstraint::Boolean => value.is_boolean(),
        ValueConstraint::Array => value.is_array(),
        ValueConstraint::StringLists => {
            value.as_object().is_some_and(|all| all.values().all(is_unique_string_list))
        }
        ValueConstraint::Any => true,
    })
}

fn is_unique_string_list(value: &Value) -> bool {
    value.as_array().is_some_and(|names| {
        let mut unique = std::collections::HashSet::new();
        names.iter().all(|name| name.as_str().is_some_and(|name| unique.insert(name)))
    })
}

/// Whether the keyword rejects values.
pub(super) fn is_assertion(name: &str) -> bool {
    find(name).is_some_and(|keyword| keyword.is_assertion)
}

/// Whether the keyword affects one of these types.
pub(super) fn applies_to(name: &str, types: TypeSet) -> bool {
    find(name).is_some_and(|keyword| keyword.types.intersects(types))
}
