//! Keys of a configuration that have no meaning here, kept for whoever knows them.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

/// Unknown keys with their values, in file order.
///
/// Their values are not understood and so may be secret: `Debug` and `Serialize` show the keys only.
#[derive(Clone, Default, PartialEq)]
pub struct Kept(Map<String, Value>);

impl Kept {
    pub(super) fn new(keys: Map<String, Value>) -> Self {
        Self(keys)
    }

    /// The value of one key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// The keys, in file order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Serialize for Kept {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.keys())
    }
}
