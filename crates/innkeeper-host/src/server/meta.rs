//! The `_meta` of requests: who asks, in which revision, under which trace and progress token.

use std::sync::Arc;

use innkeeper_protocol::skim;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::telemetry::Carried;

/// What every request to one server carries; nothing in the legacy era.
#[derive(Debug, Default)]
pub(crate) struct Identity(Vec<(String, Box<RawValue>)>);

impl Identity {
    /// The members of an object, taken apart once so that no request has to.
    pub(crate) fn of(meta: &RawValue) -> Self {
        let member = |(key, value): (&str, &str)| {
            Some((key.to_owned(), RawValue::from_string(value.to_owned()).ok()?))
        };
        Self(skim::members(meta.get()).filter_map(member).collect())
    }

    /// The `_meta` of one request, if it has one; a token asks for progress.
    pub(crate) fn meta(&self, token: Option<u64>) -> Option<Meta<'_>> {
        self.carrying(token, None)
    }

    /// The same for a request that is part of a trace.
    pub(crate) fn carrying(
        &self,
        token: Option<u64>,
        carried: Option<Arc<Carried>>,
    ) -> Option<Meta<'_>> {
        let some = token.is_some() || carried.is_some() || !self.0.is_empty();
        some.then_some(Meta { identity: self, token, carried })
    }
}

/// The `_meta` of one request, ready to be written.
#[derive(Clone, Debug)]
pub(crate) struct Meta<'a> {
    identity: &'a Identity,
    token: Option<u64>,
    carried: Option<Arc<Carried>>,
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(token) = self.token {
            map.serialize_entry("progressToken", &token)?;
        }
        for (key, value) in &self.identity.0 {
            map.serialize_entry(key, value)?;
        }
        for (key, value) in self.carried.iter().flat_map(|carried| carried.fields()) {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::propagation::Injector;
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn a_request_carries_who_asks_and_its_token_and_nothing_where_there_is_neither() {
        assert!(Identity::default().meta(None).is_none());
        let token = to_value(Identity::default().meta(Some(7))).unwrap();
        assert_eq!(token, json!({ "progressToken": 7 }));
        let raw = RawValue::from_string(r#"{"a/b": {"c": 1e400}}"#.to_owned()).unwrap();
        let identity = Identity::of(&raw);
        let text = serde_json::to_string(&identity.meta(Some(7))).unwrap();
        assert_eq!(text, r#"{"progressToken":7,"a/b":{"c": 1e400}}"#);
        let mut carried = Carried::default();
        carried.set("traceparent", "00-1-2-01".to_owned());
        let identity = Identity::default();
        let meta = identity.carrying(None, Some(Arc::new(carried)));
        assert_eq!(to_value(meta).unwrap(), json!({ "traceparent": "00-1-2-01" }));
    }
}
