//! The trace context in the `_meta` of a request.

use opentelemetry::propagation::{Extractor, Injector};

/// The fields that MCP reserves for W3C contexts. All other unprefixed names in `_meta` belong to
/// MCP.
const CONTEXT_FIELDS: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// Maximum length of a value in bytes: the W3C limit for baggage. Trace fields are much shorter.
const MAX_VALUE_BYTES: usize = 8192;

/// The trace context of a request: `traceparent`, `tracestate` and `baggage`, each up to 8 KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext([Option<String>; CONTEXT_FIELDS.len()]);

impl TraceContext {
    /// Reads the fields of a request; `value` returns the value of a field. Omits values that are
    /// empty or longer than 8 KiB. Returns `None` without `traceparent`.
    pub fn read(value: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let mut context = Self::default();
        for field in CONTEXT_FIELDS {
            if let Some(value) = value(field) {
                context.set(field, value);
            }
        }
        context.get(CONTEXT_FIELDS[0]).is_some().then_some(context)
    }

    /// Returns whether a member of `_meta` is one of the fields.
    pub fn has_field(key: &str) -> bool {
        CONTEXT_FIELDS.contains(&key)
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let fields = CONTEXT_FIELDS.into_iter().zip(&self.0);
        fields.filter_map(|(field, value)| Some((field, value.as_deref()?)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}

impl Extractor for TraceContext {
    fn get(&self, key: &str) -> Option<&str> {
        self.fields().find(|(field, _)| field.eq_ignore_ascii_case(key)).map(|(_, value)| value)
    }

    fn keys(&self) -> Vec<&str> {
        self.fields().map(|(field, _)| field).collect()
    }
}

impl Injector for TraceContext {
    fn set(&mut self, key: &str, value: String) {
        let at = CONTEXT_FIELDS.iter().position(|field| field.eq_ignore_ascii_case(key));
        if let Some(at) = at.filter(|_| !value.is_empty() && value.len() <= MAX_VALUE_BYTES) {
            self.0[at] = Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_w3c_fields_are_sent_up_to_their_limit_and_no_others() {
        let mut context = TraceContext::default();
        context.set("tracestate", String::new());
        context.set("progressToken", "7".to_owned());
        context.set("b3", "0".to_owned());
        context.set("baggage", "x".repeat(MAX_VALUE_BYTES + 1));
        assert!(context.is_empty());
        context.set("Traceparent", "00-1-2-01".to_owned());
        context.set("baggage", "x".repeat(MAX_VALUE_BYTES));
        let names: Vec<&str> = context.fields().map(|(name, _)| name).collect();
        assert_eq!(names, ["traceparent", "baggage"]);
    }

    #[test]
    fn the_context_of_a_request_is_its_three_fields_and_none_without_the_parent() {
        let value = |field: &str| (field != "tracestate").then(|| format!("value of {field}"));
        let context = TraceContext::read(value).unwrap();
        assert_eq!(context.keys(), ["traceparent", "baggage"]);
        assert_eq!(context.get("TraceParent"), Some("value of traceparent"));
        assert_eq!((context.get("tracestate"), context.get("b3")), (None, None));
        assert!(!context.is_empty());
        assert_eq!(TraceContext::read(|field| value(field).filter(|_| field == "baggage")), None);
        for (key, is_field) in [
            ("traceparent", true),
            ("tracestate", true),
            ("baggage", true),
            ("progressToken", false),
        ] {
            assert_eq!(TraceContext::has_field(key), is_field, "{key}");
        }
    }
}
