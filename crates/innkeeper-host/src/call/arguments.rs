//! The arguments of a call: a JSON object, as values or as JSON text.

mod rounded_numbers;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use innkeeper_protocol::http::ParamHeaders;
use innkeeper_protocol::skim::has_duplicate_key;
use innkeeper_protocol::{JsonText, write_value};
use serde::Serialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::error::Violation;

/// The arguments of a tool call.
///
/// The host sends JSON text byte for byte, so numbers keep all their digits. The host checks the
/// text as values before it sends anything, and rejects text that it cannot check: a duplicate key,
/// a number outside the range of a 64-bit float, or a fraction of more than 2^52. A limit of the
/// schema applies to an integer of more than 64 bits with the precision of a 64-bit float. A call
/// also rejects arguments that are nested deeper than 120 levels, and arguments that do not match the
/// tool's `inputSchema`.
///
/// # Examples
///
/// ```
/// use innkeeper_host::Arguments;
/// use serde_json::json;
/// use serde_json::value::RawValue;
///
/// let values = Arguments::from(json!({"path": "a.txt"}));
/// let text = Arguments::from(RawValue::from_string(r#"{"id": 123456789012345678901234567890}"#.to_owned())?);
///
/// #[derive(serde::Serialize)]
/// struct Read { path: &'static str }
/// let typed = Arguments::from_serialize(&Read { path: "a.txt" })?;
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Arguments(ArgumentSource);

#[derive(Clone, Debug)]
enum ArgumentSource {
    Values(Value),
    Text(Box<RawValue>),
}

impl Arguments {
    /// Creates arguments from a type that serializes as an object.
    ///
    /// # Errors
    ///
    /// Returns the error of the serialization. JSON has no NaN and no infinity: `serde_json` writes
    /// `null` for them.
    pub fn from_serialize(arguments: &impl Serialize) -> Result<Self, serde_json::Error> {
        to_raw_value(arguments).map(Self::from)
    }

    /// Returns the values to check; an object without members for `null`.
    pub(super) fn values(&self) -> Result<Cow<'_, Value>, Violation> {
        let values = match &self.0 {
            ArgumentSource::Values(values) => Cow::Borrowed(values),
            ArgumentSource::Text(text) => Cow::Owned(parse_for_check(text)?),
        };
        Ok(if values.is_null() { Cow::Owned(Value::Object(Map::new())) } else { values })
    }

    /// Returns the arguments as they are sent; `values` is the result of [`Self::values`].
    pub(super) fn to_send<'a>(&'a self, values: &'a Value) -> SentArguments<'a> {
        match &self.0 {
            ArgumentSource::Text(text) if text.get() != "null" => SentArguments::Text(text),
            ArgumentSource::Text(_) | ArgumentSource::Values(_) => SentArguments::Values(values),
        }
    }
}

impl From<Value> for Arguments {
    fn from(values: Value) -> Self {
        Self(ArgumentSource::Values(values))
    }
}

/// An object without members.
impl From<()> for Arguments {
    fn from((): ()) -> Self {
        Value::Null.into()
    }
}

impl From<Map<String, Value>> for Arguments {
    fn from(members: Map<String, Value>) -> Self {
        Value::Object(members).into()
    }
}

impl From<Box<RawValue>> for Arguments {
    fn from(text: Box<RawValue>) -> Self {
        Self(ArgumentSource::Text(text))
    }
}

impl From<&RawValue> for Arguments {
    fn from(text: &RawValue) -> Self {
        text.to_owned().into()
    }
}

/// Checked arguments in the form in which they are sent.
#[derive(Clone, Copy)]
pub(super) enum SentArguments<'a> {
    Values(&'a Value),
    Text(&'a RawValue),
}

impl SentArguments<'_> {
    /// Returns the headers that repeat arguments.
    pub(super) fn headers(self, params: &ParamHeaders) -> Vec<(String, String)> {
        if params.is_empty() {
            return Vec::new();
        }
        match self {
            Self::Text(text) => params.for_arguments(text),
            Self::Values(values) => {
                to_raw_value(values).map_or_else(|_| Vec::new(), |text| params.for_arguments(&text))
            }
        }
    }
}

impl JsonText for SentArguments<'_> {
    fn write_json(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        match self {
            Self::Values(values) => write_value(out, values),
            Self::Text(text) => {
                out.extend_from_slice(text.get().as_bytes());
                Ok(())
            }
        }
    }
}

/// Parses JSON text and rejects a duplicate key, because a server may read either of the values.
pub(super) fn parse_unique(text: &RawValue) -> Result<Value, Violation> {
    if has_duplicate_key(text.get())
        && let Some(pointer) = find_duplicate_key(text)
    {
        return Err(Violation::new(pointer, "duplicate key".to_owned()));
    }
    let values = serde_json::from_str(text.get()).map_err(unchecked)?;
    if !has_finite_numbers(&values) {
        return Err(unchecked("number out of range"));
    }
    Ok(values)
}

fn unchecked(reason: impl fmt::Display) -> Violation {
    Violation::of_whole_value(format!("cannot be checked: {reason}"))
}

