//! Detects duplicate keys in JSON objects.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Maximum depth of the search; the host rejects deeper arguments.
const MAX_DEPTH: usize = 128;

/// Returns the first duplicate key of an object at any level of the JSON text.
pub(super) fn find_duplicate_key(json: &str) -> Option<String> {
    find_duplicate_key_to_depth(json.trim_ascii_start(), MAX_DEPTH)
}

fn find_duplicate_key_to_depth(json: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match json.as_bytes().first()? {
        b'{' => {
            let RawMembers(members) = serde_json::from_str(json).ok()?;
            let mut keys = HashSet::new();
            let duplicate = members.iter().find(|(key, _)| !keys.insert(key)).map(|(key, _)| key);
            duplicate.cloned().or_else(|| {
                members
                    .iter()
                    .find_map(|(_, value)| find_duplicate_key_to_depth(value.get(), depth))
            })
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            items.iter().find_map(|item| find_duplicate_key_to_depth(item.get(), depth))
        }
        _ => None,
    }
}

/// The members of an object as JSON text.
struct RawMembers<'j>(Vec<(String, &'j RawValue)>);

impl<'de> Deserialize<'de> for RawMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawMembersVisitor)
    }
}

struct RawMembersVisitor;

impl<'de> Visitor<'de> for RawMembersVisitor {
    type Value = RawMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(RawMembers(members))
    }
}
