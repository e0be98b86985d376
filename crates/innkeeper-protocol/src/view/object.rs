//! View of selected members of a JSON object.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::ViewError;
use crate::id::RequestId;
use crate::raw_text::from_checked;
use crate::{skim, text};

/// The selected members of one object, found in one pass.
pub(crate) struct ObjectView<'a, const N: usize> {
    pointer: String,
    names: [&'static str; N],
    values: [Option<&'a str>; N],
}

impl<'a, const N: usize> ObjectView<'a, N> {
    /// Finds the members `names` of the object `raw`.
    pub(crate) fn from_raw(raw: &'a RawValue, names: [&'static str; N]) -> Result<Self, ViewError> {
        Self::from_raw_at(String::new(), Some(raw.get()), names)
    }

    /// Like [`ObjectView::from_raw`], for a value found at `pointer`.
    pub(crate) fn from_raw_at(
        pointer: String,
        raw: Option<&'a str>,
        names: [&'static str; N],
    ) -> Result<Self, ViewError> {
        let Some(object) = raw.filter(|raw| raw.starts_with('{')) else {
            return Err(ViewError::new(pointer, "an object", raw));
        };
        let mut values = [None; N];
        for (key, value) in skim::members(object) {
            if let Some(at) = names.iter().position(|name| text::key_is(key, name)) {
                values[at] = Some(value).filter(|value| *value != "null");
            }
        }
        Ok(Self { pointer, names, values })
    }

    /// Returns the raw member; `null` counts as absent.
    pub(crate) fn get(&self, name: &'static str) -> Option<&'a str> {
        let at = self.names.iter().position(|known| *known == name);
        debug_assert!(at.is_some(), "`{name}` is not one of the selected members");
        self.values[at?]
    }

    pub(crate) fn string(&self, name: &'static str) -> Option<String> {
        self.text(name).map(Into::into)
    }

    /// Returns a string, borrowed if it has no escapes.
    pub(crate) fn text(&self, name: &'static str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(text::decode_string)
    }

    pub(crate) fn bool(&self, name: &'static str) -> Option<bool> {
        self.get(name).and_then(parse_bool)
    }

    pub(crate) fn unsigned(&self, name: &'static str) -> Option<u64> {
        match self.get(name).and_then(RequestId::from_raw)? {
            RequestId::Integer(number) => u64::try_from(number).ok(),
            RequestId::String(_) => None,
        }
    }

    /// Returns a finite number.
    pub(crate) fn float(&self, name: &'static str) -> Option<f64> {
        self.get(name).and_then(|raw| raw.parse().ok()).filter(|number: &f64| number.is_finite())
    }

    /// Returns an owned copy of a member of any type.
    pub(crate) fn raw(&self, name: &'static str) -> Option<Box<RawValue>> {
        self.get(name).and_then(boxed_raw)
    }

    /// Returns an owned copy of a member, if the member is an object.
    pub(crate) fn raw_object(&self, name: &'static str) -> Option<Box<RawValue>> {
        self.get(name).filter(|raw| raw.starts_with('{')).and_then(boxed_raw)
    }

    /// Returns a string; a present member of another type is an error.
    pub(crate) fn optional_string(
        &self,
        name: &'static str,
    ) -> Result<Option<Cow<'a, str>>, ViewError> {
        let Some(raw) = self.get(name) else { return Ok(None) };
        let text = text::decode_string(raw);
        text.map(Some).ok_or_else(|| self.unexpected_type(name, "a string"))
    }

    /// Returns the raw text of an object; a present member of another type is an error.
    pub(crate) fn optional_object(&self, name: &'static str) -> Result<Option<&'a str>, ViewError> {
        let raw = self.get(name);
        match raw {
            Some(raw) if !raw.starts_with('{') => Err(self.unexpected_type(name, "an object")),
            _ => Ok(raw),
        }
    }

    /// Returns the raw text of a string or a number; a present member of another type is an error.
    pub(crate) fn optional_token(&self, name: &'static str) -> Result<Option<&'a str>, ViewError> {
        let raw = self.get(name);
        match raw {
            Some(raw) if !raw.starts_with(|first| matches!(first, '"' | '-' | '0'..='9')) => {
                Err(self.unexpected_type(name, "a string or a number"))
            }
            _ => Ok(raw),
        }
    }

    pub(crate) fn required_string(&self, name: &'static str) -> Result<String, ViewError> {
        self.required_text(name).map(Into::into)
    }

    /// Returns a string, borrowed if it has no escapes.
    pub(crate) fn required_text(&self, name: &'static str) -> Result<Cow<'a, str>, ViewError> {
        self.text(name).ok_or_else(|| self.unexpected_type(name, "a string"))
    }

    pub(crate) fn required_float(&self, name: &'static str) -> Result<f64, ViewError> {
        self.float(name).ok_or_else(|| self.unexpected_type(name, "a finite number"))
    }

    pub(crate) fn required_id(&self, name: &'static str) -> Result<RequestId, ViewError> {
        let id = self.get(name).and_then(RequestId::from_raw);
        id.ok_or_else(|| self.unexpected_type(name, "a string or an integer"))
    }

    pub(crate) fn required_object(&self, name: &'static str) -> Result<Box<RawValue>, ViewError> {
        self.raw_object(name).ok_or_else(|| self.unexpected_type(name, "an object"))
    }

    /// Returns the raw text of an array.
    pub(crate) fn required_array(&self, name: &'static str) -> Result<&'a str, ViewError> {
        let array = self.get(name).filter(|raw| raw.starts_with('['));
        array.ok_or_else(|| self.unexpected_type(name, "an array"))
    }

    /// Returns the pointer to a member, present or absent.
    pub(crate) fn pointer_to(&self, name: &str) -> String {
        child_pointer(&self.pointer, name)
    }

    /// Returns the error for a member that is missing or has the wrong type.
    pub(crate) fn unexpected_type(&self, name: &'static str, expected: &'static str) -> ViewError {
        ViewError::new(self.pointer_to(name), expected, self.get(name))
    }
}

/// Returns the pointer to the member `name` of the value at `pointer`.
pub(crate) fn child_pointer(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Copies valid JSON text.
pub(crate) fn boxed_raw(raw: &str) -> Option<Box<RawValue>> {
    from_checked(raw).map(ToOwned::to_owned)
}

pub(super) fn parse_bool(raw: &str) -> Option<bool> {
    match raw {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}
