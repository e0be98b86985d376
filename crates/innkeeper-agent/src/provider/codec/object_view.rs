//! A view of one JSON object with raw values.
//!
//! The view decodes a value only when it is read. A field of an unexpected type counts as missing
//! and does not affect the other fields.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{ApiError, MAX_LIST_ITEMS};
pub(crate) use crate::content::decode_string;

/// Maximum number of fields that are read from an object; later fields are ignored. Providers send
/// twenty at most.
pub(crate) const MAX_OBJECT_FIELDS: usize = 256;

/// The fields of one object in their order. Of fields with the same name, the last one that is not
/// `null` counts.
#[derive(Debug, Default)]
pub(crate) struct ObjectView<'a>(Vec<(String, &'a RawValue)>);

impl<'a> ObjectView<'a> {
    /// Parses a JSON object; `None` for any other text.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns a view of a raw value; `None` if the value is not an object.
    pub(crate) fn from_raw(value: &'a RawValue) -> Option<Self> {
        Self::parse(value.get())
    }

    /// Iterates over the fields in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Returns a field that is present and not `null`.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let field = self.0.iter().rfind(|(key, raw)| key == name && raw.get() != "null");
        field.map(|(_, value)| *value)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(decode_string)
    }

    pub(crate) fn non_empty_text(&self, name: &str) -> Option<String> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// Returns a non-negative integer. A string with digits counts too: some providers write large
    /// integers as strings.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.get().trim_matches('"').parse().ok()
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }

    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        Self::from_raw(self.get(name)?)
    }

    /// Returns the items of an array, at most [`MAX_LIST_ITEMS`] plus one.
    pub(crate) fn list(&self, name: &str) -> Option<Vec<&'a RawValue>> {
        parse_array(self.get(name)?.get())
    }

    /// Returns the items of an array in a response, none if the field is not an array. The caller
    /// limits the number of content parts.
    ///
    /// # Errors
    ///
    /// The array has more than [`MAX_LIST_ITEMS`] items.
    pub(crate) fn bounded_list(&self, name: &str) -> Result<Vec<&'a RawValue>, ApiError> {
        let items = self.list(name).unwrap_or_default();
        if items.len() > MAX_LIST_ITEMS {
            let message =
                format!("the list `{name}` of the response has more than {MAX_LIST_ITEMS} items");
            return Err(ApiError::invalid_response(message));
        }
        Ok(items)
    }
}

/// Parses an array and returns its items, at most [`MAX_LIST_ITEMS`] plus one.
pub(crate) fn parse_array(text: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str::<RawItems<'_>>(text).ok().map(|items| items.0)
}

/// Returns the strings of the named field in an array of objects, in order.
pub(crate) fn texts_of_field(array: &[&RawValue], name: &str) -> Vec<String> {
    let objects = array.iter().copied().filter_map(ObjectView::from_raw);
    objects.filter_map(|object| object.non_empty_text(name)).collect()
}

/// Returns the arguments of a call as text: an object verbatim, the content of a string, `{}` if
/// missing.
pub(crate) fn arguments_text(raw: Option<&RawValue>) -> String {
    let text = raw.map(|raw| decode_string(raw).unwrap_or_else(|| raw.get().to_owned()));
    text.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| "{}".to_owned())
}

/// Whether the complete text is one JSON value.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

struct RawItems<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for ObjectView<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawItems<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ArrayVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = ObjectView<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key()? {
            let value = map.next_value()?;
            if fields.len() < MAX_OBJECT_FIELDS {
                fields.push((name, value));
            }
        }
        Ok(ObjectView(fields))
    }
}

struct ArrayVisitor;

