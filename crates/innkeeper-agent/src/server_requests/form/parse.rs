//! Parses the schema of a form.

use innkeeper_host::display_safe;
use serde_json::{Map, Number, Value};

use super::check::compare;
use super::{ChoiceOption, FieldKind, Form, FormField, TextFormat};

/// Maximum number of fields in a form; a user does not fill in more.
pub(super) const MAX_FIELDS: usize = 100;

/// Maximum number of options of a field; a list of all countries fits.
pub(super) const MAX_OPTIONS: usize = 1000;

/// Why a schema is no form that MCP permits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// The schema is not an object schema.
    #[error("`requestedSchema` is no object schema")]
    NoObjectSchema,
    /// The form has too many fields.
    #[error("`requestedSchema` has more than {MAX_FIELDS} fields")]
    TooManyFields,
    /// `required` is not a list of field names.
    #[error("`required` is no list of field names")]
    InvalidRequired,
    /// The definition of a field is invalid.
    #[error("field `{}`: {reason}", display_safe(.field))]
    InvalidField {
        /// The name of the field.
        field: String,
        /// Why the definition is invalid.
        reason: &'static str,
    },
}

impl Form {
    /// Parses the value of `requestedSchema`.
    ///
    /// # Errors
    ///
    /// Returns an error if a user cannot fill in the form: a field has a type that MCP does not
    /// permit in forms, no value is valid for a field, or there are more than 100 fields or more than
    /// 1,000 options.
    pub fn parse(schema: &Value) -> Result<Self, FormError> {
        let schema = schema.as_object().ok_or(FormError::NoObjectSchema)?;
        if schema.get("type").is_some_and(|kind| kind != "object") {
            return Err(FormError::NoObjectSchema);
        }
        let no_properties = Map::new();
        let properties = match schema.get("properties") {
            None => &no_properties,
            Some(properties) => properties.as_object().ok_or(FormError::NoObjectSchema)?,
        };
        if properties.len() > MAX_FIELDS {
            return Err(FormError::TooManyFields);
        }
        let required = parse_required(schema, properties)?;
        let fields = properties.iter().map(|(name, definition)| {
            let field = parse_field(name, definition)
                .map_err(|reason| FormError::InvalidField { field: name.clone(), reason })?;
            Ok(FormField { is_required: required.contains(&name.as_str()), ..field })
        });
        Ok(Self { fields: fields.collect::<Result<_, FormError>>()? })
    }
}

fn parse_required<'s>(
    schema: &'s Map<String, Value>,
    properties: &Map<String, Value>,
) -> Result<Vec<&'s str>, FormError> {
    let Some(required) = schema.get("required") else { return Ok(Vec::new()) };
    let names = required.as_array().ok_or(FormError::InvalidRequired)?;
    names
        .iter()
        .map(|name| name.as_str().filter(|name| properties.contains_key(*name)))
        .collect::<Option<_>>()
        .ok_or(FormError::InvalidRequired)
}

fn parse_field(name: &str, definition: &Value) -> Result<FormField, &'static str> {
    let definition = definition.as_object().ok_or("the definition is no object")?;
    let text = |key: &str| definition.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut field = FormField {
        name: name.to_owned(),
        title: text("title"),
        description: text("description"),
        kind: parse_kind(definition)?,
        is_required: false,
        default: None,
    };
    field.default = definition.get("default").filter(|value| field.check(value).is_ok()).cloned();
    Ok(field)
}

fn parse_kind(definition: &Map<String, Value>) -> Result<FieldKind, &'static str> {
    match definition.get("type").and_then(Value::as_str) {
        Some("string") => match parse_options(definition, "oneOf")? {
            Some(options) => Ok(FieldKind::SingleChoice { options }),
            None => parse_text(definition),
        },
        Some(kind @ ("number" | "integer")) => parse_number(definition, kind == "integer"),
        Some("boolean") => Ok(FieldKind::Boolean),
        Some("array") => parse_multi_choice(definition),
        Some(_) | None => Err("the type is not string, number, integer, boolean or array"),
    }
}

fn parse_text(definition: &Map<String, Value>) -> Result<FieldKind, &'static str> {
    let min_length = parse_count(definition, "minLength")?;
    let max_length = parse_count(definition, "maxLength")?;
    check_counts(min_length, max_length)?;
    let format = match definition.get("format").and_then(Value::as_str) {
        Some("email") => Some(TextFormat::Email),
        Some("uri") => Some(TextFormat::Uri),
        Some("date") => Some(TextFormat::Date),
        Some("date-time") => Some(TextFormat::DateTime),
        Some(_) | None => None,
    };
    Ok(FieldKind::Text { format, min_length, max_length })
}

