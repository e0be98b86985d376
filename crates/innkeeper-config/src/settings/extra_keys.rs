//! Unknown configuration keys, stored for the application.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

/// Unknown keys with their values, in file order.
///
/// The values may be secret: `Debug` and `Serialize` show only the keys.
#[derive(Clone, Default, PartialEq)]
pub struct ExtraKeys(Map<String, Value>);

impl ExtraKeys {
    pub(crate) fn new(keys: Map<String, Value>) -> Self {
        Self(keys)
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Returns the keys, in file order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns whether there are no unknown keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for ExtraKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Serialize for ExtraKeys {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.keys())
    }
}
