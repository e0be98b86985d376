//! The members of an object, each read only when it is asked for and only as what it is asked for.
//!
//! So a member of an unexpected kind is one that is not there, and loses nothing of the others.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members in the order they are written; of two with one name the last counts.
pub(crate) struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The members of an object, if the text is one.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// A member that is there and not `null`.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().rfind(|(known, _)| known == name);
        found.map(|(_, value)| *value).filter(|value| value.get() != "null")
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(string)
    }

    /// A number that counts something.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }

    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        Self::of(self.get(name)?.get())
    }

    pub(crate) fn list(&self, name: &str) -> Option<Vec<&'a RawValue>> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// The text of a JSON string. Half a surrogate pair, as servers send that cut texts by UTF-16, is
/// replaced.
fn string(raw: &RawValue) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_read_as_what_it_is_asked_for_or_not_there() {
        let text = r#"{"a":"x","n":12,"no":null,"o":{"b":[1, 2]},"t":true,"a":"y"}"#;
        let members = Members::of(text).unwrap();
        assert_eq!(members.text("a").as_deref(), Some("y"));
        assert_eq!(
            (members.text("n"), members.number("n"), members.number("a")),
            (None, Some(12), None)
        );
        assert!(members.get("no").is_none() && members.get("missing").is_none());
        assert_eq!(members.object("o").unwrap().list("b").unwrap().len(), 2);
        assert!(members.is_true("t") && !members.is_true("a"));
        assert_eq!(members.iter().count(), 6);
        for text in ["[]", "{", "", r#"{"a":}"#] {
            assert!(Members::of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_costs_no_text() {
        let members = Members::of(r#"{"a":"x\ud83d","b":"\ud83d\ude00"}"#).unwrap();
        let text = members.text("a").unwrap();
        assert!(text.starts_with('x') && text.ends_with('\u{fffd}'), "{text}");
        assert_eq!(members.text("b").as_deref(), Some("\u{1f600}"));
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
            assert_eq!(arguments(Members::of(&text).unwrap().get("arguments")), expected);
        }
        assert_eq!(arguments(None), "{}");
    }
}
