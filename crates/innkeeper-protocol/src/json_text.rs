//! Values that write themselves as JSON text.

use serde::Serialize;
use serde_json::{Error, Map, Value};

use crate::json_string::write_string;

/// A value with a JSON text.
///
/// Every [`Serialize`] has one. A type that is written for each call implements the trait itself,
/// with [`write_value`] for the values of an application: `serde_json` looks at each byte of a
/// string alone.
pub trait JsonText {
    /// Appends the text.
    ///
    /// # Errors
    ///
    /// Returns an error if the value has no JSON text. `out` may have a part of the text then.
    fn write_json(&self, out: &mut Vec<u8>) -> Result<(), Error>;
}

impl<T: Serialize + ?Sized> JsonText for T {
    fn write_json(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        serde_json::to_writer(out, self)
    }
}

/// Appends the text of a value, with the bytes that `serde_json` writes. The nesting of the value is
/// the caller's to limit.
///
/// # Errors
///
/// Never in practice: every number of a value has a text.
pub fn write_value(out: &mut Vec<u8>, value: &Value) -> Result<(), Error> {
    match value {
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                write_separator(out, index);
                write_value(out, item)?;
            }
            out.push(b']');
        }
        Value::Object(members) => write_object(out, members)?,
        Value::Null | Value::Bool(_) | Value::Number(_) => value.write_json(out)?,
    }
    Ok(())
}

/// Like [`write_value`], for an object.
///
/// # Errors
///
/// As [`write_value`].
pub fn write_object(out: &mut Vec<u8>, members: &Map<String, Value>) -> Result<(), Error> {
    out.push(b'{');
    for (index, (name, value)) in members.iter().enumerate() {
        write_separator(out, index);
        write_string(out, name);
        out.push(b':');
        write_value(out, value)?;
    }
    out.push(b'}');
    Ok(())
}

/// Appends a member with a separator before it. The name needs no escapes.
///
/// # Errors
///
/// Returns the error of the value.
pub fn write_member(
    out: &mut Vec<u8>,
    name: &str,
    value: &(impl JsonText + ?Sized),
) -> Result<(), Error> {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    value.write_json(out)
}

fn write_separator(out: &mut Vec<u8>, index: usize) {
    if index > 0 {
        out.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_written_as_serde_json_writes_it() {
        let value = json!({
            "a\n\"b": [1, -2.5, 1e300, u64::MAX, null, true, false, "\u{1}\t\\", [], {}, [[]]],
            "": { "nested": { "deeper": ["x", "y"] } },
        });
        let mut out = Vec::new();
        write_value(&mut out, &value).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
    }
}
