//! The six members of an envelope, borrowed from the line.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::envelope::{MalformedKind, MalformedMessage};
use crate::id::RequestId;
use crate::text::key_is;

/// The members of an envelope as raw JSON. Unknown members are skipped.
#[derive(Debug, Default)]
pub(super) struct EnvelopeMembers<'a> {
    pub(super) jsonrpc: Option<&'a RawValue>,
    pub(super) id: Option<&'a RawValue>,
    pub(super) method: Option<&'a RawValue>,
    pub(super) params: Option<&'a RawValue>,
    pub(super) result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    /// The first name that occurs twice. The field of that name contains the first value.
    pub(super) duplicate_key: Option<&'static str>,
    /// Whether there are two different ids. Neither id is then reliable.
    ids_differ: bool,
}

impl<'a> EnvelopeMembers<'a> {
    pub(super) fn to_malformed(&self, kind: MalformedKind, detail: &str) -> MalformedMessage {
        let id = self.id.filter(|_| !self.ids_differ).map(RawValue::get);
        let is_response =
            self.method.is_none() && (self.result.is_some() || self.error().is_some());
        MalformedMessage {
            id: id.and_then(RequestId::from_raw),
            looks_like_response: is_response,
            ..MalformedMessage::without_id(kind, detail)
        }
    }

    /// Returns the error. `null` counts as absent, because some servers write every member they
    /// know.
    pub(super) fn error(&self) -> Option<&'a RawValue> {
        self.error.filter(|error| error.get() != "null")
    }

    fn insert(&mut self, key: MemberKey, value: &'a RawValue) {
        let (name, slot) = match key {
            MemberKey::Jsonrpc => ("jsonrpc", &mut self.jsonrpc),
            MemberKey::Id => ("id", &mut self.id),
            MemberKey::Method => ("method", &mut self.method),
            MemberKey::Params => ("params", &mut self.params),
            MemberKey::Result => ("result", &mut self.result),
            MemberKey::Error => ("error", &mut self.error),
            MemberKey::Other => return,
        };
        let Some(first) = slot else {
            *slot = Some(value);
            return;
        };
        self.ids_differ |= key == MemberKey::Id && first.get() != value.get();
        self.duplicate_key.get_or_insert(name);
    }
}

impl<'de> Deserialize<'de> for EnvelopeMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = EnvelopeMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON-RPC object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<EnvelopeMembers<'de>, A::Error> {
                let mut members = EnvelopeMembers::default();
                // Raw keys, because serde_json decodes no key with a lone surrogate, and the name of
                // an unknown member must not lose the message.
                while let Some(raw_key) = map.next_key::<&RawValue>()? {
                    let key = MemberKey::from_raw(raw_key.get());
                    if key == MemberKey::Other {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        members.insert(key, map.next_value()?);
                    }
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberKey {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    Other,
}

impl MemberKey {
    /// Reads a key with its quotes.
    fn from_raw(raw_key: &str) -> Self {
        const NAMES: [(&str, MemberKey); 6] = [
            ("jsonrpc", MemberKey::Jsonrpc),
            ("id", MemberKey::Id),
            ("method", MemberKey::Method),
            ("params", MemberKey::Params),
            ("result", MemberKey::Result),
            ("error", MemberKey::Error),
        ];
        let key = raw_key.trim_matches('"');
        let found = NAMES.into_iter().find(|(name, _)| key_is(key, name));
        found.map_or(Self::Other, |(_, key)| key)
    }
}
