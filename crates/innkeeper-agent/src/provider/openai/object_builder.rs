//! Builds a JSON object from raw members.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::provider::codec::MAX_OBJECT_FIELDS;

/// The members of a JSON object. Members beyond [`MAX_OBJECT_FIELDS`] are dropped.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::provider) struct ObjectBuilder(Vec<ObjectMember>);

#[derive(Clone, Debug)]
struct ObjectMember {
    name: String,
    value: Box<RawValue>,
}

impl PartialEq for ObjectMember {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.value.get()) == (&other.name, other.value.get())
    }
}

impl ObjectBuilder {
    /// Adds a member if the name is absent.
    pub(in crate::provider) fn set_if_absent(&mut self, name: &str, value: &impl Serialize) {
        if self.get(name).is_none() {
            self.set(name, value);
        }
    }

    /// Sets a member and replaces a member with the same name.
    pub(in crate::provider) fn set(&mut self, name: &str, value: &impl Serialize) {
        let value = to_raw(value);
        let full = self.0.len() >= MAX_OBJECT_FIELDS;
        match self.0.iter_mut().find(|entry| entry.name == name) {
            Some(member) => member.value = value,
            None if full => {}
            None => self.0.push(ObjectMember { name: name.to_owned(), value }),
        }
    }

    /// Appends the members of another object.
    pub(in crate::provider) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    pub(in crate::provider) fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|member| member.name == name).map(|member| &*member.value)
    }
}

impl Serialize for ObjectBuilder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for member in &self.0 {
            map.serialize_entry(&member.name, &member.value)?;
        }
        map.end()
    }
}

/// Serializes a value that always has a JSON form.
pub(in crate::provider) fn to_raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_members_is_limited() {
        let mut members = ObjectBuilder::default();
        for at in 0..=MAX_OBJECT_FIELDS {
            members.set_if_absent(&at.to_string(), &at);
        }
        let last = MAX_OBJECT_FIELDS - 1;
        assert_eq!(members.get(&last.to_string()).unwrap().get(), last.to_string());
        assert!(members.get(&MAX_OBJECT_FIELDS.to_string()).is_none());
        members.set("0", &"again");
        assert_eq!(members.get("0").unwrap().get(), "\"again\"");
    }
}
