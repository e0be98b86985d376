//! The `_meta` of requests: client, revision, trace context, progress token.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use indexmap::IndexMap;
use innkeeper_protocol::request_meta::{META_CLIENT_CAPABILITIES, META_LOG_LEVEL};
use innkeeper_protocol::skim;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::log_level::LogLevel;
use crate::telemetry::TraceContext;

/// The `_meta` members common to all requests to one server; empty in the legacy era.
#[derive(Debug, Default)]
pub(crate) struct ClientMeta {
    members: Vec<(String, Box<RawValue>)>,
    /// The number of the log level in [`LogLevel::ALL`], from 1; 0 for none.
    log_level: AtomicU8,
}

impl ClientMeta {
    /// Splits an object into its members once, so that requests need not parse it.
    pub(crate) fn from_raw(meta: &RawValue) -> Self {
        let members = skim::members(meta.get())
            .filter_map(|(key, value)| {
                Some((key.to_owned(), RawValue::from_string(value.to_owned()).ok()?))
            })
            .collect();
        Self { members, log_level: AtomicU8::new(0) }
    }

    /// Sets the level of the log messages. Requests of the modern era contain the level.
    pub(crate) fn set_log_level(&self, level: LogLevel) {
        let number = LogLevel::ALL.iter().zip(1..).find(|(known, _)| **known == level);
        self.log_level.store(number.map_or(0, |(_, number)| number), Ordering::Relaxed);
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        let index = usize::from(self.log_level.load(Ordering::Relaxed)).checked_sub(1)?;
        LogLevel::ALL.get(index).copied()
    }

    /// Returns whether the host writes this member itself.
    pub(crate) fn contains(&self, key: &str) -> bool {
        key == PROGRESS_TOKEN
            || key == META_LOG_LEVEL
            || self.members.iter().any(|(own, _)| own == key)
    }

    /// Returns the `_meta` of one request, if not empty; a token requests progress.
    pub(crate) fn meta(&self, token: Option<u64>) -> Option<Meta<'_>> {
        self.meta_with_trace(token, None, &NO_CALLER_META)
    }

    /// Like [`Self::meta`], for a request that is part of a trace and has members of its caller.
    pub(crate) fn meta_with_trace<'a>(
        &'a self,
        progress_token: Option<u64>,
        trace: Option<Arc<TraceContext>>,
        caller_meta: &'a CallerMeta,
    ) -> Option<Meta<'a>> {
        let some = progress_token.is_some()
            || trace.is_some()
            || !self.members.is_empty()
            || !caller_meta.members.is_empty();
        some.then_some(Meta {
            client_meta: self,
            caller_meta,
            progress_token,
            trace_context: trace,
        })
    }
}

/// The member that requests progress.
const PROGRESS_TOKEN: &str = "progressToken";

static NO_CALLER_META: CallerMeta = CallerMeta { members: Vec::new(), capabilities: None };

/// The `_meta` members that the caller of one request adds.
#[derive(Debug, Default)]
pub(crate) struct CallerMeta {
    members: Vec<(String, Box<RawValue>)>,
    /// The capabilities of the remote client, which replace those of the host.
    capabilities: Option<Arc<RawValue>>,
}

impl CallerMeta {
    /// Creates the members from an object with unique keys.
    pub(crate) fn from_object(meta: &RawValue) -> Result<Self, serde_json::Error> {
        let members: IndexMap<String, Box<RawValue>> = serde_json::from_str(meta.get())?;
        Ok(Self { members: members.into_iter().collect(), capabilities: None })
    }

    /// Sets the capabilities of the remote client.
    #[must_use]
    pub(crate) fn with_capabilities(self, capabilities: Option<Arc<RawValue>>) -> Self {
        Self { capabilities, ..self }
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(key, _)| &**key)
    }

    fn contains(&self, key: &str) -> bool {
        self.keys().any(|own| own == key)
    }
}

