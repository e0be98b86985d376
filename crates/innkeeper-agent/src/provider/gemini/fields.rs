//! A JSON object that is read without trusting its shape: what is missing or of another type is
//! absent, and each value is kept as it was written.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::provider::codec::PARTS;

/// The most fields of an object that are read; those of the provider have twenty at most.
const FIELDS: usize = 64;

/// The fields of one object, in their order.
#[derive(Debug, Default)]
pub(crate) struct Fields<'j>(Vec<(String, &'j RawValue)>);

impl<'j> Fields<'j> {
    /// The object that a text is, if it is one.
    pub(crate) fn parse(text: &'j str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The object that a value is, if it is one.
    pub(crate) fn of(value: &'j RawValue) -> Option<Self> {
        Self::parse(value.get())
    }

    /// In the order in which they were written.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'j RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// A field that is not null; of two with one name the last.
    pub(crate) fn get(&self, name: &str) -> Option<&'j RawValue> {
        let (_, value) = self.0.iter().rev().find(|(it, _)| it == name)?;
        (value.get() != "null").then_some(*value)
    }

    /// A string.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// A whole number from 0; the provider writes large ones as strings.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        self.get(name)?.get().trim_matches('"').parse().ok()
    }

    /// Whether a field is `true`.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }

    /// An object; without fields where there is none.
    pub(crate) fn object(&self, name: &str) -> Self {
        self.get(name).and_then(Self::of).unwrap_or_default()
    }

    /// The items of an array, of more than [`PARTS`] one more than that; none where there is none.
    pub(crate) fn list(&self, name: &str) -> Vec<&'j RawValue> {
        self.get(name).map(items).unwrap_or_default()
    }
}

/// The items of an array, of more than [`PARTS`] one more than that; none where it is none.
pub(super) fn items(value: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str::<Items<'_>>(value.get()).map(|items| items.0).unwrap_or_default()
}

struct Items<'j>(Vec<&'j RawValue>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Object)
    }
}

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Array)
    }
}

struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key()? {
            let value = map.next_value()?;
            if fields.len() < FIELDS {
                fields.push((name, value));
            }
        }
        Ok(Fields(fields))
    }
}

struct Array;

impl<'de> Visitor<'de> for Array {
    type Value = Items<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while items.len() <= PARTS {
            let Some(item) = array.next_element()? else { return Ok(Items(items)) };
            items.push(item);
        }
        while array.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Items(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_another_type_is_absent() {
        let text = r#"{"n":7,"s":"9","t":"word","b":true,"x":null,"l":[1,{}],"o":{"a":1}}"#;
        let fields = Fields::parse(text).unwrap();
        assert_eq!((fields.count("n"), fields.count("s")), (Some(7), Some(9)));
        assert_eq!((fields.count("t"), fields.count("o")), (None, None));
        assert_eq!((fields.text("t").as_deref(), fields.text("n")), (Some("word"), None));
        assert!(fields.is("b") && !fields.is("t") && !fields.is("none"));
        assert!(fields.get("x").is_none() && fields.get("none").is_none());
        assert_eq!((fields.list("l").len(), fields.list("o").len()), (2, 0));
        assert_eq!(fields.object("o").count("a"), Some(1));
        assert_eq!(fields.object("l").iter().count(), 0);
        for no_object in ["[1]", "7", "", "{", "{\"a\":}"] {
            assert!(Fields::parse(no_object).is_none(), "{no_object}");
        }
    }

    #[test]
    fn of_many_fields_and_items_no_more_than_the_limit_are_kept() {
        for (written, kept) in [(FIELDS, FIELDS), (FIELDS + 1, FIELDS)] {
            let fields: Vec<_> = (0..written).map(|at| format!("\"f{at}\":{at}")).collect();
            let text = format!("{{{}}}", fields.join(","));
            assert_eq!(Fields::parse(&text).unwrap().iter().count(), kept);
        }
        for (written, kept) in [(PARTS, PARTS), (PARTS + 1, PARTS + 1), (PARTS + 9, PARTS + 1)] {
            let text = format!("{{\"l\":[{}]}}", vec!["0"; written].join(","));
            assert_eq!(Fields::parse(&text).unwrap().list("l").len(), kept);
        }
    }
}
