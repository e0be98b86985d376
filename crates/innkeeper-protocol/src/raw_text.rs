//! Raw JSON values from text that is already checked.

use serde::Deserialize;
use serde::de::value::{BorrowedStrDeserializer, Error};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

/// Returns checked JSON text as a raw value.
///
/// `serde_json` has no such function, and would check the text a second time. Its raw values accept
/// text from the deserializer of every format that offers them; this function is such a
/// deserializer. The form in which a raw value asks for its text is not public: if the form changes,
/// this function parses.
pub(crate) fn from_checked(text: &str) -> Option<&RawValue> {
    <&RawValue>::deserialize(CheckedText { text, name: None })
        .ok()
        .or_else(|| serde_json::from_str(text).ok())
}

/// Offers the text as the only entry of a map, whose key is the name that the raw value asked for.
struct CheckedText<'a> {
    text: &'a str,
    /// The key of the entry, until it is read.
    name: Option<&'static str>,
}

impl<'de> Deserializer<'de> for CheckedText<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("only raw values"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(Self { name: Some(name), ..self })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for CheckedText<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(name) = self.name.take() else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(BorrowedStrDeserializer::new(self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checked_text_becomes_a_raw_value_without_a_second_check() {
        let text = r#"{"a": [1e999, "\ud83d"]}"#;
        assert_eq!(from_checked(text).unwrap().get(), text);
        // Text that the caller did not check shows that nothing parses it.
        assert_eq!(from_checked("{").map(RawValue::get), Some("{"));
    }
}
