//! How large a JSON value is.

use serde_json::Value;

/// How far down a value is looked at; deeper ones are beyond what JSON parsers accept.
const DEPTH: usize = 512;

/// The memory of one JSON value without the text in it, in bytes.
const VALUE: u64 = 72;

/// The size of a JSON value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Size {
    /// How many values it consists of, itself included.
    pub(super) values: u64,
    /// The length of all names and strings, in bytes.
    pub(super) text: u64,
    /// How many arrays and objects lie inside one another.
    pub(super) depth: usize,
}

impl Size {
    pub(super) fn of(value: &Value) -> Self {
        let mut size = Self::default();
        size.add(value, 0);
        size
    }

    fn add(&mut self, value: &Value, depth: usize) {
        self.values += 1;
        self.depth = self.depth.max(depth);
        match value {
            Value::String(text) => self.text += text.len() as u64,
            Value::Array(elements) if depth < DEPTH => {
                elements.iter().for_each(|element| self.add(element, depth + 1));
            }
            Value::Object(members) if depth < DEPTH => {
                for (name, member) in members {
                    self.text += name.len() as u64;
                    self.add(member, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Roughly what it takes in memory, in bytes.
    pub(super) fn memory(self) -> u64 {
        self.values * VALUE + self.text
    }
}
