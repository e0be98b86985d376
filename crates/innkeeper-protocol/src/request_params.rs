//! The members of a request's `params`, found in one pass.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::params_error::ParamsError;
use crate::skim::{KeyTracker, decode_key};
use crate::view::ViewError;

/// The `params` of a request, with its members as text of the request. Without `params`, there are
/// no members.
#[derive(Clone, Debug, Default)]
pub struct RequestParams<'a> {
    raw: Option<&'a RawValue>,
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> RequestParams<'a> {
    /// Finds the members of `params`, without a copy of their values.
    ///
    /// # Errors
    ///
    /// Returns an error if `params` is not an object, or if two of its members have the same key.
    pub fn from_raw(params: Option<&'a RawValue>) -> Result<Self, ParamsError> {
        let Some(raw) = params else { return Ok(Self::default()) };
        let Ok(Members(members)) = serde_json::from_str(raw.get()) else {
            return Err(ViewError::new(String::new(), "an object", Some(raw.get())).into());
        };
        let mut tracker = KeyTracker::default();
        tracker.start_object();
        members.iter().for_each(|(key, _)| tracker.add_key(Cow::Borrowed(&**key)));
        if tracker.end_object() {
            return Err(ParamsError::DuplicateKey { object: "params" });
        }
        Ok(Self { raw: params, members })
    }

    /// Returns the whole `params`.
    pub fn raw(&self) -> Option<&'a RawValue> {
        self.raw
    }

    /// Returns a member; `null` is a value like any other.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.members.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }
}

/// The members of an object: decoded key, raw value.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                // Raw keys, because serde_json decodes no key with a lone surrogate.
                while let Some(key) = map.next_key::<&RawValue>()? {
                    let key = key.get();
                    let key = key.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
                    members.push((decode_key(key.unwrap_or_default()), map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn members_are_found_by_their_decoded_keys_with_the_text_of_their_values() {
        let text = r#"{"\u006eame": "a" , "n":1.50,"arguments":{ "a":[1e400] },"\ud800":null}"#;
        let owned = raw(text);
        let params = RequestParams::from_raw(Some(&owned)).unwrap();
        let value = |key| params.get(key).map(RawValue::get);
        assert_eq!(value("name"), Some("\"a\""));
        assert_eq!(value("n"), Some("1.50"));
        assert_eq!(value("arguments"), Some(r#"{ "a":[1e400] }"#));
        assert_eq!(value("absent"), None);
        assert_eq!(params.raw().map(RawValue::get), Some(text));
        assert!(RequestParams::from_raw(None).unwrap().get("name").is_none());
    }

    /// Attack: remote | a request has two members with one name, one of them with escapes | the
    /// request is rejected | Complete checks
    #[test]
    fn params_that_two_readers_can_read_differently_are_rejected() {
        for (text, message) in [
            ("[1]", "invalid `params`: expected an object, found an array"),
            (
                r#"{"name":1,"\u006eame":2}"#,
                "two members of one object in `params` have the same key",
            ),
        ] {
            let error = RequestParams::from_raw(Some(&raw(text))).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
