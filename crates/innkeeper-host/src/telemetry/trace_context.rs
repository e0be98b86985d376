//! The trace context in the `_meta` of a request.

use opentelemetry::propagation::Injector;

/// The fields that MCP reserves for W3C contexts. All other unprefixed names in `_meta` belong to
/// MCP.
const CONTEXT_FIELDS: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// Maximum length of a value in bytes: the W3C limit for baggage. Trace fields are much shorter.
const MAX_VALUE_BYTES: usize = 8192;

/// The allowed fields that a propagator set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TraceContext([Option<String>; CONTEXT_FIELDS.len()]);

impl TraceContext {
    /// Returns the fields with their values.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let fields = CONTEXT_FIELDS.into_iter().zip(&self.0);
        fields.filter_map(|(field, value)| Some((field, value.as_deref()?)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
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
}
