//! A key that stands twice in one object: which of the two was meant, nobody can know.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How deep is looked; a host takes no arguments that are deeper.
const MAX_DEPTH: usize = 128;

/// The first key of JSON text that its object has twice, at any level.
pub(super) fn repeated(json: &str) -> Option<String> {
    look(json.trim_ascii_start(), MAX_DEPTH)
}

fn look(json: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match json.as_bytes().first()? {
        b'{' => {
            let Members(members) = serde_json::from_str(json).ok()?;
            let mut keys = HashSet::new();
            let twice = members.iter().find(|(key, _)| !keys.insert(key)).map(|(key, _)| key);
            twice.cloned().or_else(|| members.iter().find_map(|(_, it)| look(it.get(), depth)))
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            items.iter().find_map(|item| look(item.get(), depth))
        }
        _ => None,
    }
}

/// The members of an object, each as it stands there.
struct Members<'j>(Vec<(String, &'j RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}