/// The serializable `_meta` of one request.
#[derive(Clone, Debug)]
pub(crate) struct Meta<'a> {
    client_meta: &'a ClientMeta,
    caller_meta: &'a CallerMeta,
    progress_token: Option<u64>,
    trace_context: Option<Arc<TraceContext>>,
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(token) = self.progress_token {
            map.serialize_entry(PROGRESS_TOKEN, &token)?;
        }
        for (key, value) in &self.client_meta.members {
            match &self.caller_meta.capabilities {
                Some(capabilities) if key == META_CLIENT_CAPABILITIES => {
                    map.serialize_entry(key, capabilities)?;
                }
                _ => map.serialize_entry(key, value)?,
            }
        }
        // A request of the legacy era contains no level.
        let level = self.client_meta.log_level().filter(|_| !self.client_meta.members.is_empty());
        if let Some(level) = level {
            map.serialize_entry(META_LOG_LEVEL, &level)?;
        }
        for (key, value) in &self.caller_meta.members {
            map.serialize_entry(key, value)?;
        }
        // A caller with a trace context of its own continues its own trace.
        let trace = self.trace_context.iter().flat_map(|trace| trace.fields());
        for (key, value) in trace.filter(|(key, _)| !self.caller_meta.contains(key)) {
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
    fn the_trace_context_of_the_caller_replaces_the_fields_of_the_host_and_no_others() {
        let mut trace_context = TraceContext::default();
        trace_context.set("traceparent", "00-1-2-01".to_owned());
        trace_context.set("tracestate", "a=1".to_owned());
        let own = RawValue::from_string(r#"{"traceparent":"00-3-4-01"}"#.to_owned()).unwrap();
        let caller_meta = CallerMeta::from_object(&own).unwrap();
        let identity = ClientMeta::default();
        let meta = identity.meta_with_trace(None, Some(Arc::new(trace_context)), &caller_meta);
        let sent = to_value(meta).unwrap();
        assert_eq!(sent, json!({ "traceparent": "00-3-4-01", "tracestate": "a=1" }));
    }

    #[test]
    fn a_request_carries_who_asks_and_its_token_and_nothing_where_there_is_neither() {
        assert!(ClientMeta::default().meta(None).is_none());
        let token = to_value(ClientMeta::default().meta(Some(7))).unwrap();
        assert_eq!(token, json!({ "progressToken": 7 }));
        let raw = RawValue::from_string(r#"{"a/b": {"c": 1e400}}"#.to_owned()).unwrap();
        let identity = ClientMeta::from_raw(&raw);
        let text = serde_json::to_string(&identity.meta(Some(7))).unwrap();
        assert_eq!(text, r#"{"progressToken":7,"a/b":{"c": 1e400}}"#);
        let mut trace_context = TraceContext::default();
        trace_context.set("traceparent", "00-1-2-01".to_owned());
        let identity = ClientMeta::default();
        let meta =
            identity.meta_with_trace(None, Some(Arc::new(trace_context.clone())), &NO_CALLER_META);
        assert_eq!(to_value(meta).unwrap(), json!({ "traceparent": "00-1-2-01" }));
        let capabilities = RawValue::from_string(r#"{"roots": {}}"#.to_owned()).unwrap();
        let caller = CallerMeta::default().with_capabilities(Some(capabilities.into()));
        assert!(identity.meta_with_trace(None, None, &caller).is_none(), "the era is legacy");
        let own = format!(r#"{{"{META_CLIENT_CAPABILITIES}":{{"sampling":{{}}}},"a/b":1}}"#);
        let modern = ClientMeta::from_raw(&RawValue::from_string(own).unwrap());
        let text = serde_json::to_string(&modern.meta_with_trace(None, None, &caller)).unwrap();
        assert_eq!(text, format!(r#"{{"{META_CLIENT_CAPABILITIES}":{{"roots": {{}}}},"a/b":1}}"#));
        let raw = RawValue::from_string(r#"{"traceparent":"00-7-8-01","n":1.50}"#.to_owned());
        let caller = CallerMeta::from_object(&raw.unwrap()).unwrap();
        let meta = identity.meta_with_trace(None, Some(Arc::new(trace_context)), &caller);
        let text = serde_json::to_string(&meta).unwrap();
        assert_eq!(text, r#"{"traceparent":"00-7-8-01","n":1.50}"#);
    }
}
