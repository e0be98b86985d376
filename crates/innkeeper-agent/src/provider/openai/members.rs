//! An object that is put together of members as they were written.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::provider::codec::FIELDS;

/// The members of an object that is put together, [`FIELDS`] at most: more are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::provider) struct Members(Vec<Member>);

#[derive(Clone, Debug)]
struct Member {
    name: String,
    value: Box<RawValue>,
}

impl PartialEq for Member {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.value.get()) == (&other.name, other.value.get())
    }
}

impl Members {
    /// Adds a member, unless one of this name is there.
    pub(in crate::provider) fn add(&mut self, name: &str, value: &impl Serialize) {
        if self.get(name).is_none() {
            self.set(name, value);
        }
    }

    /// Sets a member, in the place of the one of this name.
    pub(in crate::provider) fn set(&mut self, name: &str, value: &impl Serialize) {
        let value = raw(value);
        let full = self.0.len() >= FIELDS;
        match self.0.iter_mut().find(|it| it.name == name) {
            Some(member) => member.value = value,
            None if full => {}
            None => self.0.push(Member { name: name.to_owned(), value }),
        }
    }

    /// Adds others behind those that are there.
    pub(in crate::provider) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    pub(in crate::provider) fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|it| it.name == name).map(|it| &*it.value)
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for member in &self.0 {
            map.serialize_entry(&member.name, &member.value)?;
        }
        map.end()
    }
}

/// What can always be written as JSON, written.
pub(in crate::provider) fn raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_put_together_of_so_many_members_and_no_more() {
        let mut members = Members::default();
        for at in 0..=FIELDS {
            members.add(&at.to_string(), &at);
        }
        let last = FIELDS - 1;
        assert_eq!(members.get(&last.to_string()).unwrap().get(), last.to_string());
        assert!(members.get(&FIELDS.to_string()).is_none());
        members.set("0", &"again");
        assert_eq!(members.get("0").unwrap().get(), "\"again\"");
    }
}
