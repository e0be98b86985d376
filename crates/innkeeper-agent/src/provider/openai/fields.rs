//! One level of a JSON object, each member as it was written: what is not as expected is not there.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The members of an object in their order.
#[derive(Debug, Default)]
pub(in crate::provider) struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Those of an object; `None` of anything else.
    pub(in crate::provider) fn of(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// In their order.
    pub(in crate::provider) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// A member that is not `null`.
    pub(in crate::provider) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let (_, value) = self.0.iter().find(|(it, _)| it == name)?;
        (value.get() != "null").then_some(*value)
    }

    /// A member that is an object.
    pub(in crate::provider) fn object(&self, name: &str) -> Option<Self> {
        Self::of(self.get(name)?.get())
    }

    /// The elements of a member that is an array; none of anything else.
    pub(in crate::provider) fn array(&self, name: &str) -> Vec<&'a RawValue> {
        self.get(name).map(|value| values(value.get())).unwrap_or_default()
    }

    /// A member that is a string.
    pub(in crate::provider) fn text(&self, name: &str) -> Option<String> {
        text(self.get(name)?)
    }

    /// A member that is a string with something in it.
    pub(in crate::provider) fn word(&self, name: &str) -> Option<String> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// A member that is a whole number, or the text of one.
    pub(in crate::provider) fn number(&self, name: &str) -> Option<u64> {
        let value = self.get(name)?;
        let number = value.get().parse().ok();
        number.or_else(|| text(value)?.parse().ok())
    }
}

impl<'a> Deserialize<'a> for Fields<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'a> Visitor<'a> for MembersVisitor {
    type Value = Fields<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Fields<'a>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Fields(members))
    }
}

/// The elements of an array; none of anything else.
pub(in crate::provider) fn values(text: &str) -> Vec<&RawValue> {
    serde_json::from_str(text).unwrap_or_default()
}

/// The texts that the named member has in the objects of an array, in their order.
pub(in crate::provider) fn texts(array: &[&RawValue], name: &str) -> Vec<String> {
    let objects = array.iter().filter_map(|it| Fields::of(it.get()));
    objects.filter_map(|object| object.word(name)).collect()
}

/// The text of a string.
pub(in crate::provider) fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// The most members of an object that is put together; those in use have ten.
pub(in crate::provider) const MEMBERS: usize = 256;

/// The members of an object that is put together, so many at most: more are left out.
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
        let full = self.0.len() >= MEMBERS;
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
        for at in 0..=MEMBERS {
            members.add(&at.to_string(), &at);
        }
        let last = MEMBERS - 1;
        assert_eq!(members.get(&last.to_string()).unwrap().get(), last.to_string());
        assert!(members.get(&MEMBERS.to_string()).is_none());
        members.set("0", &"again");
        assert_eq!(members.get("0").unwrap().get(), "\"again\"");
    }

    #[test]
    fn a_member_is_as_it_was_written_or_not_there() {
        let text = r#"{"a\n": 1.00e2 ,"s":"\u00e9","n":null,"o":{"x":12345678901234567890123},"l":[1,"2"],"d":"7"}"#;
        let fields = Fields::of(text).unwrap();
        assert_eq!(fields.get("a\n").unwrap().get(), "1.00e2");
        assert_eq!(fields.text("s").unwrap(), "é");
        assert!(fields.get("n").is_none());
        let object = fields.object("o").unwrap();
        assert_eq!(object.get("x").unwrap().get(), "12345678901234567890123");
        assert_eq!(object.number("x"), None);
        assert_eq!(fields.array("l").len(), 2);
        assert!(fields.array("s").is_empty());
        assert_eq!(fields.number("d"), Some(7));
        assert_eq!(fields.text("o"), None);
        assert!(Fields::of("[]").is_none());
        assert!(Fields::of("{").is_none());
    }
}
