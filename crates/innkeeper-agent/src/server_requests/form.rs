//! The form of an elicitation: the fields that a server requests of the user.
//!
//! A [`Form`] contains typed fields, so that each user interface can show the form and check the
//! input with the same rules.

mod check;
mod field_input;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::{Map, Number, Value};

pub use check::{FieldError, FieldProblem};
pub use parse::FormError;

/// The form of an elicitation, with the fields in the order of the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Form {
    fields: Vec<FormField>,
}

/// One field of a form. All texts come from the server.
#[derive(Clone, Debug, PartialEq)]
pub struct FormField {
    /// The key of the value in the response.
    pub name: String,
    /// The label for the user.
    pub title: Option<String>,
    /// A longer explanation for the user.
    pub description: Option<String>,
    /// The permitted values.
    pub kind: FieldKind,
    /// Whether the form needs a value of the field.
    pub is_required: bool,
    /// The value that the user interface proposes. A default that the field itself rejects is
    /// dropped.
    pub default: Option<Value>,
}

/// The permitted values of a field. Limits are inclusive.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// A text.
    Text {
        /// The format; `None` also for a format that MCP does not define.
        format: Option<TextFormat>,
        /// Minimum length in characters.
        min_length: Option<u64>,
        /// Maximum length in characters.
        max_length: Option<u64>,
    },
    /// A number.
    Number {
        /// Whether the number must be an integer.
        is_integer: bool,
        /// The smallest number.
        minimum: Option<Number>,
        /// The largest number.
        maximum: Option<Number>,
    },
    /// `true` or `false`.
    Boolean,
    /// One of several options.
    SingleChoice {
        /// The options, at least one.
        options: Vec<ChoiceOption>,
    },
    /// A list of different options.
    MultiChoice {
        /// The options, at least one.
        options: Vec<ChoiceOption>,
        /// Minimum number of chosen options.
        min_items: Option<u64>,
        /// Maximum number of chosen options.
        max_items: Option<u64>,
    },
}

/// The format of a text, checked by [`FormField::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// An email address.
    Email,
    /// An absolute URI.
    Uri,
    /// A date: `2026-07-28`.
    Date,
    /// A date with a time of day and an offset: `2026-07-28T12:00:00Z`.
    DateTime,
}

/// An option of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceOption {
    /// The value in the response.
    pub value: String,
    /// The label for the user. Default: the value.
    pub title: Option<String>,
}

impl Form {
    /// Returns the fields in the order of the server.
    pub fn fields(&self) -> &[FormField] {
        &self.fields
    }

    /// Returns the field with this name.
    pub fn field(&self, name: &str) -> Option<&FormField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the default values, for a user interface that shows the form filled in.
    pub fn defaults(&self) -> Map<String, Value> {
        let defaults = self.fields.iter();
        defaults.filter_map(|field| Some((field.name.clone(), field.default.clone()?))).collect()
    }
}

impl FormField {
    /// Returns the title, or the name of a field without a title.
    pub fn label(&self) -> &str {
        self.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&self.name)
    }
}

impl ChoiceOption {
    /// Returns the title, or the value of an option without a title.
    pub fn label(&self) -> &str {
        self.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&self.value)
    }
}

impl fmt::Display for TextFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Email => "an email address",
            Self::Uri => "a URI such as `https://example.com/`",
            Self::Date => "a date such as `2026-07-28`",
            Self::DateTime => "a date and time such as `2026-07-28T12:00:00Z`",
        })
    }
}
