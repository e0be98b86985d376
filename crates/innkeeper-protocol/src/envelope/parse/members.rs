//! The six members of an envelope, borrowed from the line.

use serde_json::value::RawValue;

use super::MAX_MESSAGE_DEPTH;
use crate::envelope::{MalformedKind, MalformedMessage};
use crate::id::RequestId;
use crate::raw_text::from_checked;
use crate::skim::CheckedCursor;
use crate::text::decode_string;

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
    /// Reads the members in one pass. Returns `None` if the text is not a JSON object, or is nested
    /// more deeply than [`MAX_MESSAGE_DEPTH`].
    pub(super) fn read(json: &'a str) -> Option<Self> {
        let mut members = Self::default();
        let mut cursor = CheckedCursor::new(json);
        if !cursor.eat(b'{') {
            return None;
        }
        if !cursor.eat(b'}') {
            loop {
                let key = MemberKey::from_raw(cursor.key()?);
                let value = cursor.value(MAX_MESSAGE_DEPTH - 1)?;
                if key != MemberKey::Other {
                    members.insert(key, from_checked(value)?);
                }
                if !cursor.eat(b',') {
                    break;
                }
            }
            if !cursor.eat(b'}') {
                return None;
            }
        }
        cursor.peek().is_none().then_some(members)
    }

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
    /// Reads a key without its quotes.
    fn from_raw(key: &str) -> Self {
        if key.contains('\\') {
            return decode_string(&format!("\"{key}\""))
                .map_or(Self::Other, |key| Self::from_name(&key));
        }
        Self::from_name(key)
    }

    fn from_name(name: &str) -> Self {
        match name {
            "jsonrpc" => Self::Jsonrpc,
            "id" => Self::Id,
            "method" => Self::Method,
            "params" => Self::Params,
            "result" => Self::Result,
            "error" => Self::Error,
            _ => Self::Other,
        }
    }
}