fn parse_number(
    definition: &Map<String, Value>,
    is_integer: bool,
) -> Result<FieldKind, &'static str> {
    let limit = |key: &str| -> Result<Option<Number>, &'static str> {
        match definition.get(key) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.clone())),
            Some(_) => Err("a limit is no number"),
        }
    };
    let minimum = limit("minimum")?;
    let maximum = limit("maximum")?;
    if let (Some(minimum), Some(maximum)) = (&minimum, &maximum)
        && compare(minimum, maximum).is_gt()
    {
        return Err("the minimum is greater than the maximum");
    }
    Ok(FieldKind::Number { is_integer, minimum, maximum })
}

fn parse_multi_choice(definition: &Map<String, Value>) -> Result<FieldKind, &'static str> {
    let items = definition.get("items").and_then(Value::as_object);
    let items = items.ok_or("a list has no `items`")?;
    if items.get("type").is_some_and(|kind| kind != "string") {
        return Err("the items of a list are no texts");
    }
    let options = match parse_options(items, "anyOf")? {
        Some(options) => options,
        // Servers also write `oneOf` here.
        None => parse_options(items, "oneOf")?.ok_or("the items of a list have no options")?,
    };
    let min_items = parse_count(definition, "minItems")?;
    let max_items = parse_count(definition, "maxItems")?;
    check_counts(min_items, max_items)?;
    if min_items.is_some_and(|minimum| minimum > options.len() as u64) {
        return Err("a list needs more options than there are");
    }
    Ok(FieldKind::MultiChoice { options, min_items, max_items })
}

/// Parses the options of a choice: `enum`, with `enumNames` if present, or titled constants below
/// `titled_key`. Returns `None` for a definition without options.
fn parse_options(
    definition: &Map<String, Value>,
    titled_key: &str,
) -> Result<Option<Vec<ChoiceOption>>, &'static str> {
    let options = match (definition.get(titled_key), definition.get("enum")) {
        (Some(titled), _) => parse_titled_options(titled)?,
        (None, Some(values)) => parse_enum(values, definition.get("enumNames"))?,
        (None, None) => return Ok(None),
    };
    match options.len() {
        0 => Err("there are no options"),
        1..=MAX_OPTIONS => Ok(Some(options)),
        _ => Err("there are more than 1,000 options"),
    }
}

fn parse_titled_options(titled: &Value) -> Result<Vec<ChoiceOption>, &'static str> {
    let options = titled.as_array().and_then(|titled| {
        titled
            .iter()
            .map(|option| {
                let value = option.get("const")?.as_str()?.to_owned();
                let title = option.get("title").and_then(Value::as_str).map(str::to_owned);
                Some(ChoiceOption { value, title })
            })
            .collect()
    });
    options.ok_or("an option has no `const` with a text")
}

fn parse_enum(values: &Value, titles: Option<&Value>) -> Result<Vec<ChoiceOption>, &'static str> {
    let titles = titles.and_then(Value::as_array);
    let values = values.as_array();
    let options = values.and_then(|values| {
        values
            .iter()
            .enumerate()
            .map(|(index, value)| {
                let title =
                    titles.and_then(|titles| titles.get(index)?.as_str().map(str::to_owned));
                Some(ChoiceOption { value: value.as_str()?.to_owned(), title })
            })
            .collect()
    });
    options.ok_or("`enum` is no list of texts")
}

/// Parses a limit on a length or a number of items. A fraction of zero is permitted: `2.0`.
fn parse_count(definition: &Map<String, Value>, key: &str) -> Result<Option<u64>, &'static str> {
    let Some(count) = definition.get(key) else { return Ok(None) };
    let count = count.as_u64().or_else(|| {
        let whole = count.as_f64().filter(|count| *count >= 0.0 && count.fract() == 0.0);
        whole.map(|count| count as u64)
    });
    count.map(Some).ok_or("a limit is no natural number")
}

fn check_counts(minimum: Option<u64>, maximum: Option<u64>) -> Result<(), &'static str> {
    match (minimum, maximum) {
        (Some(minimum), Some(maximum)) if minimum > maximum => {
            Err("the minimum is greater than the maximum")
        }
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}