impl<'de> Visitor<'de> for ArrayVisitor {
    type Value = RawItems<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while items.len() <= MAX_LIST_ITEMS {
            let Some(item) = array.next_element()? else { return Ok(RawItems(items)) };
            items.push(item);
        }
        while array.next_element::<IgnoredAny>()?.is_some() {}
        Ok(RawItems(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_an_unexpected_type_is_absent() {
        let text = r#"{"a":"x","n":12,"no":null,"o":{"b":[1, 2]},"t":true,"a":"y","s":"9","e":""}"#;
        let fields = ObjectView::parse(text).unwrap();
        assert_eq!(fields.text("a").as_deref(), Some("y"), "the last of two");
        assert_eq!((fields.text("n"), fields.text("e").as_deref()), (None, Some("")));
        assert_eq!(
            (fields.non_empty_text("a").as_deref(), fields.non_empty_text("e")),
            (Some("y"), None)
        );
        assert_eq!((fields.number("n"), fields.number("s")), (Some(12), Some(9)));
        assert_eq!((fields.number("a"), fields.number("o")), (None, None));
        assert!(fields.get("no").is_none() && fields.get("missing").is_none());
        let object = fields.object("o").unwrap();
        assert_eq!(
            (object.list("b").unwrap().len(), object.bounded_list("b").unwrap().len()),
            (2, 2)
        );
        assert!(fields.object("a").is_none() && fields.list("o").is_none());
        assert!(fields.bounded_list("o").unwrap().is_empty());
        assert!(fields.is_true("t") && !fields.is_true("a"));
        assert_eq!(fields.iter().count(), 8);
        for text in ["[]", "7", "{", "", r#"{"a":}"#] {
            assert!(ObjectView::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn of_fields_with_one_name_the_last_counts_that_is_not_null() {
        let fields =
            ObjectView::parse(r#"{"a":"x","a":"y","a":null,"b":null,"b":1,"c":null}"#).unwrap();
        assert_eq!((fields.text("a").as_deref(), fields.number("b")), (Some("y"), Some(1)));
        assert!(fields.get("c").is_none());
    }

    #[test]
    fn a_value_is_as_it_was_written() {
        let text = r#"{"a\n": 1.00e2 ,"s":"\u00e9","o":{"x":12345678901234567890123}}"#;
        let fields = ObjectView::parse(text).unwrap();
        assert_eq!(fields.get("a\n").unwrap().get(), "1.00e2");
        assert_eq!(fields.text("s").unwrap(), "é");
        let object = fields.object("o").unwrap();
        assert_eq!(object.get("x").unwrap().get(), "12345678901234567890123");
        assert_eq!(object.number("x"), None);
    }

    #[test]
    fn of_many_fields_and_items_no_more_than_the_limit_are_kept() {
        for (count, expected) in
            [(MAX_OBJECT_FIELDS, MAX_OBJECT_FIELDS), (MAX_OBJECT_FIELDS + 1, MAX_OBJECT_FIELDS)]
        {
            let fields: Vec<_> = (0..count).map(|at| format!("\"f{at}\":{at}")).collect();
            let text = format!("{{{}}}", fields.join(","));
            assert_eq!(ObjectView::parse(&text).unwrap().iter().count(), expected);
        }
        for (count, expected) in [
            (MAX_LIST_ITEMS, MAX_LIST_ITEMS),
            (MAX_LIST_ITEMS + 1, MAX_LIST_ITEMS + 1),
            (MAX_LIST_ITEMS + 9, MAX_LIST_ITEMS + 1),
        ] {
            let text = format!("{{\"l\":[{}]}}", vec!["0"; count].join(","));
            let fields = ObjectView::parse(&text).unwrap();
            assert_eq!(fields.list("l").unwrap().len(), expected);
            assert_eq!(fields.bounded_list("l").is_ok(), count <= MAX_LIST_ITEMS);
        }
    }

    #[test]
    fn half_a_surrogate_pair_costs_no_text() {
        let fields = ObjectView::parse(r#"{"a":"x\ud83d","b":"\ud83d\ude00"}"#).unwrap();
        let text = fields.text("a").unwrap();
        assert!(text.starts_with('x') && text.ends_with('\u{fffd}'), "{text}");
        assert_eq!(fields.text("b").as_deref(), Some("\u{1f600}"));
    }

    #[test]
    fn arguments_are_text_as_they_are_written() {
        for (value, expected) in [
            (r#"{"n": 1234567890123456789012}"#, r#"{"n": 1234567890123456789012}"#),
            (r#""{\"a\":1}""#, r#"{"a":1}"#),
            (r#""""#, "{}"),
            ("null", "{}"),
            ("[1]", "[1]"),
        ] {
            let text = format!(r#"{{"arguments":{value}}}"#);
            assert_eq!(
                arguments_text(ObjectView::parse(&text).unwrap().get("arguments")),
                expected
            );
        }
        assert_eq!(arguments_text(None), "{}");
    }
}
