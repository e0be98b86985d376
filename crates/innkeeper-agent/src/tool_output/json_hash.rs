//! Hashes of JSON texts: equal for equal values, in any order of the members of objects.
//!
//! A comparison of two hashes needs no tree of values, which takes up to 30 times the bytes of the
//! text. The key of the hash is random, so that no server can find another value with the same hash.

use std::hash::{BuildHasher, Hash, RandomState};

use innkeeper_protocol::skim::{self, Token};
use serde_json::value::RawValue;

/// Hashes values with one random key; hashes of different keys are not comparable.
#[derive(Debug, Default)]
pub(super) struct ValueHasher(RandomState);

/// An array or object whose end is not reached.
enum OpenContainer {
    /// The hash of the items so far.
    Array(u64),
    /// The sum of the hashes of the members so far, and the hash of the last name.
    Object { members: u64, name: u64 },
}

impl ValueHasher {
    /// Returns the hash of a JSON text, or `None` for a text that is no JSON. Numbers are different
    /// if their digits are. Memory: at most the longest string, and a few bytes per level.
    pub(super) fn hash_json(&self, text: &str) -> Option<u64> {
        serde_json::from_str::<&RawValue>(text).ok()?;
        let mut open = Vec::new();
        for token in skim::tokens(text) {
            let value = match token {
                Token::Key(raw) => {
                    if let Some(OpenContainer::Object { name, .. }) = open.last_mut() {
                        *name = self.0.hash_one(skim::decode_key(raw));
                    }
                    continue;
                }
                Token::ObjectStart => {
                    open.push(OpenContainer::Object { members: 0, name: 0 });
                    continue;
                }
                Token::ArrayStart => {
                    open.push(OpenContainer::Array(0));
                    continue;
                }
                Token::ObjectEnd | Token::ArrayEnd => self.hash_container(&open.pop()?),
                Token::String(raw) => self.hash_string(&skim::decode_string(raw)?),
                Token::Scalar(raw) => self.hash_of_kind("scalar", raw),
            };
            match open.last_mut() {
                Some(OpenContainer::Array(items)) => *items = self.0.hash_one((*items, value)),
                // A sum, because the order of the members makes no difference.
                Some(OpenContainer::Object { members, name }) => {
                    *members = members.wrapping_add(self.0.hash_one((*name, value)));
                }
                None => return Some(value),
            }
        }
        None
    }

    pub(super) fn hash_string(&self, content: &str) -> u64 {
        self.hash_of_kind("string", content)
    }

    fn hash_container(&self, container: &OpenContainer) -> u64 {
        match container {
            OpenContainer::Array(items) => self.hash_of_kind("array", items),
            OpenContainer::Object { members, .. } => self.hash_of_kind("object", members),
        }
    }

    fn hash_of_kind(&self, kind: &str, value: impl Hash) -> u64 {
        self.0.hash_one((kind, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_equal_hashes_in_any_order_of_members_and_other_values_have_not() {
        let hasher = ValueHasher::default();
        let hash = |text: &str| hasher.hash_json(text).unwrap();
        for (one, other) in [
            (r#"{"a":{},"b":[1.50]}"#, "{\n \"b\" : [1.50],\n \"a\":{}}"),
            (r#"{"a":"\u0061"}"#, r#"{"\u0061":"a"}"#),
            ("[[],[{}]]", " [ [ ], [ { } ] ] "),
        ] {
            assert_eq!(hash(one), hash(other), "{one}");
        }
        let different = [
            "1",
            "\"1\"",
            "1.0",
            "null",
            "\"null\"",
            "[]",
            "{}",
            "[[]]",
            "[1,2]",
            "[2,1]",
            "[[1],2]",
            "[[1,2]]",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"b":1}"#,
            r#"{"a":1,"b":2}"#,
            r#"{"a":2,"b":1}"#,
            r#"{"a":{"b":1}}"#,
            r#"[{"a":1},{"b":2}]"#,
        ];
        let hashes: std::collections::HashSet<u64> =
            different.iter().map(|text| hash(text)).collect();
        assert_eq!(hashes.len(), different.len());
    }

    #[test]
    fn a_text_that_is_no_json_has_no_hash() {
        for text in ["", "a", "1 2", "[1", "{\"a\":}"] {
            assert_eq!(ValueHasher::default().hash_json(text), None, "{text}");
        }
    }
}
