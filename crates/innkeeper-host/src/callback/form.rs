//! Detection of elicitation forms that ask for a secret.
//!
//! The check reads every text of a form that a user sees, in the plain form that the guard also
//! uses: a word of another script or in spaced letters is the same word.

mod secret_words;

use innkeeper_protocol::skim;
use serde_json::Value;
use serde_json::value::RawValue;

use secret_words::{asks_for_secret, is_secret_label};

/// Maximum length of a displayed field name, in characters.
pub(super) const MAX_SHOWN_CHARS: usize = 64;

/// Maximum length of a checked name or title, in bytes. A longer text is a sentence.
const MAX_LABEL_BYTES: usize = 128;

/// Maximum length of all texts of a form, in bytes: a user reads less.
const MAX_FORM_BYTES: usize = 64 << 10;

/// Maximum number of objects inside one another in a form.
const MAX_FORM_DEPTH: usize = 8;

/// Why a form is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormProblem {
    /// The name of the first field that asks for a secret, or the member that does.
    Secret(String),
    /// The form was not checked, for this reason.
    NotChecked(&'static str),
}

/// Returns why a form is refused; `None` for a request without a form.
///
/// A request with fields is a form in any mode because the callback may ignore the mode. The
/// function checks names, titles, descriptions and the format `password` of fields that accept text,
/// and the message and the labels of choices if there is such a field. Booleans and choices are not
/// secrets.
pub(super) fn find_form_problem(params: Option<&RawValue>) -> Option<FormProblem> {
    let params = params?.get();
    let schema = skim::member(params, "requestedSchema")?;
    if schema == "null" {
        return None;
    }
    if params.len() > MAX_FORM_BYTES {
        return Some(FormProblem::NotChecked("a form must not be longer than 64 KiB"));
    }
    let (Ok(params), Ok(schema)) =
        (serde_json::from_str::<Value>(params), serde_json::from_str::<Value>(schema))
    else {
        return Some(FormProblem::NotChecked("a form must be valid Unicode"));
    };
    let mut form = FormFields::default();
    if !form.read_fields(&schema, MAX_FORM_DEPTH) {
        return Some(FormProblem::NotChecked("a form must not have more than 8 levels"));
    }
    if !form.accepts_text {
        return None;
    }
    let secret = form.secret_field.or_else(|| {
        let of_form = ["message", "title", "description"]
            .into_iter()
            .flat_map(|name| [(name, &params[name]), (name, &schema[name])]);
        let mut texts = of_form.chain(form.choices);
        texts
            .find(|(_, text)| text.as_str().is_some_and(asks_for_secret))
            .map(|(name, _)| name.to_owned())
    });
    secret.map(FormProblem::Secret)
}

/// What the fields of a form ask for.
#[derive(Default)]
struct FormFields<'f> {
    /// Whether a field accepts text of the user.
    accepts_text: bool,
    secret_field: Option<String>,
    /// The texts of fields that do not accept text.
    choices: Vec<(&'f str, &'f Value)>,
}

impl<'f> FormFields<'f> {
    fn read_fields(&mut self, schema: &'f Value, levels: usize) -> bool {
        let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
            return true;
        };
        fields.iter().all(|(name, field)| self.read_field(name, field, levels))
    }

    fn read_field(&mut self, name: &'f str, field: &'f Value, levels: usize) -> bool {
        let Some(levels) = levels.checked_sub(1) else { return false };
        if is_choice(field) {
            self.choices.push((name, &field["title"]));
            self.choices.push((name, &field["description"]));
            self.read_choices(name, field);
            return true;
        }
        self.accepts_text = true;
        let is_secret = field.get("format").is_some_and(|format| format == "password")
            || is_secret_label(name)
            || ["title", "description"].iter().any(|member| {
                let text = field[*member].as_str();
                text.is_some_and(|text| is_secret_label(text) || asks_for_secret(text))
            });
        if is_secret && self.secret_field.is_none() {
            self.secret_field = Some(name.to_owned());
        }
        let item_has_fields = self.read_fields(&field["items"], levels);
        item_has_fields && self.read_fields(field, levels)
    }

    fn read_choices(&mut self, name: &'f str, field: &'f Value) {
        for field in [field, &field["items"]] {
            for member in ["enum", "enumNames"] {
                self.choices.extend(array(&field[member]).map(|label| (name, label)));
            }
            for member in ["oneOf", "anyOf"] {
                let labels = array(&field[member]).map(|choice| (name, &choice["title"]));
                self.choices.extend(labels);
            }
        }
    }
}

/// Returns whether a field accepts only given values.
fn is_choice(field: &Value) -> bool {
    field.get("type").is_some_and(|kind| kind == "boolean")
        || has_fixed_values(field)
        || has_fixed_values(&field["items"])
}

fn has_fixed_values(field: &Value) -> bool {
    field.get("enum").is_some()
        || field.get("const").is_some()
        || ["oneOf", "anyOf"].into_iter().any(|member| {
            let mut choices = array(&field[member]).peekable();
            choices.peek().is_some() && choices.all(|choice| choice.get("const").is_some())
        })
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests;
