//! One level of JSON, each value as it was written and read only as what it is asked for.
//!
//! So a field of an unexpected kind is one that is not there, and loses nothing of the others.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Fault, LIST};

/// The most fields of an object that are read, those behind them are not: providers use twenty at
/// most.
pub(crate) const FIELDS: usize = 256;

/// The fields of one object in the order they are written; of those with one name the last counts
/// that is not `null`.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// The object that a text is, if it is one.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The object that a value is, if it is one.
    pub(crate) fn of(value: &'a RawValue) -> Option<Self> {
        Self::parse(value.get())
    }

    /// In the order in which they were written.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// A field that is there and not `null`.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().rfind(|(known, it)| known == name && it.get() != "null");
        found.map(|(_, value)| *value)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(string)
    }

    /// A string with something in it.
    pub(crate) fn word(&self, name: &str) -> Option<String> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// A whole number from 0, or the text of one: there are providers that write large ones so.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.get().trim_matches('"').parse().ok()
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }

    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        Self::of(self.get(name)?)
    }

    /// The items of an array; of more than [`LIST`] one more than that.
    pub(crate) fn list(&self, name: &str) -> Option<Vec<&'a RawValue>> {
        items(self.get(name)?.get())
    }

    /// The items of an array that is a part of the answer; none where there is no array. How many of
    /// them are parts is for who puts them together.
    ///
    /// # Errors
    ///
    /// There are more than [`LIST`].
    pub(crate) fn parts(&self, name: &str) -> Result<Vec<&'a RawValue>, Fault> {
        let parts = self.list(name).unwrap_or_default();
        if parts.len() > LIST {
            let message = format!("the list `{name}` of the answer has more than {LIST} items");
            return Err(Fault::unreadable(message));
        }
        Ok(parts)
    }
}

/// The items of an array; of more than [`LIST`] one more than that.
pub(crate) fn items(text: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str::<Items<'_>>(text).ok().map(|items| items.0)
}

/// The texts that the named field has in the objects of an array, in their order.
pub(crate) fn texts(array: &[&RawValue], name: &str) -> Vec<String> {
    let objects = array.iter().copied().filter_map(Fields::of);
    objects.filter_map(|object| object.word(name)).collect()
}

/// The text of a JSON string. Half a surrogate pair, as servers send that cut texts by UTF-16, is
/// replaced.
pub(crate) fn string(raw: &RawValue) -> Option<String> {
    struct Bytes;

    impl Visitor<'_> for Bytes {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }

    let text = raw.get();
    if !text.starts_with('"') {
        return None;
    }
    let exact = serde_json::from_str(text).ok();
    exact.or_else(|| serde_json::Deserializer::from_str(text).deserialize_bytes(Bytes).ok())
}

/// The arguments of a call as text: an object as it is written, a string's content, `{}` for none.
pub(crate) fn arguments(raw: Option<&RawValue>) -> String {
    let text = raw.map(|raw| string(raw).unwrap_or_else(|| raw.get().to_owned()));
    text.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| "{}".to_owned())
}

/// Whether a text is JSON from its beginning to its end.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

struct Items<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Object)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Array)
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
        while items.len() <= LIST {
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
    fn a_field_is_read_as_what_it_is_asked_for_or_not_there() {
        let text = r#"{"a":"x","n":12,"no":null,"o":{"b":[1, 2]},"t":true,"a":"y","s":"9","e":""}"#;
        let fields = Fields::parse(text).unwrap();
        assert_eq!(fields.text("a").as_deref(), Some("y"), "the last of two");
        assert_eq!((fields.text("n"), fields.text("e").as_deref()), (None, Some("")));
        assert_eq!((fields.word("a").as_deref(), fields.word("e")), (Some("y"), None));
        assert_eq!((fields.number("n"), fields.number("s")), (Some(12), Some(9)));
        assert_eq!((fields.number("a"), fields.number("o")), (None, None));
        assert!(fields.get("no").is_none() && fields.get("missing").is_none());
        let object = fields.object("o").unwrap();
        assert_eq!((object.list("b").unwrap().len(), object.parts("b").unwrap().len()), (2, 2));
        assert!(fields.object("a").is_none() && fields.list("o").is_none());
        assert!(fields.parts("o").unwrap().is_empty());
        assert!(fields.is_true("t") && !fields.is_true("a"));
        assert_eq!(fields.iter().count(), 8);
        for text in ["[]", "7", "{", "", r#"{"a":}"#] {
            assert!(Fields::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn of_fields_with_one_name_the_last_counts_that_is_not_null() {
        let fields =
            Fields::parse(r#"{"a":"x","a":"y","a":null,"b":null,"b":1,"c":null}"#).unwrap();
        assert_eq!((fields.text("a").as_deref(), fields.number("b")), (Some("y"), Some(1)));
        assert!(fields.get("c").is_none());
    }

    #[test]
    fn a_value_is_as_it_was_written() {
        let text = r#"{"a\n": 1.00e2 ,"s":"\u00e9","o":{"x":12345678901234567890123}}"#;
        let fields = Fields::parse(text).unwrap();
        assert_eq!(fields.get("a\n").unwrap().get(), "1.00e2");
        assert_eq!(fields.text("s").unwrap(), "é");
        let object = fields.object("o").unwrap();
        assert_eq!(object.get("x").unwrap().get(), "12345678901234567890123");
        assert_eq!(object.number("x"), None);
    }

    #[test]
    fn of_many_fields_and_items_no_more_than_the_limit_are_kept() {
        for (written, kept) in [(FIELDS, FIELDS), (FIELDS + 1, FIELDS)] {
            let fields: Vec<_> = (0..written).map(|at| format!("\"f{at}\":{at}")).collect();
            let text = format!("{{{}}}", fields.join(","));
            assert_eq!(Fields::parse(&text).unwrap().iter().count(), kept);
        }
        for (written, kept) in [(LIST, LIST), (LIST + 1, LIST + 1), (LIST + 9, LIST + 1)] {
            let text = format!("{{\"l\":[{}]}}", vec!["0"; written].join(","));
            let fields = Fields::parse(&text).unwrap();
            assert_eq!(fields.list("l").unwrap().len(), kept);
            assert_eq!(fields.parts("l").is_ok(), written <= LIST);
        }
    }

    #[test]
    fn half_a_surrogate_pair_costs_no_text() {
        let fields = Fields::parse(r#"{"a":"x\ud83d","b":"\ud83d\ude00"}"#).unwrap();
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
            assert_eq!(arguments(Fields::parse(&text).unwrap().get("arguments")), expected);
        }
        assert_eq!(arguments(None), "{}");
    }
}