/// Parses JSON text like [`parse_unique`], with numbers that no check mistakes for another number.
fn parse_for_check(text: &RawValue) -> Result<Value, Violation> {
    let mut value = parse_unique(text)?;
    if rounded_numbers::may_occur(text.get(), &value) {
        rounded_numbers::replace(&mut value, text.get())?;
    }
    Ok(value)
}

/// Returns whether each number is in the range of a 64-bit float. Only with the feature
/// `arbitrary_precision` can a value contain other numbers.
fn has_finite_numbers(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(f64::is_finite),
        Value::Array(items) => items.iter().all(has_finite_numbers),
        Value::Object(members) => members.values().all(has_finite_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// Returns the JSON pointer of the first duplicate key.
fn find_duplicate_key(text: &RawValue) -> Option<String> {
    let mut path = Vec::new();
    let mut duplicate = None;
    let seed = UniqueKeys { path: &mut path, duplicate: &mut duplicate };
    let mut deserializer = serde_json::Deserializer::from_str(text.get());
    // The search ends with an error.
    seed.deserialize(&mut deserializer).err().and(duplicate)
}

/// Stops at the first duplicate key of a value.
struct UniqueKeys<'s> {
    /// The keys and indexes that lead to the current value.
    path: &'s mut Vec<String>,
    /// The JSON pointer of the duplicate key.
    duplicate: &'s mut Option<String>,
}

impl UniqueKeys<'_> {
    fn child(&mut self) -> UniqueKeys<'_> {
        UniqueKeys { path: &mut *self.path, duplicate: &mut *self.duplicate }
    }

    fn pointer(&self) -> String {
        let parts = self.path.iter();
        parts.map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1"))).collect()
    }
}

impl<'de> DeserializeSeed<'de> for UniqueKeys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _value: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _value: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _value: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _value: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _value: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        for index in 0_usize.. {
            self.path.push(index.to_string());
            let item = items.next_element_seed(self.child())?;
            self.path.pop();
            if item.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            self.path.push(key.clone());
            if !keys.insert(key) {
                *self.duplicate = Some(self.pointer());
                return Err(de::Error::custom("duplicate key"));
            }
            members.next_value_seed(self.child())?;
            self.path.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn sent(arguments: &Arguments, values: &Value) -> String {
        let mut text = Vec::new();
        arguments.to_send(values).write_json(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn text_is_sent_byte_for_byte_with_all_its_digits() {
        let text = r#"{ "n": 123456789012345678901234567890, "f": 1.50 , "s":"\u0061"}"#;
        let arguments = Arguments::from(raw(text));
        let values = arguments.values().unwrap();
        assert_eq!(sent(&arguments, &values), text);
    }

    /// Attack: model | arguments have two members with one name, one of them with escapes | the
    /// arguments are rejected | Complete checks
    #[test]
    fn a_duplicate_key_is_rejected_by_its_pointer_even_if_it_is_escaped() {
        for (text, pointer) in [
            (r#"{"a": 1, "a": 2}"#, "/a"),
            (r#"{"a": 1, "\u0061": 2}"#, "/a"),
            (r#"{"l": [{}, {"x/y": 1, "x/y": 1}]}"#, "/l/1/x~1y"),
        ] {
            let problem = Arguments::from(raw(text)).values().unwrap_err();
            assert_eq!((&*problem.pointer, &*problem.message), (pointer, "duplicate key"));
        }
    }

    #[test]
    fn a_number_that_no_float_can_hold_is_rejected() {
        let problem = Arguments::from(raw(r#"{"n": 1e999}"#)).values().unwrap_err();
        assert!(problem.message.contains("number out of range"), "{problem:?}");
    }

    #[test]
    fn null_stands_for_an_object_without_members() {
        for arguments in [Arguments::from(Value::Null), Arguments::from(raw("null"))] {
            let values = arguments.values().unwrap();
            assert_eq!(sent(&arguments, &values), "{}");
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e300..1e300).prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((".{0,4}", inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn unique_values_are_parsed_as_serde_json_parses_them(value in any_value()) {
            let text = value.to_string();
            let expected: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(parse_unique(&raw(&text)).unwrap(), expected);
        }
    }

    /// Fails under the feature `serde_json/arbitrary_precision` if the check keeps the values.
    #[test]
    fn the_numbers_of_text_are_numbers() {
        let values = parse_unique(&raw(r#"{"a": [1, -2.5, {"b": 1e2}]}"#)).unwrap();
        let numbers = [&values["a"][0], &values["a"][1], &values["a"][2]["b"]];
        assert!(numbers.iter().all(|number| number.is_number()), "{values:?}");
        assert_eq!(numbers.map(|number| number.as_f64()), [Some(1.0), Some(-2.5), Some(100.0)]);
    }

    #[test]
    fn a_type_that_serializes_as_an_object_is_accepted() {
        #[derive(Serialize)]
        struct Wide {
            n: u128,
        }
        let arguments = Arguments::from_serialize(&Wide { n: u128::MAX }).unwrap();
        let values = arguments.values().unwrap();
        let sent = sent(&arguments, &values);
        assert_eq!(sent, format!(r#"{{"n":{}}}"#, u128::MAX));
    }
}
