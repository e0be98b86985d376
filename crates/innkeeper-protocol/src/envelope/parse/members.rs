//! The six members of an envelope, borrowed from the line.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::envelope::{Malformed, MalformedKind};
use crate::id::RequestId;

/// The members of an envelope as raw JSON; those with other names are skipped.
#[derive(Debug, Default)]
pub(super) struct Members<'a> {
    pub(super) jsonrpc: Option<&'a RawValue>,
    pub(super) id: Option<&'a RawValue>,
    pub(super) method: Option<&'a RawValue>,
    pub(super) params: Option<&'a RawValue>,
    pub(super) result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    /// The first name that stands there twice; its first value is kept.
    pub(super) duplicate: Option<&'static str>,
    /// Two ids that differ: neither can be believed.
    ids_differ: bool,
}

impl<'a> Members<'a> {
    pub(super) fn malformed(&self, kind: MalformedKind, detail: &str) -> Malformed {
        let id = self.id.filter(|_| !self.ids_differ).map(RawValue::get);
        let answers = self.method.is_none() && (self.result.is_some() || self.error().is_some());
        Malformed {
            id: id.and_then(RequestId::from_raw),
            looks_like_response: answers,
            ..Malformed::nameless(kind, detail)
        }
    }

    /// The error. Servers that write every member they know say `null` where there is none.
    pub(super) fn error(&self) -> Option<&'a RawValue> {
        self.error.filter(|error| error.get() != "null")
    }

    fn put(&mut self, key: Key, value: &'a RawValue) {
        let (name, slot) = match key {
            Key::Jsonrpc => ("jsonrpc", &mut self.jsonrpc),
            Key::Id => ("id", &mut self.id),
            Key::Method => ("method", &mut self.method),
            Key::Params => ("params", &mut self.params),
            Key::Result => ("result", &mut self.result),
            Key::Error => ("error", &mut self.error),
            Key::Other => return,
        };
        let Some(first) = slot else {
            *slot = Some(value);
            return;
        };
        self.ids_differ |= key == Key::Id && first.get() != value.get();
        self.duplicate.get_or_insert(name);
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON-RPC object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Members::default();
                while let Some(key) = map.next_key()? {
                    if key == Key::Other {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        members.put(key, map.next_value()?);
                    }
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Object)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    Other,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;

        impl Visitor<'_> for Name {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Key, E> {
                Ok(match name {
                    "jsonrpc" => Key::Jsonrpc,
                    "id" => Key::Id,
                    "method" => Key::Method,
                    "params" => Key::Params,
                    "result" => Key::Result,
                    "error" => Key::Error,
                    _ => Key::Other,
                })
            }
        }

        deserializer.deserialize_identifier(Name)
    }
}
