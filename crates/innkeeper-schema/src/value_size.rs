//! The size of a JSON value.

use serde_json::Value;

/// Maximum depth of the measurement; JSON parsers reject deeper values.
const MAX_MEASURED_DEPTH: usize = 512;

/// Memory of one JSON value without its text, in bytes.
const VALUE_BYTES: u64 = 72;

/// The size of a JSON value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ValueSize {
    /// Number of values, including itself.
    pub(crate) values: u64,
    /// Total length of names and strings, in bytes.
    pub(crate) text_bytes: u64,
    /// Nesting depth of arrays and objects.
    pub(crate) depth: usize,
}

impl ValueSize {
    pub(crate) fn measure(value: &Value) -> Self {
        let mut size = Self::default();
        size.add(value, 0);
        size
    }

    fn add(&mut self, value: &Value, depth: usize) {
        self.values += 1;
        self.depth = self.depth.max(depth);
        match value {
            Value::String(text) => self.text_bytes += text.len() as u64,
            Value::Array(elements) if depth < MAX_MEASURED_DEPTH => {
                elements.iter().for_each(|element| self.add(element, depth + 1));
            }
            Value::Object(members) if depth < MAX_MEASURED_DEPTH => {
                for (name, member) in members {
                    self.text_bytes += name.len() as u64;
                    self.add(member, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Returns the approximate memory use, in bytes.
    pub(crate) fn memory_bytes(self) -> u64 {
        self.values * VALUE_BYTES + self.text_bytes
    }
}
